"""One rule for every encoder: what is let through, where scores are wide around 0 and where they are narrow near 1."""

import numpy as np
import pytest

from naysay.detectors.calibrated import Calibrated
from naysay.detectors.rate import effective_size, exact_interval, moments
from naysay.testing import planted_world
from naysay.testing.worlds import ENCODERS

ALPHA, ANCHORS, ITEMS, SEEDS = 0.05, 300, 1000, 5


def let_through(name):
    """Of 7 unlabelled positives of each anchor, how many are kept: by 95 % of the positive, calibrated, by anchor.

    (rule, anchors) counts, over worlds.
    """
    found = []
    for seed in range(SEEDS):
        world = planted_world(ANCHORS, ITEMS, per_anchor=8, known_share=1 / 8, seed=seed, **ENCODERS[name])
        anchors = np.arange(ANCHORS)
        scores = (world.anchor_vectors @ world.item_vectors.T).astype(np.float64)
        known = np.zeros(scores.shape, bool)
        known[world.known.pairs()] = True
        false = world.is_false_negative(anchors, np.broadcast_to(np.arange(ITEMS), scores.shape))
        positives = scores[known]
        by_anchor = Calibrated(ALPHA, standardise=True)
        by_anchor.fit(positives, anchors, background=(scores.mean(axis=1), scores.std(axis=1)))
        flags = (
            scores > (positives - 0.05 * np.abs(positives))[:, None],
            Calibrated(ALPHA).fit(positives, anchors).flag(scores),
            by_anchor.flag(scores, anchors),
        )
        found.append([(false & ~flagged).sum(axis=1) for flagged in flags])
    return np.concatenate(found, axis=1)


def test_a_calibrated_rule_lets_through_at_most_alpha_whatever_the_encoder():
    """Where a fixed share of the positive's score lets through next to nothing, or more than a quarter."""
    fixed = {}
    for name in ENCODERS:
        counts = let_through(name)
        fixed[name] = counts[0].sum() / (7 * ANCHORS * SEEDS)
        for kept in counts[1:]:
            whole = np.full(kept.shape, 7)
            size = effective_size(moments(kept, whole), 7 * len(kept), 0.025)
            low, _ = exact_interval(kept.sum() / whole.sum() * size, size, 0.95)
            # The threshold itself varies: its share is Beta(15, 286) in each of five worlds, 1.3 % wide.
            strays = 2 * np.sqrt(ALPHA * (1 - ALPHA) / (ANCHORS * SEEDS))
            assert low <= ALPHA + strays
            assert kept.sum() / whole.sum() == pytest.approx(ALPHA, abs=0.02)
    assert fixed[".985 / .93"] < 0.001
    assert fixed[".95 / .78"] < 0.01
    assert fixed[".94 / .91"] < 0.01
    assert 0.15 < fixed[".80 / .00"] < 0.35
    assert fixed[".50 / .00"] > 0.35
