"""The mini-batch pool: who may use whose item, by plain loops, and draws among those."""

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay.pools.in_batch import InBatch

N_ANCHORS, N_ITEMS = 5, 7
pair = st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1))


def positives_of(pairs, ignored):
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], N_ANCHORS, N_ITEMS)
    return known.with_ignored([a for a, _ in ignored], [i for _, i in ignored]) if ignored else known


def oracle(batch, known):
    """Entry by entry: the item or -1, and the first reason that holds, off the diagonal."""
    ids, dropped = [], {"same item": 0, "same anchor": 0, "known": 0}
    for i, (anchor, own) in enumerate(batch):
        line = []
        for j, (other, item) in enumerate(batch):
            reason = None
            if item == own:
                reason = "same item"
            elif other == anchor:
                reason = "same anchor"
            elif (anchor, item) in known:
                reason = "known"
            line.append(-1 if reason else item)
            if reason and i != j:
                dropped[reason] += 1
        ids.append(line)
    return np.array(ids, np.int64).reshape(len(batch), len(batch)), dropped


def query_of(batch):
    anchors, items = (np.array([row[side] for row in batch], np.int64) for side in (0, 1))
    return ns.Query(anchors, positives=items)


@settings(max_examples=40, deadline=None)
@given(st.lists(pair, max_size=9), st.lists(pair, max_size=12), st.lists(pair, max_size=4), st.booleans())
def test_all_of_them_against_plain_loops(batch, pairs, ignored, with_known):
    pool = InBatch(positives_of(pairs, ignored) if with_known else None)
    expected, dropped = oracle(batch, {*pairs, *ignored} if with_known else set())
    drawn = pool.draw(query_of(batch), rng=ns.rng_for(0))
    assert np.array_equal(drawn.ids, expected)
    assert drawn.ids.shape == (len(batch), len(batch))
    assert drawn.dropped == dropped
    assert drawn.log_q is None
    assert np.array_equal(pool.eligible(query_of(batch)), expected >= 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(pair, max_size=9), st.lists(pair, max_size=12), st.lists(pair, max_size=4), st.booleans(), st.data())
def test_draws_follow_the_laws(batch, pairs, ignored, distinct, data):
    counts = data.draw(st.lists(st.integers(0, 10), min_size=len(batch), max_size=len(batch)))
    pool = InBatch(positives_of(pairs, ignored), distinct=distinct)
    seed = data.draw(st.integers(0, 1000))
    drawn = pool.draw(query_of(batch), np.array(counts, np.int64), rng=ns.rng_for(seed))
    expected, _ = oracle(batch, {*pairs, *ignored})
    assert drawn.shape == (len(batch), max(counts, default=0))
    missing = 0
    for row, count in enumerate(counts):
        usable = {item for item in expected[row].tolist() if item >= 0}
        filled = min(count, len(usable)) if distinct else (count if usable else 0)
        missing += count - filled
        line = drawn.ids[row].tolist()
        assert usable.issuperset(line[:filled])
        assert line[filled:] == [-1] * (len(line) - filled)
        assert not distinct or len(set(line[:filled])) == filled
    assert drawn.dropped == ({"exhausted": missing} if missing else {})
    assert drawn.log_q is None


def test_rows_are_drawn_uniformly():
    """Row 0 may use four rows, two of which brought item 5, in a batch that is made long by the anchor's own rows."""
    batch = [(0, 1), (1, 5), (2, 5), (3, 6), (4, 2)] + [(0, 3)] * 15
    drawn = np.array([InBatch().draw(query_of(batch), 2, rng=ns.rng_for(0, step)).ids[0] for step in range(6000)])
    chances = {(5, 6): 0.25, (5, 2): 0.25, (6, 5): 1 / 6, (6, 2): 1 / 12, (2, 5): 1 / 6, (2, 6): 1 / 12}
    assert set(chances) == set(permutations([5, 6, 2], 2))
    seen = dict.fromkeys(chances, 0)
    for row in drawn.tolist():
        seen[tuple(row)] += 1
    assert chisquare(list(seen.values()), 6000 * np.array(list(chances.values()))).pvalue > 1e-4


def test_all_of_a_batch_is_never_short():
    strict = InBatch(on_short="raise")
    assert strict.draw(ns.Query([0, 0], positives=[1, 2]), rng=ns.rng_for(0)).ids.tolist() == [[-1, -1], [-1, -1]]
