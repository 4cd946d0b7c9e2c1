"""AdversarialBank, Perturbed, Generated and Transformed: golden values, laws, no gradient for the model, promises."""

from itertools import permutations

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import AdversarialBank, Generated, Perturbed, Static, Transformed, jigsaw

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs(*RNG.integers(0, (8, 20), (40, 2)).T, 8, 20)
BASE = Static(ns.pools.Everything(KNOWN))
VECTORS = RNG.standard_normal((20, 4))
ANCHORS = RNG.standard_normal((8, 4))
QUERY = ns.Query(np.arange(8), positives=np.arange(8), vectors=ANCHORS)


def embed(ids):
    return VECTORS[ids] if isinstance(ids, np.ndarray) else torch.from_numpy(VECTORS)[ids]


def info_nce_of(bank, anchors, own, temperature):
    """The mean loss by autograd, and its gradient in the bank's table."""
    table = torch.from_numpy(np.array(bank)).requires_grad_()
    unit = table / table.norm(dim=1, keepdim=True)
    scores = torch.from_numpy(anchors) @ unit.T / temperature
    own = torch.from_numpy(own) / temperature
    loss = (torch.logsumexp(torch.cat([own[:, None], scores], dim=1), dim=1) - own).mean()
    return loss.item(), torch.autograd.grad(loss, table)[0].numpy()


def test_golden_values_of_adco():
    q, own, start = np.array([[1.0, 0.0]]), np.array([0.6]), np.array([[0.0, 2.0]])
    bank = AdversarialBank(1, 2, step=0.5, temperature=0.5, momentum=0.0, decay=0.0, initial=start)
    np.testing.assert_allclose(bank._ascent(q, own), [[0.231475, 0.0]], atol=5e-7)
    assert info_nce_of(start, q, own, 0.5)[0] == pytest.approx(0.263282, abs=5e-7)
    bank.observe(ns.Query([0], vectors=q), positive_scores=own)
    assert info_nce_of(bank.state()["table"], q, own, 0.5)[0] == pytest.approx(0.291240, abs=5e-7)


def test_the_bank_ascends_the_loss_as_autograd_would():
    units = ANCHORS / np.linalg.norm(ANCHORS, axis=1, keepdims=True)
    own = np.full(8, 0.5)
    bank = AdversarialBank(30, 4, temperature=0.2, step=0.01, seed=3)
    before = bank.state()["table"]
    loss, gradient = info_nce_of(before, units, own, 0.2)
    up = bank._ascent(units, own)
    np.testing.assert_allclose(up, gradient, atol=1e-9)
    np.testing.assert_allclose((up * before).sum(axis=1), 0.0, atol=1e-12)  # along the sphere
    bank.observe(ns.Query(np.arange(8), vectors=units), positive_scores=own)
    assert info_nce_of(bank.state()["table"], units, own, 0.2)[0] >= loss
    np.testing.assert_allclose(np.linalg.norm(bank.vectors, axis=1), 1.0, atol=1e-6)


def test_momentum_and_a_state_in_mid_run():
    whole, other = (AdversarialBank(5, 4, step=0.1) for _ in range(2))
    for step in range(6):
        whole.observe(QUERY, positive_scores=np.zeros(8))
        if step == 2:
            other.restore(whole.state())
        if step > 2:
            other.observe(QUERY, positive_scores=np.zeros(8))
    np.testing.assert_array_equal(whole.vectors, other.vectors)
    plain = AdversarialBank(5, 4, step=0.1, momentum=0.0, decay=0.5)
    table = plain.state()["table"]
    up = plain._ascent(ANCHORS, np.zeros(8))
    plain.observe(QUERY, positive_scores=np.zeros(8))
    np.testing.assert_allclose(plain.state()["table"], table - 0.1 * (0.5 * table - up))


def test_a_row_of_the_bank_has_no_parent():
    drawn = AdversarialBank(6, 4).sample(QUERY, 8, rng=ns.rng_for(0))
    assert (np.sort(drawn.ids, axis=1)[:, 2:] == np.arange(6)).all()
    assert drawn.dropped == {"exhausted": 16}
    assert (drawn.parents == -1).all()
    assert drawn.source_names == ("bank",)


@pytest.mark.parametrize("norm", ["2", "inf"])
def test_negatives_move_by_the_radius_and_raise_the_loss(norm):
    drawn = Perturbed(BASE, embed, 0.3, norm).sample(QUERY, 4, rng=ns.rng_for(0))
    apart = drawn.vectors - embed(drawn.ids)
    size = np.linalg.norm(apart, axis=2) if norm == "2" else np.abs(apart).max(axis=2)
    np.testing.assert_allclose(size, 0.3, atol=1e-12)
    before, after = (np.einsum("bd,bkd->bk", ANCHORS, vectors) for vectors in (embed(drawn.ids), drawn.vectors))
    rise = np.linalg.norm(ANCHORS, axis=1) if norm == "2" else np.abs(ANCHORS).sum(axis=1)
    np.testing.assert_allclose(after - before, np.repeat(0.3 * rise[:, None], 4, axis=1))  # first order is exact here
    assert (drawn.parents == drawn.ids[:, :, None]).all()


def test_a_loss_of_ones_own_gives_the_same_direction_and_no_gradient_to_the_model():
    layer = torch.nn.Linear(4, 4, bias=False).double()
    anchors = torch.from_numpy(ANCHORS)
    query = ns.Query(torch.arange(8), positives=torch.arange(8), vectors=anchors)

    def loss(query, vectors):
        return ns.losses.info_nce(torch.zeros(8).double(), torch.einsum("bd,bkd->bk", layer(query.vectors), vectors))

    sampler = Perturbed(BASE, embed, 0.2, loss=loss)
    drawn = sampler.sample(query, 4, rng=ns.rng_for(0))
    assert layer.weight.grad is None
    assert not drawn.vectors.requires_grad
    assert (loss(query, drawn.vectors) > loss(query, embed(drawn.ids))).all()
    with torch.no_grad():
        layer.weight.copy_(torch.eye(4))
    closed = Perturbed(BASE, embed, 0.2).sample(query, 4, rng=ns.rng_for(0))
    assert torch.allclose(sampler.sample(query, 4, rng=ns.rng_for(0)).vectors, closed.vectors)


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
    first, second = (sampler._made(sampler._inputs(query, drawn), ns.rng_for(seed)) for seed in (0, 1))
    assert (first != second).all()
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


def test_transformed_vectors_belong_to_their_ids():
    sampler = Transformed(BASE, lambda ids, rng: embed(ids) + 0 * rng.random())
    drawn = sampler.sample(QUERY, 4, rng=ns.rng_for(0))
    np.testing.assert_array_equal(drawn.vectors, embed(drawn.ids))


@pytest.mark.parametrize("name", ["Perturbed", "Transformed", "AdversarialBank"])
def test_promises(name):
    made = {
        "Perturbed": lambda: Perturbed(BASE, embed, 0.1, embed_anchors=lambda a: embed(a % 20)),
        "Transformed": lambda: Transformed(BASE, lambda ids, rng: embed(ids)),
        "AdversarialBank": lambda: AdversarialBank(20, 4),
    }
    known = ns.Positives.from_pairs([], [], 8, 20) if name == "AdversarialBank" else KNOWN
    ns.check_sampler(made[name](), known, k=3, anchors=np.arange(8) if name == "AdversarialBank" else None)


def test_errors():
    for call, sentence in (
        (
            lambda: AdversarialBank(2, 2, initial=np.zeros((2, 2))),
            "AdversarialBank: `initial` must be vectors other than 0",
        ),
        (
            lambda: AdversarialBank(2, 2).observe(ns.Query([0])),
            "AdversarialBank.observe: `query.vectors` must be given",
        ),
        (lambda: Perturbed(BASE, embed, -1.0), "Perturbed: `radius` must be"),
        (lambda: Perturbed(BASE, embed, 1.0, "3"), "Perturbed: `norm` must be one of '2', 'inf'"),
        (lambda: Transformed(3, embed), "Transformed: `base` must be a sampler"),
        (
            lambda: jigsaw(np.zeros((1, 3, 4)), rng=ns.rng_for(0)),
            "jigsaw: `images` must be (n, height, width, ...), both",
        ),
        (lambda: generated(diversity=1.0), "Generated: `noise` must be at least 1, got 0."),
    ):
        with pytest.raises(NaysayError) as caught:
            call()
        assert str(caught.value).startswith(sentence)
