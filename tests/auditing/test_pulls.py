"""What negatives pull: against plain loops, and against the gradient of the loss itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_audit import plain_pulls, scored_of

from naysay.auditing import gradient_share as module
from naysay.auditing.gradient_share import by_band, pulls
from naysay.losses import info_nce


def some(seed, n=6, k=4, pairs=9, missing=0.2):
    rng = np.random.default_rng(seed)
    negatives = np.where(rng.random((n, k)) < missing, np.nan, rng.normal(0, 1, (n, k)))
    positives = np.where(rng.random(pairs) < missing, np.nan, rng.normal(1, 1, pairs))
    return scored_of(negatives, positives, np.sort(rng.integers(0, n, pairs)))


@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.3, 1.0]), st.integers(1, 7), st.integers(0, 5))
@settings(max_examples=60)
def test_pulls_agree_with_plain_loops(seed, temperature, n, k):
    scored = some(seed, n, k)
    found, idle = pulls(scored, temperature)
    expected, expected_idle = plain_pulls(scored, temperature)
    assert found.shape == (n, k)
    told = {(row, slot): found[row, slot] for row, slot in zip(*np.nonzero(~np.isnan(found)), strict=True)}
    assert told.keys() == expected.keys()
    assert [told[place] for place in expected] == pytest.approx(list(expected.values()), rel=1e-5, abs=1e-12)
    assert idle == pytest.approx(expected_idle)


def test_a_pull_is_the_gradient_of_info_nce():
    scored = some(3, n=5, k=4, pairs=5, missing=0.0)
    scored = scored_of(scored.negatives, scored.positives, np.arange(5))
    negatives = torch.tensor(scored.negatives, dtype=torch.float64, requires_grad=True)
    info_nce(torch.tensor(scored.positives, dtype=torch.float64), negatives, temperature=0.3).sum().backward()
    assert pulls(scored, 0.3)[0] == pytest.approx(0.3 * negatives.grad.numpy(), rel=1e-5)


def test_blocks_do_not_matter(monkeypatch):
    scored = some(1, n=30, k=3, pairs=60)
    whole = pulls(scored, 0.1)
    monkeypatch.setattr(module, "_SLOTS", 7)
    parts = pulls(scored, 0.1)
    assert np.array_equal(whole[0], parts[0], equal_nan=True)
    assert whole[1] == parts[1]


def test_scores_far_apart_do_not_overflow():
    found, idle = pulls(scored_of([[1e4, -1e4]], [-1e4], [0]), 0.01)
    assert found.tolist() == [[1.0, 0.0]]
    assert idle == 0.0
    assert pulls(scored_of([[-1e4, -1e4]], [1e4], [0]), 0.01)[1] == 1.0


def test_bands_are_a_partition_by_hand():
    found = np.array([[0.0005, 0.5, 0.2], [0.0005, np.nan, 0.25]], np.float32)
    suspected = np.array([[False, True, False], [True, True, False]])
    told = by_band(found, 0.25, suspected, 0.1)
    assert told.counts == {"easy": 1, "hard": 2, "suspected": 2}
    assert told.masses == pytest.approx({"easy": 0.0005 / 0.951, "hard": 0.45 / 0.951, "suspected": 0.5005 / 0.951})
    assert sum(told.masses.values()) == pytest.approx(1)
    assert (told.temperature, told.idle) == (0.1, 0.25)
    nothing = by_band(np.full((1, 2), np.nan, np.float32), 0.0, np.zeros((1, 2), bool), 0.1)
    assert (nothing.counts, nothing.masses) == (dict.fromkeys(told.counts, 0), dict.fromkeys(told.counts, 0.0))
