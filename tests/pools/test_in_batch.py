"""The mini-batch pool: who may use whose item, by plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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


def test_all_of_a_batch_is_never_short():
    strict = InBatch(on_short="raise")
    assert strict.draw(ns.Query([0, 0], positives=[1, 2]), rng=ns.rng_for(0)).ids.tolist() == [[-1, -1], [-1, -1]]
