"""Samplers: which candidates they take, by rules in plain Python over all items."""

import math

import numpy as np
import pytest
import torch

import naysay as ns
from tests.contract import names
from tests.contract.world import ANCHORS, KNOWN, N_ITEMS, POOL, QUERY, SCORES, VECTORS, embed, score, torch_query

ALL = N_ITEMS - 1  # every item but the anchor's own positive is a candidate
FREE = {anchor: [item for item in range(N_ITEMS) if item != anchor] for anchor in range(8)}
INDEPENDENT = ns.pools.Everything(KNOWN, distinct=False)
RNG = ns.rng_for


def hardest_first(anchor, items):
    return sorted(items, key=lambda item: -SCORES[anchor, item])


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


# One of every sampler that takes items of a pool and makes no vectors.
SAMPLERS = {
    "Static": lambda: ns.samplers.Static(POOL),
    "Dynamic": lambda: ns.samplers.Dynamic(POOL, score, candidates=12),
    "Dynamic, softmax": lambda: ns.samplers.Dynamic(POOL, score, candidates=12, temperature=0.5),
    "SemiHard": lambda: ns.samplers.SemiHard(POOL, score, 12, margin=0.5),
    "Warp": lambda: ns.samplers.Warp(POOL, score, trials=12),
    "NearPositive": lambda: ns.samplers.NearPositive(POOL, score, 12),
    "NearTarget": lambda: ns.samplers.NearTarget(POOL, score, 12, target=lambda own, step: own - 0.2),
    "PercentileRange": lambda: names.PercentileRange(POOL, score, 12, keep=(0.2, 0.8)),
    "DistanceWeighted": lambda: ns.samplers.DistanceWeighted(POOL, score, 12, dim=4),
    "SoftmaxWeights": lambda: ns.samplers.SoftmaxWeights(INDEPENDENT, score, temperature=0.5),
    "Mixed": lambda: ns.samplers.Mixed(
        {"any": ns.samplers.Static(POOL), "hard": ns.samplers.Dynamic(POOL, score, 12)}, (0.5, 0.5), duplicates="keep"
    ),
    "Judged": lambda: ns.samplers.Judged(ns.samplers.Dynamic(POOL, score, 12), names.MaxScore(0.8)),
    "Cached": lambda: ns.samplers.Cached(POOL, score, 6, 6),
    "MarkovChain": lambda: ns.samplers.MarkovChain(KNOWN, lambda anchors, ids: score(anchors, ids) + 1.0),
}
EVERY = pytest.mark.parametrize("name", SAMPLERS)


@EVERY
def test_no_sampler_returns_a_known_positive_and_shapes_hold(name):
    sampler = SAMPLERS[name]()
    got = sampler.sample(QUERY, 4, rng=RNG(0))
    assert got.shape == (8, 4)
    assert got.ids.dtype == np.int64
    assert not KNOWN.contains(ANCHORS, got.ids).any()
    again = SAMPLERS[name]().sample(QUERY, 4, rng=RNG(0))
    assert (got.ids == again.ids).all()
    none, one = ns.Query([], positives=[]), ns.Query([3], positives=[3])
    assert sampler.sample(none, 3, rng=RNG(0)).shape == (0, 3)
    assert sampler.sample(one, 1, rng=RNG(0)).shape == (1, 1)
    assert sampler.sample(one, 0, rng=RNG(0)).shape == (1, 0)


@EVERY
def test_a_sampler_answers_in_torch_with_the_same_ids(name):
    plain, tensor = (SAMPLERS[name]().sample(query, 4, rng=RNG(1)) for query in (QUERY, torch_query()))
    assert torch.is_tensor(tensor.ids)
    if name in ("Static", "Dynamic", "Judged"):  # a choice by chance may differ between devices
        assert tensor.ids.tolist() == plain.ids.tolist()


@EVERY
def test_the_library_s_own_check_of_samplers_passes(name):
    def query(anchors):
        return ns.Query(anchors, positives=anchors)

    ns.check_sampler(SAMPLERS[name](), KNOWN, anchors=ANCHORS, k=3, query=query)


def test_k_may_be_a_fraction_or_a_number_for_each_row():
    sampler = ns.samplers.Dynamic(POOL, score, candidates=12)
    each = sampler.sample(QUERY, np.array([0, 1, 2, 3, 0, 1, 2, 3]), rng=RNG(0))
    assert each.shape == (8, 3)
    assert each.mask.sum(axis=1).tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert dict(each.dropped) == {}
    many = ns.Query(np.arange(4000) % 8)
    counts = sampler.sample(many, 1.3, rng=RNG(0)).mask.sum(axis=1)
    assert set(counts.tolist()) == {1, 2}
    assert counts.mean() == pytest.approx(1.3, abs=0.04)


# ---- which ----------------------------------------------------------------------------------------------------------


def test_dynamic_takes_the_highest_scores():
    got = ns.samplers.Dynamic(POOL, score, candidates=ALL).sample(QUERY, 3, rng=RNG(0))
    for anchor in range(8):
        assert got.ids[anchor].tolist() == hardest_first(anchor, FREE[anchor])[:3]
        assert got.scores[anchor].tolist() == SCORES[anchor, got.ids[anchor]].tolist()


def test_dynamic_with_a_temperature_samples_by_softmax():
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], 1, 4))
    values = np.array([0.0, 0.1, 0.5, 0.9])
    sampler = ns.samplers.Dynamic(pool, lambda anchors, ids: values[ids], candidates=3, temperature=0.5)
    rows = 4000
    taken = sampler.sample(ns.Query(np.zeros(rows, int)), 1, rng=RNG(0)).ids[:, 0]
    chances = [math.exp(values[item] / 0.5) for item in (1, 2, 3)]
    for item, chance in zip((1, 2, 3), chances, strict=True):
        assert (taken == item).mean() == pytest.approx(chance / sum(chances), abs=0.03)


def test_settings_may_be_functions_of_the_step():
    sampler = ns.samplers.Dynamic(POOL, score, candidates=lambda step: 1 if step == 0 else ALL)
    late = sampler.sample(ns.Query(ANCHORS, step=5), 1, rng=RNG(0))
    assert late.ids[:, 0].tolist() == [hardest_first(anchor, FREE[anchor])[0] for anchor in range(8)]
    early = sampler.sample(ns.Query(ANCHORS, step=0), 1, rng=RNG(0))
    assert (early.scores < late.scores).any()


@pytest.mark.parametrize("margin", [0.2, 0.6])
def test_semi_hard_ones_lie_between_the_positive_and_the_margin(margin):
    got = ns.samplers.SemiHard(POOL, score, ALL, margin=margin).sample(QUERY, 4, rng=RNG(0))
    missing = 0
    for anchor in range(8):
        own = SCORES[anchor, anchor]
        band = [item for item in FREE[anchor] if own - margin < SCORES[anchor, item] < own]
        wanted = hardest_first(anchor, band)[:4]
        missing += 4 - len(wanted)
        assert got.ids[anchor].tolist() == wanted + [-1] * (4 - len(wanted))
    assert sum(got.dropped.values()) == missing


def test_near_positive_takes_what_is_most_like_the_positive():
    similar = VECTORS @ VECTORS.T
    sampler = ns.samplers.NearPositive(POOL, lambda positives, ids: similar[positives[:, None], ids], ALL)
    got = sampler.sample(QUERY, 3, rng=RNG(0))
    for anchor in range(8):
        assert got.ids[anchor].tolist() == sorted(FREE[anchor], key=lambda item: -similar[anchor, item])[:3]


def test_near_target_takes_the_scores_nearest_to_the_target():
    got = ns.samplers.NearTarget(POOL, score, ALL, target=lambda own, step: own - 0.3).sample(QUERY, 3, rng=RNG(0))
    for anchor in range(8):
        target = SCORES[anchor, anchor] - np.float32(0.3)
        wanted = sorted(FREE[anchor], key=lambda item: abs(SCORES[anchor, item] - target))[:3]
        assert sorted(got.ids[anchor].tolist()) == sorted(wanted)


def test_warp_weighs_a_violator_by_how_soon_it_came():
    """With trials in the pool's order, the t-th trial weighs sum of 1/i for i up to floor((n - 1) / t)."""
    sampler = ns.samplers.Warp(POOL, score, trials=ALL, margin=0.1)
    got = sampler.sample(QUERY, 1, rng=RNG(3))
    for anchor in range(8):
        own = SCORES[anchor, anchor]
        violators = [item for item in FREE[anchor] if SCORES[anchor, item] > own - 0.1]
        if not violators:
            assert got.ids[anchor, 0] == -1
            continue
        assert got.ids[anchor, 0] in violators
        ranks = {t: math.fsum(1 / i for i in range(1, (N_ITEMS - 1) // t + 1)) for t in range(1, N_ITEMS)}
        assert min(abs(got.weights[anchor, 0] / weight - 1) for weight in ranks.values()) < 0.1
    assert got.mask.any()


@pytest.mark.parametrize("interval", [(0.9, 1.0), (0.0, 0.5), (0.25, 0.75)])
def test_a_percentile_range_keeps_its_places_of_the_sorted_candidates(interval):
    low, high = interval
    got = names.PercentileRange(POOL, score, ALL, keep=interval).sample(QUERY, 3, rng=RNG(0))
    rest = names.PercentileRange(POOL, score, ALL, remove=interval).sample(QUERY, 3, rng=RNG(0))
    first, last = math.floor((1 - high) * ALL + 1e-9), math.floor((1 - low) * ALL + 1e-9)
    for anchor in range(8):
        order = hardest_first(anchor, FREE[anchor])
        kept = set(order[first:last])
        assert {item for item in got.ids[anchor].tolist() if item >= 0} <= kept
        assert (got.ids[anchor] >= 0).sum() == min(3, len(kept))
        assert not set(rest.ids[anchor].tolist()) & kept


def test_softmax_weights_add_up_to_one_and_follow_the_scores():
    got = ns.samplers.SoftmaxWeights(INDEPENDENT, score, temperature=0.5).sample(QUERY, 5, rng=RNG(0))
    for weights, scores in zip(got.weights.tolist(), got.scores.tolist(), strict=True):
        exponents = [math.exp(value / 0.5) for value in scores]
        assert weights == pytest.approx([value / math.fsum(exponents) for value in exponents], rel=1e-5)
    assert got.log_q is not None  # nothing was selected


def test_mixed_samplers_share_the_slots_and_say_where_each_came_from():
    hard = ns.samplers.Dynamic(POOL, score, candidates=ALL)
    mixed = ns.samplers.Mixed({"any": ns.samplers.Static(POOL), "hard": hard}, (0.5, 0.5))
    got = mixed.sample(QUERY, 4, rng=RNG(0))
    assert got.source_names == ("any", "hard")
    filled = got.ids >= 0
    assert ((got.source == 0) & filled).sum(axis=1).tolist() == [2] * 8
    for anchor in range(8):
        taken = got.ids[anchor][(got.source[anchor] == 1) & filled[anchor]].tolist()
        assert set(taken) <= set(hardest_first(anchor, FREE[anchor])[:2])
        row = got.ids[anchor][filled[anchor]].tolist()
        assert len(set(row)) == len(row)


def test_weaker_feedback_gives_the_negatives_of_stronger_feedback():
    bought = ns.Positives.from_pairs([0], [0], 1, 10)
    viewed = ns.Positives.from_pairs([0, 0], [1, 2], 1, 10)
    pool = ns.pools.Everything(bought.union(viewed), distinct=False)
    levels = {"bought": bought, "viewed": viewed}
    sampler = names.MultiFeedback(levels, (1.0, 1.0), pool, 0.0)
    got = sampler.sample(ns.Query([0] * 50, positives=[0] * 50), 2, rng=RNG(0))
    assert set(got.ids.ravel().tolist()) == {1, 2}
    unobserved = names.MultiFeedback(levels, (1.0, 1.0), pool, 1.0)
    assert set(unobserved.sample(ns.Query([0] * 50, positives=[0] * 50), 2, rng=RNG(0)).ids.ravel()) <= set(
        range(3, 10)
    )


def test_a_cache_climbs_to_the_hardest_items():
    sampler = ns.samplers.Cached(POOL, score, size=3, fresh=10, keep="top")
    for step in range(12):
        got = sampler.sample(QUERY, 3, rng=RNG(0, step))
        sampler.observe(QUERY, got)
    last = sampler.sample(QUERY, 3, rng=RNG(0, 99))
    for anchor in range(8):
        assert sorted(last.ids[anchor].tolist()) == sorted(hardest_first(anchor, FREE[anchor])[:3])
    assert np.exp(last.log_q)[:, 0] == pytest.approx(1 / 3)


# ---- judged ---------------------------------------------------------------------------------------------------------


def test_what_a_detector_suspects_is_dropped_and_the_next_ones_move_up():
    inner = ns.samplers.Dynamic(POOL, score, candidates=ALL)
    got = ns.samplers.Judged(inner, {"high": names.MaxScore(0.5)}, refill=9).sample(QUERY, 3, rng=RNG(0))
    dropped = 0
    for anchor in range(8):
        order = hardest_first(anchor, FREE[anchor])
        fine = [item for item in order if SCORES[anchor, item] < 0.5]
        assert got.ids[anchor].tolist() == fine[:3]
        dropped += order.index(fine[2]) + 1 - 3
    assert sum(got.dropped.values()) == dropped
    assert got.log_q is None


@pytest.mark.parametrize(("policy", "relation"), [("ignore", 2), ("attract", 1)])
def test_other_policies_change_the_relation_and_keep_the_slot(policy, relation):
    inner = ns.samplers.Dynamic(POOL, score, candidates=ALL)
    got = ns.samplers.Judged(inner, names.MaxScore(0.5), policy).sample(QUERY, 3, rng=RNG(0))
    high = got.scores >= np.float32(0.5)
    assert (got.ids >= 0).all()
    assert (got.relation == np.where(high, relation, 0)).all()
    assert (got.mask == ~high).all()


def test_reweighting_lowers_the_weight_by_the_suspicion():
    inner = ns.samplers.Dynamic(POOL, score, candidates=ALL)
    got = ns.samplers.Judged(inner, names.MaxScore(0.5), "reweight").sample(QUERY, 3, rng=RNG(0))
    assert got.weights == pytest.approx(1 - got.suspicion)


# ---- made vectors ---------------------------------------------------------------------------------------------------


def test_mochi_mixes_the_hardest_of_a_memory():
    memory = ns.pools.Memory(16)
    memory.push(np.arange(12), owners=np.full(12, -1), vectors=unit(VECTORS[:12]))
    query = ns.Query([20, 21], vectors=unit(VECTORS[20:22]))
    made = ns.samplers.MoCHi(memory, None, n_hard=3, anchor_share=0.0, mix=(0.5, 0.5)).sample(query, 4, rng=RNG(0))
    for row in range(2):
        hard = np.argsort(-(unit(VECTORS[:12]) @ query.vectors[row]), kind="stable")[:3].tolist()
        for slot in range(4):
            one, other = made.parents[row, slot].tolist()
            assert one != other
            assert {one, other} <= set(hard)
            assert made.ids[row, slot] == one
            wanted = unit(unit(VECTORS[one]) + unit(VECTORS[other]))
            assert made.vectors[row, slot] == pytest.approx(wanted, abs=1e-5)


def test_mixgcf_puts_the_positive_into_the_hardest_and_keeps_gradients():
    table = torch.from_numpy(VECTORS).clone().requires_grad_()
    sampler = ns.samplers.MixGCF(POOL, lambda ids: table[ids], candidates=ALL, mix=(0.5, 0.5))
    query = torch_query()
    made = sampler.sample(query, 1, rng=RNG(0))
    products = VECTORS[:8] @ VECTORS.T
    for anchor in range(8):
        best = max(FREE[anchor], key=lambda item: products[anchor, item])
        assert made.parents[anchor, 0].tolist() == [best, anchor]
        wanted = (VECTORS[best] + VECTORS[anchor]) / 2
        assert made.vectors[anchor, 0].detach().numpy() == pytest.approx(wanted, abs=1e-6)
    made.vectors.sum().backward()
    assert table.grad.abs().sum() > 0


def test_mixkg_mixes_pairs_of_the_hardest_corruptions():
    triples = np.array([[0, 0, 1], [2, 0, 3]])
    pool = ns.pools.Corruption(triples, sides=("tail",), n_entities=8)
    made = ns.samplers.MixKG(
        pool, lambda given, corrupted: corrupted[:, :, 2] * 1.0, lambda ids: VECTORS[ids], 7, n_hard=2, mix=(0.25, 0.25)
    ).sample(ns.Query(triples), 2, rng=RNG(0))
    assert (made.side == 2).all()
    for row in range(2):
        for slot in range(2):
            one, other = made.parents[row, slot].tolist()
            assert {one, other} == {6, 7}
            assert made.vectors[row, slot] == pytest.approx(0.25 * VECTORS[one] + 0.75 * VECTORS[other], abs=1e-6)


def test_a_bank_gives_the_vectors_that_were_last_seen():
    bank = ns.samplers.Bank(ns.pools.Everything(ns.Positives.from_pairs([0, 1, 2], [0, 1, 2])), 3)
    bank.observe(ns.Query([1], positives=[1]), None, vectors=np.array([[0.0, 2.0]]))
    got = bank.sample(ns.Query([0]), 2, rng=RNG(0))
    assert sorted(got.ids[0].tolist()) == [-1, 1]
    assert got.vectors[0, got.ids[0].tolist().index(1)].tolist() == [0.0, 1.0]


def test_vectors_may_be_transformed():
    base = ns.samplers.Static(POOL)
    made = names.transformed(base, lambda ids, rng: 2 * VECTORS[ids]).sample(QUERY, 3, rng=RNG(0))
    assert (made.ids == base.sample(QUERY, 3, rng=RNG(0)).ids).all()
    assert made.vectors == pytest.approx(2 * VECTORS[made.ids])


def test_a_learned_generator_finds_what_is_rewarded():
    logits = torch.zeros(N_ITEMS, requires_grad=True)
    sampler = names.learned(
        POOL, lambda anchors, ids: logits[ids], torch.optim.Adam([logits], 0.3), lambda anchors, ids: (ids >= 20) * 1.0
    )
    query = torch_query()
    for step in range(25):
        sampler.observe(query, sampler.sample(query, 2, rng=RNG(0, step)))
    got = sampler.sample(query, 4, rng=RNG(1))
    assert (got.ids >= 20).float().mean() > 0.8


def test_momentum_moves_the_target_towards_the_online_weights():
    online, target = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    before = [weight.detach().clone() for weight in target.parameters()]
    ns.samplers.momentum_update(online, target, 0.75)
    for old, new, other in zip(before, target.parameters(), online.parameters(), strict=True):
        torch.testing.assert_close(new, 0.75 * old + 0.25 * other)


def test_scores_in_blocks_are_the_same_scores():
    blocked = ns.samplers.in_blocks(score, 7)
    ids = np.tile(np.arange(10), (8, 1))
    assert (blocked(ANCHORS, ids) == score(ANCHORS, ids)).all()


def test_embeddings_of_a_torch_query_are_torch():
    assert torch.is_tensor(embed(torch_query().anchors))
    sampler = ns.samplers.MixGCF(POOL, embed, candidates=4)
    assert torch.is_tensor(sampler.sample(torch_query(), 2, rng=RNG(0)).vectors)
    assert isinstance(sampler.sample(QUERY, 2, rng=RNG(0)).vectors, np.ndarray)
