"""judge="auto": the hardest k whose estimated share of false negatives is at most a target."""

import re

import numpy as np
import pytest

import naysay as ns
from naysay.detectors import Calibrated, Margin, Posterior, ShareOfPositive
from naysay.errors import NaysayError
from naysay.mining import Reason, auto, mine
from naysay.search.vectors import as_vectors
from naysay.text import with_interval


class Families:
    """Anchors with three items each around them, of which one is labelled at random, and many others."""

    def __init__(self, n=500, others=3000, width=32, apart=0.6, seed=1):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(n, width))
        own = centres[:, None] + apart * rng.normal(size=(n, 3, width))
        self.n, self.others = n, rng.normal(size=(others, width))
        self.corpus = np.concatenate([own.reshape(-1, width), self.others]).astype(np.float32)
        self.queries = (centres + 0.3 * rng.normal(size=(n, width))).astype(np.float32)
        self.labelled = 3 * np.arange(n) + rng.integers(0, 3, n)

    def mine(self, k=10, **given):
        return mine(self.queries, self.corpus, self.labelled, k, **given)

    def false(self, mined):
        """(n, k) the negatives that are false."""
        return mined.mask & (mined.ids // 3 == np.arange(self.n)[:, None]) & (mined.ids < 3 * self.n)

    def share(self, mined):
        return self.false(mined).sum() / mined.mask.sum()


WORLD = Families()
AUTO, NEAREST = WORLD.mine(), WORLD.mine(judge=None)


def test_what_is_dropped_is_what_is_above_the_threshold():
    assert AUTO.suspicion_threshold == AUTO.judge.threshold
    assert AUTO.suspicion[AUTO.mask].max() < AUTO.suspicion_threshold
    dropped = AUTO.candidates.dropped_for(Reason.SUSPICIOUS)
    assert AUTO.candidates.suspicion[dropped].min() >= AUTO.suspicion_threshold
    assert np.isnan(AUTO.thresholds).all()  # it does not go by scores alone
    # The suspicion is that of the detector, asked by itself.
    asked = AUTO.judge.suspicion(AUTO.query, ns.Negatives(AUTO.candidates.ids, scores=AUTO.candidates.scores))
    np.testing.assert_array_equal(AUTO.candidates.suspicion, asked)


def test_the_rule_says_before_and_after_what_it_costs_and_what_it_rests_on():
    summary = AUTO.judge.summary
    before, after = (with_interval(share.estimate, share.low, share.high) for share in (summary.before, summary.after))
    assert before in AUTO.rule
    assert after in AUTO.rule
    assert "for a target of 5 %." in AUTO.rule
    assert f"mean score of the negatives from {NEAREST.scores.mean():.3f} to {AUTO.scores.mean():.3f}." in AUTO.rule
    assert f"rests on {summary.labelled} labelled positives" in AUTO.rule


def test_within_the_target_nothing_is_dropped():
    found = WORLD.mine(false_share=0.3)
    np.testing.assert_array_equal(found.ids, NEAREST.ids)
    assert "suspicious" not in found.dropped
    assert "within the target of 30 %, so nothing is dropped" in found.rule


def test_another_target_without_a_search():
    for target in (0.01, 0.1, 0.3):
        again, anew = AUTO.rethreshold(false_share=target), WORLD.mine(false_share=target)
        np.testing.assert_array_equal(again.ids, anew.ids)
        assert again.rule == anew.rule
        assert again.suspicion_threshold == anew.suspicion_threshold
    np.testing.assert_array_equal(AUTO.rethreshold(false_share=0.01).rethreshold(false_share=0.05).ids, AUTO.ids)
    with pytest.raises(NaysayError, match=r"`false_share` must be a number above 0 and below 1, got 1"):
        AUTO.rethreshold(false_share=1.0)
    with pytest.raises(NaysayError, match=r"`false_share` must be left out unless the judge is the Posterior"):
        NEAREST.rethreshold(false_share=0.1)
    with pytest.raises(NaysayError, match=r"`threshold` must be given, or alpha, or judge, or false_share"):
        AUTO.rethreshold(0.5, false_share=0.1)


def test_k_auto_takes_what_is_between_the_lowest_score_and_the_cut():
    found = WORLD.mine("auto", false_share=0.03, max_k=20)
    assert isinstance(found.judge, Posterior)
    assert WORLD.share(found) < 0.06
    candidates = found.candidates
    free = (candidates.suspicion < found.suspicion_threshold) & ~candidates.dropped_for(Reason.TOO_EASY)
    np.testing.assert_array_equal(found.counts, np.minimum(free.sum(axis=1), 20))
    assert found.judge.summary.after.estimate <= 0.03


def test_ranks_scores_and_k_of_each_anchor_are_counted_in_the_cut():
    counts = np.where(np.arange(WORLD.n) % 2, 3, 12)
    for given in ({"k": counts}, {"rank_range": (2, 90)}, {"min_score": 0.3}, {"k": 5, "depth": 20}):
        found = WORLD.mine(**given)
        assert isinstance(found.judge, Posterior)
        after = found.judge.summary.after
        assert after.estimate <= 0.05
        assert WORLD.share(found) < after.high
        filled = found.mask.sum()
        mean = float(found.suspicion[found.mask].sum() / filled)
        assert mean == pytest.approx(after.estimate, abs=1e-6)


def test_two_sources():
    words = np.random.default_rng(0).integers(0, len(WORLD.corpus), (WORLD.n, 30))
    found = WORLD.mine(sources={"words": words})
    assert isinstance(found.judge, Posterior)
    assert 0.02 < WORLD.share(found) < 0.07


def test_easy_labels_are_noticed_by_item_vectors():
    scores = np.einsum("nd,nmd->nm", WORLD.queries, WORLD.corpus[: 3 * WORLD.n].reshape(WORLD.n, 3, -1))
    easiest = 3 * np.arange(WORLD.n) + scores.argmax(axis=1)
    found = mine(WORLD.queries, WORLD.corpus, easiest, 10)
    assert found.judge is not None
    assert re.search(r"[Ii]tem vectors|the easiest of their anchors|may be the easy ones", found.rule)


@pytest.mark.parametrize(
    ("labelled", "said", "instead"),
    [
        (12, "only 12 labelled positives are among the nearest candidates, and 15 are needed", "This is a guess"),
        (0, "only 0 labelled positives are among the nearest candidates", "This is a guess about the data"),
    ],
)
def test_too_few_labels_are_said(labelled, said, instead):
    some = np.where(np.arange(WORLD.n) < labelled, WORLD.labelled, -1)
    found = mine(WORLD.queries, WORLD.corpus, some, 10)
    assert found.rule.startswith(f"How many of the nearest are false cannot be told: {said}")
    assert ". Instead: Threshold" in found.rule
    assert instead in found.rule
    assert found.suspicion_threshold == 0.5


def test_an_encoder_that_does_not_separate_falls_back_to_the_recall_bound():
    world = ns.planted_world(300, 2000, per_anchor=6, noise=0.3)
    args = world.anchor_vectors, world.item_vectors, world.known, 8
    auto, calibrated = mine(*args), mine(*args, judge="calibrated")
    assert auto.rule.startswith("How many of the nearest are false cannot be told: ")
    assert auto.rule.endswith(f"Instead: {calibrated.rule}")
    np.testing.assert_array_equal(auto.ids, calibrated.ids)
    np.testing.assert_array_equal(auto.thresholds, calibrated.thresholds)
    with pytest.raises(NaysayError, match="Mine with judge='auto'; `rule` says why there is none"):
        auto.rethreshold(false_share=0.1)


def test_more_than_half_of_the_nearest_cannot_be_told_from_a_weak_encoder():
    found = WORLD.mine(3)  # two of three are false
    assert found.rule.startswith("How many of the nearest are false cannot be told: the encoder hardly separates")
    assert isinstance(found.judge, Calibrated)


def test_anchors_without_a_positive_are_judged_too():
    some = np.where(np.arange(WORLD.n) % 4 == 0, -1, WORLD.labelled)
    found = mine(WORLD.queries, WORLD.corpus, some, 10)
    assert isinstance(found.judge, Posterior)
    without = WORLD.false(found)[::4].sum() / found.mask[::4].sum()
    assert without < 0.2  # 30 % of their nearest are false
    assert f"rests on {3 * WORLD.n // 4} labelled" in found.rule


@pytest.mark.parametrize(("judge", "kind"), [("share:0.95", ShareOfPositive), ("margin:0.05", Margin)])
def test_a_rule_by_the_positive_skips_anchors_that_have_none(judge, kind):
    some = np.where(np.arange(WORLD.n) % 4 == 0, -1, WORLD.labelled)
    found, whole = mine(WORLD.queries, WORLD.corpus, some, 10, judge=judge), WORLD.mine(judge=judge)
    assert isinstance(found.judge, kind)
    assert found.rule.endswith(f" {WORLD.n // 4} anchors have no positive, and nothing of them is suspected.")
    has = np.arange(WORLD.n) % 4 > 0
    np.testing.assert_array_equal(found.ids[has], whole.ids[has])
    assert np.isposinf(found.thresholds[~has]).all()
    assert (found.rank[~has] == np.arange(1, 11)).all()
    assert "no positive" not in whole.rule
    again = mine(WORLD.queries, WORLD.corpus, some, 10).rethreshold(judge=judge)
    np.testing.assert_array_equal(again.ids[~has], found.ids[~has])


def test_a_posterior_that_was_fitted_elsewhere_drops_at_its_own_cut():
    found = WORLD.mine(judge=AUTO.judge)
    np.testing.assert_array_equal(found.ids, AUTO.ids)
    assert found.suspicion_threshold == AUTO.suspicion_threshold


def test_a_sample_of_the_anchors(monkeypatch):
    monkeypatch.setattr("naysay.mining.auto.FIT_ANCHORS", 200)
    found = WORLD.mine()
    assert "rests on 200 labelled positives" in found.rule
    assert 0.02 < WORLD.share(found) < 0.08


def test_a_vector_of_zeros_has_no_cosine():
    corpus = WORLD.corpus.copy()
    corpus[[3, 50]] = 0
    found = auto.Alike(as_vectors("corpus", corpus), np.array([0, 0, 1]), np.array([3, 4, 3]), 2)
    pairs = np.array([0, 0, 1]), np.array([50, 60, 60])
    unit = corpus / np.maximum(np.linalg.norm(corpus.astype(np.float64), axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(found(*pairs), [np.nan, unit[4] @ unit[60], np.nan], atol=1e-6)


def test_a_cut_that_leaves_anchors_short_is_out_of_reach():
    world = ns.planted_world(1000, 2000, per_anchor=10, known_share=0.2, noise=0.6, spread=0.2)
    found = mine(world.anchor_vectors, world.item_vectors, world.known, 8)
    assert "no cut reaches the target" in found.rule
    assert found.mask.all()


def test_a_rescored_rule_by_the_positive_skips_them_too():
    some = np.where(np.arange(40) % 4 == 0, -1, WORLD.labelled[:40])

    def score(anchors, ids):
        return (WORLD.queries[anchors] * WORLD.corpus[ids]).sum(axis=1)

    found = mine(WORLD.queries[:40], WORLD.corpus, some, 5, judge="share:0.95", rescore=score, depth=20)
    assert found.rule.endswith(" 10 anchors have no positive, and nothing of them is suspected.")
    assert found.mask[::4].all()


def test_nothing_returned_has_no_share(tmp_path):
    nothing = WORLD.mine(judge="max_score:-2")
    assert not nothing.mask.any()
    assert nothing.false_share is None
    assert nothing.report(tmp_path / "report.html").is_file()
