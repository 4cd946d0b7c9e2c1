"""MoCHi: both kinds of mixing against loops, from a memory and from a pool with vectors of its own."""

import math

import numpy as np
import pytest
import torch
from by_table import rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.rng import key_from
from naysay.samplers import MoCHi

COMPILING = settings(deadline=None)  # a first call compiles
N_ITEMS, D = 12, 3
KNOWN = ns.Positives.from_pairs(
    [0, 0, 1, 2, *[3] * 12, *[4] * 11], [0, 5, 6, 7, *range(12), *range(11)], n_anchors=6, n_items=N_ITEMS
)
POOL = ns.pools.Everything(KNOWN)
WORLD = np.random.default_rng(0)


def units(array):
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


ITEMS, ANCHORS = units(WORLD.standard_normal((N_ITEMS, D))), units(WORLD.standard_normal((6, D)))


embed = rows_of(ITEMS)


def filled_memory(size=N_ITEMS, kind=np.float64):
    memory = ns.pools.Memory(size, KNOWN)
    memory.push(np.arange(N_ITEMS), np.full(N_ITEMS, -1), vectors=ITEMS.astype(kind))
    return memory


def asked(anchors, step=0):
    anchors = np.array(anchors, np.int64)
    return ns.Query(anchors, vectors=ANCHORS[anchors], step=step)


def in_torch(query):
    return ns.Query(torch.tensor(query.anchors), vectors=torch.tensor(query.vectors), step=query.step)


def in_loops(query, candidates, counts, n_hard, share, mix, anchor_mix, uniform):
    """[(first, second, kind, vector)] by row and slot: sort, truncate, mix, normalise."""
    answer = []
    for row, count in enumerate(counts):
        own = query.vectors[row]
        ids = [i for i in candidates[row].tolist() if i >= 0]
        hard = sorted(ids, key=lambda i, own=own: -(ITEMS[i] @ own))[:n_hard]
        made = []
        for slot in range(count if hard else 0):
            u, v, w = uniform[row, slot]
            i = int(u * len(hard))
            j = (i + 1 + int(v * (len(hard) - 1))) % len(hard)
            kind = int(math.floor((slot + 1) * share) > math.floor(slot * share))
            if kind:
                b = anchor_mix[0] + (anchor_mix[1] - anchor_mix[0]) * w
                vector, second = b * own + (1 - b) * ITEMS[hard[i]], -1
            else:
                a = mix[0] + (mix[1] - mix[0]) * w
                vector, second = a * ITEMS[hard[i]] + (1 - a) * ITEMS[hard[j]], hard[j]
            made.append((hard[i], second, kind, vector / np.linalg.norm(vector)))
        answer.append(made)
    return answer


@COMPILING
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6),
    st.integers(1, 14),
    st.integers(1, 14),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from([(0.0, 1.0), (0.3, 0.3)]),
    st.sampled_from(["pool", "memory", "whole memory"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_it_is_what_the_loops_make(rows, n_hard, size, share, mix, where, tensors, seed):
    counts, query = [count for _, count in rows], asked([anchor for anchor, _ in rows])
    pool = POOL if where == "pool" else filled_memory()
    size = None if where == "whole memory" else size
    beyond = (-0.5, 0.0) if seed % 2 else (0.0, 0.5)
    where_from = embed if where == "pool" else None
    sampler = MoCHi(pool, where_from, n_hard, size, anchor_share=share, mix=mix, anchor_mix=beyond)
    k = np.array(counts, np.int64)
    made = sampler.sample(in_torch(query) if tensors else query, k, rng=ns.rng_for(seed)).numpy()
    rng = ns.rng_for(seed)
    candidates = pool.draw(query, size, rng=rng).ids
    uniform = np.random.Generator(np.random.Philox(key=int(key_from(rng)))).random((*made.shape, 3))
    expected = in_loops(query, candidates, counts, n_hard, share, mix, beyond, uniform)
    assert made.shape == (len(rows), max(counts, default=0))
    for row, slots in enumerate(expected):
        empty = [-1] * (made.shape[1] - len(slots))
        assert made.ids[row].tolist() == [first for first, *_ in slots] + empty
        assert made.parents[row, :, 0].tolist() == made.ids[row].tolist()
        assert made.parents[row, :, 1].tolist() == [second for _, second, *_ in slots] + empty
        assert made.source[row].tolist() == [kind for _, _, kind, _ in slots] + empty
        for slot, (*_, vector) in enumerate(slots):
            assert made.vectors[row, slot] == pytest.approx(vector)
            assert made.scores[row, slot] == pytest.approx(vector @ query.vectors[row])
        assert not made.vectors[row, len(slots) :].any()
    short = sum(counts) - sum(map(len, expected))
    assert dict(made.dropped) == ({"exhausted": short} if short else {})
    assert made.source_names == ("pair", "with anchor")
    assert made.log_q is None


def test_partners_differ_and_are_uniform_among_the_hardest():
    """Four hard items: every ordered pair of two comes in a twelfth of the slots."""
    query = asked([5] * 3000)
    made = MoCHi(POOL, embed, 4, N_ITEMS, anchor_share=0.0).sample(query, 2, rng=ns.rng_for(0))
    hard = np.argsort(-(ITEMS @ ANCHORS[5]))[:4].tolist()
    pairs = made.parents.reshape(-1, 2).tolist()
    counts = [pairs.count([i, j]) for i in hard for j in hard if i != j]
    assert sum(counts) == 6000
    assert sum((count - 500) ** 2 / 500 for count in counts) < 61  # 11 degrees of freedom: beyond p = 1e-8


def test_it_is_detached():
    own = torch.tensor(ANCHORS[:3], requires_grad=True)
    table = torch.tensor(ITEMS, requires_grad=True)
    query = ns.Query(torch.arange(3), vectors=own)
    made = MoCHi(POOL, lambda ids: table[ids], 4, 8).sample(query, 4, rng=ns.rng_for(0))
    assert not made.vectors.requires_grad
    assert not made.scores.requires_grad


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_vectors_are_in_the_kind_of_the_anchors(kind):
    memory = filled_memory(kind=np.float32)
    query = ns.Query([0, 1], vectors=ANCHORS[:2].astype(kind))
    plain = MoCHi(memory, None, 4).sample(query, 2, rng=ns.rng_for(0))
    assert plain.vectors.dtype == plain.scores.dtype == kind
    tensors = MoCHi(memory, None, 4).sample(in_torch(query), 2, rng=ns.rng_for(0))
    assert tensors.vectors.numpy().dtype == kind
    assert tensors.vectors.numpy() == pytest.approx(plain.vectors, abs=1e-6)


def test_an_empty_memory_leaves_slots_empty():
    made = MoCHi(ns.pools.Memory(8), None, 4).sample(asked([0, 1]), 2, rng=ns.rng_for(0))
    assert (made.ids == -1).all()
    assert made.vectors.shape == (2, 2, D)
    assert dict(made.dropped) == {"exhausted": 4}
