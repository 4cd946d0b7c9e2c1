"""MixGCF: positive mixing and hop mixing against loops, and what it reduces to."""

import numpy as np
import pytest
import torch
from by_table import rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import Dynamic, MixGCF

COMPILING = settings(deadline=None)  # a first call compiles
N_ITEMS, LAYERS, D = 15, 3, 4
KNOWN = ns.Positives.from_pairs(
    [0, 0, 1, 2, *[3] * 15, *[4] * 12], [0, 5, 6, 7, *range(15), *range(12)], n_anchors=6, n_items=N_ITEMS
)
POOL = ns.pools.Everything(KNOWN)
LIKED = np.array([0, 6, 7, 3, 4, 0])  # a positive of each anchor but the last, who has none
WORLD = np.random.default_rng(0)
ITEMS = WORLD.standard_normal((N_ITEMS, LAYERS, D))
ANCHORS = WORLD.standard_normal((6, LAYERS * D))


embed = rows_of(ITEMS)


def asked(anchors, dimension=D, step=0):
    anchors = np.array(anchors, np.int64)
    return ns.Query(anchors, positives=LIKED[anchors], vectors=ANCHORS[anchors, :dimension], step=step)


def tensors(query):
    return ns.Query(
        torch.tensor(query.anchors),
        positives=torch.tensor(query.positives),
        vectors=torch.tensor(query.vectors),
        step=query.step,
    )


def in_loops(query, counts, size, pooling, share, seed):
    """(vectors, first parents) by row and slot, by the paper: mix every candidate, then choose, then pool."""
    drawn = POOL.draw(query, np.array(counts) * size, rng=ns.rng_for(seed)).ids
    answer = []
    for row, count in enumerate(counts):
        made = []
        for slot in range(count):
            group = [i for i in drawn[row, slot :: max(count, 1)][:size].tolist() if i >= 0]
            if not group:
                continue
            picks, layers = [], []
            for layer in range(LAYERS):
                own = query.vectors[row]
                if pooling == "concat":
                    own = own[layer * D : (layer + 1) * D]
                mixed = [share * ITEMS[query.positives[row], layer] + (1 - share) * ITEMS[i, layer] for i in group]
                best = max(range(len(group)), key=lambda m: own @ mixed[m])
                picks.append(group[best])
                layers.append(mixed[best])
            pooled = {
                "mean": sum(layers) / LAYERS,
                "sum": sum(layers),
                "final": layers[-1],
                "concat": np.concatenate(layers),
            }[pooling]
            made.append((picks[0], pooled))
        answer.append(made)
    return answer


@COMPILING
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=6),
    st.integers(1, 5),
    st.sampled_from(["mean", "sum", "final", "concat"]),
    st.sampled_from([0.0, 0.25, 0.7]),
    st.booleans(),
    st.integers(0, 99),
)
def test_it_is_what_the_loops_make(rows, size, pooling, share, in_torch, seed):
    counts = [count for _, count in rows]
    query = asked([anchor for anchor, _ in rows], LAYERS * D if pooling == "concat" else D)
    sampler = MixGCF(POOL, embed, size, mix=(share, share), pooling=pooling)
    k = np.array(counts, np.int64)
    made = sampler.sample(tensors(query) if in_torch else query, k, rng=ns.rng_for(seed)).numpy()
    expected = in_loops(query, counts, size, pooling, share, seed)
    assert made.shape == (len(rows), max(counts, default=0))
    for row, slots in enumerate(expected):
        filled = len(slots)
        assert made.ids[row].tolist() == [i for i, _ in slots] + [-1] * (made.shape[1] - filled)
        for slot, (first, vector) in enumerate(slots):
            assert made.vectors[row, slot] == pytest.approx(vector)
            assert made.parents[row, slot].tolist() == [first, query.positives[row]]
            assert made.scores[row, slot] == pytest.approx(query.vectors[row] @ vector)
        assert not made.vectors[row, filled:].any()
        assert (made.parents[row, filled:] == -1).all()
    short = sum(counts) - sum(map(len, expected))
    assert dict(made.dropped) == ({"exhausted": short} if short else {})
    assert made.log_q is None


def test_without_the_positive_and_with_one_layer_it_is_dns():
    """alpha = 0, L = 0: the same draw, the same choice, and its own vector."""
    query = asked([0, 1, 2, 4, 5] * 20)

    def score(anchors, ids):
        return np.einsum("bnd,bd->bn", ITEMS[ids, 0], ANCHORS[anchors, :D])

    made = MixGCF(POOL, lambda ids: ITEMS[ids, 0], 6, mix=(0.0, 0.0)).sample(query, 1, rng=ns.rng_for(3))
    hardest = Dynamic(POOL, score, 6).sample(query, 1, rng=ns.rng_for(3))
    assert np.array_equal(made.ids, hardest.ids)
    assert np.array_equal(made.vectors[:, 0], ITEMS[hardest.ids[:, 0], 0])
    assert made.scores == pytest.approx(hardest.scores)


def test_shares_are_uniform_and_one_for_each_row_slot_and_layer():
    """Items at 0 and a positive at 1: the vector of a layer is alpha itself."""
    table = np.zeros((N_ITEMS, 2, 1))
    table[0] = 1.0
    query = ns.Query(np.zeros(3000, np.int64), positives=np.zeros(3000, np.int64), vectors=np.ones((3000, 2)))
    sampler = MixGCF(POOL, lambda ids: table[ids], 2, mix=(0.2, 0.6), pooling="concat")
    alpha = sampler.sample(query, 2, rng=ns.rng_for(0)).vectors.reshape(3000, 4)
    assert alpha.min() >= 0.2
    assert alpha.max() <= 0.6
    assert np.unique(alpha).size == alpha.size
    assert np.abs(alpha.mean(axis=0) - 0.4).max() < 6 * 0.4 / np.sqrt(12 * 3000)
    assert np.abs(np.corrcoef(alpha.T) - np.eye(4)).max() < 6 / np.sqrt(3000)


def test_gradients_flow_into_what_was_mixed_and_into_nothing_else():
    table = torch.tensor(ITEMS, requires_grad=True)
    own = torch.tensor(ANCHORS[[0, 1], :D], requires_grad=True)
    query = ns.Query(torch.tensor([0, 1]), positives=torch.tensor([0, 6]), vectors=own)
    made = MixGCF(POOL, lambda ids: table[ids], 3, mix=(0.25, 0.25)).sample(query, 1, rng=ns.rng_for(0))
    assert not made.scores.requires_grad
    (own[:, None] * made.vectors).sum(-1).sum().backward()
    assert own.grad.detach().numpy() == pytest.approx(made.vectors[:, 0].detach().numpy())
    expected = np.zeros_like(ITEMS)
    for row, slots in enumerate(in_loops(asked([0, 1]), [1, 1], 3, "mean", 0.25, 0)):
        assert slots[0][0] == made.ids[row, 0]
        drawn = POOL.draw(asked([0, 1]), 3, rng=ns.rng_for(0)).ids[row]
        for layer in range(LAYERS):
            best = max(drawn.tolist(), key=lambda i, layer=layer, row=row: ITEMS[i, layer] @ ANCHORS[row, :D])
            expected[best, layer] += 0.75 * ANCHORS[row, :D] / LAYERS
            expected[[0, 6][row], layer] += 0.25 * ANCHORS[row, :D] / LAYERS
    assert table.grad.numpy() == pytest.approx(expected)


@pytest.mark.parametrize("pooling", ["mean", "concat"])
def test_tensors_of_two_number_types_give_what_one_type_gives(pooling):
    items = torch.tensor(ITEMS, dtype=torch.float32, requires_grad=True)
    query = tensors(asked([0, 1, 2], LAYERS * D if pooling == "concat" else D))

    def made(table):
        return MixGCF(POOL, lambda ids: table[ids], 4, pooling=pooling).sample(query, 3, rng=ns.rng_for(0))

    mixed, wide = made(items), made(items.double())
    assert torch.equal(mixed.parents, wide.parents)
    assert mixed.vectors.dtype == torch.float32
    assert mixed.vectors.requires_grad
    torch.testing.assert_close(mixed.scores, wide.scores, rtol=1e-5, atol=1e-5)


def test_queries_without_vectors_are_embedded():
    anchors = np.array([0, 1])
    sampler = MixGCF(POOL, embed, 4, embed_anchors=lambda anchors: ANCHORS[anchors, :D])
    made = sampler.sample(ns.Query(anchors, positives=LIKED[anchors]), 2, rng=ns.rng_for(1))
    assert np.array_equal(made.vectors, MixGCF(POOL, embed, 4).sample(asked(anchors), 2, rng=ns.rng_for(1)).vectors)
