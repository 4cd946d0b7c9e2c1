"""The first small draws of a process run in plain Python: the same bits as the compiled loops, nothing is compiled."""

import os
import subprocess
import sys

import numpy as np
import pytest

import naysay as ns
from naysay import pools
from naysay.kernels import uniform
from naysay.kernels.compile import FIRST_CALLS

ROWS = 12
WEIGHTS = {
    "uniform": lambda size: None,
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


@pytest.fixture
def both_ways(monkeypatch):
    """A function that draws in Python and by compiled loops, and compares all bits."""

    def compare(pool, query, n):
        monkeypatch.setattr(FIRST_CALLS, "take", lambda loop, steps: True)
        one = pool.draw(query, n, rng=ns.rng_for(5))
        monkeypatch.setattr(FIRST_CALLS, "take", lambda loop, steps: False)
        other = pool.draw(query, n, rng=ns.rng_for(5))
        assert np.array_equal(one.ids, other.ids)
        assert one.dropped == other.dropped
        if one.log_q is not None:
            assert np.asarray(one.log_q).tobytes() == np.asarray(other.log_q).tobytes()

    return compare


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("size", "share", "tries"), [(1, 0.5, 32), (5, 0.5, 2), (40, 0.3, 32), (300, 0.6, 0)])
def test_everything_draws_the_same_bits_both_ways(size, share, tries, weights, distinct, both_ways, monkeypatch):
    """With fewer tries the exact draws after them are as frequent as others."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    pool = pools.Everything(known_pairs(size, share), WEIGHTS[weights](size), distinct)
    for n in (1, 40, np.arange(ROWS) % 7):
        both_ways(pool, ns.Query(np.arange(ROWS)[::-1].copy()), n)


@pytest.mark.parametrize("distinct", [True, False])
def test_other_pools_draw_the_same_bits_both_ways(distinct, both_ways):
    known = known_pairs(ROWS, 0.3)
    query = ns.Query(np.arange(ROWS), positives=np.arange(ROWS)[::-1].copy())
    lists = np.random.default_rng(0).integers(0, ROWS, (ROWS, 9))
    for pool in (pools.InBatch(known, distinct=distinct), pools.Local(lists, known, distinct=distinct)):
        for n in (2, 40):
            both_ways(pool, query, n)
    triples = np.random.default_rng(0).integers(0, [20, 2, 20], (60, 3))
    for settings in ({}, {"sides": ("head", "relation", "tail")}, {"domains": "observed", "ranges": "observed"}):
        corruption = pools.Corruption(triples, distinct=distinct, **settings)
        for n in (2, 25):
            both_ways(corruption, ns.Query(triples[:ROWS]), n)


def test_a_process_goes_over_to_compiled_loops_with_the_same_bits(monkeypatch):
    pool = pools.Everything(known_pairs(200, 0.1))
    monkeypatch.setattr(FIRST_CALLS, "allowed", True)  # which benchmarks of speed switch off
    monkeypatch.setitem(FIRST_CALLS.left, uniform.draw, 1000)
    expected = pool.draw(ns.Query([3, 4]), 5, rng=ns.rng_for(0)).ids
    for _ in range(100):
        assert np.array_equal(pool.draw(ns.Query([3, 4]), 5, rng=ns.rng_for(0)).ids, expected)
    assert FIRST_CALLS.left[uniform.draw] == 0
    monkeypatch.setitem(FIRST_CALLS.left, uniform.draw, 1000)
    pool.draw(ns.Query([1]), 1001, rng=ns.rng_for(0))  # large: compiled at once
    assert FIRST_CALLS.left[uniform.draw] == 0


def test_the_first_small_draws_compile_nothing(tmp_path):
    code = """
import numba.core.event as events
import numpy as np
import naysay as ns
known = ns.Positives.from_pairs(np.arange(200), np.arange(200), 200, 400)
with events.install_recorder("numba:compile") as compiled:
    for weights in (None, ns.pools.popularity(known.item_counts() + 1)):
        pool = ns.pools.Everything(known, weights)
        pool.draw(ns.Query(np.arange(200)), 8, rng=ns.rng_for(0))
    ns.pools.Corruption([[0, 0, 1], [1, 0, 2]]).draw(ns.Query([[0, 0, 1]]), 4, rng=ns.rng_for(0))
assert not compiled.buffer, compiled.buffer
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}  # nothing was ever compiled
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=environment)
