"""Compiled loops are cached, but never older than any file that they are made of; and compiling is announced once."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress

import pytest

from naysay.kernels import compile as compiling

STEP = """
from parts.compile import inlined

@inlined
def step(value):
    return value + {}
"""
LOOP = """
from parts.compile import compiled
from parts.step import step

@compiled
def loop(value):
    return step(value)
"""
RUN = "from parts.loop import loop; print(loop(1), sum(loop.stats.cache_hits.values()))"
IN_A_PROGRESS_BAR = """
from rich.console import Console
from rich.progress import Progress
from parts.loop import loop
with Progress(console=Console(stderr=True)) as bar:
    bar.add_task("counting")
    print(loop(1), loop(1.5))
"""


@pytest.fixture
def parts(tmp_path):
    """A package with a loop, a step in another file, and our compile.py."""
    folder = tmp_path / "parts"
    folder.mkdir()
    shutil.copy(compiling.__file__, folder / "compile.py")
    (folder / "loop.py").write_text(LOOP)
    (folder / "step.py").write_text(STEP.format(1))
    return folder


def run(parts, code, **settings):
    # No bytecode: two files of one size within a second are the same to Python, too.
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(parts.parent), "PYTHONDONTWRITEBYTECODE": "1"} | settings
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)


def test_a_loop_is_not_used_after_one_of_its_parts_has_changed(parts):
    """A draw has the filter of csr.py inside: with an older one it would return known positives."""

    def result_and_hits(added):
        (parts / "step.py").write_text(STEP.format(added))
        return run(parts, RUN).stdout.split()

    assert result_and_hits(10) == ["11", "0"]
    assert result_and_hits(10) == ["11", "1"]  # from the cache
    assert result_and_hits(20) == ["21", "0"]


def test_without_a_folder_for_the_cache_loops_work_without_it(parts):
    done = run(parts, RUN, NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator")
    assert (done.stdout.split(), done.stderr) == (["2", "0"], "")  # not a terminal: no message


def on_a_terminal(command, **environment):
    """What a program writes to standard error, which is a terminal."""
    terminal, end = os.openpty()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=end, env=os.environ | environment
    ) as process:
        os.close(end)
        shown = b""
        with suppress(OSError):  # the end of a terminal is an error on Linux
            while part := os.read(terminal, 1 << 16):
                shown += part
        os.close(terminal)
        process.communicate(timeout=300)
    assert process.returncode == 0, shown
    return shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
def test_compiling_is_announced_once_and_a_progress_bar_does_not_hide_it(parts):
    given = {"PYTHONPATH": str(parts.parent), "NUMBA_CACHE_DIR": str(parts.parent / "cache")}
    command = [sys.executable, "-c", IN_A_PROGRESS_BAR]
    assert on_a_terminal(command, **given).count("naysay: compiling") == 1
