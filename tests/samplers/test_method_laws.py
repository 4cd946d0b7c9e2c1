"""Laws of methods that are compositions: what each paper promises, and what its published code gets wrong."""

import numpy as np
import torch

import naysay as ns
from naysay.losses import sampled_bce
from naysay.pools import Everything, Memory
from naysay.samplers import (
    Learned,
    Static,
    Transformed,
    jigsaw,
    shuffled,
)

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs(*RNG.integers(0, (8, 20), (40, 2)).T, 8, 20)
VECTORS = RNG.standard_normal((20, 4))
QUERY = ns.Query(np.arange(8), positives=np.arange(8), vectors=RNG.standard_normal((8, 4)))
TABLE = RNG.standard_normal((8, 20))


def score(anchors, ids):
    return TABLE[anchors[:, None], ids]


# ---- learned and generated ----------------------------------------------------------------------------------------


def by_item(pool):
    """A generator with a logit for each item, and the logits."""
    logits = torch.zeros(20, requires_grad=True)
    return Learned(pool, lambda anchors, ids: logits[ids], torch.optim.SGD([logits], 1.0), score), logits


def test_positives_of_the_future_are_not_known_and_a_stream_goes_on():
    """NMRN: positives grow with time. What is learnt moves to a sampler that knows more, and nothing new comes back."""
    users, items = RNG.integers(0, (8, 20), (60, 2)).T
    now, later = (ns.Positives.from_pairs(users[:n], items[:n], 8, 20) for n in (30, 60))
    many = ns.Query(np.repeat(np.arange(8), 40))
    first, weights = by_item(Everything(now))
    seen = first.sample(many, 8, rng=ns.rng_for(0)).ids
    assert later.contains(many.anchors, seen).any()  # a pair of the future is as free as any other
    for _ in range(5):
        first.observe(QUERY)
    second, others = by_item(Everything(later))
    second.restore(first.state())
    assert torch.equal(weights, others)
    assert not later.contains(many.anchors, second.sample(many, 8, rng=ns.rng_for(0)).ids).any()


# ---- made from inputs ---------------------------------------------------------------------------------------------


def test_a_batch_of_one_ends_and_parents_are_recorded():
    """NDA's code waits for ever for another order of one row."""
    assert shuffled(np.ones((1, 3)), rng=ns.rng_for(0)).tolist() == [[1.0, 1.0, 1.0]]
    image = np.arange(16).reshape(1, 4, 4)
    assert all((jigsaw(image, 2, rng=ns.rng_for(seed)) != image).any() for seed in range(50))
    drawn = Transformed(Static(Everything(KNOWN)), lambda query, ids, rng: VECTORS[ids]).sample(
        QUERY, 3, rng=ns.rng_for(0)
    )
    np.testing.assert_array_equal(drawn.parents, np.repeat(drawn.ids[:, :, None], 2, axis=2))


# ---- losses over a batch ------------------------------------------------------------------------------------------

UNITS = torch.nn.functional.normalize(torch.from_numpy(RNG.standard_normal((8, 4))), dim=1)
OTHERS = torch.nn.functional.normalize(UNITS + 0.3 * torch.from_numpy(RNG.standard_normal((8, 4))), dim=1)


def minus_log_sigmoid(value):
    return np.log1p(np.exp(-value))


def test_shuffled_vectors_are_the_negatives_of_dhcn_and_mhcn():
    u, e = UNITS.numpy(), OTHERS.numpy()  # two encodings; for MHCN users and their hyperedges
    mixed, others = (shuffled(part, rows=True, columns=True, rng=ns.rng_for(0)) for part in (u, e))
    u_r = shuffled(u, rng=ns.rng_for(1))
    own, wrong, far, near = (torch.from_numpy((a * b).sum(1)) for a, b in ((u, e), (mixed, e), (u, others), (u_r, e)))
    wanted = [minus_log_sigmoid(u[i] @ e[i]) + minus_log_sigmoid(-mixed[i] @ e[i]) for i in range(8)]
    np.testing.assert_allclose(sampled_bce(own, wrong[:, None]), wanted)
    steps = [(u[i] @ e[i] - u_r[i] @ e[i], u_r[i] @ e[i] - u[i] @ others[i]) for i in range(8)]
    wanted = [minus_log_sigmoid(one) + minus_log_sigmoid(two) for one, two in steps]
    np.testing.assert_allclose(ns.losses.bpr(own, near[:, None]) + ns.losses.bpr(near, far[:, None]), wanted)


def test_a_queue_of_id_0_is_full_and_keeps_no_gradient():
    """XBM's code takes a queue for full when its last label is not 0."""
    memory = Memory(3)
    memory.push(np.zeros(3, np.int64), np.full(3, -1), vectors=torch.eye(3).requires_grad_() * 2)
    assert len(memory) == 3
    query = ns.Query(torch.tensor([9]))
    for kept in (memory.vectors, memory.draw(query, rng=ns.rng_for(0)).vectors):
        assert not kept.requires_grad
        assert kept.sum() == 6
