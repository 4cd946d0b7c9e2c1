"""Cached on triples: a cache for each (relation, tail) and (head, relation), one side per row (NSCaching)."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Cached

RNG = np.random.default_rng(0)
TRIPLES = np.unique(RNG.integers(0, (7, 2, 7), (24, 3)), axis=0)
POOL = ns.pools.Corruption(TRIPLES, choice="bernoulli", n_entities=7, n_relations=2)
TABLE = RNG.standard_normal((7, 2, 7))


def score(triples, corrupted):
    table = TABLE if isinstance(corrupted, np.ndarray) else torch.from_numpy(TABLE)
    return table[corrupted[..., 0], corrupted[..., 1], corrupted[..., 2]]


def taught(sampler, steps, triples=TRIPLES):
    for step in range(steps):
        query = ns.Query(triples, step=step)
        sampler.observe(query, sampler.sample(query, 1, rng=ns.rng_for(9, step)))
    return sampler


def test_a_key_has_one_cache_that_all_its_triples_share():
    sampler = taught(Cached(POOL, score, 3, 4, keep="top"), 12)
    hardest = {}
    for head, relation, tail in TRIPLES.tolist():
        true = {t for h, r, t in TRIPLES.tolist() if (h, r) == (head, relation)}
        order = sorted(set(range(7)) - true, key=lambda t: -TABLE[head, relation, t])
        hardest["tail", head, relation] = set(order[:3])
        true = {h for h, r, t in TRIPLES.tolist() if (r, t) == (relation, tail)}
        order = sorted(set(range(7)) - true, key=lambda h: -TABLE[h, relation, tail])
        hardest["head", relation, tail] = set(order[:3])
    for step in range(20):
        drawn = sampler.sample(ns.Query(TRIPLES), 3, rng=ns.rng_for(0, step))
        assert (drawn.side == drawn.side[:, :1])[drawn.ids >= 0].all()  # one side per row
        assert drawn.log_q is None
        for row, (head, relation, tail) in enumerate(TRIPLES.tolist()):
            key = ("head", relation, tail) if drawn.side[row, 0] == 0 else ("tail", head, relation)
            found = set(drawn.ids[row].tolist()) - {-1}
            assert found == hardest[key]


def test_the_side_is_drawn_by_the_pools_chances():
    sampler = taught(Cached(POOL, score, 3, 3), 3)
    triple = TRIPLES[:1]
    drawn = sampler.sample(ns.Query(np.repeat(triple, 8000, axis=0)), 1, rng=ns.rng_for(3))
    chance = POOL.chance[triple[0, 1]]
    seen = [np.count_nonzero(drawn.side == side) for side in (0, 2)]
    assert chisquare(seen, 8000 * chance).pvalue > 1e-5


def test_no_known_triple_and_no_duplicate_enters():
    """NSCaching's code checks neither."""
    sampler = Cached(POOL, lambda triples, corrupted: 1e4 * score(triples, corrupted), 4, 5)
    for step in range(10):
        query = ns.Query(TRIPLES)
        drawn = sampler.sample(query, 4, rng=ns.rng_for(0, step))
        made = POOL.corrupted(query, drawn)
        assert not POOL.known.contains(made[drawn.ids >= 0]).any()
        sampler.observe(query, drawn)
        for row in sampler.cache.tolist():
            filled = [item for item in row if item >= 0]
            assert len(set(filled)) == len(filled)


def test_a_key_of_no_known_triple_draws_from_the_pool_and_is_not_cached():
    lonely = np.array([[6, 1, 6]])
    pool = ns.pools.Corruption([[0, 0, 1], [1, 0, 2], [6, 0, 5]], n_entities=7, n_relations=2)
    sampler = taught(Cached(pool, score, 2, 2), 3, lonely)
    assert (sampler.state()["table"] == -1).all()
    drawn = sampler.sample(ns.Query(np.repeat(lonely, 200, axis=0)), 2, rng=ns.rng_for(0))
    assert (drawn.ids >= 0).all()
    assert (drawn.ids != 6).all()
    assert set(drawn.ids.ravel().tolist()) == set(range(6))


def test_the_triples_own_part_is_left_out_though_the_triple_is_not_known():
    pool = ns.pools.Corruption([[0, 0, 1], [2, 0, 3]], sides=("tail",), n_entities=6, n_relations=1)
    sampler = Cached(pool, lambda triples, corrupted: corrupted[..., 2] * 1.0, 5, 6, keep="top")
    sampler.observe(ns.Query([[0, 0, 1]]))
    drawn = sampler.sample(ns.Query([[0, 0, 4]] * 40), 4, rng=ns.rng_for(0))  # (0, 0) is known, (0, 0, 4) is not
    assert (np.sort(drawn.ids, axis=1) == [0, 2, 3, 5]).all()


def test_one_side_of_a_pool():
    typed = ns.pools.Corruption(TRIPLES, domains="observed", n_entities=7, n_relations=2, distinct=False)
    heads, tails = typed.one_side("head"), typed.one_side("tail")
    assert heads.sides == (0,)
    assert not heads.distinct
    assert "domains='observed'" in repr(heads)
    assert "domains=None" in repr(tails)
    assert (heads.draw(ns.Query(TRIPLES), 3, rng=ns.rng_for(0)).side <= 0).all()
    with pytest.raises(NaysayError, match=r"^Corruption.one_side: `side` must be one of"):
        typed.one_side("relation")
    with pytest.raises(NaysayError, match="`history` must be 0 unless the pool has `positives`"):
        Cached(typed, score, 3, 3, choose="top", history=2)
