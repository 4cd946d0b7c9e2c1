"""MixKG: pairs of hard negatives against loops, for triples and for items."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.rng import key_from
from naysay.samplers.mixed import Mixed
from naysay.samplers.mixkg import MixKG

COMPILING = settings(deadline=None)  # a first call compiles
N, D = 9, 3
WORLD = np.random.default_rng(0)
TRIPLES = np.concatenate([WORLD.integers(0, (N, 2, N), size=(20, 3)), [[0, 0, tail] for tail in range(N)]])
ENTITIES = WORLD.standard_normal((N, D))
SCORES = WORLD.standard_normal((N, N))
POOLS = {0: ns.pools.Corruption(TRIPLES, sides=("head",)), 2: ns.pools.Corruption(TRIPLES, sides=("tail",))}


def embed(ids):
    return ENTITIES[ids] if isinstance(ids, np.ndarray) else torch.tensor(ENTITIES)[ids]


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


def test_items_that_score_high_for_their_anchor():
    """On a pool without sides the function sees anchors and ids."""
    known = ns.Positives.from_pairs([0, 1], [2, 5], n_items=N)
    sampler = MixKG(ns.pools.Everything(known), lambda anchors, ids: SCORES[anchors[:, None], ids], embed, N, n_hard=2)
    made = sampler.sample(ns.Query([0, 1]), 6, rng=ns.rng_for(0))
    for anchor, liked in enumerate([2, 5]):
        hard = sorted(set(range(N)) - {liked}, key=lambda i, anchor=anchor: -SCORES[anchor, i])
        assert set(made.parents[anchor].ravel().tolist()) == set(hard[:2])


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


def test_both_sides_and_both_criteria_by_mixed():
    parts = {f"{side} {by}": sampler_of(side, by, 6, 3) for side in (0, 2) for by in ("score", "entity")}
    made = Mixed(parts, [1] * 4).sample(ns.Query(TRIPLES[:5]), 8, rng=ns.rng_for(0))
    assert made.side[made.source == 0].tolist() == [0] * int((made.source == 0).sum())
    assert set(made.side[made.ids >= 0].tolist()) == {0, 2}


def test_numbers_move_with_the_step():
    sampler = sampler_of(2, "score", lambda step: 8, lambda step: 1 + step, mix=lambda step: (1.0, 1.0))
    made = sampler.sample(ns.Query(TRIPLES[:5]), 3, rng=ns.rng_for(0))
    assert (made.parents[:, :, 0] == made.parents[:, :, 1]).all()
    assert made.vectors == pytest.approx(ENTITIES[made.ids] * (made.ids >= 0)[:, :, None])


@pytest.mark.parametrize("k", [0, 0.5, 3])
@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_and_one_row(rows, k):
    made = sampler_of(2, "score", 4, 2).sample(ns.Query(TRIPLES[:rows]), k, rng=ns.rng_for(0))
    assert made.vectors.shape == (rows, np.ceil(k), D)


@pytest.mark.parametrize("by", ["score", "entity"])
def test_it_conforms(by):
    ns.check_sampler(sampler_of(2, by, 6, 4), POOLS[2].known)


def test_what_it_is_rejected_for():
    def refusal(call, *arguments, **named):
        with pytest.raises(NaysayError) as caught:
            call(*arguments, **named)
        return str(caught.value)

    score = score_at(2)
    rule = "MixKG: `score` must be a function score(anchors, ids), got NoneType."
    assert refusal(MixKG, POOLS[2], None, embed, 4, n_hard=2) == rule
    rule = "MixKG: `score` must be None with by='entity', got function."
    assert refusal(MixKG, POOLS[2], score, embed, 4, n_hard=2, by="entity") == rule
    rule = "MixKG: `embed` must be a function of ids that returns vectors, got int."
    assert refusal(MixKG, POOLS[2], score, 3, 4, n_hard=2) == rule
    assert refusal(MixKG, 3, score, embed, 4, n_hard=2).startswith("MixKG: `pool` must be a pool")
    assert refusal(MixKG, POOLS[2], score, embed, 0, n_hard=2) == "MixKG: `candidates` must be at least 1, got 0."
    assert refusal(MixKG, POOLS[2], score, embed, 4, n_hard=0) == "MixKG: `n_hard` must be at least 1, got 0."
    assert (
        refusal(MixKG, POOLS[2], score, embed, 4, n_hard=2, mix=1)
        == "MixKG: `mix` must be a pair (low, high) with 0 <= low <= high <= 1, got 1."
    )
    assert refusal(MixKG, POOLS[2], score, embed, 4, n_hard=2, by="scor").endswith("Did you mean 'score'?")
    assert refusal(MixKG, POOLS[2], score, embed, 4, n_hard=2, on_short="x").startswith(
        "MixKG: `on_short` must be one of"
    )
    rng = ns.rng_for(0)
    both = MixKG(ns.pools.Corruption(TRIPLES), score, embed, 8, n_hard=2)
    message = refusal(both.sample, ns.Query(TRIPLES), 1, rng=rng)
    assert message.startswith("MixKG.sample: `pool` must be one that replaces one side, got ['head', 'tail']. Make one")
    known = ns.Positives.from_pairs([0], [0], n_items=N)
    alike = MixKG(ns.pools.Everything(known), None, embed, 4, n_hard=2, by="entity")
    assert refusal(alike.sample, ns.Query([0]), 1, rng=rng).startswith("MixKG.sample: `query.positives` must be given")
    assert refusal(alike.sample, [0], 1, rng=rng).startswith("MixKG.sample: `query` must be a Query")
    strict = sampler_of(2, "score", 4, 2, on_short="raise")
    message = refusal(strict.sample, ns.Query([[0, 0, 1]]), 1, rng=rng)
    assert message.startswith("MixKG.sample: row 0 has 0 candidates left of the 1 requested")
