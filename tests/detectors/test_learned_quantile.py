"""LearnedQuantile: the update in plain loops, where it settles, and what it flags."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import LearnedQuantile


def seen(anchors, scores, ids=None, step=0):
    scores = np.asarray(scores, float)
    ids = np.arange(scores.size).reshape(scores.shape) if ids is None else np.asarray(ids)
    return ns.Query(np.asarray(anchors, np.int64), step=step), ns.Negatives(ids, scores=scores)


class Loops:
    """The same for one anchor at a time."""

    def __init__(self, n_anchors, alpha, rate):
        self.alpha, self.rate = alpha, rate
        self.threshold, self.m, self.v, self.t = (dict.fromkeys(range(n_anchors), value) for value in (1.0, 0, 0, 0))

    def observe(self, anchors, scores, ids):
        for anchor in sorted(set(anchors)):
            own = [
                score
                for of, row, names in zip(anchors, scores, ids, strict=True)
                for score, name in zip(row, names, strict=True)
                if of == anchor and name >= 0
            ]
            if not own:
                continue
            g = self.alpha - sum(score > self.threshold[anchor] for score in own) / len(own)
            self.t[anchor] += 1
            self.m[anchor] = 0.9 * self.m[anchor] + 0.1 * g
            self.v[anchor] = 0.98 * self.v[anchor] + 0.02 * g * g
            m = self.m[anchor] / (1 - 0.9 ** self.t[anchor])
            v = self.v[anchor] / (1 - 0.98 ** self.t[anchor])
            moved = self.threshold[anchor] - self.rate * m / (math.sqrt(v) + 1e-8)
            self.threshold[anchor] = min(max(moved, -1.0), 1.0)


# ---- the update -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.2, 0.5]), st.sampled_from([0.05, 0.3]))
def test_thresholds_are_those_of_the_loops(seed, alpha, rate):
    rng = np.random.default_rng(seed)
    learned, loops = LearnedQuantile(3, alpha, rate=rate), Loops(3, alpha, rate)
    for step in range(6):
        anchors, scores = rng.integers(0, 3, 4), rng.uniform(-1, 1, (4, 5)).round(1)
        ids = rng.integers(-1, 3, (4, 5))
        learned.observe(*seen(anchors, scores, ids, step))
        loops.observe(anchors.tolist(), scores.tolist(), ids.tolist())
        assert learned.thresholds == pytest.approx([loops.threshold[anchor] for anchor in range(3)], abs=1e-9)
        assert learned.seen.tolist() == [loops.t[anchor] for anchor in range(3)]


def test_thresholds_stay_within_the_bounds():
    learned = LearnedQuantile(1, 0.5, rate=0.7, bounds=(2.0, 6.0))
    assert learned.thresholds.tolist() == [6.0]
    for _ in range(20):
        learned.observe(*seen([0], [[2.0, 2.0]]))
    assert learned.thresholds.tolist() == [2.0]
    for _ in range(60):
        learned.observe(*seen([0], [[6.0, 6.0]]))
    assert learned.thresholds.tolist() == [6.0]


# ---- suspicion ------------------------------------------------------------------------------------------------------


def test_nothing_is_suspected_before_it_has_learnt_or_started():
    query, negatives = seen([0, 1], [[1.0, 0.9], [-1.0, 1.0]])
    assert LearnedQuantile(2).suspicion(query, negatives).max() < 0.5
    learned = LearnedQuantile(2, 0.5, rate=0.5, start=10)
    learned.observe(*seen([0, 1], np.zeros((2, 3)), step=9))
    assert learned.seen.tolist() == [0, 0]
    for step in range(10, 14):
        learned.observe(*seen([0, 1], np.zeros((2, 3)), step=step))
    assert learned.seen.tolist() == [4, 4]
    assert (learned.suspicion(replace(query, step=9), negatives) == 0).all()
    assert (learned.suspicion(replace(query, step=10), negatives) >= 0.5).tolist() == [[True, True], [False, True]]


def test_torch_and_half_precision():
    """Cosines of bfloat16 may be 1.008; they are 1."""
    one, two = LearnedQuantile(2, 0.5), LearnedQuantile(2, 0.5)
    scores = np.array([[1.0078125, 0.5], [0.25, -1.0078125]])
    query, negatives = seen([0, 1], scores)
    one.observe(query, negatives)
    halves = replace(negatives.to("cpu"), scores=torch.tensor(scores).bfloat16())
    two.observe(ns.Query(torch.tensor([0, 1])), halves)
    assert one.thresholds.tolist() == two.thresholds.tolist()
    assert (LearnedQuantile(2).suspicion(query, negatives) < 0.5).all()
