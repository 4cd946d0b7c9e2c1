"""judge="auto": the hardest k whose estimated share of false negatives is at most a target."""

import numpy as np
import pytest
from families import Families
from plain_search import plain_scores

import naysay as ns
from naysay.detectors import Bands, Margin, Posterior, ShareOfPositive
from naysay.errors import NaysayError
from naysay.mining import Reason, mine
from naysay.text import with_interval

WORLD = Families()
AUTO, NEAREST, SHARE = WORLD.mine(), WORLD.mine(judge=None), WORLD.mine(judge="share:0.95")


def test_what_is_dropped_is_above_the_cut_or_above_95_percent_of_the_positive():
    found, limits = AUTO.candidates, AUTO.thresholds[:, None]
    assert AUTO.suspicion_threshold == AUTO.judge.threshold
    np.testing.assert_array_equal(AUTO.thresholds, SHARE.thresholds)
    suspected = (found.suspicion >= AUTO.suspicion_threshold) | (found.scores > limits)
    np.testing.assert_array_equal(found.dropped_for(Reason.SUSPICIOUS), found.filled & suspected)
    # The suspicion is that of the detector, asked by itself.
    asked = AUTO.judge.suspicion(AUTO.query, ns.Negatives(found.ids, scores=found.scores))
    np.testing.assert_array_equal(found.suspicion, asked)


def test_auto_leaves_fewer_false_than_either_rule():
    assert WORLD.share(NEAREST) > 0.19
    assert 0.005 < WORLD.share(AUTO) < 0.05
    assert WORLD.share(AUTO) < WORLD.share(SHARE)
    assert NEAREST.scores.mean() > AUTO.scores.mean() > WORLD.mine(judge="calibrated").scores.mean()


def test_the_rule_says_before_and_after_what_it_costs_and_what_would_settle_it():
    before, after = AUTO.judge.summary.before, AUTO.false_share
    assert AUTO.rule.startswith("By labels alone")
    assert with_interval(before.estimate, before.low, before.high) in AUTO.rule
    assert with_interval(after.estimate, after.low, after.high) in AUTO.rule
    assert after.estimate < 0.05 < before.low
    for number in (f"{NEAREST.scores.mean():.3f}", f"{AUTO.scores.mean():.3f}", f"{WORLD.n} labelled positives"):
        assert number in AUTO.rule
    assert AUTO.rule.endswith("ns.mine(..., reviewer=f, review=100)")


def test_within_the_target_the_95_percent_rule_drops_alone():
    found = WORLD.mine(false_share=0.3)
    np.testing.assert_array_equal(found.ids, SHARE.ids)
    assert found.judge.summary.tau == 1


def test_k_auto_takes_what_is_between_the_lowest_score_and_the_cut():
    found = WORLD.mine("auto", false_share=0.03, max_k=20)
    assert isinstance(found.judge, Posterior)
    assert WORLD.share(found) < 0.06
    candidates = found.candidates
    suspected = (candidates.suspicion >= found.suspicion_threshold) | (candidates.scores > found.thresholds[:, None])
    free = candidates.filled & ~suspected & ~candidates.dropped_for(Reason.TOO_EASY)
    np.testing.assert_array_equal(found.counts, np.minimum(free.sum(axis=1), 20))


def test_ranks_scores_and_k_of_each_anchor_are_counted_in_the_cut():
    counts = np.where(np.arange(WORLD.n) % 2, 3, 12)
    for given in ({"k": counts}, {"rank_range": (2, 90), "min_score": 0.3}):
        found = WORLD.mine(**given)
        assert isinstance(found.judge, Posterior)
        share = found.false_share
        assert share.estimate <= 0.05
        assert WORLD.share(found) < share.high
        mean = float(found.suspicion[found.mask].mean(dtype=np.float64))
        assert mean == pytest.approx(share.estimate, abs=1e-6)


# ---- the policies, in planted worlds --------------------------------------------------------------------------------


class Groups(Families):
    """Anchors with groups of items of any sizes around them, one of each labelled."""

    def __init__(self, sizes, *, apart=0.6, noise=0.3, label="random", n=500, others=2500, width=32, seed=0):
        rng = np.random.default_rng(seed)
        counts = np.full(n, sizes) if np.isscalar(sizes) else np.asarray(sizes)
        centres = rng.normal(size=(n, width))
        owners = np.repeat(np.arange(n), counts)
        own = centres[owners] + apart * rng.normal(size=(len(owners), width))
        self.n = n
        self.corpus = np.concatenate([own, rng.normal(size=(others, width))]).astype(np.float32)
        self.queries = (centres + noise * rng.normal(size=(n, width))).astype(np.float32)
        self.owners = np.concatenate([owners, np.full(others, -1)])
        cosines = np.einsum("nd,nd->n", self.queries[owners], own) / np.linalg.norm(own, axis=1)
        keys = {"random": rng.random(len(owners)), "easiest": -cosines, "hardest": cosines}
        order = np.lexsort((keys[label], owners))
        self.labelled = order[np.unique(owners[order], return_index=True)[1]]

    def false(self, mined):
        return mined.mask & (self.owners[mined.ids] == np.arange(self.n)[:, None])


def test_a_weak_encoder_with_complete_labels_keeps_the_nearest():
    """One positive each, all labelled: nothing is false, and the estimate cannot know it."""
    world = Groups(1, apart=1.2, noise=0.8, n=800, others=4000)
    found, nearest = world.mine(8), world.mine(8, judge=None)
    assert (nearest.scores[:, 0] > nearest.positive_scores).mean() > 0.7  # the positive is seldom the first
    np.testing.assert_array_equal(found.ids, nearest.ids)
    assert found.judge is None
    share = found.false_share
    assert share is None or (share.low == 0 and share.estimate > 0.05)
    assert found.rule.startswith("By labels alone")
    excess = found.scores - found.positive_scores[:, None]
    row, slot = np.unravel_index(excess.argmax(), excess.shape)
    for number in (f"{found.ids[row, slot]}", f"anchor {row}", f"{found.scores[row, slot]:.3f}"):
        assert number in found.rule  # pairs to look at
    assert world.mine(8, judge="share:0.95").scores.mean() < found.scores.mean() - 0.09


def test_uneven_groups_have_a_wide_upper_end():
    """A few anchors with many positives."""
    sizes = np.minimum(1 + np.random.default_rng(0).zipf(1.8, 500), 40)
    world = Groups(sizes)
    found = world.mine(8)
    nearest = world.mine(8, judge=None)
    truth = world.share(nearest)
    assert truth > 0.3
    fitted = found.fitted
    assert fitted.is_uneven
    assert fitted.dispersion > 1.5
    assert fitted.before.high == pytest.approx(fitted.before.estimate * (1 + fitted.dispersion))
    assert fitted.before.low < truth < fitted.before.high
    assert found.false_share.low < world.share(found) < found.false_share.high
    assert world.share(found) < 0.08 < world.share(world.mine(8, judge="share:0.95"))
    assert not AUTO.fitted.is_uneven


@pytest.mark.parametrize(("label", "most"), [("easiest", 0.15), ("hardest", 0.01)])
def test_biased_labels_are_said_and_the_95_percent_rule_drops(label, most):
    world = Groups(3, label=label)
    found = world.mine(8)
    assert f"the labelled positives look like the {label} of their anchors" in found.rule
    assert found.false_share is None
    assert world.share(world.mine(8, judge=None)) > 0.24
    assert world.share(found) < most
    assert (found.scores[found.mask] <= np.repeat(found.thresholds, found.mask.sum(axis=1))).all()


def test_more_than_half_of_the_nearest_are_dropped_where_they_are_false():
    found = WORLD.mine(3)  # two of three are false
    assert WORLD.share(WORLD.mine(3, judge=None)) > 0.6
    assert WORLD.share(found) < 0.06
    assert found.mask.all()


def test_without_a_posterior_the_95_percent_rule_acts_alone():
    few = np.where(np.arange(WORLD.n) < 12, WORLD.labelled, -1)
    found = mine(WORLD.queries, WORLD.corpus, few, 10)
    assert isinstance(found.judge, ShareOfPositive)
    np.testing.assert_array_equal(found.ids, mine(WORLD.queries, WORLD.corpus, few, 10, judge="share:0.95").ids)
    assert found.false_share is None
    for part in ("12 labelled positives", f"{WORLD.n - 12} anchors have no positive", "review=100"):
        assert part in found.rule
    with pytest.raises(NaysayError) as raised:
        found.rethreshold(false_share=0.1)
    assert raised.value.parameter == "false_share"
    assert "Dropped at a suspicion" not in found.rule
    assert "Dropped at a suspicion of 0.4 or more." in found.rethreshold(0.4).rule


def test_without_positives_bands_are_a_guess():
    queries, corpus = WORLD.queries[:30], WORLD.corpus[:200]
    found = mine(queries, corpus, None, 10, ignore=([2], [2]))
    free = np.ones((30, 200), bool)
    free[2, 2] = False
    chosen = ns.detectors.choose_thresholds(plain_scores(queries, corpus)[free])
    assert isinstance(found.judge, Bands)
    assert (found.judge.low, found.judge.high) == (chosen.low, chosen.high)  # of all pairs
    assert "guess" in found.rule
    assert f"{chosen.high:.4g}" in found.rule
    assert (found.scores[found.mask] < found.judge.high).all()
    assert "Dropped at a suspicion of 0.4 or more." in found.rethreshold(0.4).rule


def test_a_cut_that_leaves_anchors_short_is_out_of_reach():
    world = ns.planted_world(1000, 2000, per_anchor=10, known_share=0.2, noise=0.6, spread=0.2)
    found = mine(world.anchor_vectors, world.item_vectors, world.known, 8)
    assert not isinstance(found.judge, Posterior)
    assert found.mask.all()


def test_anchors_without_a_positive_are_judged_too():
    some = np.where(np.arange(WORLD.n) % 4 == 0, -1, WORLD.labelled)
    found = mine(WORLD.queries, WORLD.corpus, some, 10)
    assert isinstance(found.judge, Posterior)
    without = WORLD.false(found)[::4].sum() / found.mask[::4].sum()
    assert without < 0.2  # 30 % of their nearest are false
    assert f"rests on {3 * WORLD.n // 4} labelled" in found.rule


def test_a_rule_by_the_positive_skips_anchors_that_have_none():
    judge = "margin:0.05"
    some = np.where(np.arange(WORLD.n) % 4 == 0, -1, WORLD.labelled)
    found, whole = mine(WORLD.queries, WORLD.corpus, some, 10, judge=judge), WORLD.mine(judge=judge)
    assert isinstance(found.judge, Margin)
    assert found.rule.endswith(f" {WORLD.n // 4} anchors have no positive, and nothing of them is suspected.")
    has = np.arange(WORLD.n) % 4 > 0
    np.testing.assert_array_equal(found.ids[has], whole.ids[has])
    assert np.isposinf(found.thresholds[~has]).all()
    assert (found.rank[~has] == np.arange(1, 11)).all()
    assert "no positive" not in whole.rule
    again = mine(WORLD.queries, WORLD.corpus, some, 10).rethreshold(judge=judge)
    np.testing.assert_array_equal(again.ids[~has], found.ids[~has])


def test_a_vector_of_zeros_and_nothing_returned():
    corpus = WORLD.corpus.copy()
    corpus[[3, 50, 200]] = 0  # no cosine to a positive, where another metric allows it
    found = mine(WORLD.queries, corpus, WORLD.labelled, 10, metric="dot")
    assert np.isfinite(found.scores).all()
    nothing = mine(WORLD.queries[:30], WORLD.corpus[:200], None, 3, judge="max_score:-2")
    assert not nothing.mask.any()
    assert nothing.false_share is None
