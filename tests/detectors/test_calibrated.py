"""Calibrated: the bound by enumeration and by simulation, an oracle in plain loops, and every refusal."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay import NaysayError
from naysay.detectors.calibrated import Calibrated, least_positives, one_per_anchor, rank_of
from naysay.testing import check_detector
from naysay.types import Detector, Stateful

RAMP = np.arange(1, 41) / 40


def asked(scores, ids=None, anchors=None):
    scores = np.atleast_2d(np.asarray(scores, float))
    ids = np.arange(scores.size).reshape(scores.shape) if ids is None else np.asarray(ids)
    return ns.Query(np.arange(len(scores)) if anchors is None else anchors), ns.Negatives(ids, scores=scores)


# ---- the bound ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "alpha"), [(4, 0.2), (4, 0.4), (5, 0.5), (6, 0.3), (6, 0.9)])
def test_without_ties_exactly_r_of_n_plus_1_are_let_through(n, alpha):
    """Exchangeable: each of the n + 1 scores is as likely as any other to be the unlabelled one."""
    through = 0
    for unlabelled in range(n + 1):
        labelled = [score for score in range(n + 1) if score != unlabelled]
        through += not Calibrated(alpha).fit(labelled).flag(unlabelled)
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
                through += not Calibrated(alpha).fit(labelled).flag(scores[place])
        rank = math.floor(Fraction(str(alpha)) * (n + 1))
        assert through <= rank
        strictly_fewer += through < rank
        tried += 1
    assert tried == 3 ** (n + 1)
    assert strictly_fewer > 0


def test_floor_holds_what_ceil_does_not():
    """At n = 30 and alpha = 0.05: 1 of 31, where the other rounding would let 2 of 31 through, 6.5 %."""
    found = Calibrated(0.05).fit(np.arange(30.0))
    assert (found.rank, found.high, found.n) == (1, 0.0, 30)
    assert found.bound == pytest.approx(0.03226, abs=5e-6)
    ceil = math.ceil(0.05 * 31)
    assert ceil / 31 == pytest.approx(0.0645, abs=5e-5)
    assert found.bound <= 0.05 < ceil / 31


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
        through["all"] += not Calibrated(0.05).fit(scores[:10].ravel()).flag(scores[10, 0])
        through["one"] += not Calibrated(0.1).fit(scores[:10].ravel(), anchors, rng=rng).flag(scores[10, 0])
    assert stats.binomtest(through["all"], 800, 0.05, "greater").pvalue < 1e-3
    assert stats.binomtest(through["one"], 800, 1 / 11).pvalue > 1e-3


# ---- the rank -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 3000), st.integers(1, 999))
def test_the_rank_is_exact_in_decimals(n, thousandths):
    alpha = thousandths / 1000
    assert rank_of(alpha, n) == thousandths * (n + 1) // 1000
    assert (rank_of(alpha, n) > 0) == (n >= least_positives(alpha))
    assert Fraction(rank_of(alpha, n), n + 1) <= Fraction(thousandths, 1000)


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
    assert ((suspicion >= 0.5) == (found.flag(scores) & (ids >= 0))).all()
    assert (found.flag(scores) == (scores >= found.high)).all()
    order = np.argsort(scores.ravel(), kind="stable")
    assert (np.diff(np.where(ids >= 0, suspicion, np.nan).ravel()[order]) >= 0)[
        (ids.ravel()[order][1:] >= 0) & (ids.ravel()[order][:-1] >= 0)
    ].all()


@pytest.mark.parametrize("other", [0.03, 0.05, 0.1, 0.2, 0.5])
def test_another_alpha_is_another_threshold_of_the_same_suspicion(other):
    found, wanted = Calibrated(0.1).fit(RAMP), Calibrated(other).fit(RAMP)
    scores = np.linspace(-0.1, 1.1, 241)
    suspicion = found.suspicion(*asked(scores))
    assert ((suspicion >= found.threshold_at(other)) == wanted.flag(scores[None])).all()
    assert found.threshold_at(0.1) == 0.5


def test_it_answers_in_the_array_type_of_the_negatives():
    found = Calibrated(0.1).fit(RAMP)
    query, negatives = asked([[0.05, 0.2], [0.5, 0.1]], [[3, 4], [-1, 5]])
    check_detector(found, query, negatives)
    check_detector(found, ns.Query(torch.arange(2)), negatives.to("cpu"))
    plain, tensor = found.suspicion(query, negatives), found.suspicion(query, negatives.to("cpu"))
    assert isinstance(plain, np.ndarray)
    assert torch.is_tensor(tensor)
    assert tensor.tolist() == plain.tolist()
    flags = found.flag(torch.tensor([0.05, 0.2]))
    assert torch.is_tensor(flags)
    assert flags.tolist() == [False, True]
    half = replace(negatives.to("cpu"), scores=negatives.to("cpu").scores.bfloat16())
    assert (found.suspicion(query, half) >= 0.5).tolist() == [[False, True], [False, True]]
    assert isinstance(found, Detector)
    assert isinstance(found, Stateful)
    assert found.suspicion(*asked(np.zeros((0, 3)))).shape == (0, 3)


# ---- one per anchor -------------------------------------------------------------------------------------------------


def test_of_each_anchor_one_positive_counts():
    anchors = np.repeat(np.arange(20), 3)
    scores = np.arange(60.0)
    found = Calibrated(0.1).fit(scores, anchors, rng=np.random.default_rng(0))
    assert found.n == 20
    assert (found.state()["scores"] // 3).tolist() == list(range(20))
    again = Calibrated(0.1).fit(scores, anchors, rng=np.random.default_rng(0))
    assert again.state()["scores"].tolist() == found.state()["scores"].tolist()
    assert set(found.state()["scores"] % 3) == {0, 1, 2}  # by chance, not the first of each


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
    assert (found.flag(scores, anchors) == (scores >= thresholds[:, None])).all()
    assert found.flag(thresholds[:1] + 1, anchors[:1]).tolist() == [True]
    check_detector(found, query, negatives)
    check_detector(found, ns.Query(torch.tensor(anchors)), negatives.to("cpu"))


def test_moments_are_as_good_as_the_scores_they_are_of():
    _, background, positives = two_levels(1, 60)
    one = Calibrated(standardise=True).fit(positives, np.arange(60), background=background)
    moments = (background.mean(axis=1), background.std(axis=1, ddof=1))
    other = Calibrated(standardise=True).fit(positives, np.arange(60), background=moments)
    assert one.high == pytest.approx(other.high, rel=1e-12)


def test_standardising_keeps_the_bound_and_more_of_the_negatives():
    """One unlabelled positive for each of 600 worlds, and what is lost of true negatives in one of them."""
    through = 0
    for seed in range(600):
        _, background, positives = two_levels(seed, 31)
        found = Calibrated(0.1, standardise=True).fit(positives[:30], np.arange(30), background=background)
        through += not found.flag(positives[30:], [30])[0]
    assert stats.binomtest(through, 600, 3 / 31).pvalue > 1e-3
    level, background, positives = two_levels(3, 1000)
    negatives = level[:, None] + np.random.default_rng(9).standard_normal((1000, 20))
    raw = Calibrated(0.1).fit(positives)
    by_anchor = Calibrated(0.1, standardise=True).fit(positives, np.arange(1000), background=background)
    assert by_anchor.flag(negatives, np.arange(1000)).mean() < 0.5 * raw.flag(negatives).mean()


# ---- words and state ------------------------------------------------------------------------------------------------


def test_it_says_what_it_promises():
    found = Calibrated(0.1).fit(RAMP)
    assert found.describe() == (
        "Threshold 0.1 (4th lowest of 40 labelled positives): expected miss rate at most 9.76 % per anchor, if "
        "unlabelled positives score like labelled ones."
    )
    assert repr(found) == "Calibrated(alpha=0.1, standardise=False; high=0.1, n=40)"
    assert repr(Calibrated()) == "Calibrated(alpha=0.05, standardise=False; not fitted)"
    _, background, positives = two_levels(0, 40)
    by_anchor = Calibrated(standardise=True).fit(positives, np.arange(40), background=background)
    assert " deviations above the anchor's mean (2nd lowest of 40 labelled positives): " in by_anchor.describe()
    for rank, name in ((1, "1st"), (3, "3rd"), (11, "11th"), (12, "12th"), (21, "21st"), (113, "113th")):
        assert f"({name} lowest of 199 " in Calibrated(rank / 200).fit(np.arange(199)).describe()


def test_the_threshold_in_raw_scores():
    found = Calibrated(0.1).fit(RAMP)
    assert found.threshold(ns.Query([4, 900])).tolist() == [0.1, 0.1]
    assert found.threshold(ns.Query([[4, 0, 900]])).tolist() == [0.1]


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "anchors"),
    [
        (np.arange(10.0), np.arange(10) // 2),  # too few anchors
        (np.ones(60), np.arange(60) // 2),
        (np.arange(60.0), np.arange(59)),
    ],
)
def test_a_error_leaves_the_generator_where_it_was(scores, anchors):
    rng = ns.rng_for(0)
    with pytest.raises(NaysayError, match="positive_scores"):
        Calibrated().fit(scores, anchors, rng=rng)
    assert rng.integers(1 << 40) == ns.rng_for(0).integers(1 << 40)
