"""StoredVectors: hard samplers over a memory, scored by the vectors in it, against loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import DistanceWeighted, Dynamic, Ring, SemiHard, SoftmaxWeights, StoredVectors, Warp

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
    whole = Ring(filled(), StoredVectors(), None, keep=(0.5, 1.0)).sample(query, 4, rng=ns.rng_for(0))
    score = NOW[:4] @ THEN[4:].T / np.linalg.norm(THEN[4:], axis=1)
    for row in range(4):
        assert set(whole.ids[row].tolist()) == set((4 + np.argsort(-score[row])[:4]).tolist())
    as_many = Ring(filled(), StoredVectors(), 8, keep=(0.5, 1.0)).sample(query, 4, rng=ns.rng_for(0))
    assert np.array_equal(np.sort(whole.ids), np.sort(as_many.ids))


@pytest.mark.parametrize("as_torch", [False, True])
def test_every_hard_sampler_takes_it(as_torch):
    def now(ids):
        return torch.from_numpy(NOW)[ids] if isinstance(ids, torch.Tensor) else NOW[ids]

    score = StoredVectors("cosine", embed_anchors=now, embed=now)

    def by_ids(anchors, ids):  # the same by a table, which a loop would have to keep
        a, v = now(anchors), torch.from_numpy(THEN)[ids] if as_torch else THEN[ids]
        own = ids == (anchors[:, None] + 1) % 12
        v[own] = now(ids[own])
        lengths = [((x * x).sum(-1)) ** 0.5 for x in (a, v)]
        return (v * a[:, None]).sum(-1) / lengths[0][:, None] / lengths[1]

    anchors = np.arange(6)
    positives = (anchors + 1) % 12
    known = ns.Positives.from_pairs(anchors, positives, 12, 12)
    query = ns.Query(*(torch.from_numpy(a) if as_torch else a for a in (anchors, positives)))
    for make in (
        lambda score: SemiHard(filled(positives=known), score, 8, margin=0.3),
        lambda score: Warp(filled(positives=known), score, 8, n_items=12),
        lambda score: DistanceWeighted(filled(positives=known), score, 8, dim=3),
        lambda score: SoftmaxWeights(filled(positives=known), score, 0.5, correct=False),
        lambda score: Dynamic(filled(positives=known), score, 8, temperature=0.5),
        lambda score: Ring(filled(positives=known), score, 8, remove=(0.9, 1.0)),
    ):
        one, two = (make(each).sample(query, 3, rng=ns.rng_for(1)) for each in (score, by_ids))
        assert one.ids.tolist() == two.ids.tolist(), make(score)


def test_promises_and_an_empty_queue():
    score = StoredVectors(
        "cosine", embed_anchors=lambda ids: torch.from_numpy(NOW)[ids] if torch.is_tensor(ids) else NOW[ids]
    )
    for candidates in (None, 6):
        ns.check_sampler(Dynamic(filled(positives=KNOWN), score, candidates, 0.5), KNOWN, k=3)
        empty = Dynamic(ns.pools.Memory(4), score, candidates).sample(ns.Query([0, 1]), 2, rng=ns.rng_for(0))
        assert empty.ids.tolist() == [[-1, -1]] * 2


def test_errors():
    with pytest.raises(NaysayError, match=r"^StoredVectors: `metric` must be one of"):
        StoredVectors("l2")
    with pytest.raises(NaysayError, match=r"^StoredVectors: `embed` must be a function of ids"):
        StoredVectors(embed=3)
    query = query_of([0])
    with pytest.raises(NaysayError, match=r"^Dynamic.sample: `pool` must be one that stores vectors, like Memory"):
        Dynamic(ns.pools.Everything(KNOWN), StoredVectors(), 4).sample(query, 1, rng=ns.rng_for(0))
    with pytest.raises(NaysayError, match=r"^Dynamic.sample: `candidates` must be a number unless the pool is Mem"):
        Dynamic(ns.pools.Everything(KNOWN), StoredVectors(), None).sample(query, 1, rng=ns.rng_for(0))
    with pytest.raises(NaysayError, match=r"^Dynamic.sample: `query.vectors` must be given"):
        Dynamic(filled(), StoredVectors(), 4).sample(ns.Query([0]), 1, rng=ns.rng_for(0))
    with pytest.raises(NaysayError, match=r"^Dynamic.sample: `query.vectors` must be of dimension 3, like the it"):
        Dynamic(filled(), StoredVectors(), 4).sample(ns.Query([0], vectors=np.ones((1, 2))), 1, rng=ns.rng_for(0))
    semi = SemiHard(filled(), StoredVectors(), 4, margin=0.1)
    with pytest.raises(NaysayError, match=r"^SemiHard.sample: `score` must be a StoredVectors with `embed`, got one"):
        semi.sample(ns.Query([0], positives=[1], vectors=NOW[:1]), 1, rng=ns.rng_for(0))
    near = ns.samplers.NearPositive(filled(), StoredVectors(), 4)
    with pytest.raises(
        NaysayError, match=r"`score` must be a function score\(anchors, ids\) for this sampler, got Stor"
    ):
        near.sample(ns.Query([0], positives=[1], vectors=NOW[:1]), 1, rng=ns.rng_for(0))
    with pytest.raises(NaysayError, match=r"^Ring: `candidates` must be"):
        Ring(filled(), StoredVectors(), None, keep=(0.5, 1.0), refill=True)
