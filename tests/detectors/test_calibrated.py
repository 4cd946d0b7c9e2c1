"""Calibrated: the bound by enumeration and by simulation, and an oracle in plain loops."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay.detectors import Calibrated, one_per_anchor
from naysay.testing import check_detector

RAMP = np.arange(1, 41) / 40


def asked(scores, ids=None, anchors=None):
    scores = np.atleast_2d(np.asarray(scores, float))
    ids = np.arange(scores.size).reshape(scores.shape) if ids is None else np.asarray(ids)
    return ns.Query(np.arange(len(scores)) if anchors is None else anchors), ns.Negatives(ids, scores=scores)


def misses(detector, score):
    """Whether a positive of this score is kept as a negative."""
    return score < detector.high


# ---- the bound ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "alpha"), [(4, 0.2), (4, 0.4), (5, 0.5), (6, 0.3), (6, 0.9)])
def test_without_ties_exactly_r_of_n_plus_1_are_let_through(n, alpha):
    """Exchangeable: each of the n + 1 scores is as likely as any other to be the unlabelled one."""
    through = 0
    for unlabelled in range(n + 1):
        labelled = [score for score in range(n + 1) if score != unlabelled]
        through += misses(Calibrated(alpha).fit(labelled), unlabelled)
    rank = math.floor(Fraction(str(alpha)) * (n + 1))
    assert through == rank
    assert through / (n + 1) <= alpha


@pytest.mark.parametrize(("n", "alpha"), [(3, 0.25), (3, 0.5), (4, 0.4), (5, 0.34)])
def test_with_ties_no_more_are_let_through(n, alpha):
    """Every multiset of n + 1 scores from {0, 1, 2}, each of its members in turn the unlabelled one."""
    tried, strictly_fewer = 0, 0
    for scores in itertools.product(range(3), repeat=n + 1):
        through = 0
        for place in range(n + 1):
            labelled = [score for other, score in enumerate(scores) if other != place]
            if len(set(labelled)) == 1:  # an error; the threshold would be that score
                through += scores[place] < labelled[0]
            else:
                through += misses(Calibrated(alpha).fit(labelled), scores[place])
        rank = math.floor(Fraction(str(alpha)) * (n + 1))
        assert through <= rank
        strictly_fewer += through < rank
        tried += 1
    assert tried == 3 ** (n + 1)
    assert strictly_fewer > 0


def test_the_share_let_through_by_one_calibration_is_beta_distributed():
    rng = np.random.default_rng(0)
    shares = np.array([Calibrated(0.1).fit(rng.random(49)).high for _ in range(500)])  # of uniform scores
    found = Calibrated(0.1).fit(rng.random(49))
    assert (found.rank, found.n) == (5, 49)
    assert stats.kstest(shares, stats.beta(5, 45).cdf).pvalue > 1e-3
    for confidence in (0.5, 0.95):
        assert found.bound_at(confidence) == pytest.approx(stats.beta(5, 45).ppf(confidence), rel=1e-9)
    assert stats.binomtest(int((shares <= found.bound_at()).sum()), 500, 0.95).pvalue > 1e-3
    assert found.bound_at() > found.bound


def test_positives_of_one_anchor_are_not_independent():
    """10 anchors with 10 positives each, at a level of their own: as 100 positives they promise 5 % and let 9 % by."""
    rng = np.random.default_rng(1)
    through = {"all": 0, "one": 0}
    for _ in range(800):
        level = rng.standard_normal((11, 1))
        scores = level + 0.1 * rng.standard_normal((11, 10))
        anchors = np.repeat(np.arange(10), 10)
        through["all"] += misses(Calibrated(0.05).fit(scores[:10].ravel()), scores[10, 0])
        through["one"] += misses(Calibrated(0.1).fit(scores[:10].ravel(), anchors, rng=rng), scores[10, 0])
    assert stats.binomtest(through["all"], 800, 0.05, "greater").pvalue < 1e-3
    assert stats.binomtest(through["one"], 800, 1 / 11).pvalue > 1e-3


@given(st.integers(1, 3000), st.integers(1, 999))
def test_the_rank_is_exact_in_decimals(n, thousandths):
    """0.29 * 100 is 29, not 28.999...; with fewer positives than alpha needs there is no threshold."""
    rank = thousandths * (n + 1) // 1000
    detector = Calibrated(thousandths / 1000)
    if rank and n > 1:
        assert detector.fit(np.arange(n)).rank == rank
    else:
        with pytest.raises(ns.NaysayError):
            detector.fit(np.arange(n))


# ---- suspicion ------------------------------------------------------------------------------------------------------


def by_loops(positives, alpha, scores, ids):
    """Suspicion in plain loops."""
    ordered, n = sorted(positives), len(positives)
    rank = math.floor(Fraction(str(alpha)) * (n + 1))
    found = []
    for row_scores, row_ids in zip(scores, ids, strict=True):
        row = []
        for score, item in zip(row_scores, row_ids, strict=True):
            count = sum(positive <= score for positive in ordered)
            if item < 0:
                row.append(0.0)
            elif score < ordered[rank - 1]:
                row.append(count / (2 * rank))
            else:
                row.append(0.5 + 0.5 * (count - rank) / (n + 1 - rank))
        found.append(row)
    return np.array(found).reshape(len(scores), -1)


VALUES = st.integers(-8, 8).map(lambda eighth: eighth / 8)


@given(
    st.lists(VALUES, min_size=9, max_size=40).filter(lambda values: len(set(values)) > 1),
    st.lists(st.tuples(VALUES, st.integers(-1, 5)), min_size=4, max_size=4),
    st.sampled_from([0.1, 0.25, 0.5, 0.9]),
)
def test_suspicion_is_that_of_the_loops(positives, slots, alpha):
    scores, ids = (np.array(part).reshape(2, 2) for part in zip(*slots, strict=True))
    found = Calibrated(alpha).fit(positives)
    suspicion = found.suspicion(*asked(scores, ids))
    assert np.allclose(suspicion, by_loops(positives, alpha, scores.tolist(), ids.tolist()), atol=1e-15, rtol=0)
    assert ((suspicion >= 0.5) == ((scores >= found.high) & (ids >= 0))).all()


@pytest.mark.parametrize("other", [0.03, 0.05, 0.1, 0.2, 0.5])
def test_another_alpha_is_another_threshold_of_the_same_suspicion(other):
    found, wanted = Calibrated(0.1).fit(RAMP), Calibrated(other).fit(RAMP)
    scores = np.linspace(-0.1, 1.1, 241)
    suspicion = found.suspicion(*asked(scores))
    assert ((suspicion[0] >= found.threshold_at(other)) == (scores >= wanted.high)).all()
    assert found.threshold_at(0.1) == 0.5


# ---- one per anchor -------------------------------------------------------------------------------------------------


def test_every_positive_of_an_anchor_has_its_chance():
    anchors, rng = np.array([5, 5, 5, 5, 2, 2, 9]), np.random.default_rng(0)
    taken = np.zeros(7)
    for _ in range(1000):
        places = one_per_anchor(anchors, rng=rng)
        assert sorted(anchors[places].tolist()) == [2, 5, 9]
        taken[places] += 1
    assert taken[6] == 1000
    assert stats.chisquare(taken[:4]).pvalue > 1e-3
    assert stats.chisquare(taken[4:6]).pvalue > 1e-3


def test_a_share_of_the_anchors_can_be_held_out():
    anchors, rng = np.repeat(np.arange(50), 2), np.random.default_rng(0)
    taken = np.zeros(50)
    for _ in range(500):
        places = one_per_anchor(anchors, share=0.1, rng=rng)
        assert len(places) == 5
        assert (np.diff(places) > 0).all()
        taken[np.unique(anchors[places])] += 1
    assert stats.chisquare(taken).pvalue > 1e-3
    assert len(one_per_anchor([3, 3], share=0.01, rng=rng)) == 1


# ---- standardised by anchor -----------------------------------------------------------------------------------------


def two_levels(seed, n=400):
    """Half of the anchors score everything higher by 3: one threshold for all of them suits none."""
    rng = np.random.default_rng(seed)
    level = 3.0 * (np.arange(n) % 2)
    background = level[:, None] + rng.standard_normal((n, 50))
    return level, background, level + 2 + rng.standard_normal(n)


def test_standardised_scores_in_loops():
    _, background, positives = two_levels(0, 40)
    found = Calibrated(0.1, standardise=True).fit(positives, np.arange(40), background=background)
    mean = [sum(row) / 50 for row in background.tolist()]
    deviation = [
        math.sqrt(sum((s - m) ** 2 for s in row) / 49) for row, m in zip(background.tolist(), mean, strict=True)
    ]
    z = [(s - m) / d for s, m, d in zip(positives.tolist(), mean, deviation, strict=True)]
    assert found.high == pytest.approx(sorted(z)[3], rel=1e-12)
    anchors = np.array([7, 7, 12])
    scores = np.array([[2.0, 5.0], [0.0, 4.5], [1.0, 3.0]])
    expected = by_loops(
        z,
        0.1,
        [[(s - mean[a]) / deviation[a] for s in row] for a, row in zip(anchors, scores, strict=True)],
        [[1, 2]] * 3,
    )
    query, negatives = asked(scores, anchors=anchors)
    assert np.allclose(found.suspicion(query, negatives), expected, atol=1e-12)
    thresholds = found.threshold(ns.Query(anchors))
    assert thresholds == pytest.approx([mean[a] + deviation[a] * found.high for a in anchors.tolist()])
    check_detector(found, query, negatives)
