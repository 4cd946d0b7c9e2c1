"""The share of false negatives: the interval against worlds whose truth is known, the bound, and what is unknown."""

import numpy as np
import pytest
from family_world import families, with_planted
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sets import a_set

import naysay as ns
from naysay.audits.false_share import half_false, trade_of
from naysay.detectors import unlabelled_share
from naysay.testing.worlds import ENCODERS


def share_of(world, ids):
    """The estimate of a set of negatives of a world, by its vectors."""
    pairs = list(zip(*world.known.pairs(), strict=True))
    given = a_set(ids, pairs, n_items=len(world.item_vectors))
    return ns.audit(given, query_vectors=world.anchor_vectors, corpus_vectors=world.item_vectors).false_share


def sets(world, *names, seed=0):
    """{how: ids}: uniform, nearest, judged, below 95 % of the positive, from the top 50."""
    sides = world.anchor_vectors, world.item_vectors, world.known
    query = ns.Query(np.arange(len(sides[0])))
    made = {
        "uniform": lambda: ns.pools.Everything(world.known).draw(query, 8, rng=ns.rng_for(seed, 2)).ids,
        "nearest": lambda: ns.mine(*sides, 8, judge=None).ids,
        "judged": lambda: ns.mine(*sides, 8).ids,
        "share": lambda: ns.mine(*sides, 8, judge="share:0.95").ids,
        "top 50": lambda: ns.mine(*sides, 8, judge=None, depth=50, select="random", seed=seed).ids,
    }
    return {name: made[name]() for name in names or made}


@pytest.mark.parametrize("options", [{"near": 0.5}, {"near": 1.0}, {"sizes": (1, 1, 1, 2, 3, 8)}], ids=str)
def test_the_interval_holds_the_truth_whatever_the_set_was_selected_by(options):
    """By rank, a threshold, a share of the positive, at random, or with false ones put in at random."""
    world = families(200, seed=1, **options)
    found = sets(world)
    found |= {f"{how}, planted": with_planted(world, found[how], 0.1) for how in ("uniform", "judged")}
    for how, ids in found.items():
        share = share_of(world, ids)
        assert share.low <= world.false_negative_rate(np.arange(len(ids)), ids) <= share.high < 1, how


def test_an_encoder_that_does_not_separate_gives_a_bound():
    for seed, encoder in enumerate(list(ENCODERS.values())[::3]):
        world = ns.planted_world(200, 500, seed=seed, per_anchor=8, known_share=0.5, **encoder)
        for how, ids in sets(world, "nearest", "uniform").items():
            share = share_of(world, ids)
            assert share.low <= world.false_negative_rate(np.arange(200), ids) <= share.high, how
            assert share.bound, how


def test_a_good_encoder_is_not_far_off():
    world = families(400, seed=1)
    shares = {}
    for how, ids in sets(world, "uniform", "nearest", "judged").items():
        truth = world.false_negative_rate(np.arange(400), ids)
        shares[how] = share_of(world, ids)
        assert not shares[how].bound
        assert truth / 2 <= shares[how].estimate <= 3 * truth + 0.01, how
    assert shares["nearest"].estimate > 4 * shares["judged"].estimate
    assert shares["nearest"].estimate > 0.1 > shares["uniform"].estimate
    assert len(shares["nearest"].notes) < len(shares["uniform"].notes)  # something other than nearness chose


# ---- by scores alone -------------------------------------------------------------------------------------------------


def by_scores(negatives, positives, **options):
    """The estimate of a set with scores; anchor i has positive i."""
    n, k = np.shape(negatives)
    ids = len(positives) + np.arange(n * k).reshape(n, k)
    given = a_set(ids, [(row, row) for row in range(len(positives))], **options)
    return ns.audit(given, scores=negatives, positive_scores=positives).false_share


def test_with_scores_alone_there_is_a_bound_if_no_judge_chose():
    rng = np.random.default_rng(0)
    negatives = rng.normal(0, 0.3, (200, 4)).astype(np.float32)
    negatives[:60, 0] += 1
    positives = rng.normal(1, 0.3, 200).astype(np.float32)
    found = by_scores(negatives, positives)
    known = unlabelled_share(negatives, positives.astype(np.float64))
    assert (found.estimate, found.high, found.n, found.bound) == (known.estimate, known.high, 200, True)
    assert found.low <= 60 / 800 <= found.high < 0.15


@pytest.mark.parametrize("rule", ["threshold", "share"])
def test_scores_that_look_judged_give_no_number(rule):
    """A judged set (0.4 % false) was ranked at 70 %, and an unjudged one (6.6 %) at 10 %."""
    rng = np.random.default_rng(0)
    positives = rng.normal(1, 0.3, 300).astype(np.float32)
    limit = np.full(300, np.quantile(positives, 0.05)) if rule == "threshold" else 0.95 * positives
    found = by_scores(np.minimum(rng.normal(0.6, 0.3, (300, 4)), limit[:, None]).astype(np.float32), positives)
    assert np.isnan(found.estimate)
    assert (found.low, found.high, found.bound) == (0, 1, True)


@pytest.mark.parametrize(
    ("negatives", "positives"),
    [(np.zeros((30, 2)), np.arange(18.0)), (np.zeros((30, 2)), 1 + np.arange(30.0)), (np.ones((30, 2)), np.ones(30))],
    ids=["few", "apart", "equal"],
)
def test_what_is_unknown_is_nan_from_0_to_1(negatives, positives):
    found = by_scores(negatives, positives)
    assert np.isnan(found.estimate)
    assert (found.low, found.high, len(found.notes)) == (0.0, 1.0, 1)


# ---- what follows from the probabilities -----------------------------------------------------------------------------


def plain_trade(probability, scores):
    """(dropped, after, hardness) by trying every threshold, the largest first."""
    pairs = [(p, s) for p, s in zip(probability.ravel(), scores.ravel(), strict=True) if not np.isnan(p)]
    for tau in [1.0, *sorted({p for p, _ in pairs}, reverse=True)]:
        kept = [(p, s) for p, s in pairs if p <= tau]
        if kept and np.mean([p for p, _ in kept]) <= 0.05:
            return len(pairs) - len(kept), *np.mean(kept, axis=0)
    return len(pairs), 0.0, 0.0


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(0.02, 0.6))
def test_the_trade_is_the_least_that_must_go(seed, level):
    rng = np.random.default_rng(seed)
    probability = np.where(rng.random((12, 4)) < 0.9, (rng.random((12, 4)) ** 2 * level).round(2), np.nan)
    probability[0, 0] = level
    scores, known = rng.normal(size=(12, 4)), ~np.isnan(probability)
    estimate = float(probability[known].mean())
    found = trade_of(probability, scores, estimate, int(known.sum()))
    dropped, after, hardness = plain_trade(probability, scores)
    assert found.dropped == dropped
    assert (found.before, found.hardness_before) == (estimate, pytest.approx(scores[known].mean()))
    assert (found.after, found.hardness_after) == (pytest.approx(after), pytest.approx(hardness))
    assert trade_of(probability, scores, estimate, 1000).dropped == round(1000 * dropped / known.sum())


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_from_the_threshold_on_half_are_false(seed):
    rng = np.random.default_rng(seed)
    probability = np.where(rng.random((5, 4)) < 0.9, rng.random((5, 4)), np.nan)
    scores = rng.integers(0, 6, (5, 4)).astype(float)
    known = ~np.isnan(probability)
    good = [s for s in range(6) if (scores[known] >= s).any() and probability[known & (scores >= s)].mean() >= 0.5]
    good = [s for s in good if (scores[known] == s).any()]
    assert half_false(probability, scores) == (min(good) if good else np.inf)
