"""Findings: gradient share against loops and the loss itself, repeats against draws, k against the paper."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_audit import plain_weights, scores_of

from naysay.audits import findings as module
from naysay.audits._false_share import CorpusSample
from naysay.audits.findings import K_MAX, gradient_share, k_verdict, repeats, softmax_weights
from naysay.losses import info_nce
from naysay.quantity import auc, estimate, simulated

# ---- gradient share -------------------------------------------------------------------------------------------------


def some(seed, n=6, k=4, pairs=9, missing=0.2):
    rng = np.random.default_rng(seed)
    negatives = np.where(rng.random((n, k)) < missing, np.nan, rng.normal(0, 1, (n, k)))
    positives = np.where(rng.random(pairs) < missing, np.nan, rng.normal(1, 1, pairs))
    return scores_of(negatives, positives, np.sort(rng.integers(0, n, pairs)))


@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.3, 1.0]), st.integers(1, 7), st.integers(0, 5))
@settings(max_examples=60)
def test_weights_agree_with_plain_loops(seed, temperature, n, k):
    scores = some(seed, n, k)
    found, idle = softmax_weights(scores, temperature)
    expected, expected_idle = plain_weights(scores, temperature)
    assert found.shape == (n, k)
    weights = {(row, slot): found[row, slot] for row, slot in zip(*np.nonzero(~np.isnan(found)), strict=True)}
    assert weights.keys() == expected.keys()
    assert [weights[place] for place in expected] == pytest.approx(list(expected.values()), rel=1e-5, abs=1e-12)
    assert idle == pytest.approx(expected_idle)


def test_a_weight_is_the_gradient_of_info_nce():
    scores = some(3, n=5, k=4, pairs=5, missing=0.0)
    scores = scores_of(scores.negatives, scores.positives, np.arange(5))
    negatives = torch.tensor(scores.negatives, dtype=torch.float64, requires_grad=True)
    info_nce(torch.tensor(scores.positives, dtype=torch.float64), negatives, temperature=0.3).sum().backward()
    assert softmax_weights(scores, 0.3)[0] == pytest.approx(0.3 * negatives.grad.numpy(), rel=1e-5)


def test_blocks_do_not_matter(monkeypatch):
    scores = some(1, n=30, k=3, pairs=60)
    whole = softmax_weights(scores, 0.1)
    monkeypatch.setattr(module, "_SLOTS", 7)
    parts = softmax_weights(scores, 0.1)
    assert np.array_equal(whole[0], parts[0], equal_nan=True)
    assert whole[1] == parts[1]


def test_scores_far_apart_do_not_overflow():
    found, idle = softmax_weights(scores_of([[1e4, -1e4]], [-1e4], [0]), 0.01)
    assert found.tolist() == [[1.0, 0.0]]
    assert idle == 0.0
    assert softmax_weights(scores_of([[-1e4, -1e4]], [1e4], [0]), 0.01)[1] == 1.0


def test_bands_are_a_partition_by_hand(monkeypatch):
    weights = np.array([[0.0005, 0.5, 0.2], [0.0005, np.nan, 0.25]], np.float32)
    monkeypatch.setattr(module, "softmax_weights", lambda scores, temperature: (weights, 0.25))
    share = gradient_share(None, np.array([[False, True, False], [True, True, False]]), 0.1)
    assert share.counts == {"easy": 1, "hard": 2, "suspected": 2}
    assert share.shares == pytest.approx({"easy": 0.0005 / 0.951, "hard": 0.45 / 0.951, "suspected": 0.5005 / 0.951})
    assert sum(share.shares.values()) == pytest.approx(1)
    assert (share.temperature, share.idle_rows, share.easy_share) == (0.1, 0.25, 0.2)
    weights = np.full((1, 2), np.nan, np.float32)
    nothing = gradient_share(None, np.zeros((1, 2), bool), 0.1)
    assert (nothing.counts, nothing.shares) == (dict.fromkeys(share.counts, 0), dict.fromkeys(share.counts, 0.0))


# ---- repeated documents ---------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(-1, 40), min_size=3, max_size=3, unique=True), min_size=1, max_size=30))
def test_counts_agree_with_plain_loops(rows):
    ids = np.array(rows)
    counts = Counter(item for row in rows for item in row if item >= 0)
    if not counts:
        return
    found = repeats(ids, 150, str)
    ordered = sorted(counts.values(), reverse=True)
    assert (found.documents, found.used) == (150, len(counts))
    assert found.top_share == pytest.approx(sum(ordered[:2]) / sum(ordered))  # 1 % of 150, rounded
    expected = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:10]
    assert found.most_frequent == tuple((row, count, str(row)) for row, count in expected)
    assert found.above_limit == sum(count > found.limit for count in counts.values())


@pytest.mark.parametrize(("slots", "documents"), [(20_000, 5_000), (3_000, 50), (500, 20_000)])
def test_chance_is_what_draws_give(slots, documents):
    rng = np.random.default_rng(0)
    shares, beyond = [], 0
    for _ in range(100):
        found = repeats(rng.integers(0, documents, (slots, 1)), documents, str)
        shares.append(found.top_share)
        beyond += found.above_limit > 0
    assert np.mean(shares) == pytest.approx(found.expected_share, rel=0.05)
    assert beyond <= 15  # about one in twenty, at most


def test_one_document_for_all():
    found = repeats(np.zeros((1000, 1), np.int64), 100, str)
    assert (found.top_share, found.used, found.above_limit, found.most_frequent) == (1.0, 1, 1, ((0, 1000, "0"),))
    assert found.expected_share < 0.02


# ---- k --------------------------------------------------------------------------------------------------------------


def sample_at(mu, rows=1500, width=200, seed=0):
    """A sample in which positives are N(mu, 1) and uniform negatives N(0, 1)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, (rows, width)).astype(np.float32)
    positives = rng.normal(mu, 1, rows).astype(np.float32)
    return CorpusSample(np.arange(rows), scores, np.ones(scores.shape, bool), positives, width)


@pytest.mark.parametrize(
    ("mu", "k", "verdict"),
    [
        (1.0, 4, "fits"),
        (1.0, 1, "too small"),
        (1.0, 64, "too large"),
        (2.4, 20, "fits"),
        (2.4, 2, "too small"),
        (2.4, 300, "too large"),
        (4.0, 8, "too small"),
    ],
)
def test_clear_cases(mu, k, verdict):
    found = k_verdict(k, sample_at(mu))
    assert (found.k, found.verdict) == (k, verdict)
    assert found.low <= found.best <= found.high
    assert found.auc == pytest.approx(auc(mu), abs=0.02)
    assert abs(found.auc - auc(mu)) <= 4 * found.standard_error
    assert found.best == estimate(found.auc, auc(simulated(found.separation)), k_max=K_MAX).k


def test_the_ends_are_within():
    sample = sample_at(2.4)
    known = k_verdict(1, sample)
    ends = [k_verdict(k, sample).verdict for k in (known.low - 1, known.low, known.high, known.high + 1)]
    assert ends == ["too small", "fits", "fits", "too large"]


def test_the_paper_s_own_figures_at_the_middle():
    assert k_verdict(4, sample_at(1.0)).best in (4, 5)  # METHODS: mu 1 gives 4
    assert 15 <= k_verdict(20, sample_at(2.4)).best <= 26  # 2.4 gives 20


def test_a_perfect_encoder_is_held_to_what_it_can_show():
    found = k_verdict(8, sample_at(40.0, rows=50, width=10))
    assert (found.auc, found.standard_error, found.verdict) == (1.0, 0.0, "too small")
    assert found.separation < 4  # 50 rows cannot show more
    assert found.best > 8


def test_what_is_unknown():
    assert k_verdict(8, None).verdict == "unknown"
    assert "needs vectors" in k_verdict(8, None).basis
    one = sample_at(1.0, rows=1)
    assert k_verdict(8, one).basis == "needs positives of at least 2 anchors"
    worse = k_verdict(8, sample_at(-1.0))
    assert (worse.verdict, worse.best) == ("unknown", None)
    assert worse.auc < 0.5
    assert worse.basis == "the model ranks positives no higher than uniform negatives"
