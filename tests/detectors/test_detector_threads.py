"""Detectors that learn, under threads: one thread changes them while another asks, and nothing is lost or half done."""

import numpy as np
import pytest
from in_threads import in_threads

import naysay as ns
from naysay.detectors import (
    Calibrated,
    Incremental,
    Labelled,
    LearnedQuantile,
    SoftClusters,
)

ROWS, SLOTS, ROUNDS = 8, 6, 60
QUERY = ns.Query(np.arange(ROWS))
RNG = np.random.default_rng(0)
NEGATIVES = ns.Negatives(RNG.integers(0, 40, (ROWS, SLOTS)), scores=RNG.uniform(-0.9, 0.9, (ROWS, SLOTS)))


def test_no_observation_of_a_quantile_is_lost():
    detector = LearnedQuantile(ROWS, alpha=0.2)

    def observe():
        for _ in range(ROUNDS):
            detector.observe(QUERY, NEGATIVES)

    in_threads(observe, observe, observe)
    assert detector.seen.tolist() == [3 * ROUNDS] * ROWS
    alone = LearnedQuantile(ROWS, alpha=0.2)
    for _ in range(3 * ROUNDS):
        alone.observe(QUERY, NEGATIVES)
    assert alone.thresholds.tolist() == detector.thresholds.tolist()


def fitted(kind):
    """A detector and two states of it that answer differently."""
    rng = np.random.default_rng(1)
    if kind == "calibrated":
        detector, scores = Calibrated(0.1, standardise=True), np.linspace(0, 1, 40)
        states = [
            {"scores": (1 + n) * scores - 9 * n, "mean": np.full(ROWS, 9.0 * n), "deviation": np.ones(ROWS)}
            for n in (0, 1)
        ]
        return detector, states
    if kind == "labelled":
        detector, states = Labelled(false_share=0.5), []
        for share in (0.2, 0.8):
            scores = rng.normal(0, 1, (40, SLOTS))
            labelled = ns.Negatives(np.zeros((40, SLOTS), np.int64), scores=scores)
            detector.fit(ns.Query(np.arange(40)), labelled, scores > np.quantile(scores, 1 - share))
            states.append(detector.state())
        return detector, states
    if kind == "clusters":
        places = rng.normal(0, 1, (40, 2))
        detector = SoftClusters(2, lambda ids: places[ids], embed_anchors=lambda ids: places[ids])
        return detector, [{"centres": rng.normal(0, 1, (2, 2)).astype(np.float32)} for _ in range(2)]
    detector, states = Incremental(40, 4), []
    for seed in range(2):
        detector.update(np.random.default_rng(seed).normal(0, 1, (40, 3)), 0.8)
        states.append({**detector.state(), "updates": 1})
    return detector, states


@pytest.mark.parametrize("kind", ["calibrated", "labelled", "clusters", "incremental"])
def test_an_answer_is_of_one_fit(kind):
    """Two fits take turns. An answer is that of the one or of the other, never of half of each."""
    detector, states = fitted(kind)
    expected = []
    for state in states:
        detector.restore(state)
        expected.append(detector.suspicion(QUERY, NEGATIVES).tolist())
    assert expected[0] != expected[1]

    def change():
        for step in range(4 * ROUNDS):
            detector.restore(states[step % 2])

    def ask():
        for _ in range(2 * ROUNDS):
            assert detector.suspicion(QUERY, NEGATIVES).tolist() in expected
            kept = detector.state()
            assert any(all(np.array_equal(kept[key], state[key]) for key in kept) for state in states)

    in_threads(change, ask, ask)
