"""Findings: gradient share against loops and the loss itself, repeats against draws, k against the paper."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from family_world import families
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sets import a_set

import naysay as ns
from naysay.losses import info_nce
from naysay.quantity import auc, estimate, simulated

# ---- gradient share -------------------------------------------------------------------------------------------------


def gradient_of(negatives, positives, anchors, temperature):
    """The finding for scores of negatives (n, k), NaN empty, and of positives of some anchors, sorted."""
    n, k = negatives.shape
    ids = np.where(np.isnan(negatives), -1, len(positives) + np.arange(n * k).reshape(n, k))
    given = a_set(ids, list(zip(anchors, range(len(positives)), strict=True)), n_items=len(positives) + n * k)
    scores = np.where(np.isnan(negatives), 0, negatives)
    return ns.audit(given, scores=scores, positive_scores=positives, temperature=temperature).gradient_share


def plain_weights(negatives, positives, anchors, temperature):
    """({(anchor, slot): weight}, share of idle rows), by loops."""
    sums, rows, idle = Counter(), Counter(anchors), 0
    for positive, anchor in zip(positives, anchors, strict=True):
        own = {slot: score for slot, score in enumerate(negatives[anchor]) if not math.isnan(score)}
        top = max([positive, *own.values()])
        whole = sum(math.exp((score - top) / temperature) for score in (positive, *own.values()))
        weights = {slot: math.exp((score - top) / temperature) / whole for slot, score in own.items()}
        sums.update({(anchor, slot): weight for slot, weight in weights.items()})
        idle += sum(weights.values()) < 0.001
    return {place: total / rows[place[0]] for place, total in sums.items()}, idle / len(anchors)


@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.3, 1.0]), st.integers(1, 7), st.integers(1, 5))
@settings(max_examples=25)
def test_bands_agree_with_plain_loops(seed, temperature, n, k):
    rng = np.random.default_rng(seed)
    negatives = np.where(rng.random((n, k)) < 0.2, np.nan, rng.normal(0, 1, (n, k)).astype(np.float32))
    negatives[0, 0] = 0.5
    anchors = sorted({0, *rng.integers(0, n, 5).tolist()})
    positives = rng.normal(1, 1, len(anchors)).astype(np.float32)
    weights, idle = plain_weights(negatives.tolist(), positives.tolist(), anchors, temperature)
    found = gradient_of(negatives, positives, anchors, temperature)
    easy = [weight for weight in weights.values() if weight < 0.001]
    assert found.counts == {"easy": len(easy), "hard": len(weights) - len(easy), "suspected": 0}
    assert found.shares["easy"] == pytest.approx(sum(easy) / sum(weights.values()), rel=1e-4, abs=1e-9)
    assert found.idle_rows == pytest.approx(idle)


def test_the_weights_are_the_gradient_of_info_nce():
    negatives = np.array([[0.5, -1.0], [0.25, 3.0]], np.float32)
    scores = torch.tensor(negatives, requires_grad=True)
    info_nce(torch.tensor([1.0, 0.5]), scores, temperature=0.1).sum().backward()
    gradient = 0.1 * scores.grad.numpy()
    found = gradient_of(negatives, np.array([1.0, 0.5], np.float32), [0, 1], 0.1)
    easy = gradient[gradient < 0.001]
    assert found.counts["easy"] == len(easy)
    assert found.shares["hard"] == pytest.approx(1 - easy.sum() / gradient.sum(), abs=1e-6)


def test_scores_far_apart_do_not_overflow():
    far = np.array([[1e4, -1e4]], np.float32)
    assert gradient_of(far, np.array([-1e4], np.float32), [0], 0.01).counts == {"easy": 1, "hard": 1, "suspected": 0}
    assert gradient_of(-np.abs(far), np.array([1e4], np.float32), [0], 0.01).idle_rows == 1.0


# ---- repeated documents ---------------------------------------------------------------------------------------------


def repeats(ids, documents):
    return ns.audit(a_set(ids, [(0, documents - 1)], n_items=documents)).repeats


@given(st.lists(st.lists(st.integers(-1, 40), min_size=3, max_size=3, unique=True), min_size=1, max_size=30))
@settings(max_examples=25)
def test_counts_agree_with_plain_loops(rows):
    counts = Counter(item for row in rows for item in row if item >= 0)
    if not counts:
        return
    found = repeats(rows, 150)
    ordered = sorted(counts.values(), reverse=True)
    assert (found.documents, found.used) == (150, len(counts))
    assert found.top_share == pytest.approx(sum(ordered[:2]) / sum(ordered))  # 1 % of 150, rounded
    expected = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:10]
    assert found.most_frequent == tuple((row, count, f"row {row}") for row, count in expected)
    assert found.above_limit == sum(count > found.limit for count in counts.values())


def test_chance_is_what_draws_give():
    rng = np.random.default_rng(0)
    found = [repeats(rng.integers(0, 500, (3000, 1)), 501) for _ in range(20)]
    assert np.mean([each.top_share for each in found]) == pytest.approx(found[0].expected_share, rel=0.05)
    assert sum(each.above_limit > 0 for each in found) <= 5  # about one in twenty
    assert repeats(np.zeros((1000, 1), int), 100).top_share == 1.0


# ---- k --------------------------------------------------------------------------------------------------------------

WORLD = families(150, sizes=(2,), others=100)


@pytest.mark.parametrize("k", [1, 20, 200])
def test_k_of_random_negatives_is_compared_with_the_best(k):
    drawn = ns.pools.Everything(WORLD.known).draw(ns.Query(np.arange(150)), k, rng=ns.rng_for(0)).ids
    given = a_set(drawn, list(zip(*WORLD.known.pairs(), strict=True)), n_items=len(WORLD.item_vectors))
    vectors = {"query_vectors": WORLD.anchor_vectors, "corpus_vectors": WORLD.item_vectors}
    found = ns.audit(given, **vectors).k_verdict
    assert found.k == k
    assert found.low <= found.best <= found.high
    assert found.best == estimate(auc(found.separation), auc(simulated(found.separation)), k_max=1000).k
    is_too_large = k > found.high and found.high < 1000
    assert found.verdict == ("too small" if k < found.low else "too large" if is_too_large else "fits")


def test_k_of_mined_negatives_and_of_a_set_without_vectors_is_unknown():
    mined = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 8, judge=None)
    vectors = {"query_vectors": WORLD.anchor_vectors, "corpus_vectors": WORLD.item_vectors}
    for found in (ns.audit(mined, **vectors), ns.audit(mined)):
        assert (found.k_verdict.k, found.k_verdict.verdict, found.k_verdict.best) == (8, "unknown", None)
