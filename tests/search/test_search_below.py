"""search_below: what a whole search finds, without what lies above a line of each query, which is counted."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.search import _plan as plan
from naysay.search import _products as engines
from naysay.search import _scores as pair_scores
from naysay.search.exact import search, search_below

METRICS = ("dot", "cosine", "l2")
ENGINES = ("int8", "float32", "float64")


def world(seed, n_queries, n_corpus, width, copies=0):
    """Vectors in clusters; some corpus rows are copies of others, so that scores are equal."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, width))
    queries = centres[rng.integers(0, 5, n_queries)] + 0.3 * rng.normal(size=(n_queries, width))
    corpus = centres[rng.integers(0, 5, n_corpus)] + 0.3 * rng.normal(size=(n_corpus, width))
    if copies:
        corpus[rng.integers(0, n_corpus, copies)] = corpus[rng.integers(0, n_corpus, copies)]
    known = ns.Positives.from_pairs(
        np.repeat(np.arange(n_queries), 3), rng.integers(0, n_corpus, 3 * n_queries), n_queries, n_corpus
    )
    return queries.astype(np.float32), corpus.astype(np.float32), known


def plain(queries, corpus, depth, below, metric, known):
    """The whole order of each query, cut at its line."""
    whole = search(queries, corpus, len(corpus), metric=metric, exclude=known, engine="float64")
    ids, scores, above = [], [], []
    for row_ids, row_scores, line in zip(whole.ids.tolist(), whole.scores, below, strict=True):
        row = [(i, s) for i, s in zip(row_ids, row_scores, strict=True) if i >= 0]
        under = [pair for pair in row if pair[1] <= line][:depth]
        above.append(sum(score > line for _, score in row))
        ids.append([i for i, _ in under] + [-1] * (depth - len(under)))
        scores.append([s for _, s in under] + [-np.inf] * (depth - len(under)))
    return ids, np.array(scores, np.float32), above


def lines(queries, corpus, metric, seed):
    """Lines at all heights, half of them exactly at a score; one above all, one below all, two infinite."""
    rng = np.random.default_rng(seed)
    scores = search(queries, corpus, len(corpus), metric=metric, engine="float64").scores
    at = scores[np.arange(len(scores)), rng.integers(0, scores.shape[1], len(scores))]
    moved = at + np.float32(1e-4) * rng.normal(size=len(at)).astype(np.float32)
    found = np.where(rng.random(len(at)) < 0.5, at, moved).astype(np.float32)
    found[:4] = (scores.max() + 1, scores.min() - 1, np.inf, -np.inf)
    return found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("copies", [0, 200])
def test_it_is_the_whole_order_cut_at_the_line(metric, engine, copies):
    queries, corpus, known = world(1, 25, 500, 19, copies)
    below = lines(queries, corpus, metric, 3)
    for depth in (1, 7, 60):
        found, above = search_below(queries, corpus, depth, below, metric=metric, exclude=known, engine=engine)
        ids, scores, higher = plain(queries, corpus, depth, below, metric, known)
        assert found.ids.tolist() == ids
        assert found.scores.tobytes() == scores.tobytes()
        assert above.tolist() == higher


@given(seed=st.integers(0, 10_000), engine=st.sampled_from(ENGINES), depth=st.integers(1, 9), block=st.integers(1, 3))
def test_blocks_and_capacities_that_run_over(seed, engine, depth, block):
    """Blocks of 32 columns, room for a few open pairs: what may be above the line fills it, and is scored early."""
    queries, corpus, known = world(seed, 9, 150, 8, copies=100)
    below = lines(queries, corpus, "cosine", seed)
    usual = plan.plan

    def small(*arguments):
        sizes = usual(*arguments)
        return plan.Plan(block * 3, min(block, sizes.strip), 32, min(150, depth + 8), 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module("naysay.search.exact"), "plan", small)
        found, above = search_below(queries, corpus, depth, below, exclude=known, engine=engine, threads=1 + seed % 2)
    ids, scores, higher = plain(queries, corpus, depth, below, "cosine", known)
    assert found.ids.tolist() == ids
    assert found.scores.tobytes() == scores.tobytes()
    assert above.tolist() == higher


def test_without_a_line_it_is_search():
    queries, corpus, known = world(5, 12, 300, 16)
    found, above = search_below(queries, corpus, 6, None, exclude=known)
    right = search(queries, corpus, 6, exclude=known)
    assert found.ids.tobytes() == right.ids.tobytes()
    assert found.scores.tobytes() == right.scores.tobytes()
    assert not above.any()


@pytest.mark.parametrize(
    ("below", "rule"),
    [
        ([0.1, 0.2], r"search_below: `below` must be \(3,\) numbers, one for each query, got shape \(2,\) float64"),
        ([1, 2, 3], r"must be \(3,\) numbers, one for each query, got shape \(3,\) int64"),
        ([0.1, np.nan, 0.2], r"search_below: `below` must be numbers, got nan at row 1"),
    ],
)
def test_what_is_no_limit_raises(below, rule):
    vectors = np.eye(3, dtype=np.float32)
    with pytest.raises(NaysayError, match=rule):
        search_below(vectors, vectors, 2, below)


@pytest.mark.parametrize("fetched", [1, 5, 2048])
def test_rows_of_a_file_are_fetched_some_at_a_time(fetched, tmp_path, monkeypatch):
    """Room for a few open pairs, so that they are scored early, from the file."""
    queries, corpus, known = world(11, 9, 150, 8, copies=100)
    np.save(tmp_path / "c.npy", corpus)
    below = lines(queries, corpus, "dot", 4)
    ids, scores, higher = plain(queries, corpus, 4, below, "dot", known)
    monkeypatch.setattr(
        importlib.import_module("naysay.search.exact"), "plan", lambda *arguments: plan.Plan(3, 2, 32, 12, 2)
    )
    monkeypatch.setattr(pair_scores, "FETCHED", fetched)
    found, above = search_below(queries, tmp_path / "c.npy", 4, below, metric="dot", exclude=known, engine="int8")
    assert found.ids.tolist() == ids
    assert found.scores.tobytes() == scores.tobytes()
    assert above.tolist() == higher


def test_a_deep_search_in_a_file_needs_no_more_than_its_pairs():
    """16,384 deep, as a line may ask for: the rows that are scored at a time do not grow with the depth."""
    file = SimpleNamespace(n=10**6, width=384, dtype=np.dtype(np.float16), whole=None)
    asked = SimpleNamespace(n=64, width=384, dtype=np.dtype(np.float16), whole=None)
    sizes = plan.plan(asked, file, 16_384, engines.choose("float32", 64, 10**6, 384, None), 2, 200 << 20)
    assert sizes.rows >= 1


@pytest.mark.parametrize("engine", ENGINES)
def test_it_on_progresss_how_far_it_is(engine):
    queries, corpus, _ = world(5, 12, 9000, 8)
    told = []
    search(queries, corpus, 3, engine=engine, on_progress=told.append)
    assert len(told) == 2  # blocks of 8,192
    assert sum(told) == pytest.approx(12)
