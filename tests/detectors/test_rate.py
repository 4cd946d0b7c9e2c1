"""How many false negatives there are, without labels: the bound against plain loops, and against known truth."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay.detectors.calibrated import Calibrated
from naysay.detectors.rate import false_negative_rate, unlabelled_share
from naysay.detectors.spot_check import spot_check
from naysay.errors import NaysayError
from naysay.testing import planted_world
from naysay.testing.worlds import ENCODERS

SHARES = (0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)


def plain_bound(rows, positives, error):
    """(bound, value) of the best tail, by loops; rows are lists of scores."""
    n = len(positives)
    falling = sorted(positives, reverse=True)
    held = sorted({round(share * n) for share in SHARES} - {0})
    each = error / (2 * len(held))
    rows = [row for row in rows if row]
    total = sum(len(row) for row in rows)
    best = None
    for count in held:
        line = falling[count - 1]
        parts = [sum(score >= line for score in row) for row in rows]
        share = sum(parts) / total
        if len(rows) < 2:
            most = 1.0
        else:
            spread = sum((part - share * len(row)) ** 2 for part, row in zip(parts, rows, strict=True))
            variance = spread / total**2 * len(rows) / (len(rows) - 1)
            least = total**2 / sum(len(row) ** 2 for row in rows)
            if variance > 1e-18:
                size = min(max(share * (1 - share) / variance, least), total)
            else:
                size = total if 0 < share < 1 else least
            size *= (stats.norm.ppf(each) / stats.t.ppf(each, len(rows) - 1)) ** 2
            hits = share * size
            most = 1.0 if hits >= size else stats.beta.ppf(1 - each, hits + 1, size - hits)
        bound = most / stats.beta.ppf(each, count, n - count + 1)
        if best is None or bound < best[0]:
            best = (bound, share * n / count)
    return best


def plain_rate(rows, kept, positives, passed, confidence):
    """(estimate, high) by loops."""
    error = (1 - confidence) / 3
    bound, value = plain_bound(rows, positives, 2 * error)
    n, hits = len(positives), sum(passed)
    most = 1.0 if hits == n else stats.beta.ppf(1 - error, hits + 1, n - hits)
    ratio = sum(len(row) for row in rows) / sum(sum(row) for row in kept)
    return min(value * hits / n * ratio, 1.0), min(bound * most * ratio, 1.0)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 8), st.integers(1, 40), st.sampled_from([0.8, 0.95]))
@settings(max_examples=30)
def test_the_bound_agrees_with_plain_loops(seed, rows, width, known, confidence):
    rng = np.random.default_rng(seed)
    candidates = rng.normal(0, 1, (rows, width)).round(1)
    mask = rng.random((rows, width)) < 0.8
    mask[0, 0] = True
    positives = rng.normal(1.5, 1, known).round(1)
    lists = [row[filled].tolist() for row, filled in zip(candidates, mask, strict=True)]
    shown = np.where(mask, candidates, np.nan)  # what is in an empty slot is not read
    bound, value = plain_bound(lists, positives.tolist(), 1 - confidence)
    prior = unlabelled_share(shown, positives, mask=mask, confidence=confidence)
    assert (prior.estimate, prior.low, prior.high) == pytest.approx((min(value, 1), 0, min(bound, 1)), rel=1e-9)
    line = float(np.median(candidates[mask])) + 0.05
    kept = (candidates < line) & mask
    flags = [[score < line for score in row] for row in lists]
    expected = plain_rate(lists, flags, positives.tolist(), (positives < line).tolist(), confidence)
    found = false_negative_rate(shown, positives, line, mask=mask, confidence=confidence)
    assert (found.estimate, found.high, found.n) == pytest.approx((*expected, known), rel=1e-9)
    some = false_negative_rate(
        shown, positives, kept, kept_positives=positives < line, mask=mask, confidence=confidence
    )
    assert some == found


def mixture(rng, anchors, width, each, apart, known):
    """Normal scores: which candidates are false negatives is known."""
    false = np.arange(width) < np.minimum(rng.poisson(each, anchors), width)[:, None]
    return rng.standard_normal((anchors, width)) + apart * false, rng.standard_normal(known) + apart, false


@pytest.mark.parametrize(
    ("anchors", "width", "each", "apart", "known"),
    [(200, 30, 1.0, 6.0, 200), (200, 30, 1.0, 3.0, 40), (40, 30, 2.0, 6.0, 30), (1500, 1, 0.1, 6.0, 300)],
)
def test_the_bound_holds_where_it_is_almost_the_truth(anchors, width, each, apart, known):
    runs, prior_held, rate_held, tight = 50, 0, 0, []
    for seed in range(runs):
        scores, positives, false = mixture(np.random.default_rng(seed), anchors, width, each, apart, known)
        prior = unlabelled_share(scores, positives)
        prior_held += false.mean() <= prior.high
        line = np.sort(positives)[max(int(0.05 * (known + 1)) - 1, 0)]
        found = false_negative_rate(scores, positives, line)
        rate_held += false[scores < line].mean() <= found.high
        tight.append(prior.estimate / max(false.mean(), 1e-9))
    assert prior_held >= 0.95 * runs
    assert rate_held >= 0.95 * runs
    assert 0.9 < np.median(tight) < (1.6 if apart < 5 else 1.1)  # and it is no empty promise


@pytest.mark.parametrize("name", ENCODERS)
def test_the_bound_holds_in_planted_worlds(name):
    """Truth known, negatives that score as high as positives: the bound is wide, never below what is true."""
    for seed in range(4):
        world = planted_world(200, 400, per_anchor=8, known_share=1 / 8, seed=seed, **ENCODERS[name])
        scores = (world.anchor_vectors @ world.item_vectors.T).astype(np.float64)
        known = np.zeros(scores.shape, bool)
        known[world.known.pairs()] = True
        false = world.is_false_negative(np.arange(200), np.broadcast_to(np.arange(400), scores.shape))
        positives = scores[known]
        prior = unlabelled_share(scores, positives, mask=~known)
        assert false[~known].mean() <= prior.high < 0.6
        line = Calibrated(0.05).fit(positives).high
        found = false_negative_rate(scores, positives, line, mask=~known)
        assert false[~known & (scores < line)].mean() <= found.high < 0.1
        left = np.where(known | (scores >= line), -np.inf, scores)
        taken = left >= -np.partition(-left, 4, axis=1)[:, 4:5]
        passed = (positives < line) & (positives >= np.where(taken, scores, np.inf).min(axis=1))
        top = false_negative_rate(scores, positives, taken, kept_positives=passed, mask=~known)
        rough = false_negative_rate(scores, positives, taken, mask=~known)
        assert false[taken].mean() <= top.high <= rough.high


def test_only_the_order_of_scores_counts():
    scores, positives, _ = mixture(np.random.default_rng(0), 60, 10, 1.0, 3.0, 50)
    found = false_negative_rate(scores, positives, 1.5)
    assert false_negative_rate(np.exp(scores), np.exp(positives), np.exp(1.5)) == found
    assert false_negative_rate(scores[::-1], positives[::-1], 1.5) == found
    assert false_negative_rate(torch.tensor(scores), torch.tensor(positives), 1.5) == found


def test_one_list_is_a_candidate_of_each_anchor():
    scores, positives, _ = mixture(np.random.default_rng(0), 500, 1, 0.2, 4.0, 100)
    flat = scores[:, 0]
    assert unlabelled_share(flat, positives) == unlabelled_share(scores, positives)
    kept, mask = flat < 2, flat > -1.5
    column = {"kept": kept[:, None], "mask": mask[:, None]}
    assert false_negative_rate(flat, positives, kept, mask=mask) == false_negative_rate(scores, positives, **column)


def test_positives_above_all_that_was_kept_would_not_have_been():
    scores, positives, _ = mixture(np.random.default_rng(0), 60, 10, 1.0, 3.0, 50)
    kept = (scores > 0) & (scores < 1.5)
    passed = positives <= scores[kept].max()
    assert 0 < passed.sum() < 50
    assert false_negative_rate(scores, positives, kept) == false_negative_rate(
        scores, positives, kept, kept_positives=passed
    )


def test_slots_of_an_anchor_that_agree_are_worth_less():
    rng = np.random.default_rng(0)
    looks = rng.standard_normal((100, 1)) + 5 * (rng.random((100, 1)) < 0.1)
    positives = rng.standard_normal(500) + 5
    once, alike = unlabelled_share(looks, positives), unlabelled_share(np.repeat(looks, 20, axis=1), positives)
    apart = unlabelled_share(rng.permutation(np.repeat(looks, 20, axis=1).ravel()), positives)
    assert alike.high == pytest.approx(once.high, rel=1e-6)
    assert apart.high < 0.8 * alike.high


def test_it_says_when_it_cannot_tell():
    rng = np.random.default_rng(0)
    alike = unlabelled_share(rng.normal(0, 1, (50, 10)), rng.normal(0, 1, 50))
    assert alike.high == 1.0
    assert alike.notes[0].startswith(
        "inconclusive: the positives are too few, or score too little above the candidates"
    )
    few = unlabelled_share(rng.normal(0, 1, (50, 10)), [9.0])
    assert few.high == 1.0
    assert few.notes == alike.notes
    scores, positives, _ = mixture(rng, 300, 100, 1.0, 2.0, 300)
    top = scores >= np.sort(scores, axis=1)[:, -2:-1]
    naive = false_negative_rate(scores, positives, top)
    assert naive.high == 1.0
    assert naive.notes == ("inconclusive: true negatives may score as high as positives; label some with spot_check",)
    assert unlabelled_share(scores, positives).notes == ()
    assert len(naive.assumptions) == 4
    assert naive.assumptions[3].startswith("these anchors are representative: they differ as much as all anchors do")
    assert len(false_negative_rate(scores, positives, top, representative_anchors=False).assumptions) == 3


# ---- spot_check -----------------------------------------------------------------------------------------------------

WORLD = planted_world(200, 100, per_anchor=10, noise=0.5)
QUERY = ns.Query(np.arange(200))
DRAWN = ns.pools.Everything(WORLD.known).draw(QUERY, 10, rng=ns.rng_for(0))


def test_a_spot_check_judges_slots_that_are_negatives_each_once():
    seen = []

    def judge(anchors, ids):
        seen.extend(zip(anchors.tolist(), ids.tolist(), strict=True))
        return ids % 4 == 0

    ids = DRAWN.ids.copy()
    ids[:, 3] = -1
    relation = np.zeros(ids.shape, np.int8)
    relation[:, 4] = 2
    negatives = ns.Negatives(ids, relation=relation)
    found = spot_check(QUERY, negatives, judge, 150, rng=ns.rng_for(1))
    told = {(a, i) for a, row in enumerate(ids.tolist()) for slot, i in enumerate(row) if slot not in (3, 4)}
    assert len(set(seen)) == len(seen) == found.n == 150
    assert set(seen) <= told
    hits = sum(i % 4 == 0 for _, i in seen)
    exact = stats.binomtest(hits, 150).proportion_ci(0.95, "exact")
    assert (found.estimate, found.low, found.high) == pytest.approx((hits / 150, exact.low, exact.high))
    assert found.assumptions == ("the judge is right",)
    again = spot_check(ns.Query(torch.arange(200)), negatives.to("cpu"), judge, 150, rng=ns.rng_for(1))
    assert again == found


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_where_few_anchors_hold_most_only_a_look_for_each_anchor_keeps_the_promise():
    """One anchor in fifty is half full: a sample of fifty may have none of its kind, and cannot know."""
    rng = np.random.default_rng(0)
    runs, share, line = 60, 0.02 * 0.5 + 0.98 * 0.002, 7.5
    below, above = stats.norm.cdf(line - 8), stats.norm.cdf(line)
    rate = share * below / (share * below + (1 - share) * above)
    held = {True: [], False: []}
    for _ in range(runs):
        own = np.where(rng.random(50) < 0.02, 0.5, 0.002)
        scores = rng.normal(0, 1, (50, 200)) + 8 * (rng.random((50, 200)) < own[:, None])
        positives = rng.normal(8, 1, 200)
        for alike, found in held.items():
            prior = unlabelled_share(scores, positives, representative_anchors=alike).high >= share
            found.append(
                (prior, false_negative_rate(scores, positives, line, representative_anchors=alike).high >= rate)
            )
    assert np.mean(held[True], axis=0).max() < 0.8  # what `alike` assumes is not so
    assert np.mean(held[False], axis=0).min() >= 0.95


def test_a_bound_says_that_it_is_one():
    scores, positives, _ = mixture(np.random.default_rng(0), 300, 100, 6.0, 2.0, 300)
    found = unlabelled_share(scores, positives)
    assert found.bound
    percent = f"{100 * found.high:.1f}"
    assert str(found).startswith(
        f"unlabelled positives among the candidates: at most {percent} % (95% confidence, n = 300; "
    )
    assert "without sampling error)" in str(found).splitlines()[0]
    with pytest.raises(NaysayError, match=r"^unlabelled_share: `representative_anchors` must be True or False, got 1"):
        unlabelled_share(scores, positives, representative_anchors=1)
