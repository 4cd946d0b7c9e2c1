"""A probe's AUC against plain loops, its error against repetition, and what is refused."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from naysay.quantity import Online

SCORES = st.integers(-3, 3)


def probe(positive, negatives, mask=None):
    """(AUC, its standard error, effective comparisons) that are kept of a probe."""
    online = Online(1)
    online.record(0, positive, negatives, mask=mask)
    return tuple(online.state()[name].item() for name in ("auc", "error", "comparisons"))


@st.composite
def scored(draw):
    """Scores with many ties, and a mask that leaves at least two rows with a negative."""
    n, m = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    positive = draw(st.lists(SCORES, min_size=n, max_size=n))
    negatives = draw(st.lists(st.lists(SCORES, min_size=m, max_size=m), min_size=n, max_size=n))
    mask = draw(st.lists(st.lists(st.booleans(), min_size=m, max_size=m), min_size=n, max_size=n))
    mask[0][0] = mask[-1][-1] = True
    return positive, negatives, mask


@given(scored())
def test_it_is_the_mean_of_shares_in_plain_loops(given_scores):
    positive, negatives, mask = given_scores
    shares, slots = [], 0
    for mine, others, use in zip(positive, negatives, mask, strict=True):
        points = [
            1.0 if mine > other else 0.5 if mine == other else 0.0 for other, u in zip(others, use, strict=True) if u
        ]
        slots += len(points)
        if points:
            shares.append(sum(points) / len(points))
    mean = sum(shares) / len(shares)
    error = math.sqrt(sum((share - mean) ** 2 for share in shares) / (len(shares) - 1) / len(shares))
    worth = len(shares) if error == 0 else min(max(mean * (1 - mean) / error**2, len(shares)), slots)
    found = probe(np.array(positive, float), np.array(negatives), np.array(mask))
    assert found == pytest.approx((mean, error, worth), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("m", "anchors_differ"), [(1, 0.0), (6, 0.0), (6, 2.0)])
def test_the_error_is_the_spread_over_repetitions(m, anchors_differ):
    """Rows share a positive, and anchors may differ in how hard they are: counting slots would be far too sure."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(1000):
        ease = 1 + anchors_differ * rng.standard_normal(80)
        found.append(probe(rng.standard_normal(80) + ease, rng.standard_normal((80, m))))
    aucs, errors, comparisons = np.array(found).T
    spread = aucs.std()
    assert np.sqrt((errors**2).mean()) == pytest.approx(spread, rel=0.06)
    auc = aucs.mean()
    assert np.sqrt(auc * (1 - auc) / comparisons.mean()) == pytest.approx(spread, rel=0.09)
    assert m == 1 or np.sqrt(auc * (1 - auc) / (80 * m)) < 0.85 * spread


@pytest.mark.parametrize(("mine", "auc"), [(2.0, 1.0), (-2.0, 0.0), (0.0, 0.5)])
def test_no_spread_is_worth_the_rows(mine, auc):
    assert probe(np.full(30, mine), np.zeros((30, 8))) == (auc, 0.0, 30.0)


def test_what_an_anchor_adds_to_all_its_scores_changes_nothing():
    rng = np.random.default_rng(1)
    positive, negatives = rng.integers(0, 9, 40), rng.integers(0, 9, (40, 5))
    shift = 1000 * rng.integers(-9, 9, 40)
    assert probe(positive + shift, negatives + shift[:, None]) == probe(positive, negatives)


def test_slots_that_are_masked_are_not_read():
    negatives, mask = np.array([[0.0, np.nan], [np.inf, 3.0], [np.nan, np.nan]]), [[1, 0], [0, 1], [0, 0]]
    auc, _, comparisons = probe([1.0, 2.0, np.nan], negatives, np.array(mask, bool))
    assert (auc, comparisons) == (0.5, 2.0)


def test_torch_and_numpy_agree():
    rng = np.random.default_rng(2)
    positive, negatives, mask = rng.random(20, np.float32), rng.random((20, 3), np.float32), rng.random((20, 3)) < 0.8
    expected = probe(positive, negatives, mask)
    assert probe(torch.tensor(positive, requires_grad=True), torch.tensor(negatives), torch.tensor(mask)) == expected
    assert probe(positive.tolist(), negatives.tolist(), mask.tolist()) == expected
    half = torch.tensor([1.0, 2.0], dtype=torch.bfloat16), torch.tensor([[0.0], [3.0]], dtype=torch.bfloat16)
    assert probe(*half)[0] == 0.5
