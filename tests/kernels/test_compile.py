"""Compiled loops are cached, but never older than any file that they are made of."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress

import numba
import numpy as np
import pytest
from numba.core import caching

from naysay._rows import frozen
from naysay.kernels import compile as compiling
from naysay.kernels.compile import compiled, eight_products, eight_squares, inlined, prefetch

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


def test_a_loop_is_not_used_after_one_of_its_parts_has_changed(tmp_path):
    """A draw has the filter of csr.py inside: with an older one it would return known positives."""
    folder = tmp_path / "parts"
    folder.mkdir()
    shutil.copy(compiling.__file__, folder / "compile.py")
    (folder / "loop.py").write_text(LOOP)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}

    def run(added):
        (folder / "step.py").write_text(STEP.format(added))
        # No bytecode: two files of one size within a second are the same to Python, too.
        added_to = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        where = {"cwd": tmp_path, "env": environment | added_to}
        command = [sys.executable, "-c", RUN]
        return subprocess.run(command, **where, capture_output=True, text=True, timeout=120, check=True).stdout.split()

    assert run(10) == ["11", "0"]
    assert run(10) == ["11", "1"]  # from the cache
    assert run(20) == ["21", "0"]


SAYING = """
import sys
from parts.loop import loop
sys.stderr.isatty = lambda: {tty}
print(loop(1), loop(1.5))
"""


def test_the_first_use_on_a_terminal_says_that_it_compiles(tmp_path):
    """It compiled for 8 s in silence."""
    folder = tmp_path / "parts"
    folder.mkdir()
    shutil.copy(compiling.__file__, folder / "compile.py")
    (folder / "step.py").write_text(STEP.format(1))
    (folder / "loop.py").write_text(LOOP)

    def said(*, tty, cache):
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / cache)}
        command = [sys.executable, "-c", SAYING.format(tty=tty)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout == "2 2.5\n"
        return done.stderr

    assert said(tty=False, cache="pipe") == ""
    line = said(tty=True, cache="terminal")
    assert line.startswith("naysay: compiling")
    assert line.count("\n") == 1
    assert said(tty=True, cache="terminal") == ""  # from the cache


def on_a_terminal(command, **environment):
    """What a program writes to standard error, which is a terminal."""
    terminal, end = os.openpty()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=end, env=os.environ | environment
    ) as run:
        os.close(end)
        shown = b""
        with suppress(OSError):  # the end of a terminal is an error on Linux
            while part := os.read(terminal, 1 << 16):
                shown += part
        os.close(terminal)
        run.communicate(timeout=300)
    assert run.returncode == 0, shown
    return shown.decode()


IN_A_PROGRESS_BAR = """
from rich.console import Console
from rich.progress import Progress
from parts.loop import loop
with Progress(console=Console(stderr=True)) as bar:
    bar.add_task("counting")
    print(loop(1), loop(1.5))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
def test_a_progress_bar_does_not_hide_the_message(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    shutil.copy(compiling.__file__, folder / "compile.py")
    (folder / "step.py").write_text(STEP.format(1))
    (folder / "loop.py").write_text(LOOP)
    given = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", IN_A_PROGRESS_BAR]
    assert on_a_terminal(command, **given).count("naysay: compiling") == 1
    assert on_a_terminal(command, **given).count("naysay: compiling") == 0


def test_without_a_cache_the_message_is_there_too(monkeypatch, capsys):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(compiling, "_SAID", [])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    def thrice(value):
        return 3 * value

    loop = compiled(thrice)
    assert (loop(4), loop(5), loop(1.5)) == (12, 15, 4.5)
    assert capsys.readouterr().err.count("naysay: compiling") == 1


def test_nowhere_to_cache_is_no_reason_to_fail(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    def twice(value):
        return value + value

    assert compiled(twice)(4) == 8


def test_loops_are_cached_and_stamped_with_all_sources():
    from naysay.kernels import csr

    loop = csr.contains
    assert loop._cache._cache_file._source_stamp[1] == compiling._SOURCE
    assert loop.targetoptions["nogil"]


@pytest.mark.parametrize("index", [0, 9, 10, 10**6, -5])
def test_prefetch_never_faults(index):
    @inlined
    def touch(array, where):
        prefetch(array, where)
        return array[0]

    assert touch(np.arange(7, 17), index) == 7


def test_the_first_loop_does_not_load_scipy_and_matrix_products_still_do():
    """What numba asks SciPy at its first loop is slow; loops of others that need it find it."""
    code = """
import sys
import numpy as np
import naysay as ns
ns.Positives.from_pairs([0, 1], [1, 0])
assert "numba" in sys.modules and "scipy.linalg" not in sys.modules
import numba
product = numba.njit(lambda a, b: a @ b)
assert (product(np.eye(3), np.arange(9.0).reshape(3, 3)) == np.arange(9.0).reshape(3, 3)).all()
spread = numba.njit(lambda a: np.cov(a))
assert np.allclose(spread(np.arange(6.0).reshape(2, 3) ** 2), np.cov(np.arange(6.0).reshape(2, 3) ** 2))
assert "scipy.linalg" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@compiled
def _eight(query, rows, places, sums):
    eight_products(query, rows, places, sums[0])
    eight_squares(query, rows, places, sums[1])


@pytest.mark.parametrize("width", [1, 7, 8, 19])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_eight_sums_are_those_of_a_loop_in_order(width, kind):
    rng = np.random.default_rng(width)
    query, rows = rng.normal(size=width), frozen(rng.normal(size=(30, width)).astype(kind))
    places, sums = np.array([29, 0, 3, 3, 7, 12, 1, 28]), np.empty((2, 8))
    _eight(query, rows, np.append(places, rng.integers(0, 30, 8)), sums)
    for found, term in zip(sums, (lambda a, b: a * b, lambda a, b: (a - b) * (a - b)), strict=True):
        right = np.zeros(8)
        for i in range(width - width % 8):
            right += term(query[i], rows[places, i].astype(np.float64))
        np.testing.assert_array_equal(found, right)


def test_eight_sums_of_rows_that_are_not_contiguous_raise():
    rows = frozen(np.zeros((16, 30)).T)
    with pytest.raises(numba.core.errors.TypingError):
        _eight(np.zeros(16), rows, np.zeros(8, np.int64), np.zeros((2, 8)))
