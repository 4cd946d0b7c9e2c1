"""StoredVectors: hard samplers over a memory, scored by the vectors in it, against loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import Dynamic, PercentileRange, StoredVectors

WIDTH, N_ITEMS = 3, 12
RNG = np.random.default_rng(0)
THEN = RNG.standard_normal((N_ITEMS, WIDTH))  # when they were pushed
NOW = RNG.standard_normal((N_ITEMS, WIDTH))
KNOWN = ns.Positives.from_pairs(np.arange(N_ITEMS), np.arange(N_ITEMS))


def filled(kind=np.float64, positives=None):
    memory = ns.pools.Memory(8, positives)
    memory.push(np.arange(N_ITEMS), vectors=THEN.astype(kind))  # items 4 ... 11 stay
    return memory


def query_of(anchors, *, as_torch=False):
    anchors = np.asarray(anchors, np.int64)
    if as_torch:
        return ns.Query(torch.from_numpy(anchors), vectors=torch.from_numpy(NOW[anchors]).requires_grad_())
    return ns.Query(anchors, vectors=NOW[anchors])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 11), max_size=5),
    st.sampled_from(["cosine", "dot"]),
    st.sampled_from([None, 8, 20]),
    st.booleans(),
    st.integers(1, 9),
)
def test_the_hardest_entries_by_loops(anchors, metric, candidates, as_torch, k):
    sampler = Dynamic(filled(), StoredVectors(metric), candidates)
    drawn = sampler.sample(query_of(anchors, as_torch=as_torch), k, rng=ns.rng_for(0))
    assert isinstance(drawn.ids, torch.Tensor) == as_torch
    assert not as_torch or not drawn.scores.requires_grad
    drawn = drawn.numpy()
    for row, anchor in enumerate(anchors):
        scores = {}
        for item in range(4, 12):
            if item != anchor:
                lengths = 1.0 if metric == "dot" else np.linalg.norm(NOW[anchor]) * np.linalg.norm(THEN[item])
                scores[item] = float(NOW[anchor] @ THEN[item]) / lengths
        best = sorted(scores, key=lambda item: -scores[item])[:k]
        assert drawn.ids[row].tolist() == best + [-1] * (k - len(best))
        np.testing.assert_allclose(drawn.scores[row, : len(best)], [scores[item] for item in best])
        np.testing.assert_array_equal(drawn.vectors[row, : len(best)], THEN[best])


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_half_precision_is_scored_as_float32(kind):
    memory = filled(kind)
    anchors = NOW[:2].astype(kind)
    drawn = Dynamic(memory, StoredVectors("dot"), None).sample(ns.Query([0, 1], vectors=anchors), 3, rng=ns.rng_for(0))
    assert drawn.scores.dtype == np.float32
    expected = np.sort(anchors.astype(np.float32) @ THEN[4:].astype(kind).astype(np.float32).T, axis=1)[:, ::-1][:, :3]
    np.testing.assert_allclose(drawn.scores, expected, rtol=1e-5)


def test_a_ring_over_a_whole_queue_is_the_ring_over_as_many_candidates():
    """MoCoRing."""
    query = query_of(np.arange(4))
    whole = PercentileRange(filled(), StoredVectors(), None, keep=(0.5, 1.0)).sample(query, 4, rng=ns.rng_for(0))
    score = NOW[:4] @ THEN[4:].T / np.linalg.norm(THEN[4:], axis=1)
    for row in range(4):
        assert set(whole.ids[row].tolist()) == set((4 + np.argsort(-score[row])[:4]).tolist())
    as_many = PercentileRange(filled(), StoredVectors(), 8, keep=(0.5, 1.0)).sample(query, 4, rng=ns.rng_for(0))
    assert np.array_equal(np.sort(whole.ids), np.sort(as_many.ids))


@pytest.mark.parametrize("as_torch", [False, True])
def test_an_item_with_two_entries_comes_once_by_its_newest(as_torch):
    """With candidates=None, too. An entry of the anchor itself is not used: an older one stands for its item."""
    memory = ns.pools.Memory(6)
    pushed = np.array([[5.0], [9.0], [1.0], [2.0], [3.0], [8.0]])
    memory.push([7, 8, 7, 8, 9, 7], owners=[-1, -1, -1, 0, -1, 1], vectors=pushed)
    query = ns.Query([0, 1], vectors=np.ones((2, 1)))
    if as_torch:
        query = ns.Query(torch.tensor([0, 1]), vectors=torch.ones((2, 1), dtype=torch.float64))
    drawn = Dynamic(memory, StoredVectors("dot"), None).sample(query, 4, rng=ns.rng_for(0)).numpy()
    assert drawn.ids.tolist() == [[8, 7, 9, -1], [9, 8, 7, -1]]
    assert drawn.scores.tolist() == [[9.0, 8.0, 3.0, 0.0], [3.0, 2.0, 1.0, 0.0]]
    assert drawn.dropped == {"exhausted": 2}
    independent = ns.pools.Memory(6, distinct=False)
    independent.restore(memory.state())
    drawn = Dynamic(independent, StoredVectors("dot"), None).sample(query, 5, rng=ns.rng_for(0)).numpy()
    assert drawn.ids.tolist() == [[8, 7, 7, 9, 7], [8, 7, 9, 8, 7]]
