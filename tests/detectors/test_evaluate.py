"""How good a detector is: every figure against plain loops, and intervals that hold as often as they say."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import evaluate


class Answers:
    """A detector with a fixed answer."""

    def __init__(self, suspicion):
        self.answer = suspicion

    def suspicion(self, query, negatives):
        return self.answer


def plain(suspicion, false, known, threshold, bins):
    """All figures by loops over slots."""
    rates, kept_rates, flagged, hits, total_false, slots, anchors = [], [], 0, 0, 0, 0, 0
    by_bin = [[] for _ in range(bins)]
    for row in range(len(suspicion)):
        found, missed, wrong, kept = 0, 0, 0, 0
        for slot in range(len(suspicion[row])):
            if not known[row][slot]:
                continue
            value, is_false = float(suspicion[row][slot]), bool(false[row][slot])
            by_bin[min(int(value * bins), bins - 1)].append((value, is_false))
            if value >= threshold:
                found, wrong = found + is_false, wrong + (not is_false)
            else:
                missed, kept = missed + is_false, kept + (not is_false)
        anchors += found + missed + wrong + kept > 0
        slots += found + missed + wrong + kept
        flagged, hits, total_false = flagged + found + wrong, hits + found, total_false + found + missed
        if found + missed:
            rates.append(found / (found + missed))
        if wrong + kept:
            kept_rates.append(kept / (wrong + kept))
    mean = lambda values: sum(values) / len(values) if values else math.nan  # noqa: E731
    off = sum(abs(sum(v for v, _ in part) - sum(f for _, f in part)) for part in by_bin)
    return {
        "mtpr": mean(rates),
        "mtnr": mean(kept_rates),
        "precision": hits / flagged if flagged else math.nan,
        "recall": hits / total_false if total_false else math.nan,
        "anchors": anchors,
        "anchors_with_false": len(rates),
        "anchors_with_true": len(kept_rates),
        "slots": slots,
        "false_negatives": total_false,
        "flagged": flagged,
        "count": [len(part) for part in by_bin],
        "suspicion": [mean([v for v, _ in part]) for part in by_bin],
        "observed": [mean([f for _, f in part]) for part in by_bin],
        "error": off / slots,
    }


def check(found, expected):
    for name, value in expected.items():
        given_value = getattr(found, name, None) if hasattr(found, name) else getattr(found.reliability, name)
        assert np.allclose(given_value, value, rtol=1e-12, atol=1e-12, equal_nan=True), name


def random_batch(rng, rows, slots, samples=30):
    anchors = rng.integers(0, samples, rows)
    ids = rng.integers(-1, samples, (rows, slots))
    suspicion = rng.choice([0.0, 0.1, 0.25, 0.5, 0.7, 0.999, 1.0], (rows, slots)) * (ids >= 0)
    return ns.Query(anchors), ns.Negatives(ids), suspicion


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 6), st.sampled_from([0.1, 0.5, 1.0]), st.integers(1, 7))
def test_all_figures_agree_with_plain_loops(seed, rows, slots, threshold, bins):
    rng = np.random.default_rng(seed)
    query, negatives, suspicion = random_batch(rng, rows, slots)
    false = rng.random((rows, slots)) < 0.4
    known = negatives.ids >= 0
    if not known.any():
        with pytest.raises(ns.NaysayError, match="`truth`"):
            evaluate(Answers(suspicion), query, negatives, false)
        return
    found = evaluate(Answers(suspicion), query, negatives, false, threshold=threshold, bins=bins)
    check(found, plain(suspicion, false, known, threshold, bins))
    for name in ("mtpr", "mtnr", "precision", "recall"):
        low, high = getattr(found, f"{name}_interval")
        share = getattr(found, name)
        assert 0 <= low <= high <= 1
        assert math.isnan(share) or low - 1e-12 <= share <= high + 1e-12


def test_a_table_a_function_and_classes_say_the_same():
    rng = np.random.default_rng(0)
    query, negatives, suspicion = random_batch(rng, 40, 6)
    labels = rng.integers(0, 4, 30)
    false = (labels[query.anchors][:, None] == labels[negatives.ids]) & (negatives.ids >= 0)

    def truth_of(anchors, ids):
        assert (ids >= 0).all()  # an empty slot is never asked about
        return labels[anchors][:, None] == labels[ids]

    expected = plain(suspicion, false, negatives.ids >= 0, 0.5, 10)
    for truth in (false, truth_of, labels, labels.tolist(), torch.tensor(labels), torch.tensor(false)):
        check(evaluate(Answers(suspicion), query, negatives, truth), expected)


def test_a_sample_without_a_class_is_not_judged():
    labels = np.array([0, 0, 1, -1])
    query, negatives = ns.Query([0, 3]), ns.Negatives(np.array([[1, 2, 3], [1, 2, 3]]))
    found = evaluate(Answers(np.full((2, 3), 0.9)), query, negatives, labels)
    assert (found.slots, found.anchors, found.false_negatives) == (2, 1, 1)
    assert (found.mtpr, found.mtnr, found.precision) == (1.0, 0.0, 0.5)


# ---- intervals ------------------------------------------------------------------------------------------------------


def test_intervals_hold_as_often_as_they_say():
    """Anchors with rates of their own, 0.5 to 1 and 0.8 to 1: the mean rates are 0.75 and 0.9."""
    runs, hits = 200, np.zeros(4)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        false = rng.random((60, 12)) < rng.random((60, 1))
        found_rate, kept_rate = rng.uniform(0.5, 1, (60, 1)), rng.uniform(0.8, 1, (60, 1))
        flagged = rng.random((60, 12)) < np.where(false, found_rate, 1 - kept_rate)
        ids = np.ones((60, 12), np.int64)
        found = evaluate(Answers(flagged.astype(float)), ns.Query(np.arange(60)), ns.Negatives(ids), false)
        precision = 0.5 * 0.75 / (0.5 * 0.75 + 0.5 * 0.1)
        for place, (name, truth) in enumerate(
            (("mtpr", 0.75), ("mtnr", 0.9), ("precision", precision), ("recall", 0.75))
        ):
            low, high = getattr(found, f"{name}_interval")
            hits[place] += low <= truth <= high
            assert high - low < 0.25
    assert (hits / runs > 0.93).all(), hits / runs
