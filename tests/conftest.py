"""Settings for all tests: no stale compiled code, no time limit on examples, the thread count put back."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import settings

import naysay
from naysay.kernels import threads

settings.register_profile("naysay", deadline=None, derandomize=True)
settings.load_profile("naysay")


def pytest_configure(config):
    """Forget compiled loops when any source of steps has changed: numba looks at one file at a time only."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    folder = Path(naysay.__file__).parent
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("kernels/*.py")))).hexdigest()
    stamp = folder / "kernels" / "__pycache__" / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        return
    for compiled in folder.glob("**/__pycache__/*.nb[ci]"):
        compiled.unlink()
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(digest)


@pytest.fixture(autouse=True)
def same_threads():
    """A test may call set_threads; the next one starts as this one did."""
    before = threads.threads()
    yield
    if threads.threads() != before:
        threads.set_threads(before)
