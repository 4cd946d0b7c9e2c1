"""The first draws of a process are made in NumPy: the same bits as the compiled loops, and nothing is compiled."""

import os
import subprocess
import sys

import numpy as np
import pytest

import naysay as ns
from naysay.kernels import uniform
from naysay.pools import _small_draws

ROWS = 40
WEIGHTS = {
    "uniform": lambda size: None,
    "equal": np.ones,
    "popular first": lambda size: 1.0 / np.arange(1, size + 1) ** 2,
    "every third": lambda size: (np.arange(size) % 3 == 0) * 1.0,
    "one has nearly all": lambda size: np.where(np.arange(size) == size // 2, 1e6, 1.0),
}


def known_pairs(size, share):
    """Rows of which the first knows all items, the second none, the third all but the last, the others a share."""
    known = np.random.default_rng(size).random((ROWS, size)) < share
    known[0], known[1], known[2] = True, False, True
    known[2, -1] = False
    return ns.Positives.from_pairs(*np.nonzero(known), ROWS, size)


BUDGETS = (_small_draws._UNIFORM, _small_draws._WEIGHTED)


def set_budgets(left):
    for budget in BUDGETS:
        budget.left = left


@pytest.fixture(autouse=True)
def _as_before():
    before = [budget.left for budget in BUDGETS]
    yield
    for budget, left in zip(BUDGETS, before, strict=True):
        budget.left = left


def drawn(pool, n, *, compiled):
    set_budgets(0 if compiled else 1 << 40)
    anchors = np.random.default_rng(0).permutation(ROWS)
    negatives = pool.draw(ns.Query(anchors), n, rng=ns.rng_for(5))
    assert any(budget.left < 0 for budget in BUDGETS) == compiled
    return negatives


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    ("size", "share", "tries"),
    [(1, 0.5, 32), (5, 0.5, 2), (40, 0.3, 32), (40, 0.9, 1), (300, 0.6, 0), (3000, 0.01, 32)],
)
def test_both_ways_draw_the_same_bits(size, share, tries, weights, distinct, monkeypatch):
    """With fewer tries the exact draws after them are as frequent as others."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    pool = ns.pools.Everything(known_pairs(size, share), WEIGHTS[weights](size), distinct)
    for n in (0, 1, 12, 40, np.arange(ROWS) % 7):
        one, other = (drawn(pool, n, compiled=compiled) for compiled in (False, True))
        assert np.array_equal(one.ids, other.ids)
        assert np.asarray(one.log_q).tobytes() == np.asarray(other.log_q).tobytes()
        assert one.dropped == other.dropped


def test_wide_rows_are_the_same_too():
    """Beyond 2,048 slots the compiled loop looks repetitions up in a table."""
    pool = ns.pools.Everything(known_pairs(4500, 0.02))
    one, other = (drawn(pool, 2100, compiled=compiled) for compiled in (False, True))
    assert np.array_equal(one.ids, other.ids)


def test_a_process_goes_over_to_compiled_loops_with_the_same_bits():
    pool = ns.pools.Everything(known_pairs(200, 0.1))
    set_budgets(1 << 18)
    expected = pool.draw(ns.Query([3, 4]), 5, rng=ns.rng_for(0)).ids
    for _ in range(500):
        assert np.array_equal(pool.draw(ns.Query([3, 4]), 5, rng=ns.rng_for(0)).ids, expected)
        if BUDGETS[0].left < 0:
            return
    pytest.fail("small draws would be slow for ever")


def test_a_draw_that_is_large_is_compiled_at_once():
    pool = ns.pools.Everything(known_pairs(200, 0.1), distinct=False)
    set_budgets(None)  # like a new process
    pool.draw(ns.Query([1]), _small_draws._LARGEST_CALL + 1, rng=ns.rng_for(0))
    assert BUDGETS[0].left < 0


def test_a_process_that_finds_compiled_loops_uses_them_soon():
    """Loading takes a tenth of the time of compiling. Both tests above have compiled the loop."""
    pool = ns.pools.Everything(known_pairs(200, 0.1))
    drawn(pool, 1, compiled=True)
    set_budgets(None)
    pool.draw(ns.Query([1]), 1, rng=ns.rng_for(0))
    assert BUDGETS[0].left < _small_draws._WORK_IF_CACHED


def test_the_first_small_draws_compile_nothing(tmp_path):
    code = """
import numba.core.event as events
import numpy as np
import naysay as ns
known = ns.Positives.from_pairs(np.arange(1000), np.arange(1000), 1000, 2000)
with events.install_recorder("numba:compile") as compiled:
    for weights in (None, ns.pools.popularity(known.item_counts() + 1)):
        for distinct in (True, False):
            pool = ns.pools.Everything(known, weights, distinct)
            pool.draw(ns.Query(np.arange(1000)), 16, rng=ns.rng_for(0))
assert not compiled.buffer, compiled.buffer
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}  # nothing was ever compiled
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=environment)
