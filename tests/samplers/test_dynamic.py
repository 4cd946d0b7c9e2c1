"""Dynamic: by loops, on every kind of pool, and what it refuses."""

import math

import numpy as np
import pytest
import torch
from by_table import by
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.quantity import Linear
from naysay.quantity.schedules import slots
from naysay.rng import key_from
from naysay.samplers import Dynamic
from naysay.samplers._choose import gumbel

PAIRS = [(0, 0), (0, 1), (1, 5), *((2, item) for item in range(7)), *((4, item) for item in range(8))]
KNOWN = ns.Positives.from_pairs([a for a, _ in PAIRS], [i for _, i in PAIRS], 5, 8)  # row 2 has one left, row 4 none
POOL = ns.pools.Everything(KNOWN)
LOOSE = ns.pools.Everything(KNOWN, distinct=False)
TABLE = np.random.default_rng(0).integers(-3, 4, (5, 8)) / 2.0  # with equal scores, exact in float32


by_table = by(TABLE)


def by_loops(pool, anchors, k, rng, candidates, temperature, top_m):
    """The same answer one row and one candidate at a time, and how many slots stayed empty."""
    counts = np.full(len(anchors), slots(k, len(anchors), rng))
    drawn = pool.draw(ns.Query(anchors), candidates, rng=rng).ids.tolist()
    noise = None
    if top_m is not None or temperature > 0:
        width = candidates if top_m is None else top_m
        noise = gumbel((len(anchors), width), key_from(rng), np.zeros(1)).tolist()
    rows, short = [], 0
    for row, anchor in enumerate(anchors):
        value = {slot: TABLE[anchor, item] for slot, item in enumerate(drawn[row]) if item >= 0}
        best = sorted(value, key=lambda slot: (-value[slot], slot))
        if top_m is not None:
            best = best[:top_m]
            best = [best[place] for place in sorted(range(len(best)), key=lambda place: -noise[row][place])]
        elif temperature > 0:
            best = sorted(value, key=lambda slot: -(value[slot] / temperature + noise[row][slot]))
        rows.append([drawn[row][slot] for slot in best[: counts[row]]])
        short += max(0, counts[row] - len(best))
    return rows, short


KS = st.one_of(st.integers(0, 4), st.floats(0, 4), st.just("rows"))
HOW = st.sampled_from([(0.0, None), (0.5, None), (3, None), (0.0, 1), (0.0, 4)])


@given(st.lists(st.integers(0, 4), max_size=6), KS, st.integers(4, 9), HOW, st.booleans(), st.integers(0, 2**32))
def test_it_is_what_loops_say_in_numpy_and_torch(anchors, k, candidates, how, distinct, seed):
    pool, (temperature, top_m) = (POOL if distinct else LOOSE), how
    if isinstance(k, str):
        k = np.random.default_rng(seed).integers(0, 5, len(anchors))
    if top_m == 1:
        k = np.minimum(k, 1)
    sampler = Dynamic(pool, by_table, candidates, temperature, top_m=top_m)
    plain = sampler.sample(ns.Query(anchors), k, rng=ns.rng_for(seed))
    rows, short = by_loops(pool, anchors, k, ns.rng_for(seed), candidates, temperature, top_m)
    assert [[item for item in row if item >= 0] for row in plain.ids.tolist()] == rows
    assert plain.dropped == ({"exhausted": short} if short else {})
    assert plain.shape == (len(anchors), math.ceil(k) if np.ndim(k) == 0 else max(k, default=0))
    assert plain.log_q is None
    for anchor, ids, scores in zip(anchors, plain.ids.tolist(), plain.scores.tolist(), strict=True):
        assert scores == [TABLE[anchor, item] if item >= 0 else 0.0 for item in ids]
        assert all((anchor, item) not in PAIRS for item in ids)
        assert ids == [item for item in ids if item >= 0] + [-1] * ids.count(-1)
    tensors = sampler.sample(ns.Query(torch.tensor(anchors)), torch.as_tensor(np.asarray(k)), rng=ns.rng_for(seed))
    assert isinstance(tensors.ids, torch.Tensor)
    assert (tensors.ids.tolist(), tensors.scores.tolist()) == (plain.ids.tolist(), plain.scores.tolist())
    assert tensors.dropped == plain.dropped


@pytest.mark.parametrize("temperature", [1e-300, 1e-3])
@pytest.mark.parametrize("scale", [1.0, -1.0, 3e38])
def test_a_low_temperature_is_the_highest_whatever_the_scores(temperature, scale):
    scores = scale * np.linspace(0, 1, 8, dtype=np.float32)
    for tensors in (False, True):
        anchors = torch.tensor([0, 2, 4]) if tensors else np.array([0, 2, 4])
        found = []
        for heat in (temperature, 0.0):
            values = torch.from_numpy(scores) if tensors else scores
            sampler = Dynamic(POOL, lambda anchors, ids, values=values: values[ids], 8, heat)
            found.append(sampler.sample(ns.Query(anchors), 4, rng=ns.rng_for(0)))
        assert found[0].ids.tolist() == found[1].ids.tolist()
        assert found[0].dropped == {"exhausted": 7}  # nothing that could have been taken was left


def memory():
    queue = ns.pools.Memory(20, KNOWN)
    queue.push(np.arange(20) % 8, np.arange(20) % 5, vectors=np.arange(60.0).reshape(20, 3))
    return queue


def test_what_a_candidate_carries_goes_with_it():
    pool = memory()
    taken = Dynamic(pool, by_table, 6).sample(ns.Query([0, 1, 4]), 3, rng=ns.rng_for(0))
    held = {(int(item), tuple(vector)) for item, vector in zip(pool.ids, pool.vectors, strict=True)}
    for item, vector in zip(taken.ids.ravel().tolist(), taken.vectors.reshape(-1, 3).tolist(), strict=True):
        assert vector == [0, 0, 0] if item < 0 else (item, tuple(vector)) in held
    assert (taken.ids[2] == -1).all()


def by_parts(_, triples):
    return (9 * triples[..., 0] + 5 * triples[..., 1] + triples[..., 2]) % 7 * 1.0


TRIPLES = np.array([[0, 0, 1], [1, 0, 2], [2, 1, 3], [3, 1, 0], [4, 0, 1]])


@pytest.mark.parametrize("how", [{}, {"temperature": 0.5}, {"top_m": 4}], ids=["highest", "softmax", "top_m"])
def test_of_triples_the_corrupted_ones_are_scored(how):
    pool = ns.pools.Corruption(TRIPLES, sides=("head", "relation", "tail"))
    sampler = Dynamic(pool, by_parts, 6, **how)
    ns.check_sampler(sampler, pool.known)
    query = ns.Query(TRIPLES)
    taken = sampler.sample(query, 3, rng=ns.rng_for(0))
    scores = by_parts(TRIPLES, pool.corrupted(query, taken))
    assert (taken.scores[taken.mask] == scores[taken.mask]).all()
    assert taken.mask.all()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.floats(0.02, 1.0), st.booleans(), st.integers(0, 2**32))
def test_no_candidate_above_the_ceiling_is_drawn(anchors, ceiling, tensors, seed):
    """By loops: softmax over what is left of the items of an anchor, without those above the ceiling."""
    query = ns.Query(torch.tensor(anchors) if tensors else np.array(anchors))
    sampler = Dynamic(POOL, by_table, candidates=8, temperature=0.5, ceiling=lambda step: ceiling)
    drawn = sampler.sample(query, 8, rng=ns.rng_for(seed)).numpy()
    for row, anchor in enumerate(anchors):
        free = [item for item in range(8) if (anchor, item) not in PAIRS]
        weights = {item: math.exp(TABLE[anchor, item] / 0.5) for item in free}
        low = {item for item in free if weights[item] <= ceiling * sum(weights.values())}
        assert set(drawn.ids[row][drawn.ids[row] >= 0].tolist()) == low
        if ceiling == 1.0:
            assert low == set(free)
    assert drawn.dropped.get("exhausted", 0) == int((drawn.ids < 0).sum())


def test_a_ceiling_of_1_changes_no_draw_and_a_rising_one_lets_harder_ones_enter():
    query = ns.Query(np.array([0, 1, 3] * 50))
    plain, capped = (
        Dynamic(POOL, by_table, 5, 1.0, ceiling=c).sample(query, 3, rng=ns.rng_for(4)).ids for c in (None, 1.0)
    )
    assert np.array_equal(plain, capped)
    rising = Dynamic(POOL, by_table, 8, 1.0, ceiling=Linear(0.02, 1.0, steps=50))
    hardest = []
    for step in range(0, 51, 5):
        drawn = rising.sample(ns.Query(query.anchors, step=step), 8, rng=ns.rng_for(0)).numpy()
        own = TABLE[query.anchors[:, None], np.maximum(drawn.ids, 0)]
        hardest.append(np.where(drawn.ids >= 0, own, -9.0).max())
    assert hardest == sorted(hardest)
    assert hardest[0] < hardest[-1]
