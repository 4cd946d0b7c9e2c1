"""The scripts in examples/: one for each folder, short, and each prints what its docstring says."""

import ast
import runpy
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Folders that a user does not call by name, or that examples/mining.py uses; examples/audit.py is that of
# auditing, and examples/compare.py that of tasks and comparing.
INNER = {"kernels", "catalog", "demo", "integrations", "search", "encode", "formats", "jobs", "auditing"}
INNER |= {"tasks", "comparing"}
TRAINERS = {"sentence_transformers_refresh"}  # scripts around the trainer of another library


def promised(path):
    """What a docstring says after "Prints:"."""
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    return textwrap.dedent(docstring.partition("Prints:\n")[2]).strip()


def test_every_folder_has_an_example():
    folders = {path.parent.name for path in (ROOT / "src" / "naysay").glob("*/__init__.py")}
    assert folders - INNER <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_prints_what_it_promises(path, capsys):
    assert promised(path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip() == promised(path)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_short(path):
    assert len(path.read_text().splitlines()) < (40 if path.stem in TRAINERS else 60)
