"""The cache against a plain dict of lists: what enters, what is drawn, what is kept."""

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay import NaysayError
from naysay.kernels import threads
from naysay.pools.cache import Cache
from naysay.types import Pool, Stateful

N_ANCHORS, N_ITEMS, SIZE = 4, 9, 5
pairs_of = st.lists(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1)), max_size=12)


@st.composite
def puts(draw):
    anchors = draw(st.lists(st.integers(0, N_ANCHORS - 1), max_size=5))
    width = draw(st.integers(0, SIZE))
    row = st.lists(st.integers(-1, N_ITEMS - 1), min_size=width, max_size=width)
    ids = draw(st.lists(row, min_size=len(anchors), max_size=len(anchors)))
    return np.array(anchors, np.int64), np.array(ids, np.int64).reshape(len(anchors), width)


def known_of(pairs, ignored):
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], N_ANCHORS, N_ITEMS)
    return known.with_ignored([a for a, _ in ignored], [i for _, i in ignored]) if ignored else known


@settings(max_examples=40, deadline=None)
@given(st.lists(puts(), max_size=4), pairs_of, pairs_of, st.booleans(), st.booleans(), st.integers(0, 99))
def test_against_plain_loops(calls, pairs, ignored, with_known, distinct, seed):
    cache = Cache(N_ANCHORS, SIZE, known_of(pairs, ignored) if with_known else None, distinct=distinct)
    known = {*pairs, *ignored} if with_known else set()
    held = {anchor: [] for anchor in range(N_ANCHORS)}
    for anchors, ids in calls:
        dropped = 0
        for anchor, row in zip(anchors.tolist(), ids.tolist(), strict=True):
            held[anchor] = []
            for item in row:
                if item == -1:
                    continue
                if item in held[anchor] or (anchor, item) in known:
                    dropped += 1
                else:
                    held[anchor].append(item)
        assert cache.put(anchors, ids) == dropped
    expected = [held[anchor] + [-1] * (SIZE - len(held[anchor])) for anchor in range(N_ANCHORS)]
    assert cache.get(np.arange(N_ANCHORS)).tolist() == expected
    anchors, counts = np.array([3, 0, 0, 2, 1]), np.array([0, 2, 5, 7, 3])
    drawn = cache.draw(ns.Query(anchors), counts, rng=ns.rng_for(seed))
    missing = 0
    for row, (anchor, count) in enumerate(zip(anchors.tolist(), counts.tolist(), strict=True)):
        full = min(count, len(held[anchor])) if distinct else count * bool(held[anchor])
        missing += count - full
        line = drawn.ids[row].tolist()
        assert set(held[anchor]).issuperset(line[:full])
        assert line[full:] == [-1] * (7 - full)
        assert not distinct or len(set(line[:full])) == full
        for slot in range(7):
            log_q = 0.0 if slot >= full else -np.log(len(held[anchor]) - (slot if distinct else 0))
            assert drawn.log_q[row, slot] == pytest.approx(log_q, abs=1e-12)
    assert drawn.dropped == ({"exhausted": missing} if missing else {})


def test_frequencies_match_log_q():
    cache = Cache(2, 6)
    cache.put([1], [[3, 8, -1, 5, 9]])
    rows = 30_000
    for wanted in (2, 3):
        drawn = cache.draw(ns.Query(np.ones(rows, np.int64)), wanted, rng=ns.rng_for(1))
        seen = dict.fromkeys(permutations([3, 5, 8, 9], wanted), 0)
        for row in drawn.ids.tolist():
            seen[tuple(row)] += 1
        assert chisquare(list(seen.values()), [rows * np.exp(drawn.log_q[0].sum())] * len(seen)).pvalue > 1e-4


def test_a_row_is_replaced_and_the_last_of_two_stays():
    cache = Cache(2, 3)
    cache.put([0], [[1, 2, 3]])
    assert cache.put([0, 0], [[4, 5], [6, -1]]) == 0
    assert cache.get([0]).tolist() == [[6, -1, -1]]


def test_what_is_got_is_a_copy():
    cache = Cache(2, 3)
    cache.get([0])[:] = 7
    state = cache.state()
    state["table"][:] = 7
    assert cache.get([0, 1]).tolist() == [[-1] * 3] * 2


def test_a_restored_cache_goes_on_as_the_old_one():
    known = known_of([(0, 1), (2, 3)], [(1, 4)])
    old, fresh = Cache(N_ANCHORS, SIZE, known), Cache(N_ANCHORS, SIZE, known)
    old.put([0, 2], [[5, 1, 7, 7], [0, 2, 3, 4]])
    fresh.put([1], [[6]])  # which must go
    fresh.restore(old.state())
    for step in range(3):
        one, two = (cache.draw(ns.Query([0, 1, 2, 3]), 2, rng=ns.rng_for(0, step)) for cache in (old, fresh))
        assert np.array_equal(one.ids, two.ids)
        assert np.array_equal(one.log_q, two.log_q)
        assert old.put([step], [[8, step]]) == fresh.put([step], [[8, step]])
        assert np.array_equal(old.get(range(4)), fresh.get(range(4)))


def test_what_became_known_does_not_come_back():
    old = Cache(1, 3)
    old.put([0], [[5, 6, 7]])
    fresh = Cache(1, 3, ns.Positives.from_pairs([0], [6], n_items=8))
    fresh.restore(old.state())
    assert fresh.get([0]).tolist() == [[5, 7, -1]]


@pytest.mark.parametrize("distinct", [True, False])
def test_answers_do_not_depend_on_threads(distinct):
    generator = np.random.default_rng(0)
    known = ns.Positives.from_pairs(generator.integers(0, 900, 9000), generator.integers(0, 300, 9000), 900, 300)
    ids = generator.integers(-1, 300, (900, 60))
    query = ns.Query(generator.integers(0, 900, 2000))
    before = threads.threads()
    try:
        answers = []
        for count in (1, 2, 4):
            ns.set_threads(count)
            cache = Cache(900, 60, known, distinct=distinct)
            dropped = cache.put(np.arange(900), ids)
            drawn = cache.draw(query, 40, rng=ns.rng_for(2))
            answers.append((dropped, cache.get(np.arange(900)), drawn.ids, drawn.log_q))
    finally:
        ns.set_threads(before)
    for other in answers[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(answers[0], other, strict=True))


def test_no_anchors_no_rows_and_tensors():
    nobody = Cache(0, 2)
    assert nobody.put([], np.empty((0, 1), np.int64)) == 0
    assert nobody.draw(ns.Query(np.empty(0, np.int64)), 3, rng=ns.rng_for(0)).shape == (0, 3)
    cache = Cache(3, 2)
    assert cache.draw(ns.Query([2]), 1, rng=ns.rng_for(0)).dropped == {"exhausted": 1}
    cache.put(torch.tensor([2]), torch.tensor([[7, 7]]))
    assert cache.get(torch.tensor([2])).tolist() == [[7, -1]]
    assert cache.draw(ns.Query(torch.tensor([2])), 1, rng=ns.rng_for(0)).ids.tolist() == [[7]]


def test_it_is_a_stateful_pool():
    assert isinstance(Cache(1, 1), Pool)
    assert isinstance(Cache(1, 1), Stateful)
    assert repr(Cache(10, 3)) == "Cache(10 x 3, None, distinct=True, on_short='pad')"


KNOWN = ns.Positives.from_pairs([0, 1], [0, 1], n_items=4)
RNG = ns.rng_for(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Cache(-1, 2), r"Cache: `n_anchors` must be at least 0, got -1\."),
        (lambda: Cache(2, 0), r"Cache: `size` must be at least 1, got 0\."),
        (lambda: Cache(2, 2, "x"), r"Cache: `positives` must be a Positives or None, got str\."),
        (lambda: Cache(3, 2, KNOWN), r"Cache: `n_anchors` must be 2, like positives, got 3\."),
        (lambda: Cache(2, 2, on_short="pat"), r"Cache: `on_short` must be .*, got 'pat'\. Did you mean 'pad'"),
        (lambda: Cache(2, 2).put([0], [1]), r"Cache\.put: `ids` must be of shape \(B, m\), got shape \(1,\)\."),
        (lambda: Cache(2, 2).put([0], [[1.5]]), r"Cache\.put: `ids` must be whole numbers, got dtype float64\."),
        (
            lambda: Cache(2, 2).put([0, 1], [[1]]),
            r"Cache\.put: `anchors` must be of the same length as the others, got anchors 2",
        ),
        (
            lambda: Cache(2, 2).put([0], [[1, 2, 3]]),
            r"`ids` must be of at most 2 columns, the size, got 3\. Make a Cache",
        ),
        (
            lambda: Cache(2, 2).put([2], [[1]]),
            r"Cache\.put: `anchors` must be between 0 and 1 \(2 anchors\), got 2 at row 0",
        ),
        (lambda: Cache(2, 2).put([0], [[1, -2]]), r"Cache\.put: `ids` must be at least -1, got -2 at row 0, slot 1"),
        (
            lambda: Cache(2, 2, KNOWN).put([0], [[4]]),
            r"`ids` must be between -1 and 3 \(4 items\), got 4 at row 0, slot 0",
        ),
        (
            lambda: Cache(2, 2).get([-1]),
            r"Cache\.get: `anchors` must be between 0 and 1 \(2 anchors\), got -1 at row 0",
        ),
        (lambda: Cache(2, 2).draw(ns.Query([5]), 1, rng=RNG), r"Cache\.draw: `anchors` must be between 0 and 1"),
        (
            lambda: Cache(2, 2).draw(ns.Query([[0, 0, 0]]), 1, rng=RNG),
            r"`query\.anchors` must be of shape \(B,\), got triples",
        ),
        (lambda: Cache(2, 2).draw(ns.Query([0]), -2, rng=RNG), r"Cache\.draw: `n` must be at least 0, got -2"),
        (lambda: Cache(2, 2).draw(ns.Query([0]), 1, rng=1), r"Cache\.draw: `rng` must be a numpy Generator, got 1"),
        (
            lambda: Cache(2, 2, on_short="raise").draw(ns.Query([0]), 1, rng=RNG),
            r"Cache\.draw: row 0 has 0 candidates left of the 1 requested",
        ),
        (
            lambda: Cache(2, 2).restore(None),
            r"Cache\.restore: `state` must be what Cache\.state returned, got NoneType\.",
        ),
        (
            lambda: Cache(2, 2).restore({}),
            r"Cache\.restore: `state` must be what Cache\.state returned, got no 'table' in \[\]",
        ),
        (
            lambda: Cache(2, 2).restore(Cache(2, 3).state()),
            r"`state` must be of a table of shape \(2, 2\), got \(2, 3\)\.",
        ),
        (
            lambda: Cache(1, 1).restore({"table": np.array([[-5]])}),
            r"Cache\.restore: `table` must be at least -1, got -5 at row 0, slot 0",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(NaysayError, match=message):
        call()


def test_a_rejected_put_changes_nothing():
    cache = Cache(2, 2, KNOWN)
    cache.put([0, 1], [[1, 2], [3, -1]])
    with pytest.raises(NaysayError, match="between -1 and 3"):
        cache.put([0, 1], [[3, 3], [3, 9]])
    assert cache.get([0, 1]).tolist() == [[1, 2], [3, -1]]
