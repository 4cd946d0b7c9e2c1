"""Settings for all tests: no time limit on examples, Ctrl-C that is heard, and the thread count put back."""

import signal

import pytest
from hypothesis import settings

from naysay.kernels import threads

# 50 examples a law, always the same; `pytest --hypothesis-profile=thorough` tries 500 others.
settings.register_profile("naysay", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile("naysay")

# What a shell starts in the background ignores Ctrl-C, and all that it starts inherits that; tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def same_threads():
    """A test may call set_threads; the next one starts as this one did."""
    before = threads.threads()
    yield
    if threads.threads() != before:
        threads.set_threads(before)
