"""Corruption.draw_triples: the corrupted triples of `draw`, mostly without a look-up of what is known."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay import NaysayError
from naysay.kernels import triple_draws, uniform
from naysay.pools import Corruption
from tests.pools.corruption_oracle import ASKED, SETTINGS, Oracle, fits, pool_and_oracle, worlds

TRIPLES = np.unique(np.random.default_rng(0).integers(0, [300, 7, 300], (9000, 3)), axis=0)
QUERY = ns.Query(TRIPLES[np.random.default_rng(1).integers(0, len(TRIPLES), 4000)])


def made_by(side, triple, item):
    return [*triple[:side], item, *triple[side + 1 :]]


@given(worlds(), st.sampled_from([32, 2, 1]), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_every_row_of_every_small_world(world, tries, n):
    """Only candidates come, in every slot unless no side has one."""
    train, known, sides, choice, domains, ranges, n_entities, n_relations, asked = world
    oracle = Oracle(train, known, sides, choice, domains, ranges, n_entities, n_relations)
    sizes = {"n_entities": n_entities, "n_relations": n_relations}
    pool = Corruption(train, known, sides=sides, choice=choice, domains=domains, ranges=ranges, distinct=False, **sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform, "TRIES", tries)
        got = pool.draw_triples(ns.Query(np.array(asked, np.int64).reshape(-1, 3)), n, rng=ns.rng_for(n))
    assert got.shape == (len(asked), n, 3)
    assert got.dtype == np.int64
    for triple, row in zip(asked, got.tolist(), strict=True):
        allowed = [made_by(side, triple, item) for side, ids in oracle.candidates(triple).items() for item in ids]
        assert all(slot in (allowed or [[-1, -1, -1]]) for slot in row)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("tries", [32, 1])
def test_frequencies_are_those_of_the_oracle(name, tries, monkeypatch):
    """Also where a side is full, so that the other sides share its chance, and where the filter lets nothing pass."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    for per_word in (triple_draws.PER_WORD, 10_000):
        monkeypatch.setattr(triple_draws, "PER_WORD", per_word)
        pool, oracle = pool_and_oracle(name, distinct=False)
        for triple in ASKED:
            got = pool.draw_triples(ns.Query([triple] * 1800), 5, rng=ns.rng_for(31)).reshape(-1, 3)
            cells = [(side, item) for side, items in oracle.candidates(triple).items() for item in items]
            if not cells:
                assert (got == -1).all()
                continue
            expected = {tuple(made_by(s, triple, i)): oracle.probability(triple, s, i) for s, i in cells}
            assert {*map(tuple, got.tolist())} <= {*expected}
            observed = [int((got == changed).all(axis=1).sum()) for changed in expected]
            assert fits(observed, [*expected.values()]) > 1e-5, triple


@pytest.mark.parametrize(
    "options",
    [{}, {"sides": ("tail",)}, {"sides": ("head", "relation", "tail")}, {"domains": "observed", "ranges": "observed"}],
    ids=["head and tail", "tail", "all three", "observed"],
)
def test_the_draws_are_those_of_draw(options):
    """Where few ids of each side are known; for any number of threads, and in every form of the query."""
    pool = Corruption(TRIPLES, distinct=False, **options)
    for n in (1, 5):
        expected = pool.corrupted(QUERY, pool.draw(QUERY, n, rng=ns.rng_for(3)))
        before = ns.kernels.threads.threads()
        for count in (1, 2, 4):
            ns.set_threads(count)
            assert np.array_equal(pool.draw_triples(QUERY, n, rng=ns.rng_for(3)), expected)
        ns.set_threads(before)
        compiled = len(triple_draws.draw.signatures)
        for other in (pickle.loads(pickle.dumps(pool)), copy.deepcopy(pool)):
            assert np.array_equal(other.draw_triples(QUERY, n, rng=ns.rng_for(3)), expected)
        assert len(triple_draws.draw.signatures) == compiled  # a copy has arrays of the same types
        in_torch = pool.draw_triples(ns.Query(torch.from_numpy(QUERY.anchors)), n, rng=ns.rng_for(3))
        assert np.array_equal(in_torch.numpy(), expected)


def test_few_draws_are_looked_up():
    """The filter is what makes it fast: of 40,000 triples that are not known it lets few pass."""
    pool = Corruption(TRIPLES, distinct=False)
    words = pool._filtered[2]
    assert (np.bitwise_count(words).sum() / (64 * len(words))) < 0.2  # three bits for a triple let below 1 % pass
    everything = np.zeros_like(words)
    triple_draws.fill_filter(TRIPLES[::-1].copy(), everything)
    assert np.array_equal(everything, words)


def test_a_distinct_pool_draws_without_repeats():
    pool = Corruption(TRIPLES)
    got = pool.draw_triples(QUERY, 40, rng=ns.rng_for(0))
    assert np.array_equal(got, pool.corrupted(QUERY, pool.draw(QUERY, 40, rng=ns.rng_for(0))))
    counts = np.arange(len(QUERY)) % 3
    got = pool.draw_triples(QUERY, counts, rng=ns.rng_for(0))
    assert np.array_equal((got[..., 0] >= 0).sum(axis=1), counts)


def test_what_does_not_fit():
    full = [[0, 0, tail] for tail in range(3)]
    pool = Corruption(full, sides=("tail",), n_entities=3, distinct=False, on_short="raise")
    with pytest.raises(NaysayError, match=r"^Corruption.draw_triples: row 1 has 0 candidates left of the 2 requested"):
        pool.draw_triples(ns.Query([[1, 0, 1], [0, 0, 1]]), 2, rng=ns.rng_for(0))
    for n in (-1, True, 1 << 31):
        with pytest.raises(NaysayError, match="`n` must be"):
            pool.draw_triples(ns.Query(full), n, rng=ns.rng_for(0))
    with pytest.raises(NaysayError, match="`triples` must be of ids within 3 entities and 1 relations, got "):
        pool.draw_triples(ns.Query([[0, 0, 1], [0, -1, 2]]), 1, rng=ns.rng_for(0))
    with pytest.raises(NaysayError, match="`rng` must be a numpy Generator"):
        pool.draw_triples(ns.Query(full), 1, rng=0)
    with pytest.raises(NaysayError, match=r"`query.anchors` must be of shape \(B, 3\)"):
        pool.draw_triples(ns.Query([0, 1]), 1, rng=ns.rng_for(0))
