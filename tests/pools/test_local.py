"""The local pool: every form of lists, what is left of them, and draws from that."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.pools.local import Local

ids_of = st.lists(st.integers(0, 11), max_size=14)


@st.composite
def worlds(draw):
    lists = draw(st.lists(ids_of, min_size=1, max_size=5))
    n = len(lists)
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, 11)), max_size=20))
    ignored = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, 11)), max_size=6))
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], n, 12)
    if ignored:
        known = known.with_ignored([a for a, _ in ignored], [i for _, i in ignored])
    left = [sorted(set(row) - {i for a, i in pairs + ignored if a == anchor}) for anchor, row in enumerate(lists)]
    return lists, known, left


def rows_left(pool):
    return [pool.indices[a:b].tolist() for a, b in zip(pool.indptr[:-1], pool.indptr[1:], strict=True)]


@settings(max_examples=30, deadline=None)
@given(worlds(), st.booleans(), st.integers(0, 1000), st.data())
def test_laws(world, distinct, seed, data):
    lists, known, left = world
    pool = Local(lists, known, distinct=distinct)
    assert rows_left(pool) == left
    assert pool.sizes.tolist() == [len(row) for row in left]
    anchors = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=6))
    counts = data.draw(st.lists(st.integers(0, 9), min_size=len(anchors), max_size=len(anchors)))
    drawn = pool.draw(ns.Query(np.array(anchors, np.int64)), np.array(counts, np.int64), rng=ns.rng_for(seed))
    assert drawn.shape == (len(anchors), max(counts, default=0))
    missing = 0
    for row, (anchor, count) in enumerate(zip(anchors, counts, strict=True)):
        line = drawn.ids[row].tolist()
        filled = min(count, len(left[anchor])) if distinct else (count if left[anchor] else 0)
        missing += count - filled
        assert all(item in left[anchor] for item in line[:filled])
        assert line[filled:] == [-1] * (len(line) - filled)
        assert not distinct or len(set(line[:filled])) == filled
        for slot in range(len(line)):
            expected = 0.0 if slot >= filled else -np.log(len(left[anchor]) - (slot if distinct else 0))
            assert drawn.log_q[row, slot] == pytest.approx(expected, abs=1e-12)
    assert drawn.dropped == ({"exhausted": missing} if missing else {})


def test_every_form_gives_the_same_pool():
    lists = [[5, 1, 1], [], [0, 5]]
    expected = [[1, 5], [], [0, 5]]
    forms = {
        "lists": lists,
        "arrays": [np.array(row, np.int64) for row in lists],
        "unsigned and small": [np.array([5, 1], np.uint64), np.array([], np.int8), np.array([0, 5], np.int8)],
        "tensors": [torch.tensor(row, dtype=torch.int64) for row in lists],
        "padded": np.array([[5, 1, 1], [-1, -1, -1], [0, -1, 5]]),
        "padded tensor": torch.tensor([[5, 1, 1], [-1, -1, -1], [0, -1, 5]]),
        "positives": ns.Positives.from_pairs([0, 0, 2, 2], [5, 1, 0, 5], n_anchors=3),
        "objects": np.array([np.array([5, 1]), np.array([], np.int64), np.array([0, 5])], dtype=object),
    }
    for name, form in forms.items():
        assert rows_left(Local(form)) == expected, name
    assert Local(lists).indices.dtype == np.int32


def test_a_pool_without_candidates_or_anchors():
    empty = Local([[], []])
    drawn = empty.draw(ns.Query([0, 1, 1]), 2, rng=ns.rng_for(0))
    assert drawn.ids.tolist() == [[-1, -1]] * 3
    assert drawn.log_q.tolist() == [[0.0, 0.0]] * 3
    assert drawn.dropped == {"exhausted": 6}
    assert Local([]).draw(ns.Query(np.empty(0, np.int64)), 2, rng=ns.rng_for(0)).shape == (0, 2)
    assert Local([[3]]).draw(ns.Query([0]), 1, rng=ns.rng_for(0)).ids.tolist() == [[3]]


def test_ignored_pairs_of_a_positives_are_no_candidates():
    pool = Local(ns.Positives.from_edges([0, 1, 2], [1, 2, 3]))
    assert rows_left(pool) == [[1], [0, 2], [1, 3], [2]]
    assert 2 not in pool.draw(ns.Query([2]), 3, rng=ns.rng_for(0)).ids
    known = ns.Positives.from_pairs([0, 0, 1], [1, 2, 0], n_items=4).with_ignored([0, 1], [3, 3])
    assert rows_left(Local(known)) == [[1, 2], [0]]
