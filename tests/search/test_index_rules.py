"""The rules of an index: numbers of lists, bytes, the Euclidean map, k-means."""

import faiss
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from index_world import KINDS
from plain_search import plain_score

import naysay as ns
from naysay.kernels.dots import COSINE, DOT, L2
from naysay.search import _index_rules as rules
from naysay.search._index_faiss import centres
from naysay.search._index_rules import Euclid
from naysay.search.index import Index


def test_rules_in_numbers():
    assert [rules.lists_for(n) for n in (1000, 200_000, 1_000_000, 10**9)] == [124, 1788, 4000, 65536]
    assert rules.efforts("ivf", 200_000) == [8, 16, 32, 55]
    assert rules.efforts("hnsw", 200_000) == [32, 64, 128, 256, 390]
    assert rules.efforts("ivf", 1000) == [8]
    assert rules.efforts("hnsw", 1000) == [32]
    assert rules.fetched(100, np.array([0, 1, 2, 3, 5, 100])).tolist() == [125, 126, 127, 129, 133, 253]
    assert rules.fetched(10, np.array([0])).tolist() == [26]
    assert rules.probes_for(8, 4000, 1_000_000, 125) == 8
    assert rules.probes_for(8, 4000, 1_000_000, 20_000) == 160
    assert rules.probes_for(8, 124, 1000, 1000) == 124


def test_bytes_of_an_index_are_what_it_takes(built):
    for kind in KINDS:
        written = faiss.serialize_index(built[kind].index).nbytes
        assert 0.8 * written < rules.index_bytes(kind, 3000, 16) < 1.6 * written


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(COSINE, "cosine"), (DOT, "dot"), (L2, "l2")]))
def test_the_nearest_in_euclids_space_is_the_best(seed, metric):
    rng = np.random.default_rng(seed)
    corpus, query = rng.normal(size=(9, 4)) * rng.lognormal(size=(9, 1)), rng.normal(size=(1, 4))
    space = Euclid(metric[0], float(np.linalg.norm(corpus, axis=1).max()))
    rows = space.corpus(corpus).astype(np.float64)
    asked = space.queries(query, np.linalg.norm(query, axis=1)).astype(np.float64)
    assert rows.shape[1] == space.width(4)
    away = ((rows - asked) ** 2).sum(axis=1)
    scores = np.array([plain_score(query[0], row, metric[1]) for row in corpus])
    order = np.argsort(-scores)
    assert (np.diff(away[order]) > -1e-5).all()


def test_centres_are_those_of_plain_loops():
    rng = np.random.default_rng(18)
    sample = rng.normal(size=(60, 3)).astype(np.float32)
    found = centres(sample, 5, rounds=4, seed=7, budget=1 << 28, threads=2)
    means = [sample[i].astype(np.float64) for i in sorted(ns.rng_for(7).choice(60, 5, replace=False).tolist())]
    for _ in range(4):
        groups = [[] for _ in means]
        for row in sample.astype(np.float64):
            away = [float(((row - mean.astype(np.float32)) ** 2).sum()) for mean in means]
            groups[away.index(min(away))].append(row)
        means = [np.mean(group, axis=0) for group in groups]
    assert np.allclose(found, means, atol=1e-6)


def test_a_centre_that_runs_empty_starts_again_at_a_row():
    sample = np.repeat(np.array([[0.0, 1], [5, 5]], np.float32), 20, axis=0)
    found = centres(sample, 6, rounds=3, seed=0, budget=1 << 28, threads=1)
    assert np.isfinite(found).all()
    assert {tuple(row) for row in found.tolist()} <= {(0.0, 1.0), (5.0, 5.0)}


def test_a_corpus_of_one_vector_is_answered():
    found = Index.build(np.ones((1000, 3), np.float32)).search(np.ones((1, 3), np.float32), 3)
    assert (found.ids >= 0).all()
    assert (found.scores == 1).all()
