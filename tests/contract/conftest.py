"""One thread in every test, unless it asks for more."""

import pytest

import naysay as ns


@pytest.fixture(autouse=True)
def one_thread():
    """Leave one thread behind, whatever a test did."""
    yield
    ns.set_threads(1)


@pytest.fixture
def known():
    """Six anchors and twelve items: no positives, some, all but two, all but one, all, and an ignored pair."""
    rows = [set(), {0, 3, 7}, set(range(10)), set(range(11)), set(range(12)), {1}]
    pairs = [(anchor, item) for anchor, items in enumerate(rows) for item in sorted(items)]
    positives = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], 6, 12)
    return positives.with_ignored([5], [2])
