"""How good a detector is: every figure against plain loops, and intervals that hold as often as they say."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay.detectors import evaluate
from naysay.detectors.rate import effective_size
from naysay.testing import planted_world
from naysay.types import anchor_ids

WORLD = planted_world(300, 200, per_anchor=10, noise=0.5)


class Answers:
    """A detector with a fixed answer."""

    def __init__(self, suspicion):
        self.answer = suspicion

    def suspicion(self, query, negatives):
        return self.answer


class Close:
    """Suspect what is close."""

    def suspicion(self, query, negatives):
        found = np.clip(WORLD.scores(anchor_ids(query), negatives.numpy().ids), 0, 1).astype(float)
        return torch.tensor(found) if isinstance(negatives.ids, torch.Tensor) else found


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


def test_no_detection_is_0_and_1_and_the_truth_is_1_and_1():
    query = ns.Query(np.arange(300))
    drawn = ns.pools.Everything(WORLD.known).draw(query, 30, rng=ns.rng_for(0))
    false = WORLD.is_false_negative(query.anchors, drawn.ids)
    none = evaluate(Answers(np.zeros(drawn.shape)), query, drawn, WORLD.is_false_negative)
    assert (none.mtpr, none.mtnr, none.recall) == (0.0, 1.0, 0.0)
    assert math.isnan(none.precision)
    assert none.precision_interval == (0.0, 1.0)
    assert none.mtpr_interval[0] == 0.0
    assert none.mtnr_interval[1] == 1.0
    perfect = evaluate(Answers(false.astype(float)), query, drawn, false)
    assert (perfect.mtpr, perfect.mtnr, perfect.precision, perfect.recall) == (1.0, 1.0, 1.0, 1.0)
    assert perfect.reliability.error == 0.0


def test_torch_is_asked_in_torch():
    query, ids = ns.Query(torch.arange(50)), torch.randint(0, 200, (50, 8), generator=torch.Generator().manual_seed(0))
    found = evaluate(Close(), query, ns.Negatives(ids), WORLD.is_false_negative, threshold=0.3)
    same = evaluate(Close(), ns.Query(np.arange(50)), ns.Negatives(ids.numpy()), WORLD.is_false_negative, threshold=0.3)
    assert (found.mtpr, found.mtnr, found.flagged) == (same.mtpr, same.mtnr, same.flagged)


def test_a_calibrated_suspicion_has_no_error_and_a_boast_has():
    rng = np.random.default_rng(0)
    chance = rng.choice([0.05, 0.25, 0.45, 0.65, 0.95], (4000, 10))
    false = rng.random(chance.shape) < chance
    query, negatives = ns.Query(np.arange(4000)), ns.Negatives(np.ones((4000, 10), np.int64))
    fair = evaluate(Answers(chance), query, negatives, false).reliability
    assert fair.error < 0.01
    assert fair.count[[0, 2, 4, 6, 9]].sum() == 40_000
    assert np.isnan(fair.observed[[1, 3, 5, 7, 8]]).all()
    boast = evaluate(Answers(np.sqrt(chance)), query, negatives, false).reliability
    assert boast.error == pytest.approx((np.sqrt(chance) - chance).mean(), abs=0.01)


# ---- intervals ------------------------------------------------------------------------------------------------------


def test_what_anchors_are_worth():
    rng = np.random.default_rng(0)
    alike = np.repeat(rng.random((5000, 1)) < 0.3, 8, axis=1)  # all slots of an anchor agree
    apart = rng.random((5000, 8)) < 0.3  # slots have nothing to do with each other
    whole = np.full(5000, 8)
    assert effective_size(alike.sum(1), whole, 40_000, 0.025) == pytest.approx(5000, rel=0.01)
    assert effective_size(apart.sum(1), whole, 40_000, 0.025) == pytest.approx(40_000, rel=0.05)
    assert effective_size(np.zeros(50), whole[:50], 400, 0.025) == pytest.approx(50, rel=0.1)  # no hit at all
    assert effective_size(np.full(50, 4), whole[:50], 400, 0.025) == pytest.approx(400, rel=0.1)
    assert effective_size(np.ones(1), np.ones(1), 1, 0.025) == 0
    few = effective_size(alike.sum(1)[:5], whole[:5], 40, 0.025)
    assert few == pytest.approx(5 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 4)) ** 2, rel=0.3)


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


def test_more_confidence_is_a_wider_interval():
    query, ids = ns.Query(np.arange(300)), ns.pools.Everything(WORLD.known)
    drawn = ids.draw(query, 20, rng=ns.rng_for(0))
    half, most = (
        evaluate(Close(), query, drawn, WORLD.is_false_negative, threshold=0.3, confidence=level)
        for level in (0.5, 0.99)
    )
    for name in ("mtpr_interval", "mtnr_interval", "precision_interval", "recall_interval"):
        (low, high), (lower, higher) = getattr(half, name), getattr(most, name)
        assert lower < low < high < higher


# ---- words ----------------------------------------------------------------------------------------------------------


def test_it_says_what_is_not_defined():
    none = evaluate(
        Answers(np.zeros((1, 2))), ns.Query([0]), ns.Negatives(np.ones((1, 2), np.int64)), np.zeros((1, 2), bool)
    )
    assert "MTPR is not defined (no anchor has a false negative)" in str(none)
    assert "precision is not defined (nothing is flagged), recall is not defined (there is no false negative)" in str(
        none
    )
    every = evaluate(
        Answers(np.ones((1, 2))), ns.Query([0]), ns.Negatives(np.ones((1, 2), np.int64)), np.ones((1, 2), bool)
    )
    assert "MTNR is not defined (no anchor has a true negative)" in str(every)
