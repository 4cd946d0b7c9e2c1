"""Settings for all tests: one thread for torch and BLAS, no time limit on examples, small reports, working Ctrl-C."""

import gc
import multiprocessing
import os
import signal
import sys
import tracemalloc
from pathlib import Path

# Tests run side by side, and more threads than cores wait for each other. Before NumPy is loaded, which reads it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NAYSAY_THREADS", "1")  # tests of several threads set them
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a test that asks for a model by name fails at once

import pytest
from forked_processes import run_forked
from hypothesis import settings

from naysay import _console
from naysay.kernels import threads
from naysay.mining import report

report._TARGETS = 6  # in place of 48 in a report: each takes as long as the rest of the page

_console.FIRST_LINE = 600.0  # seconds: tests read what a command prints, however slow the machine is

# 25 examples a law, always the same; `pytest --hypothesis-profile=thorough` tries 500 others.
settings.register_profile("naysay", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile("naysay")

# A background process of a shell ignores Ctrl-C, and so do its children. Some tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # until all is loaded: millions of objects that all stay would be searched again and again


def pytest_addoption(parser):
    """Add the option that writes the golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write the expected texts in golden files anew")


@pytest.fixture
def golden(request):
    """Compare a long text with the file that holds what is expected of it, by its path below this folder."""

    def compare(name, text):
        path = Path(__file__).parent / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


def pytest_collection_finish():
    """Leave what is loaded by now out of every later garbage collection."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def same_threads():
    """Reset the threads of naysay and torch after a test that sets them."""
    before = threads.threads()
    yield
    if threads.threads() != before:
        threads.set_threads(before)
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture
def traced_peak():
    """Measure the most bytes that a call holds at once: the least of three calls, since other threads count too."""

    def peak_of(call):
        peaks = []
        for _ in range(3):
            gc.collect()
            tracemalloc.start()
            call()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return min(peaks)

    return peak_of


@pytest.fixture(scope="session")
def run_processes(tmp_path_factory):
    """Start `work(rank, folder)` in some processes over gloo on this machine; return what each saved as {rank}.pt."""

    def run(work, count, seconds):
        folder = tmp_path_factory.mktemp("processes")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GLOO_SOCKET_IFNAME", "lo")
            # One process loads torch and the module of `work`, which takes longest; the others are its copies.
            start = multiprocessing.get_context("spawn").Process
            process = start(target=run_forked, args=(work, count, str(folder), seconds))
            process.start()
            process.join()
        assert process.exitcode == 0
        torch = pytest.importorskip("torch")
        return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(count)]

    return run
