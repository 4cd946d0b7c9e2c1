"""Pairs that a search left out: their scores, their places, and who has their vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import plain_scores, plain_search, vectors

import naysay as ns
from naysay.kernels.threads import set_threads
from naysay.mining._known import known_of
from naysay.mining._task import kinds_of
from naysay.mining.candidates import Candidates
from naysay.mining.exclude import same_vectors, with_left_out
from naysay.search._scores import lowest_of, pair_scores
from naysay.search.vectors import open_vectors

METRICS = ("cosine", "dot", "l2")


def opened(*arrays):
    return [open_vectors(array) for array in arrays]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_pair_scores_what_the_contract_says(metric, kind, monkeypatch):
    queries, corpus = vectors(7, 19, 0).astype(kind), vectors(11, 19, 1).astype(kind)
    rng = np.random.default_rng(2)
    anchors, items = rng.integers(0, 7, 40), rng.integers(0, 11, 40)
    expected = plain_scores(queries, corpus, metric)[anchors, items]
    found = pair_scores(*opened(queries, corpus), anchors, items, metric)
    assert found.dtype == np.float32
    assert (found == expected).all()
    monkeypatch.setattr("naysay.search._scores._NUMBERS", 50)
    set_threads(2)
    for few, compiled_from in ((8, 0), (1e-3, 0), (8, 1 << 22)):  # the whole corpus, rows of it, and plain NumPy
        monkeypatch.setattr("naysay.search._scores._FEW", few)
        monkeypatch.setattr("naysay.search._scores._FEW_NUMBERS", compiled_from)
        assert (pair_scores(*opened(queries, corpus), anchors, items, metric) == expected).all()
    assert len(pair_scores(*opened(queries, corpus), anchors[:0], items[:0], metric)) == 0


def test_the_lowest_of_each():
    found = lowest_of(np.array([0, 0, 2]), np.float32([0.5, -0.5, 0.25]), 4)
    assert found.tolist()[0::2] == [-0.5, 0.25]
    assert np.isnan(found[1::2]).all()


@settings(max_examples=60)
@given(
    st.integers(0, 10_000),
    st.integers(1, 9),
    st.sampled_from(METRICS),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), max_size=25),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), max_size=5),
)
def test_ranks_and_counts_are_those_of_a_search_that_lists_all(seed, depth, metric, positives, ignored):
    queries, corpus = vectors(5, 2, seed, values=[0, 1]), vectors(9, 2, seed + 1, values=[0, 1])  # many equal scores
    pairs = [np.array(some, int).reshape(-1, 2).T for some in (positives, ignored)]
    known = known_of(ns.Positives.from_pairs(*pairs[0], 5, 9), ns.Positives.from_pairs(*pairs[1], 5, 9), None, 5, 9)
    whole = plain_search(queries, corpus, 9, metric=metric)
    found = Candidates.of(plain_search(queries, corpus, depth, metric=metric, exclude=known))
    anchors, items = known.pairs()
    scores = pair_scores(*opened(queries, corpus), anchors, items, metric)
    left = with_left_out(found, anchors, items, scores, kinds_of(known, None))
    for row in range(5):
        ranks = {int(i): place for place, i in enumerate(whole.ids[row], 1)}
        for slot, i in enumerate(found.ids[row].tolist()):
            assert left.rank[row, slot] == (ranks[i] if i >= 0 else 0)
        last = ranks[int(found.ids[row, -1])] if found.ids[row, -1] >= 0 else 10
        for reason, relation in (("positive", "positive"), ("ignored", "ignore")):
            ahead = [i for i in range(9) if ranks[i] < last and known.contains([row], [i], relation=relation)[0]]
            assert left.dropped.get(reason, np.zeros(5))[row] == len(ahead)


def test_what_a_deeper_search_passed_over_counts():
    found = Candidates.of(plain_search(vectors(2, 3, 0), vectors(6, 3, 1), 2))
    none = np.empty(0, int)
    left = with_left_out(found, none, none, np.empty(0, np.float32), {}, np.array([4, 0]))
    assert left.rank.tolist() == [[5, 6], [1, 2]]
    assert left.dropped["suspicious"].tolist() == [4, 0]


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 11)), max_size=12))
def test_same_vectors_as_in_loops(seed, pairs):
    queries, corpus = vectors(5, 3, seed, values=[-1, 0, 1]), vectors(12, 3, seed + 1, values=[0, 1])
    known = ns.Positives.from_pairs(*np.array(pairs, int).reshape(-1, 2).T, 5, 12)
    found = Candidates.of(plain_search(queries, corpus, 8, exclude=known))
    anchors, items = known.pairs()
    (opened_corpus,) = opened(corpus)
    scores = plain_scores(queries, corpus)[anchors, items]
    mask = same_vectors(found, opened_corpus, anchors, items, scores)
    for row in range(5):
        own = [corpus[i] for a, i in zip(anchors.tolist(), items.tolist(), strict=True) if a == row]
        for slot, i in enumerate(found.ids[row].tolist()):
            assert mask[row, slot] == (i >= 0 and any((corpus[i] == vector).all() for vector in own))
