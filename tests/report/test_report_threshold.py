"""Figures at a threshold: against plain loops, against `false_negative_rate`, and the sample that it is done on."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import plain_figures, sample

from naysay.detectors import false_negative_rate
from naysay.errors import NaysayError
from naysay.report import Sample, Scores, at_threshold
from naysay.report.threshold import Decided, rate_of, sample_of, share_of


def same(found, plain):
    return all(
        np.isclose(asdict(found)[name], value, rtol=1e-12, atol=0, equal_nan=True) for name, value in plain.items()
    )


@settings(max_examples=150)
@given(st.integers(0, 10_000), st.sampled_from(["score", "suspicion"]), st.floats(-0.1, 1.1))
def test_the_figures_are_those_of_loops(seed, by, threshold):
    rng = np.random.default_rng(seed)
    anchors = np.sort(rng.integers(0, 6, rng.integers(1, 30)))
    scores = (rng.integers(0, 8, len(anchors)) / 8).astype(np.float32)
    scores = scores[np.lexsort((-scores, anchors))]
    known = rng.integers(0, 5)
    given = Sample(
        anchors,
        scores,
        scores if by == "score" else rng.random(len(scores)).astype(np.float32),
        rng.integers(0, 5, 6),
        threshold=0.5,
        by=by,
        positives=rng.integers(0, 9, known) / 8,
        positive_anchors=rng.integers(0, 6, known),
        retrieved=rng.random(known) < 0.7,
        share=rng.random(),
        of_anchors=6 + int(rng.integers(0, 20)),
    )
    for at in (threshold, float(scores[0]), 0.5):
        assert same(at_threshold(given, at), plain_figures(given, at))


def test_the_rate_is_that_of_the_detectors():
    given = sample(60, 30)
    table = given.scores.reshape(60, 30)
    for threshold in (0.3, 0.45, 0.55, 0.7, 2.0):
        kept = np.zeros(table.shape, bool)
        for row in range(60):
            kept[row, [slot for slot in range(30) if table[row, slot] < threshold][:4]] = True
        full = kept.sum(axis=1) == 4
        lowest = np.array([table[row][kept[row]].min() if full[row] else -np.inf for row in range(60)])
        passed = (given.positives < threshold) & (given.positives >= lowest)
        theirs = false_negative_rate(table, given.positives, kept, kept_positives=passed)
        whole = false_negative_rate(table, given.positives, 10.0).estimate
        ours = at_threshold(sample(60, 30, share=whole), threshold)
        assert ours.false_rate == pytest.approx(theirs.estimate, rel=1e-12)
        assert rate_of(decided_of(given, table), threshold) == theirs
        assert share_of(decided_of(given, table)).estimate == pytest.approx(whole, rel=1e-12)


def decided_of(given, table):
    """The candidates of a sample as the table they came from."""
    return Decided(table, np.ones(table.shape, bool), given.k, given.positives, np.ones(len(table), bool))


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_the_rate_of_a_table_is_that_of_its_sample(seed):
    rng = np.random.default_rng(seed)
    scores = (rng.integers(0, 12, (25, 8)) / 12).astype(np.float32)
    positives = np.where(rng.random(25) < 0.8, rng.integers(4, 14, 25) / 12, np.nan).astype(np.float32)
    known = Decided(scores, rng.random((25, 8)) < 0.7, rng.integers(0, 4, 25), positives, rng.random(25) < 0.8)
    share = share_of(known)
    for threshold in (0.4, 0.75, 2.0):
        found = sample_of(known, threshold, rng=rng, share=share.estimate)
        rate = rate_of(known, threshold)
        if rate is None:
            assert np.isnan(at_threshold(found, threshold).false_rate)
        elif share.estimate < 1:
            assert at_threshold(found, threshold).false_rate == pytest.approx(rate.estimate, rel=1e-9)


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_a_sample_holds_whole_anchors_in_order(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    scores = rng.integers(0, 5, (n, m)).astype(np.float32)
    decided = rng.random((n, m)) < 0.6
    positives = np.where(rng.random(n) < 0.5, rng.random(n), np.nan).astype(np.float32)
    found = sample_of(Decided(scores, decided, np.full(n, 2), positives, positives > 0.3), 2.0, rng=rng)
    if not decided.any():
        assert found is None
        return
    assert len(found.k) == n  # few enough: all of them
    for row in range(n):
        assert found.scores[found.anchors == row].tolist() == sorted(scores[row][decided[row]].tolist(), reverse=True)
    has = np.flatnonzero(~np.isnan(positives))
    assert found.positive_anchors.tolist() == has.tolist()
    assert found.positives.tolist() == positives[has].tolist()
    assert found.retrieved.tolist() == (positives[has] > 0.3).tolist()
    assert found.of_anchors == n


def test_a_large_table_is_sampled_by_anchors_and_scaled():
    rng = np.random.default_rng(0)
    scores = rng.random((900, 100)).astype(np.float32)
    none, nobody = np.full(900, np.nan, np.float32), np.zeros(900, bool)
    table = Decided(scores, scores > 0, np.full(900, 5), none, nobody)
    one, again = (sample_of(table, 0.8, rng=np.random.default_rng(1)) for _ in range(2))
    assert len(one.scores) <= 40_000
    assert len(one.k) == 400
    assert one.of_anchors == 900
    assert np.array_equal(one.scores, again.scores)
    assert np.isnan(one.share)
    assert share_of(table) is rate_of(table, 0.8) is None
    assert at_threshold(one, 0.8).suspected == pytest.approx((scores >= 0.8).sum(), rel=0.05)
    half = sample_of(replace(table, suspicion=scores), 0.5, rng=np.random.default_rng(1))
    assert (len(half.k), half.by) == (200, "suspicion")
    wide = Decided(np.zeros((1, 50_000), np.float32), np.ones((1, 50_000), bool), np.ones(1), none[:1], nobody[:1])
    assert sample_of(wide, 0.5, rng=rng) is None


def test_equal_scores_give_no_share():
    scores = np.full((30, 4), 0.5, np.float32)
    table = Decided(scores, scores > 0, np.full(30, 2), scores[:, 0], scores[:, 0] > 0)
    assert share_of(table) is rate_of(table, 0.9) is None
    assert rate_of(table, 0.1) is None  # nothing is below
    assert np.isnan(at_threshold(sample_of(table, 0.9, rng=np.random.default_rng(0)), 0.9).false_rate)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"by": "rank"}, r"^Sample: `by` must be one of 'score', 'suspicion', got 'rank'\.$"),
        (
            {"scores": [0.5]},
            r"^Sample: `scores` must be of the same length as the others, got scores 1, values 1000, anchors 1000\.$",
        ),
        (
            {"scores": np.full(1000, np.nan)},
            r"^Sample: `scores` must be finite, got nan at row 0 \(1000 such rows\)\.$",
        ),
        ({"values": [["a"]]}, r"^Sample: `values` must be of shape \(n,\), got shape \(1, 1\)\.$"),
        ({"values": ["a"] * 1000}, r"^Sample: `values` must be scores, got dtype <U1\.$"),
        (
            {"anchors": np.repeat([0, 99], 500)},
            r"^Sample: `anchors` must be between 0 and 39 \(40 values of k\), got 99 at row 500",
        ),
        (
            {"positive_anchors": np.full(40, -1)},
            r"^Sample: `positive_anchors` must be between 0 and 39 \(40 values of k\), got -1",
        ),
        (
            {"scores": np.arange(1000.0)},
            r"^Sample: `anchors` must be sorted by anchor, then by descending score, got another order from row 1",
        ),
        ({"threshold": np.nan}, r"^Sample: `threshold` must be a number, got nan\.$"),
        ({"command": "f()"}, r"^Sample: `command` must be a text with THRESHOLD in place of the value, got 'f\(\)'\.$"),
        ({"command": 3}, r"^Sample: `command` must be a text, got 3\.$"),
        ({"share": None}, r"^Sample: `share` must be a number, got None\.$"),
        ({"retrieved": [[1], [1, 2]]}, r"^Sample: `retrieved` must be rows of one length, got rows of different"),
        ({"of_anchors": "x"}, r"^Sample: `of_anchors` must be a whole number, got 'x'\.$"),
        ({"of_anchors": 3}, r"^Sample: `of_anchors` must be at least 40, got 3\.$"),
        ({"share": 1.5}, r"^Sample: `share` must be a number at least 0 and at most 1, got 1\.5\. NaN if"),
        (
            {"retrieved": [True]},
            r"^Sample: `retrieved` must be True or False for each of the positives, got shape \(1,\) bool\.$",
        ),
        (
            {"positives": [0.5]},
            r"^Sample: `positives` must be of the same length as the others, got positives 1, positive_anchors 40\.$",
        ),
    ],
)
def test_an_invalid_sample(changed, message):
    with pytest.raises(NaysayError, match=message):
        sample(**changed)


def test_too_many_candidates():
    many = np.zeros(40_001, np.float32)
    with pytest.raises(
        NaysayError, match=r"^Sample: `scores` must be of 1 to 40,000 candidates, got 40,001\. Take fewer"
    ):
        Sample(np.zeros(40_001, int), many, many, [1], threshold=0.5)
    with pytest.raises(NaysayError, match=r"of 1 to 20,000 candidates, got 40,001\."):
        Sample(np.zeros(40_001, int), many, many, [1], threshold=0.5, by="suspicion")
    with pytest.raises(NaysayError, match=r"of 1 to 40,000 candidates, got 0\."):
        Sample([], [], [], [1], threshold=0.5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kept": [np.inf]}, r"^Scores: `kept` must be finite, got inf at row 0 \(1 such row\)\.$"),
        ({"why": [0]}, r"^Scores: `dropped` must be of the same length as the others, got dropped 2, why 1\.$"),
        ({"why": [0, 2]}, r"^Scores: `why` must be between 0 and 1 \(2 reasons\), got 2 at row 1 \(1 such row\)\.$"),
        ({"sample": 3}, r"^Scores: `sample` must be a Sample, or None, got int\.$"),
    ],
)
def test_invalid_scores(changed, message):
    given = {
        "positives": [0.9],
        "kept": [0.5],
        "dropped": [0.8, 0.7],
        "why": [0, 1],
        "reasons": ("suspicious", "duplicate"),
    }
    Scores(**given)
    with pytest.raises(NaysayError, match=message):
        Scores(**(given | changed))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: at_threshold(None, 0.5), "at_threshold: `sample` must be a Sample, got NoneType."),
        (lambda: at_threshold(sample(), "x"), "at_threshold: `threshold` must be a number, got 'x'."),
    ],
)
def test_a_threshold_needs_a_sample_and_a_number(call, message):
    with pytest.raises(NaysayError) as caught:
        call()
    assert str(caught.value) == message
