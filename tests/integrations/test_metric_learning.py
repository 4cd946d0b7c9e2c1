"""Samplers as miners, losses as losses, and miners as samplers, with pytorch-metric-learning itself."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning import distances, losses, miners
from pytorch_metric_learning.utils import loss_and_miner_utils

import naysay as ns
from naysay.integrations.metric_learning import MinerSampler, SamplerMiner, SlotLoss
from tests.integrations.upstream import check_signature


def batch(n=12, classes=4, dim=5, seed=0):
    rng = np.random.default_rng(seed)
    vectors = torch.from_numpy(rng.normal(size=(n, dim)))
    return torch.nn.functional.normalize(vectors).requires_grad_(), torch.from_numpy(rng.integers(0, classes, n))


def as_set(triplets):
    return set(zip(*(part.tolist() for part in triplets), strict=True))


def semihard(pool, score):
    return ns.samplers.SemiHard(pool, score, candidates=99, margin=0.3)


# ---- samplers as miners ---------------------------------------------------------------------------------------------


@given(st.integers(0, 14), st.integers(1, 5), st.integers(0, 99), st.booleans())
def test_semihard_triplets_are_those_of_the_package(n, classes, seed, reference):
    """With k above the number of candidates all that are semi-hard are taken."""
    vectors, labels = batch(n, classes, seed=seed)
    given = (vectors, labels, *batch(9, classes, seed=seed + 1)) if reference else (vectors, labels)
    theirs = miners.TripletMarginMiner(margin=0.3, type_of_triplets="semihard")(*given)
    assert as_set(SamplerMiner(semihard, k=30)(*given)) == as_set(theirs)


@given(st.integers(2, 14), st.integers(1, 4), st.integers(0, 99))
def test_each_positive_pair_gets_k_of_another_class(n, k, seed):
    vectors, labels = batch(n, 3, seed=seed)
    mined = SamplerMiner(lambda pool, score: ns.samplers.Static(pool), k)(vectors, labels)
    expected = sum(
        min(k, int((labels != labels[a]).sum()))
        for a in range(n)
        for p in range(n)
        if a != p and labels[a] == labels[p]
    )
    assert len(mined[0]) == len(as_set(mined)) == expected
    assert all(labels[a] == labels[p] != labels[n] and a != p for a, p, n in as_set(mined))


@pytest.mark.parametrize("distance", [None, distances.CosineSimilarity(), distances.DotProductSimilarity()])
def test_the_hardest_are_the_nearest_in_the_miners_own_distance(distance):
    vectors, labels = batch()
    vectors = vectors.detach() * torch.arange(1.0, 13.0)[:, None]
    mined = SamplerMiner(lambda pool, score: ns.samplers.Dynamic(pool, score, 99), distance=distance)(vectors, labels)
    scores = (distance or distances.LpDistance())(vectors, vectors)
    scores = scores if distance is not None else -scores
    for anchor, _, negative in as_set(mined):
        others = scores[anchor].masked_fill(labels == labels[anchor], -np.inf)
        assert negative == int(others.argmax())


def test_a_loss_of_the_package_trains_on_what_is_mined():
    vectors, labels = batch()
    loss, miner, found = losses.TripletMarginLoss(margin=0.3), SamplerMiner(semihard, k=2), []
    for _ in range(30):
        value = loss(vectors, labels, miner(vectors, labels))
        (gradient,) = torch.autograd.grad(value, vectors)
        vectors = (vectors - 0.5 * gradient).detach().requires_grad_()
        found.append(value.item())
    assert found[-1] < found[0] / 2
    assert miner.num_triplets == len(miner(vectors, labels)[0])


def test_a_miner_that_makes_no_sampler_is_named():
    with pytest.raises(
        ns.NaysayError, match=r"^SamplerMiner: `make` must be a function of a pool and a score that ret"
    ):
        SamplerMiner(3)
    with pytest.raises(ns.NaysayError, match=r"^SamplerMiner: `k` must be at least 1, got 0.$"):
        SamplerMiner(semihard, 0)
    with pytest.raises(
        ns.NaysayError, match=r"^SamplerMiner.mine: `make` must be a function that returns a sampler, go"
    ):
        SamplerMiner(lambda pool, score: pool)(*batch())


# ---- losses as losses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [distances.LpDistance(), distances.SNRDistance(), distances.CosineSimilarity()])
def test_the_gradient_is_that_of_the_package_in_any_distance(distance):
    vectors, labels = batch()
    found = []
    for loss in (
        losses.NTXentLoss(0.2, distance=distance),
        SlotLoss(partial(ns.losses.info_nce, temperature=0.2), distance=distance),
    ):
        (gradient,) = torch.autograd.grad(loss(vectors, labels), vectors)
        found.append(gradient)
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-7)


def test_a_loss_that_cannot_be_is_named():
    with pytest.raises(
        ns.NaysayError, match=r"^SlotLoss: `loss` must be a function of positive and negative scores, got"
    ):
        SlotLoss("info_nce")
    with pytest.raises(ns.NaysayError, match=r"^SlotLoss.compute_loss: `labels` must be given without `indices_tuple`"):
        SlotLoss(ns.losses.info_nce)(batch()[0])


# ---- miners as samplers ---------------------------------------------------------------------------------------------

LABELS = np.random.default_rng(1).integers(0, 6, 40)
VECTORS = np.random.default_rng(2).normal(size=(40, 8))


def labelled_query(anchors):
    return ns.Query(anchors, vectors=VECTORS[anchors])


@pytest.mark.parametrize(
    "miner",
    [
        miners.BatchHardMiner(),
        miners.MultiSimilarityMiner(epsilon=5.0),
        miners.TripletMarginMiner(margin=9.0),
        miners.PairMarginMiner(pos_margin=0.0, neg_margin=9.0),
        miners.BatchEasyHardMiner(pos_strategy="easy", neg_strategy="hard"),
    ],
    ids=lambda miner: type(miner).__name__,
)
def test_the_negatives_are_those_of_the_miner(miner):
    anchors = np.random.default_rng(0).permutation(40)[:25]
    query = labelled_query(anchors)
    mined = miner(torch.from_numpy(VECTORS[anchors]), torch.from_numpy(LABELS[anchors]))
    rows, columns = (mined[2], mined[3]) if len(mined) == 4 else (mined[0], mined[2])
    expected = [set(anchors[columns[rows == row].numpy()].tolist()) for row in range(25)]
    found = MinerSampler(miner, LABELS).sample(query, 40, rng=ns.rng_for(0))
    assert [set(row[row >= 0].tolist()) for row in found.ids] == expected
    assert found.dropped == {"exhausted": 25 * 40 - sum(map(len, expected))}
    few = MinerSampler(miner, LABELS).sample(query, 2, rng=ns.rng_for(0)).ids
    assert [len(set(row[row >= 0].tolist())) for row in few] == [min(2, len(row)) for row in expected]


@pytest.mark.parametrize("rows", [0, 1, 30])
@pytest.mark.parametrize("k", [0, 2, 1.5, "each"])
def test_it_keeps_the_promises_of_a_sampler(rows, k):
    sampler = MinerSampler(miners.PairMarginMiner(pos_margin=0.0, neg_margin=99.0), LABELS)
    assert isinstance(sampler, ns.types.Sampler)
    wanted = np.arange(rows) % 3 if k == "each" else k
    anchors = np.arange(rows)
    found = sampler.sample(labelled_query(anchors), wanted, rng=ns.rng_for(0))
    assert found.shape == (rows, max(wanted, default=0) if k == "each" else int(np.ceil(k)))
    assert found.ids.dtype == np.int64
    if rows > 1 and k != 1.5:
        assert np.array_equal((found.ids >= 0).sum(axis=1), np.broadcast_to(wanted, rows))
    for anchor, row in zip(anchors, found.ids, strict=True):
        taken = row[row >= 0]
        assert len(set(taken.tolist())) == len(taken)
        assert set(taken.tolist()) <= set(np.flatnonzero(LABELS[:rows] != LABELS[anchor]).tolist())
    query = ns.Query(torch.from_numpy(anchors), vectors=torch.from_numpy(VECTORS[:rows]))
    same = sampler.sample(query, torch.from_numpy(wanted) if k == "each" else wanted, rng=ns.rng_for(0))
    assert torch.is_tensor(same.ids)
    assert np.array_equal(same.ids.numpy(), found.ids)


def test_the_randomness_of_a_miner_follows_rng_and_leaves_torchs_alone():
    sampler = MinerSampler(miners.DistanceWeightedMiner(), LABELS)
    query, before = labelled_query(np.arange(40)), torch.random.get_rng_state()
    one, same, other = (sampler.sample(query, 1, rng=ns.rng_for(seed)).ids.tolist() for seed in (1, 1, 2))
    assert one == same != other
    assert torch.random.get_rng_state().equal(before)


def test_what_a_miner_needs_is_named():
    with pytest.raises(
        ns.NaysayError, match=r"^MinerSampler: `miner` must be a miner of pytorch_metric_learning, got i"
    ):
        MinerSampler(3, LABELS)
    with pytest.raises(ns.NaysayError, match=r"^MinerSampler: `labels` must be whole numbers, got dtype float64"):
        MinerSampler(miners.BatchHardMiner(), [0.5])
    with pytest.raises(ns.NaysayError, match=r"^MinerSampler: `on_short` must be one of"):
        MinerSampler(miners.BatchHardMiner(), [0], on_short="never")
    sampler = MinerSampler(miners.BatchHardMiner(), [0, 1], on_short="raise")
    with pytest.raises(ns.NaysayError, match=r"^MinerSampler.sample: `query.vectors` must be given, got None."):
        sampler.sample(ns.Query([0]), 1, rng=ns.rng_for(0))
    with pytest.raises(ns.NaysayError, match="row 0 has 0 candidates left of the 1 requested"):
        sampler.sample(ns.Query([0, 1], vectors=np.eye(2)), 1, rng=ns.rng_for(0))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (miners.BaseMiner.mine, ["self", "embeddings", "labels", "ref_emb", "ref_labels"]),
        (
            losses.BaseMetricLossFunction.compute_loss,
            ["self", "embeddings", "labels", "indices_tuple", "ref_emb", "ref_labels"],
        ),
        (loss_and_miner_utils.convert_to_pairs, ["indices_tuple", "labels", "ref_labels"]),
        (loss_and_miner_utils.get_matches_and_diffs, ["labels", "ref_labels"]),
    ],
)
def test_the_package_still_asks_as_it_did(function, expected):
    check_signature("metric_learning", "pytorch_metric_learning", function, expected)


def test_a_changed_signature_is_named():
    with pytest.raises(
        AssertionError, match=r"^torch changed .*: it takes \['a'\], not \['a', 'b'\]. Adapt naysay\.integr"
    ):
        check_signature("pyg", "torch", lambda a: a, ["a", "b"])
