"""Settings for all tests: no time limit on examples, and the thread count put back."""

import pytest
from hypothesis import settings

from naysay.kernels import threads

settings.register_profile("naysay", deadline=None, derandomize=True)
settings.load_profile("naysay")


@pytest.fixture(autouse=True)
def same_threads():
    """A test may call set_threads; the next one starts as this one did."""
    before = threads.threads()
    yield
    if threads.threads() != before:
        threads.set_threads(before)
