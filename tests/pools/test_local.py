"""The local pool: every form of lists, what is left of them, and draws from that."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay import NaysayError
from naysay.kernels import threads
from naysay.pools.local import Local
from naysay.types import Pool

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
    matrix = scipy.sparse.csr_array(np.array([[0, 3, 0, 0, 0, 1], [0] * 6, [2, 0, 0, 0, 0, 1]]))
    matrix.data[1] = 0  # a stored zero is not an entry
    forms = {
        "lists": lists,
        "arrays": [np.array(row, np.int64) for row in lists],
        "unsigned and small": [np.array([5, 1], np.uint64), np.array([], np.int8), np.array([0, 5], np.int8)],
        "tensors": [torch.tensor(row, dtype=torch.int64) for row in lists],
        "padded": np.array([[5, 1, 1], [-1, -1, -1], [0, -1, 5]]),
        "padded tensor": torch.tensor([[5, 1, 1], [-1, -1, -1], [0, -1, 5]]),
        "csr": (np.array([0, 3, 3, 5]), np.array([5, 1, 1, 0, 5])),
        "positives": ns.Positives.from_pairs([0, 0, 2, 2], [5, 1, 0, 5], n_anchors=3),
        "objects": np.array([np.array([5, 1]), np.array([], np.int64), np.array([0, 5])], dtype=object),
    }
    for name, form in forms.items():
        assert rows_left(Local(form)) == expected, name
    assert rows_left(Local(matrix)) == [[1], [], [0, 5]]
    assert Local(forms["csr"]).indices.dtype == np.int32


def test_given_arrays_are_not_touched():
    indptr, indices = np.array([0, 3]), np.array([4, 2, 4])
    Local((indptr, indices), ns.Positives.from_pairs([0], [2], 1, 5))
    assert indices.tolist() == [4, 2, 4]


def test_frequencies_match_log_q():
    known = ns.Positives.from_pairs([0, 0], [7, 1], 1, 10)
    pool = Local([[1, 3, 5, 7, 8, 9]], known)  # 3, 5, 8, 9 are left
    rows = 40_000
    for wanted in (2, 3):  # by trial, and in order
        drawn = pool.draw(ns.Query(np.zeros(rows, np.int64)), wanted, rng=ns.rng_for(1))
        seen = dict.fromkeys(permutations([3, 5, 8, 9], wanted), 0)
        for row in drawn.ids.tolist():
            seen[tuple(row)] += 1
        assert chisquare(list(seen.values()), [rows * np.exp(drawn.log_q[0].sum())] * len(seen)).pvalue > 1e-4


@pytest.mark.parametrize("distinct", [True, False])
def test_draws_do_not_depend_on_threads(distinct):
    generator = np.random.default_rng(0)
    pool = Local((np.arange(501) * 40, generator.integers(0, 300, 20_000)), distinct=distinct)
    query = ns.Query(generator.integers(0, 500, 3000))
    before = threads.threads()
    try:
        answers = []
        for count in (1, 2, 4):
            ns.set_threads(count)
            answers.append(pool.draw(query, 30, rng=ns.rng_for(2)))
    finally:
        ns.set_threads(before)
    for other in answers[1:]:
        assert np.array_equal(answers[0].ids, other.ids)
        assert np.array_equal(answers[0].log_q, other.log_q)
    with ThreadPoolExecutor(4) as callers:
        for other in callers.map(lambda _: pool.draw(query, 30, rng=ns.rng_for(2)), range(8)):
            assert np.array_equal(answers[0].ids, other.ids)


def test_a_pool_without_candidates_or_anchors():
    empty = Local([[], []])
    drawn = empty.draw(ns.Query([0, 1, 1]), 2, rng=ns.rng_for(0))
    assert drawn.ids.tolist() == [[-1, -1]] * 3
    assert drawn.log_q.tolist() == [[0.0, 0.0]] * 3
    assert drawn.dropped == {"exhausted": 6}
    assert Local([]).draw(ns.Query(np.empty(0, np.int64)), 2, rng=ns.rng_for(0)).shape == (0, 2)
    assert Local([[3]]).draw(ns.Query([0]), 1, rng=ns.rng_for(0)).ids.tolist() == [[3]]


def test_it_is_a_pool():
    assert isinstance(Local([[1]]), Pool)
    assert repr(Local([[1], [2, 3]])) == "Local(3 candidates of 2 anchors, distinct=True, on_short='pad')"


KNOWN = ns.Positives.from_pairs([0, 1], [0, 1], n_items=4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Local(7), r"Local: `lists` must be a list of id arrays, .* got int\."),
        (lambda: Local("ab"), r"Local: `lists` must be a list of id arrays, .* got str\."),
        (lambda: Local({0: [1]}), r"Local: `lists` must be a list of id arrays, .* got dict\."),
        (lambda: Local(([1], [2], [3])), r"if it is a tuple, got a tuple of 3\. Several lists come as a list"),
        (
            lambda: Local([[1], [0.5], [[2]]]),
            r"of shape \(m,\) for each anchor, got shape \(1,\) of float64 at row 1 \(2 ",
        ),
        (
            lambda: Local([1, 2]),
            r"`lists` must be whole numbers of shape \(m,\) for each anchor, got shape \(\) of int64 ",
        ),
        (lambda: Local(np.zeros((2, 2))), r"`lists` must be whole numbers, got dtype float64"),
        (lambda: Local(np.zeros(2, np.int64)), r"`lists` must be of shape \(n_anchors, m\), got shape \(2,\)"),
        (
            lambda: Local([[1], [2, -3], [-1, -1]]),
            r"`lists` must be ids of at least 0, got -3 at row 1 \(2 such rows\)\.",
        ),
        (lambda: Local(np.array([[1, -2]])), r"`lists` must be ids of at least 0, got -2 at row 0 \(1 such row\)\."),
        (lambda: Local([[1], [4]], KNOWN), r"must be ids between 0 and 3 \(4 items\), got 4 at row 1 \(1 such row\)\."),
        (lambda: Local([[1]], KNOWN), r"`lists` must be 2 lists, like positives, got 1\. Give one list per anchor"),
        (lambda: Local(([0, 2], [1])), r"`lists\[0\]` must be a rising sequence from 0 to the 1 indices, got 2 values"),
        (lambda: Local(([0, 2, 1], [1])), r"`lists\[0\]` must be a rising sequence"),
        (lambda: Local(([], [1])), r"`lists\[0\]` must be a rising sequence"),
        (lambda: Local(([0, 1], [0.5])), r"`lists\[1\]` must be whole numbers, got dtype float64"),
        (lambda: Local([[1]], [[0, 1]]), r"Local: `positives` must be a Positives or None, got list\."),
        (
            lambda: Local([[1]], on_short="rise"),
            r"`on_short` must be one of 'pad', 'raise', got 'rise'\. Did you mean 'raise'",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(NaysayError, match=message):
        make()


def test_rejected_draws():
    pool = Local([[1, 2], [3]])
    rng = ns.rng_for(0)
    with pytest.raises(
        NaysayError, match=r"Local\.draw: `anchors` must be between 0 and 1 \(2 anchors\), got 2 at row 1"
    ):
        pool.draw(ns.Query([0, 2]), 1, rng=rng)
    with pytest.raises(NaysayError, match=r"Local\.draw: `query\.anchors` must be of shape \(B,\), got triples"):
        pool.draw(ns.Query([[0, 1, 2]]), 1, rng=rng)
    with pytest.raises(NaysayError, match=r"Local\.draw: `n` must be at least 0, got -1"):
        pool.draw(ns.Query([0]), -1, rng=rng)
    with pytest.raises(NaysayError, match=r"Local\.draw: `rng` must be a numpy Generator, got 3"):
        pool.draw(ns.Query([0]), 1, rng=3)
    with pytest.raises(
        NaysayError, match=r"Local\.draw: row 1 has 1 candidates left of the 2 requested \(1 such row\)"
    ):
        Local([[1, 2], [3]], on_short="raise").draw(ns.Query([0, 1]), 2, rng=rng)


def test_ignored_pairs_of_a_positives_are_no_candidates():
    pool = Local(ns.Positives.from_edges([0, 1, 2], [1, 2, 3]))
    assert rows_left(pool) == [[1], [0, 2], [1, 3], [2]]
    assert 2 not in pool.draw(ns.Query([2]), 3, rng=ns.rng_for(0)).ids
    known = ns.Positives.from_pairs([0, 0, 1], [1, 2, 0], n_items=4).with_ignored([0, 1], [3, 3])
    assert rows_left(Local(known)) == [[1, 2], [0]]


def test_a_list_that_is_no_array_is_rejected():
    with pytest.raises(NaysayError, match=r"^Local: `lists` must be rows of one length, got rows of different lengths"):
        Local([[1], [[2], [3, 4]]])
