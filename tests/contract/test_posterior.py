"""The posterior: in planted worlds its estimate covers the truth, and its cut keeps the target."""

import numpy as np
import pytest

import naysay as ns

ANCHORS, DEPTH, K = 400, 60, 10


def planted(seed, hidden=2, shift=4.0):
    """(scores, own, truth) of lists: positives score N(shift, 1), others N(0, 1); one is labelled at random."""
    rng = np.random.default_rng(seed)
    positive = np.arange(200) < hidden
    scores = rng.normal(0, 1, (ANCHORS, 200)) + shift * positive
    order = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    return np.take_along_axis(scores, order, axis=1), rng.normal(shift, 1, ANCHORS), positive[order]


def fitted(seed, **settings):
    scores, own, truth = planted(seed)
    return ns.detectors.Posterior(k=K, **settings).fit(scores, own), scores, own, truth


def test_the_estimate_covers_the_truth_in_nearly_all_worlds():
    covered = []
    for seed in range(8):
        detector, _, _, truth = fitted(seed)
        assert detector.fitted
        before = detector.summary.before
        covered.append(before.low <= truth[:, :K].mean() <= before.high)
        assert before.estimate == pytest.approx(truth[:, :K].mean(), abs=0.05)
    assert sum(covered) >= 7


def test_the_cut_keeps_the_target_and_most_of_the_true_negatives():
    shares, kept_true = [], []
    for seed in range(4):
        detector, scores, own, truth = fitted(seed, false_share=0.05)
        suspicion = detector.posterior(scores, own)
        kept = suspicion < detector.threshold
        first = kept & (np.cumsum(kept, axis=1) <= K)
        shares.append(truth[first].mean())
        kept_true.append((kept & ~truth)[:, :K].sum() / (~truth)[:, :K].sum())
    assert np.mean(shares) == pytest.approx(0.05, abs=0.02)
    assert np.mean(kept_true) > 0.85  # what is true is hardly dropped


def test_suspicion_is_a_probability_that_ranks_false_negatives_first():
    detector, scores, own, truth = fitted(0)
    probability = detector.posterior(scores, own)
    assert probability.min() >= 0
    assert probability.max() <= 1
    assert probability[:, :K].mean() == pytest.approx(truth[:, :K].mean(), abs=0.05)
    order = np.argsort(-probability, axis=None)[: int(truth.sum())]
    assert truth.ravel()[order].mean() > 0.8  # precision at the true number


def test_within_the_target_nothing_is_dropped():
    detector, _, _, _ = fitted(0, false_share=0.5)
    assert detector.summary.dropped == 0


def test_a_smaller_target_drops_more():
    dropped = [fitted(0, false_share=share)[0].summary.dropped for share in (0.1, 0.05, 0.02)]
    assert dropped == sorted(dropped)
    assert dropped[0] < dropped[-1]


def test_where_labels_cannot_tell_it_says_so():
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.normal(size=(ANCHORS, DEPTH)), axis=1)
    detector = ns.detectors.Posterior(k=K).fit(scores, rng.normal(size=ANCHORS))
    assert not detector.fitted
    assert detector.reason


def test_a_known_labelled_share_is_used():
    scores, own, truth = planted(1)
    detector = ns.detectors.Posterior(k=K, labelled_share=1 / 3).fit(scores, own)
    assert detector.summary.before.estimate == pytest.approx(truth[:, :K].mean(), abs=0.04)


def test_it_judges_the_negatives_of_a_query():
    scores, own, truth = planted(0)
    detector = ns.detectors.Posterior(k=K, positive_scores=own).fit(scores, own)
    ids = np.tile(np.arange(DEPTH), (ANCHORS, 1))
    negatives = ns.Negatives(ids, scores=scores)
    suspicion = detector.suspicion(ns.Query(np.arange(ANCHORS)), negatives)
    assert suspicion[truth].mean() > 0.5 > suspicion[~truth].mean()
    kept = ns.detectors.compact(ns.detectors.drop(negatives, suspicion, threshold=detector.threshold))
    rows = np.where(kept.ids[:, :K] >= 0, truth[np.arange(ANCHORS)[:, None], kept.ids[:, :K]], False)
    assert rows.mean() < 0.08
