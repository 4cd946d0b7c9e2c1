"""The share of false negatives: its formulas in plain loops, and the interval against worlds whose truth is known."""

import numpy as np
import pytest
from plain_audit import scored_of

import naysay as ns
from naysay.auditing._corpus_sample import Look, look
from naysay.auditing._false_share import false_share
from naysay.auditing._scored import by_vectors
from naysay.auditing._training_set import training_set
from naysay.detectors import ShareOfPositive, lowest_scores, unlabelled_share
from naysay.detectors._intervals import most_share
from naysay.search import open_vectors
from naysay.testing.worlds import ENCODERS

CLEAN = {"per_anchor": 4, "known_share": 0.25, "noise": 0.1, "spread": 1.0}


def audited(world, ids, seed=0):
    """The scores of a set over a world, and the look at its corpus."""
    base = ns.mine(world.anchor_vectors, world.item_vectors, world.known, 1, judge=None)
    found = training_set(base, None)
    found = type(found)(**{name: getattr(found, name) for name in found.__slots__} | {"ids": ids})
    queries, corpus = (open_vectors(side) for side in (world.anchor_vectors, world.item_vectors))
    scored = by_vectors(found, queries, corpus, "cosine", ns.rng_for(seed))
    return scored, look(queries, corpus, world.known, scored, "cosine", ns.rng_for(seed, 1))


def sets(world, seed=0):
    """{how: ids}: uniform, nearest, below a calibrated line, below 95 % of the positive, and out of the best 50."""
    sides = world.anchor_vectors, world.item_vectors, world.known
    anchors, items = world.known.pairs()
    lowest = lowest_scores(anchors, world.scores(anchors, items[:, None])[:, 0])
    query = ns.Query(np.arange(len(sides[0])))
    return {
        "uniform": ns.pools.Everything(world.known).draw(query, 8, rng=ns.rng_for(seed, 2)).ids,
        "nearest": ns.mine(*sides, 8, judge=None).ids,
        "judged": ns.mine(*sides, 8).ids,
        "share": ns.mine(*sides, 8, judge=ShareOfPositive(lowest, 0.95)).ids,
        "top 50": ns.mine(*sides, 8, judge=None, depth=50, select="random", seed=seed).ids,
    }


# ---- the formulas ---------------------------------------------------------------------------------------------------


def plain_by_look(scored, seen, rest, positives):
    """(estimate, high) by loops over positives and candidates."""
    prior = unlabelled_share(seen.scores, positives, mask=seen.free, confidence=1 - 2 * 0.05 / 3)
    ordered = sorted(seen.scores[seen.free].tolist())
    taken = [
        score
        for row in seen.anchors.tolist()
        for score, use in zip(scored.negatives[row], rest[row], strict=True)
        if use
    ]
    chances = []
    for score in positives.tolist():
        place = sum(other < score for other in ordered)
        first, last = ordered[max(place - 32, 0)], ordered[min(place + 32, len(ordered) - 1)]
        there = sum(first <= other <= last for other in ordered)
        inside = sum(first <= other <= last for other in taken)
        chances.append(min(1.0, inside * seen.share / there))
    each = len(ordered) / seen.share / len(taken)
    most = most_share(sum(chances), len(chances), 0.05 / 3)
    return min(1.0, prior.estimate * each * np.mean(chances)), min(1.0, prior.high * each * most)


@pytest.mark.parametrize("seed", range(4))
def test_with_a_look_it_agrees_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    negatives = rng.normal(0.5, 0.4, (30, 3)).round(2).astype(np.float32)
    negatives[rng.random((30, 3)) < 0.1] = np.nan
    scored = scored_of(negatives, rng.normal(1, 0.3, 30).round(2), np.arange(30))
    anchors = np.sort(rng.permutation(30)[:20])
    seen = Look(anchors, rng.normal(0, 0.4, (20, 50)).round(2).astype(np.float32), rng.random((20, 50)) < 0.9,
                scored.positives[anchors], 200)  # fmt: skip
    proven = scored.filled & (rng.random((30, 3)) < 0.1)
    found = false_share(scored, seen, proven, scored.filled)
    sure = proven.sum() / scored.filled.sum()
    expected = plain_by_look(scored, seen, scored.filled & ~proven, scored.positives.astype(np.float64))
    assert found.low == pytest.approx(sure)
    assert (found.estimate, found.high) == pytest.approx(tuple(sure + (1 - sure) * part for part in expected))
    assert found.low <= found.estimate <= found.high <= 1


def test_with_scores_alone_positives_above_all_negatives_say_nothing():
    rng = np.random.default_rng(0)
    negatives = np.minimum(rng.normal(0, 0.3, (200, 4)), 0.8).astype(np.float32)
    positives = rng.normal(0.8, 0.4, 200)
    scored = scored_of(negatives, positives, np.arange(200))
    found = false_share(scored, None, np.zeros((200, 4), bool), np.ones((200, 4), bool))
    below = np.float32(positives)[np.float32(positives) <= negatives.max()].astype(np.float64)
    known = unlabelled_share(negatives, below)
    assert (found.estimate, found.high, found.n) == pytest.approx((known.estimate, known.high, len(below)))
    assert 50 < len(below) < 150
    assert any("one line for all anchors" in sentence for sentence in found.assumptions)


def test_where_it_cannot_tell_it_says_so():
    all_slots = np.ones((30, 2), bool)
    proven = np.zeros((30, 2), bool)
    proven[0, 0] = True
    nothing = false_share(None, None, proven, all_slots)
    assert (nothing.estimate, nothing.low, nothing.high) == (1 / 60, 1 / 60, 1.0)
    assert nothing.notes == ("it cannot tell: 0 anchors have a positive with a score, and 19 are needed",)
    few = false_share(scored_of(np.zeros((30, 2)), np.arange(18.0), np.arange(18)), None, proven, all_slots)
    assert few.notes[0].startswith("it cannot tell: 18 anchors")
    apart = false_share(scored_of(np.zeros((30, 2)), 1 + np.arange(30.0), np.arange(30)), None, proven, all_slots)
    assert apart.notes[0].startswith("it cannot tell: 0 of 30 positives score no higher than the highest negative")
    assert (apart.estimate, apart.high) == (1 / 60, 1.0)
    equal = false_share(scored_of(np.ones((30, 2)), np.ones(30), np.arange(30)), None, proven, all_slots)
    assert (equal.notes, equal.high) == (("it cannot tell: all scores are equal",), 1.0)
    certain = false_share(scored_of(np.ones((30, 2)), np.ones(30), np.arange(30)), None, all_slots, all_slots)
    assert (certain.low, certain.estimate, certain.high, certain.notes) == (1.0, 1.0, 1.0, ())


# ---- against the truth ----------------------------------------------------------------------------------------------


def test_the_interval_holds_the_truth_whatever_the_set_was_selected_by():
    held = told = 0
    for seed, encoder in enumerate([*list(ENCODERS.values())[::2], CLEAN]):
        world = ns.planted_world(250, 600, seed=seed, **({"per_anchor": 8, "known_share": 0.5} | encoder))
        for ids in sets(world, seed).values():
            truth = world.false_negative_rate(np.arange(250), ids)
            found = false_share(*audited(world, ids, seed), np.zeros(ids.shape, bool), ids >= 0)
            held += found.low <= truth <= found.high
            told += found.high < 1
    assert held == 20  # it is conservative; what is drawn is fixed
    assert told >= 8


def test_a_good_encoder_is_not_far_off():
    world = ns.planted_world(600, 1500, seed=1, **CLEAN)
    for how, ids in sets(world).items():
        truth = world.false_negative_rate(np.arange(600), ids)
        found = false_share(*audited(world, ids), np.zeros(ids.shape, bool), ids >= 0)
        assert truth / 2 <= found.estimate <= 6 * truth, how


def test_a_judge_lowers_the_estimate():
    world = ns.planted_world(400, 1500, seed=2, **CLEAN)
    ids = sets(world)
    share = {how: false_share(*audited(world, ids[how]), ids[how] < -1, ids[how] >= 0).estimate for how in ids}
    assert share["nearest"] > 5 * share["judged"]
    assert share["nearest"] > 0.1 > share["uniform"]
