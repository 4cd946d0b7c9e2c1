"""The scripts in examples/ print what their docstrings say."""

import ast
import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
# Which `make test-integrations` runs.
OWN_ENVIRONMENT = [ROOT / "examples" / name for name in ("lightning_monitor.py", "pykeen_nations.py")]
EXAMPLES = sorted({*(ROOT / "examples").glob("*.py")} - {*OWN_ENVIRONMENT})
# Small models, whose measures differ in the second digit between kinds of processors, which round differently.
TRAINED = {"without_negatives"}
DECIMAL = re.compile(r"\d+\.\d+")


def promised(path):
    """What a docstring says after "Prints:"."""
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    return textwrap.dedent(docstring.partition("Prints:\n")[2]).strip()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_prints_what_it_promises(path, capsys):
    assert promised(path)
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out.strip()
    if path.stem not in TRAINED:
        assert printed == promised(path)
        return
    assert DECIMAL.sub("#", printed) == DECIMAL.sub("#", promised(path))
    found, expected = (np.array(DECIMAL.findall(text), float) for text in (printed, promised(path)))
    np.testing.assert_allclose(found, expected, atol=0.15)


def test_two_processes_of_torchrun_print_what_one_does():
    path = ROOT / "examples" / "distributed.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(path)]
    alone = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | alone)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == promised(path)
