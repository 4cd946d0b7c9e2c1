"""The local pool: every form of lists, what is left of them, and draws from that."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

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


@given(worlds())
def test_what_is_known_is_taken_out_of_the_lists(world):
    lists, known, left = world
    pool = Local(lists, known)
    assert rows_left(pool) == left
    assert pool.sizes.tolist() == [len(row) for row in left]


@pytest.mark.parametrize(("size", "wanted"), [(4, 3), (6, 3), (5, 1)])
def test_every_order_is_equally_likely(size, wanted):
    """Also where more than half of a list is drawn, which is shuffled."""
    rows = 6000
    drawn = Local([np.arange(size)]).draw(ns.Query(np.zeros(rows, np.int64)), wanted, rng=ns.rng_for(0))
    seen = Counter(map(tuple, drawn.ids.tolist()))
    chances = np.exp(drawn.log_q[0].sum()) * np.ones(len(list(permutations(range(size), wanted))))
    assert chisquare([seen[order] for order in permutations(range(size), wanted)], rows * chances).pvalue > 1e-4


@pytest.mark.parametrize(("size", "wanted"), [(3000, 1400), (3000, 1501), (40, 20)])
def test_wide_rows_are_distinct(size, wanted):
    drawn = Local([np.arange(size)]).draw(ns.Query(np.zeros(5, np.int64)), wanted, rng=ns.rng_for(0))
    assert all(len(set(row)) == wanted for row in drawn.ids.tolist())
    np.testing.assert_allclose(drawn.log_q[0], -np.log(size - np.arange(wanted)), rtol=0, atol=1e-12)


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
