"""The posterior of an audit: places in lists, shares, the trade and the threshold, in plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from family_world import families
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.audits._posterior import (
    half_false,
    judged_by_candidates,
    judged_by_vectors,
    places_of,
    trade_of,
)
from naysay.audits._training_set import scores_as_given, scores_by_vectors, training_set
from naysay.detectors import Posterior
from naysay.search import open_vectors

WORLD = families(seed=4)
SIDES = tuple(open_vectors(side) for side in (WORLD.anchor_vectors, WORLD.item_vectors))
NEAREST = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 6, judge=None)


def judged(ids):
    """A set of the world, its scores and its posterior."""
    found = replace(training_set(NEAREST, None), ids=ids, scores=None, problem=None)
    scores = scores_by_vectors(found, *SIDES, "cosine", ns.rng_for(0))
    return scores, judged_by_vectors(found, scores, *SIDES, WORLD.known, "cosine", 0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 6), st.integers(0, 4))
def test_places_in_lists(seed, rows, width, k):
    rng = np.random.default_rng(seed)
    lists = np.stack([np.where(rng.random(width) < 0.8, rng.permutation(9)[:width], -1) for _ in range(rows)])
    ids = rng.integers(-1, 9, (rows, k))
    found = places_of(lists, ids)
    for row in range(rows):
        for slot in range(k):
            item, there = int(ids[row, slot]), lists[row].tolist()
            assert found[row, slot] == (there.index(item) if item >= 0 and item in there else -1)


def test_of_the_nearest_the_share_is_the_mean_posterior():
    scores, found = judged(NEAREST.ids)
    rest = scores.filled
    posterior = found.posterior[:, :6]
    assert found.share(rest, None)[0] == pytest.approx(posterior.mean())
    assert found.share(rest, None)[1] == pytest.approx(found.detector.summary.before.high, rel=0.05)
    assert (found.reached(), found.by_score(rest)) == (1.0, True)
    np.testing.assert_allclose(found.slots(rest, posterior.mean()), posterior, atol=1e-12)
    assert found.slots(rest, posterior.mean() / 2).sum() == pytest.approx(posterior.sum() / 2)
    part = rest & (np.arange(6) < 2)
    assert found.share(part, None)[0] == pytest.approx(posterior[:, :2].mean())


def test_negatives_that_are_in_no_list():
    far = np.stack([np.setdiff1d(np.arange(len(WORLD.item_vectors)), row)[-3:] for row in NEAREST.ids])
    scores, found = judged(np.concatenate([NEAREST.ids[:, :3], far], axis=1))
    inside = found.places >= 0
    near, beyond = found.posterior[:, :3].sum(), found.detector.state()["beyond"]
    outside = int((~inside).sum())
    listed = np.take_along_axis(found.posterior, np.maximum(found.places, 0), axis=1)[inside].sum()
    assert outside > 600
    assert found.share(scores.filled, None)[0] == pytest.approx((listed + outside * beyond) / inside.size)
    never = found.share(scores.filled, np.zeros(len(far)))[0]  # no positive that is not listed is in the set
    assert never == pytest.approx(listed / inside.size)
    assert near <= listed
    assert not found.by_score(scores.filled)


def test_a_set_that_something_else_chose():
    scores, found = judged(NEAREST.candidates.ids[:, 1:13:2].astype(np.int64))
    assert found.reached() == pytest.approx(0.5, abs=0.01)
    assert not found.by_score(scores.filled)


def test_mined_negatives_hold_their_candidates():
    given_set = training_set(NEAREST, None)
    scores = scores_as_given(given_set, None, None, ns.rng_for(0))
    found = judged_by_candidates(given_set, scores, 0)
    plain = Posterior(6, seed=0).fit(found.lists.scores, found.own)
    assert found.detector.summary.before == plain.summary.before
    np.testing.assert_array_equal(found.places, np.broadcast_to(np.arange(6), NEAREST.ids.shape))
    assert judged_by_candidates(replace(given_set, problem=None), scores, 0) is None


def test_an_anchor_is_not_its_own_candidate():
    corpus = np.concatenate([WORLD.item_vectors, WORLD.anchor_vectors])
    known = WORLD.known.union(ns.Positives.from_pairs([], [], len(WORLD.anchor_vectors), len(corpus)))
    found = replace(training_set(NEAREST, None), problem=None, positives=known)
    scores = scores_by_vectors(found, SIDES[0], open_vectors(corpus), "cosine", ns.rng_for(0))
    judged = judged_by_vectors(found, scores, SIDES[0], open_vectors(corpus), known, "cosine", 0)
    itself = len(WORLD.item_vectors) + np.arange(len(WORLD.anchor_vectors))
    assert not (judged.lists.ids == itself[:, None]).any()


# ---- the trade and the threshold ------------------------------------------------------------------------------------


def plain_trade(probability, scores):
    """(dropped, after, hardness) by trying every threshold, the largest first."""
    pairs = [(p, s) for p, s in zip(probability.ravel(), scores.ravel(), strict=True) if not np.isnan(p)]
    for tau in [1.0, *sorted({p for p, _ in pairs}, reverse=True)]:
        kept = [(p, s) for p, s in pairs if p <= tau]
        if kept and np.mean([p for p, _ in kept]) <= 0.05:
            return len(pairs) - len(kept), *np.mean(kept, axis=0)
    return len(pairs), 0.0, 0.0


@settings(max_examples=50, deadline=None)
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
    assert (found.dropped == 0) == (estimate <= 0.05)
    assert trade_of(probability, scores, estimate, 1000).dropped == round(1000 * dropped / known.sum())


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_from_the_threshold_on_half_are_false(seed):
    rng = np.random.default_rng(seed)
    probability = np.where(rng.random((5, 4)) < 0.9, rng.random((5, 4)), np.nan)
    scores = rng.integers(0, 6, (5, 4)).astype(float)
    known = ~np.isnan(probability)
    good = [s for s in range(6) if (scores[known] >= s).any() and probability[known & (scores >= s)].mean() >= 0.5]
    good = [s for s in good if (scores[known] == s).any()]
    assert half_false(probability, scores) == (min(good) if good else np.inf)
