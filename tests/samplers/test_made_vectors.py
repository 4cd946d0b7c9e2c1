"""Generated and Transformed: what the weights hold, no gradient for the model, images in other orders."""

from itertools import permutations

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.samplers import Generated, Static, jigsaw

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs(*RNG.integers(0, (8, 20), (40, 2)).T, 8, 20)
BASE = Static(ns.pools.Everything(KNOWN))
VECTORS = RNG.standard_normal((20, 4))
ANCHORS = RNG.standard_normal((8, 4))


def generated(**how):
    net = torch.nn.Linear(4 * 3 + how.get("noise", 0), 4).double()
    start = 0.1 * np.random.default_rng(5).standard_normal(net.weight.shape)
    with torch.no_grad():
        net.weight.copy_(torch.from_numpy(start))
        net.bias.zero_()

    def make(a, p, n, z):
        return n + net(torch.cat([a, p, n, z], dim=-1))

    def loss(a, p, made):
        return ns.losses.info_nce((a * p).sum(-1), (a[:, None] * made).sum(-1))

    table = torch.nn.Embedding.from_pretrained(torch.from_numpy(VECTORS), freeze=False)
    return Generated(BASE, table, make, torch.optim.SGD(net.parameters(), 1e-3), loss, **how), table, loss


def test_a_step_of_the_generator_raises_the_loss_and_leaves_the_model():
    """pytorch-metric-learning's DAML passes the generator's loss on to the trunk."""
    sampler, table, loss = generated(stay=0.0)
    query = ns.Query(torch.arange(8), positives=torch.arange(8), vectors=torch.from_numpy(ANCHORS))

    def now():
        drawn = sampler.sample(query, 4, rng=ns.rng_for(0))
        return loss(query.vectors, table(query.positives), drawn.vectors).mean().item(), drawn

    before, drawn = now()
    sampler.observe(query, drawn)
    assert now()[0] > before
    assert table.weight.grad is None
    assert not drawn.vectors.requires_grad
    assert drawn.parents[..., 1].unique().tolist() == list(range(8))


@pytest.mark.parametrize(("how", "near"), [({"stay": 50.0}, "negative"), ({"pull": 50.0, "stay": 0.0}, "anchor")])
def test_what_the_weights_hold_close(how, near):
    sampler, table, _ = generated(**how)
    query = ns.Query(torch.arange(8), positives=torch.arange(8), vectors=torch.from_numpy(ANCHORS))

    def apart():
        drawn = sampler.sample(query, 6, rng=ns.rng_for(1))
        wanted = table(drawn.ids) if near == "negative" else query.vectors[:, None]
        return (drawn.vectors - wanted).square().mean().item()

    before = apart()
    for step in range(60):
        sampler.observe(query, sampler.sample(query, 6, rng=ns.rng_for(0, step)))
    assert apart() < 0.5 * before


def test_other_noise_other_vectors():
    sampler, _, _ = generated(noise=3, diversity=1.0)
    query = ns.Query(torch.arange(8), positives=torch.arange(8), vectors=torch.from_numpy(ANCHORS))
    drawn = sampler.sample(query, 4, rng=ns.rng_for(0))
    again = sampler.sample(query, 4, rng=ns.rng_for(0))
    assert torch.equal(drawn.vectors, again.vectors)
    assert (drawn.vectors != sampler.sample(query, 4, rng=ns.rng_for(1)).vectors).all()
    sampler.observe(query, drawn)
    other, _, _ = generated(noise=3, diversity=1.0)
    other.restore(sampler.state())
    again = [one.sample(query, 4, rng=ns.rng_for(2)).vectors for one in (sampler, other)]
    assert torch.equal(*again)


def test_a_jigsaw_is_never_the_image_and_every_other_order_comes():
    """NDA's code gives back the image itself for one of its 23 orders."""
    image = np.arange(16).reshape(1, 4, 4)
    made = jigsaw(np.repeat(image, 4000, axis=0), 2, rng=ns.rng_for(0))
    tiles = [image[0, r : r + 2, c : c + 2] for r in (0, 2) for c in (0, 2)]
    orders = {np.block([[tiles[a], tiles[b]], [tiles[c], tiles[d]]]).tobytes() for a, b, c, d in permutations(range(4))}
    assert {one.tobytes() for one in made} == orders - {image[0].tobytes()}
    assert jigsaw(np.zeros((0, 4, 4, 3)), 2, rng=ns.rng_for(0)).shape == (0, 4, 4, 3)
