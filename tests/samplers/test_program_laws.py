"""What the programs of compositions promise: mixtures, products, margins and kinds, each by enumeration or loops."""

import numpy as np
import pytest
import torch
from catalog_programs import run
from scipy.stats import chisquare

import naysay as ns
from naysay import catalog
from naysay.catalog._names import find_other


def left_behind(name):
    """What the program of an alias leaves behind."""
    entry = find_other(name) or catalog.find(name)[1]
    return run(entry.example, name)


def test_the_weights_of_recns_sum_to_1_and_one_item_gives_way_to_the_exposed_one():
    merged = left_behind("RecNS")["merged"]
    exposed, far = np.eye(6)[:1], np.eye(6)[None, 1:5]
    made = merged(far, exposed)
    assert made.sum(axis=2) == pytest.approx(1)
    assert made[0, 2].tolist() == pytest.approx([1 / 16, 3 / 16, 0, 3 / 4, 0, 0])  # (1 - 1/K) of its own; K = 4
    assert made[0, 0].tolist() == pytest.approx([1 / 16, 3 / 4 + 3 / 16, 0, 0, 0, 0])
    assert merged(far[:, :1], exposed).tolist() == exposed[None].tolist()


def test_prfmc_draws_by_the_product_of_both_factors():
    names = left_behind("PRFMC")
    known, home, place, visits = (names[name] for name in ("known", "home", "place", "visits"))
    anchor, weights = 7, []
    for venue in range(200):
        near = np.mean([np.exp(-((home[anchor, c] - place[venue]) ** 2).sum() / 0.02) for c in range(3)])
        social = 1 - (1 + visits[anchor, venue]) ** -1.5
        free = not known.contains([anchor], [[venue]], relation="any")[0, 0]
        weights.append(free * (1 - 0.99 * near) * (1 - 0.99 * social))
    drawn = names["sampler"].sample(ns.Query(np.full(4000, anchor)), 1, rng=ns.rng_for(0)).ids[:, 0]
    counts, expected = np.bincount(drawn, minlength=200), 4000 * np.array(weights) / np.sum(weights)
    assert counts[expected == 0].sum() == 0
    ranks = np.argsort(np.argsort(-expected)) // 10  # 20 groups, from the likeliest to the least likely
    some = np.bincount(ranks, expected) > 5
    counted, wanted = (np.bincount(ranks, values) for values in (counts, expected))
    assert chisquare(counted[some], wanted[some] * counted[some].sum() / wanted[some].sum()).pvalue > 1e-4
    alone = [venue for venue in range(200) if visits[anchor, venue] == 0 and weights[venue] > 0]
    far = [((home[anchor] - place[venue]) ** 2).sum(axis=1).min() for venue in alone]
    assert weights[alone[np.argmax(far)]] > 0.99 * max(weights)  # far, and no friend was there


def test_the_margin_of_daml_is_0_exactly_within_it():
    names = left_behind("DAML")
    beyond, distance = names["beyond"], names["distance"]
    rng = torch.Generator().manual_seed(0)
    anchors, positives = torch.randn(20, 4, generator=rng), torch.randn(20, 4, generator=rng)
    made = anchors[:, None] + torch.randn(20, 30, 4, generator=rng)
    within = distance(made, anchors[:, None]) <= distance(positives, anchors)[:, None] + 0.5
    assert within.any()
    assert not within.all()
    assert torch.equal(beyond(anchors, positives, made) == 0, within)
    sampler, query = names["sampler"], names["query"]
    start = beyond_now(names, query)
    for step in range(30):
        sampler.observe(query, sampler.sample(query, 2, rng=ns.rng_for(1, step)))
    assert beyond_now(names, query) < start  # the term pulls what it makes to within the margin


def beyond_now(names, query):
    """The mean of the margin term over what the generator makes."""
    made = names["sampler"].sample(query, 2, rng=ns.rng_for(0)).vectors
    return names["beyond"](names["table"](query.anchors), names["table"](query.positives), made).mean().item()


def test_synco_makes_six_kinds():
    names = left_behind("SynCo")
    negatives, keys = names["negatives"], names["keys"]
    assert len(negatives.source_names) == 6
    assert set(negatives.source.ravel().tolist()) == set(range(6))
    assert negatives.source_names[:3] == ("interpolated", "extrapolated", "mixed")
    moved = np.abs(negatives.vectors - keys[negatives.ids])
    assert moved[negatives.source == 4].max() == pytest.approx(0.01)  # by signs
    lengths = np.sqrt((moved**2).sum(axis=2))
    assert lengths[negatives.source == 3] == pytest.approx(0.01)  # along the gradient
    assert 0.005 < np.sqrt((moved[negatives.source == 5] ** 2).mean()) < 0.02  # noise


def test_the_adversarial_form_learns_and_draws_below_the_ceiling():
    names = left_behind("Adversarial self-paced NE")
    generator, query, known = names["generator"], names["query"], names["known"]
    items = np.broadcast_to(np.arange(80), (len(query), 80))
    free = ~known.contains(query.anchors, items, relation="any") & (items != query.anchors[:, None])
    before = expected_reward(names, items, free)
    for _ in range(500):
        names["teacher"].observe(query)
    after = expected_reward(names, items, free)
    assert after > before + 0.03
    logits = np.where(free, generator.logits(query.anchors, items), -np.inf)
    chance = np.exp(logits - logits.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    sampler = ns.samplers.Dynamic(names["pool"], names["informative"], 80, 1.0, ceiling=0.02)
    drawn = sampler.sample(query, 4, rng=ns.rng_for(3)).ids
    assert (np.take_along_axis(chance, np.maximum(drawn, 0), axis=1)[drawn >= 0] <= 0.02).all()
    assert (chance > 0.02).any()


def expected_reward(names, items, free):
    """The mean over rows of the expected softplus of the model's score under the generator."""
    query = names["query"]
    logits = np.where(free, names["generator"].logits(query.anchors, items), -np.inf)
    chance = np.exp(logits - logits.max(axis=1, keepdims=True))
    reward = np.log1p(np.exp(names["score"](query.anchors, items)))
    return ((chance * reward).sum(axis=1) / chance.sum(axis=1)).mean()


def test_noise_of_dclr_raises_the_loss_and_without_noise_and_threshold_it_is_simcse():
    names = left_behind("DCLR")
    z, with_noise = names["z"], names["with_noise"]
    start = ns.samplers.noise(32, 16, rng=ns.rng_for(seed=0), like=z)
    assert (names["loss"] >= with_noise(start) - 1e-12).float().mean() > 0.9
    assert names["loss"].sum() > with_noise(start).sum()
    names["judge"].zero_()  # no cosine is above the threshold
    plain = ns.losses.in_batch(z, partner=np.roll(np.arange(32), 16), temperature=0.05)
    torch.testing.assert_close(with_noise(start[:0]), plain)
    names["judge"].copy_(torch.nn.functional.normalize(torch.ones(32, 16, dtype=z.dtype), dim=1))  # all above it
    assert with_noise(start[:0]).tolist() == [0.0] * 32  # the positive alone is left


def test_virtual_copies_of_vascl_are_on_a_sphere_and_harder_than_random_ones():
    names = left_behind("VaSCL")
    z, neighbourhood = names["z"], names["neighbourhood"]
    torch.testing.assert_close((names["virtual"] - z).norm(dim=1), torch.full((32,), 0.5, dtype=z.dtype))
    harder = neighbourhood(names["virtual"]) >= neighbourhood(z + 0.5 * names["start"])
    assert harder.float().mean() > 0.9
    names["mask"].fill_(True)
    torch.testing.assert_close(neighbourhood(z), ns.losses.in_batch(z, z, temperature=0.05))


def test_the_program_of_mvgrl_has_its_golden_value():
    numbers = torch.arange(1, 13, dtype=torch.float64).view(4, 3)
    nodes = torch.nn.functional.normalize(numbers.sin(), dim=1)
    graphs = torch.nn.functional.normalize(nodes + 0.3 * numbers.cos(), dim=1)
    found = left_behind("MVGRL")["jensen_shannon"](nodes, graphs, torch.arange(4))
    assert found.mean().item() == pytest.approx(-0.416168, abs=5e-7)


def test_a_passage_of_tas_b_comes_by_its_bin():
    """Ten margins in one bin and one in another: both bins are as likely. Equal margins are one bin."""
    one_of_a_bin = left_behind("TAS-B")["one_of_a_bin"]
    margins = np.tile([*np.linspace(0, 0.5, 10), 10.0], (4000, 1))
    counts = np.bincount(one_of_a_bin(margins), minlength=11)
    assert chisquare(counts, 4000 * np.array([0.05] * 10 + [0.5])).pvalue > 1e-4
    assert chisquare(np.bincount(one_of_a_bin(np.ones((4000, 5))), minlength=5)).pvalue > 1e-4


def test_shares_of_fairneg_follow_the_losses_and_the_draws_follow_the_shares():
    names = left_behind("FairNeg")
    shares, adapt, group = names["shares"], names["adapt"], names["group"]
    assert shares.tolist() == pytest.approx([0.45, 0.55])  # group 0 loses more, by 0.5: fewer negatives
    query = ns.Query(np.repeat(np.arange(50), 40))
    drawn = group[names["sampler"].sample(query, 4, rng=ns.rng_for(0)).ids]
    assert (drawn == 1).mean() == pytest.approx(0.55, abs=0.02)
    for _ in range(20):
        adapt(np.array([0.0, 1.0]), np.array([0, 1]))
    assert shares.tolist() == [1.0, 0.0]
    assert (group[names["sampler"].sample(query, 4, rng=ns.rng_for(0)).ids] == 0).all()


def test_the_second_judge_of_rlhn_sees_the_hits_of_the_first_and_three_policies_follow():
    names = left_behind("RLHN")
    relevant, query = names["relevant"], names["query"]
    truth = relevant[query.anchors[:, None], names["candidates"].ids]
    false = truth >= 0.95
    assert false.any()
    assert np.array_equal(names["relabelled"].relation == 1, false)
    assert np.array_equal(names["ignored"].relation == 2, false)
    kept = names["negatives"].ids
    assert (relevant[query.anchors[:, None], np.maximum(kept, 0)][kept >= 0] < 0.95).all()


def test_rejected_answers_are_what_their_names_say():
    names = left_behind("DPO")
    reward, found = names["reward"], {name: one.ids[:, 0] for name, one in names["rejected"].items()}
    ranked = np.sort(reward, axis=1)
    assert (reward.flat[found["worst"]] == ranked[:, 0]).all()
    assert (reward.flat[found["second best"]] == ranked[:, -2]).all()
    gaps = np.abs(ranked[:, :-1] - (ranked[:, -1:] - 1))
    assert np.abs(reward.flat[found["a gap of 1"]] - (ranked[:, -1] - 1)).tolist() == gaps.min(axis=1).tolist()
    near = ranked[:, -1] - ranked[:, -2] <= 0.1
    assert 0 < near.sum() < 40
    assert (names["clear"].ids[:, 0] < 0).tolist() == near.tolist()
    assert (names["loss"][near] == 0).all()
