"""The rules of other miners: each against its formula in plain loops, and the defects that theirs have."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from five_encoders import ENCODERS, positive_scores
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import Calibrated, Margin, MaxScore, RankWindow, ShareOfPositive, lowest_scores
from naysay.testing import check_detector

OWN = np.array([0.8, 0.5, -0.4])  # the lowest score of each of three anchors with a positive of theirs

RULES = {
    "RankWindow": lambda: RankWindow(2),
    "MaxScore": lambda: MaxScore(0.4),
    "Margin": lambda: Margin(0.1, OWN),
    "ShareOfPositive": lambda: ShareOfPositive(OWN),
}


def asked(scores, ids=None, anchors=(0, 1, 2), **more):
    scores = np.asarray(scores, float)
    ids = np.arange(scores.size).reshape(scores.shape) if ids is None else np.asarray(ids)
    return ns.Query(np.asarray(anchors)[: len(scores)], **more), ns.Negatives(ids, scores=scores)


def flagged(rule, *question):
    return rule.suspicion(*question) >= 0.5


# ---- what all of them do --------------------------------------------------------------------------------------------


VALUES = st.integers(-20, 20).map(lambda part: part / 20)


@pytest.mark.parametrize(
    ("name", "thresholds"),
    [
        ("MaxScore", [0.4, 0.4, 0.4]),
        ("Margin", [0.8 - 0.1, 0.5 - 0.1, -0.4 - 0.1]),
        ("ShareOfPositive", [0.8 - 0.8 * (1 - 0.95), 0.5 - 0.5 * (1 - 0.95), -0.4 - 0.4 * (1 - 0.95)]),
    ],
)
def test_a_score_equal_to_the_threshold_is_kept_and_the_next_is_not(name, thresholds):
    rule = RULES[name]()
    query, _ = asked(np.zeros((3, 1)))
    assert rule.threshold(query).tolist() == thresholds
    on = np.array(thresholds)[:, None]
    scores = np.concatenate([np.nextafter(on, -2), on, np.nextafter(on, 2)], axis=1)
    query, negatives = asked(scores)
    assert flagged(rule, query, negatives).tolist() == [[False, False, True]] * 3
    assert (rule.suspicion(query, negatives).astype(np.float32) >= 0.5).tolist() == [[False, False, True]] * 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_highest_score_is_kept_in_the_precision_of_the_scores(dtype):
    for high in (0.8, 0.7, -0.3):
        on = dtype(high)
        scores = np.array([[np.nextafter(on, dtype(-2)), on, np.nextafter(on, dtype(2))]])
        negatives = ns.Negatives(np.array([[1, 2, 3]]), scores=scores)
        assert flagged(MaxScore(high), ns.Query([0]), negatives).tolist() == [[False, False, True]]


# ---- ranks ----------------------------------------------------------------------------------------------------------


@given(
    st.integers(0, 7),
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5]), st.integers(-1, 9)), min_size=10, max_size=10),
)
def test_ranks_in_loops(skip, slots):
    scores, ids = (np.array(part).reshape(2, 5) for part in zip(*slots, strict=True))
    expected = np.zeros((2, 5))
    for row in range(2):
        filled = [slot for slot in range(5) if ids[row, slot] >= 0]
        filled.sort(key=lambda slot: (-scores[row, slot], ids[row, slot], slot))
        for rank, slot in enumerate(filled, start=1):
            expected[row, slot] = skip / (skip + rank)
    query, negatives = asked(scores, ids)
    assert np.allclose(RankWindow(skip).suspicion(query, negatives), expected, atol=1e-15)
    assert (flagged(RankWindow(skip), query, negatives).sum(axis=1) == np.minimum(skip, (ids >= 0).sum(axis=1))).all()


def test_a_window_skips_ranks_of_the_row_and_not_of_survivors():
    """sentence-transformers cuts `range_min` after its margin: with both, safe negatives are skipped as well."""
    query, negatives = asked(np.array([[0.95, 0.9, 0.85, 0.5, 0.4, 0.3, 0.2, 0.1]]))
    by_margin = flagged(Margin(0.05, OWN), query, negatives)
    by_rank = flagged(RankWindow(2), query, negatives)
    assert (by_margin | by_rank).tolist() == [[True] * 3 + [False] * 5]  # the peer skips five
    ignored = replace(negatives, relation=np.where(by_margin, 2, 0).astype(np.int8))
    assert flagged(RankWindow(2), query, ignored).tolist() == [[True] * 2 + [False] * 6]  # ignored slots have ranks


@pytest.mark.parametrize("width", [2, 10, 11, 300])
def test_a_window_is_never_skipped(width):
    """RAGatouille compares its guard of ten ranks with the length of a pair, and returns the nearest after all."""
    scores = np.random.default_rng(width).random((3, width))
    query, negatives = asked(scores)
    kept = ~flagged(RankWindow(10), query, negatives)
    for row in range(3):
        nearest = np.argsort(-scores[row])[:10]
        assert not kept[row, nearest].any()
        assert kept[row].sum() == max(width - 10, 0)


# ---- thresholds by the positive -------------------------------------------------------------------------------------


SCORES = st.lists(VALUES, min_size=4, max_size=4)


@given(
    st.lists(VALUES, min_size=2, max_size=2),
    SCORES,
    st.sampled_from([0.0, 0.05, -0.1, 0.5]),
    st.sampled_from([0.5, 0.95, 1.0]),
)
def test_a_margin_and_a_share_in_loops(own, scores, margin, share):
    """At any sign, nothing that is closer than the positive is kept by a share: NeMo's product does keep it."""
    query, negatives = asked(np.array(scores).reshape(2, 2))
    by_margin = Margin(margin, own).suspicion(query, negatives)
    by_share_of_it = flagged(ShareOfPositive(own, share), query, negatives)
    for row in range(2):
        for slot in range(2):
            score = scores[2 * row + slot]
            d = score - (own[row] - margin)
            assert (by_margin[row, slot] >= 0.5) == (d > 0)
            assert by_margin[row, slot] == pytest.approx(0.5 + 0.5 * d / (1 + abs(d)), abs=1e-7)
            assert by_share_of_it[row, slot] == (score > own[row] - abs(own[row]) * (1 - share))
            assert by_share_of_it[row, slot] or score <= own[row]


def test_a_share_of_a_negative_score_lies_below_it():
    """0.95 * -0.4 = -0.38 is above the positive, and NeMo keeps -0.39, which is closer to the anchor than it."""
    rule = ShareOfPositive(OWN)
    query, negatives = asked([[-0.39, -0.41, -0.43]], anchors=[2])
    assert rule.threshold(query) == pytest.approx([-0.42])
    assert flagged(rule, query, negatives).tolist() == [[True, True, False]]


def test_the_fixed_share_swings_where_the_calibrated_threshold_holds():
    """Unlabelled positives that pass as negatives, over five encoders: from none to more than a third, or 5 %."""
    fixed, calibrated = [], []
    for name in ENCODERS:
        scores = positive_scores(name, 5000, 3, seed=3)
        query, negatives = asked(scores[:, 1:2], anchors=np.arange(5000))
        fixed.append(1 - flagged(ShareOfPositive(scores[:, 0]), query, negatives).mean())
        held_out = Calibrated(0.05).fit(scores[:2000, 2])
        calibrated.append(1 - flagged(held_out, query, negatives)[2000:].mean())
    assert min(fixed) < 0.001
    assert max(fixed) > 0.4
    assert 0.03 < min(calibrated) <= max(calibrated) < 0.07


# ---- the positive's score -------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), VALUES), min_size=1, max_size=20))
def test_lowest_scores_in_loops(pairs):
    found = lowest_scores([anchor for anchor, _ in pairs], [score for _, score in pairs], 5)
    for anchor in range(5):
        own = [score for of, score in pairs if of == anchor]
        assert found[anchor] == min(own) if own else np.isnan(found[anchor])


@pytest.mark.parametrize("rule", [lambda own: Margin(0.1, own), ShareOfPositive])
def test_a_function_is_as_good_as_a_table(rule):
    scores = np.random.default_rng(0).uniform(-1, 1, (3, 5))
    query, negatives = asked(scores, positives=np.array([5, 6, 7]))
    of_pair = {(0, 5): 0.8, (1, 6): 0.5, (2, 7): -0.4}

    def score(query):
        pairs = zip(np.asarray(query.anchors).tolist(), np.asarray(query.positives).tolist(), strict=True)
        return [of_pair[pair] for pair in pairs]

    expected = rule(OWN).suspicion(query, negatives)
    assert rule(lambda query: np.array(score(query))).suspicion(query, negatives).tolist() == expected.tolist()
    in_torch = ns.Query(torch.arange(3), positives=torch.tensor([5, 6, 7]))
    learned = torch.ones((), dtype=torch.float64, requires_grad=True)
    tensors = rule(lambda query: learned * torch.tensor(score(query), dtype=torch.float64))
    assert tensors.suspicion(in_torch, negatives.to("cpu")).tolist() == expected.tolist()
    check_detector(tensors, in_torch, negatives.to("cpu"))
    triples = ns.Query(np.array([[0, 0, 1], [1, 0, 2], [2, 1, 0]]))
    assert rule(lambda query: OWN).suspicion(triples, negatives).tolist() == expected.tolist()
