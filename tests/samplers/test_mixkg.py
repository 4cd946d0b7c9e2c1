"""MixKG: pairs of hard negatives against loops, for triples and for items."""

import numpy as np
import pytest
import torch
from by_table import rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.rng import key_from
from naysay.samplers import MixKG

COMPILING = settings(deadline=None)  # a first call compiles
N, D = 9, 3
WORLD = np.random.default_rng(0)
TRIPLES = np.concatenate([WORLD.integers(0, (N, 2, N), size=(20, 3)), [[0, 0, tail] for tail in range(N)]])
ENTITIES = WORLD.standard_normal((N, D))
SCORES = WORLD.standard_normal((N, N))
POOLS = {0: ns.pools.Corruption(TRIPLES, sides=("head",)), 2: ns.pools.Corruption(TRIPLES, sides=("tail",))}


embed = rows_of(ENTITIES)


def score_at(side):
    def score(triples, corrupted):
        assert tuple(corrupted.shape[::2]) == (len(triples), 3)
        table = SCORES if isinstance(corrupted, np.ndarray) else torch.tensor(SCORES)
        return table[corrupted[:, :, 2 - side], corrupted[:, :, side]] + corrupted[:, :, 1]

    return score


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


def hardness(triple, entity, side, by):
    if by == "score":
        return SCORES[triple[2 - side], entity] + triple[1]
    return cosine(ENTITIES[triple[side]], ENTITIES[entity])


def sampler_of(side, by, size, n_hard, **options):
    return MixKG(POOLS[side], score_at(side) if by == "score" else None, embed, size, n_hard=n_hard, by=by, **options)


@COMPILING
@given(
    st.lists(st.tuples(st.integers(0, len(TRIPLES) - 1), st.integers(0, 4)), max_size=6),
    st.sampled_from([0, 2]),
    st.sampled_from(["score", "entity"]),
    st.integers(1, 10),
    st.integers(1, 10),
    st.booleans(),
    st.integers(0, 99),
)
def test_it_is_what_the_loops_make(rows, side, by, size, n_hard, tensors, seed):
    counts = [count for _, count in rows]
    triples = TRIPLES[[row for row, _ in rows]].reshape(-1, 3)
    query = ns.Query(torch.tensor(triples) if tensors else triples)
    k = np.array(counts, np.int64)
    made = sampler_of(side, by, size, n_hard).sample(query, k, rng=ns.rng_for(seed)).numpy()
    rng = ns.rng_for(seed)
    candidates = POOLS[side].draw(ns.Query(triples), size, rng=rng).ids
    uniform = np.random.Generator(np.random.Philox(key=int(key_from(rng)))).random((*made.shape, 3))
    short = 0
    for row, (triple, count) in enumerate(zip(triples.tolist(), counts, strict=True)):
        found = [i for i in candidates[row].tolist() if i >= 0]
        hard = sorted(found, key=lambda i, triple=triple: -hardness(triple, i, side, by))[:n_hard]
        for slot in range(made.shape[1]):
            if slot >= count or not hard:
                assert made.ids[row, slot] == made.side[row, slot] == -1
                assert (made.parents[row, slot] == -1).all()
                assert not made.vectors[row, slot].any()
                short += slot < count
                continue
            u, v, a = uniform[row, slot]
            i = int(u * len(hard))
            j = (i + 1 + int(v * (len(hard) - 1))) % len(hard)
            assert made.parents[row, slot].tolist() == [hard[i], hard[j]]
            assert made.ids[row, slot] == hard[i]
            assert made.side[row, slot] == side
            assert made.vectors[row, slot] == pytest.approx(a * ENTITIES[hard[i]] + (1 - a) * ENTITIES[hard[j]])
    assert dict(made.dropped) == ({"exhausted": short} if short else {})
    assert made.scores is None
    assert made.log_q is None


def test_items_are_alike_their_positive():
    known = ns.Positives.from_pairs([0, 1], [2, 5], n_items=N)
    sampler = MixKG(ns.pools.Everything(known), None, embed, N, n_hard=2, by="entity")
    made = sampler.sample(ns.Query([0, 1], positives=[2, 5]), 6, rng=ns.rng_for(0))
    for row, liked in enumerate([2, 5]):
        alike = sorted(set(range(N)) - {liked}, key=lambda i, liked=liked: -cosine(ENTITIES[liked], ENTITIES[i]))
        assert set(made.parents[row].ravel().tolist()) == set(alike[:2])
    assert made.side is None


def test_gradients_flow_into_the_parents_alone():
    table = torch.tensor(ENTITIES, requires_grad=True)
    sampler = MixKG(POOLS[2], None, lambda ids: table[ids], 6, n_hard=3, by="entity", mix=(0.25, 0.25))
    made = sampler.sample(ns.Query(torch.tensor(TRIPLES[:4])), 2, rng=ns.rng_for(0))
    made.vectors.sum().backward()
    expected = np.zeros((N, D))
    for one, other in made.parents.reshape(-1, 2).tolist():
        if one >= 0:
            expected[one] += 0.25
            expected[other] += 0.75
    assert table.grad.numpy() == pytest.approx(expected)
