"""The weights of popularity, of ranks, and of rarity, and frequencies of a stream, against their formulas."""

import math

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.pools import Everything, StreamingFrequency, item_oriented, log_uniform, popularity

KNOWN = ns.Positives.from_pairs([0, 0, 1, 1, 2, 3], [0, 1, 0, 2, 0, 0], n_anchors=5, n_items=4)


@pytest.mark.parametrize("power", [0.75, 2, -0.5, 0, np.float32(0.75)])
def test_popularity_is_a_power_of_the_counts(power):
    counts = [4, 1, 1, 0]
    expected = [0.0 if count == 0 else count ** float(power) for count in counts]
    for given in (
        counts,
        np.array(counts),
        np.array(counts, np.float32),
        np.array(counts, np.uint16),
        torch.tensor(counts),
        KNOWN,
    ):
        assert popularity(given, power) == pytest.approx(expected, rel=1e-12)


def test_popularity_leaves_ignored_pairs_out_of_the_counts():
    assert popularity(KNOWN.with_ignored([4, 4], [0, 3]), 1.0).tolist() == [4.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_log_uniform_is_the_candidate_samplers_formula(n):
    expected = [(math.log(rank + 2) - math.log(rank + 1)) / math.log(n + 1) for rank in range(n)]
    assert log_uniform(n) == pytest.approx(expected, rel=1e-9)
    assert log_uniform(n).sum() == pytest.approx(1.0, abs=1e-12)


def test_log_uniform_ranks_by_counts_with_ties_by_id():
    by_rank = log_uniform(5)
    assert log_uniform(5, [3, 9, 3, 0, 10]).tolist() == by_rank[[2, 1, 3, 4, 0]].tolist()
    assert log_uniform(4, KNOWN).tolist() == log_uniform(4).tolist()


def test_item_oriented_is_what_is_missing():
    assert item_oriented(KNOWN).tolist() == [1.0, 4.0, 4.0, 5.0]
    assert item_oriented(KNOWN.with_ignored([4], [0])).tolist() == [1.0, 4.0, 4.0, 5.0]
    full = ns.Positives.from_pairs([0, 1], [0, 0], 2, 2)
    drawn = Everything(full, item_oriented(full), distinct=False).draw(ns.Query([0, 1]), 9, rng=ns.rng_for(0)).ids
    assert (drawn == 1).all()


# ---- frequencies of a stream -----------------------------------------------------------------------------------------


def seen(frequency, step, *items):
    frequency.observe(ns.Query([0] * len(items), positives=list(items), step=step))


def test_the_recursion_of_the_paper():
    """An item every four steps, rate 0.1, from a gap of 1: 1.3, 1.57, 1.813, ... and in the end 4."""
    frequency, gaps = StreamingFrequency(3, rate=0.1), []
    for step in range(0, 4 * 200, 4):
        seen(frequency, step, 1, 1)  # twice in a batch counts once
        gaps.append(np.exp(-frequency.log_q([1])[0]))
    assert gaps[:4] == pytest.approx([1.0, 1.3, 1.57, 1.813])
    assert gaps[-1] == pytest.approx(4.0, abs=1e-6)


def test_the_gap_is_unbiased_for_independent_batches():
    """Items that come with probability q a step have geometric gaps, of mean 1 / q."""
    rng, chance = np.random.default_rng(0), np.array([0.5, 0.2, 0.05])
    frequency, total = StreamingFrequency(3, rate=0.05, initial=5.0), np.zeros(3)
    for step in range(3000):
        came = np.flatnonzero(rng.random(3) < chance)
        seen(frequency, step, *came)
        if step >= 1000:
            total += np.exp(-frequency.log_q([0, 1, 2]))
    np.testing.assert_allclose(total / 2000, 1 / chance, rtol=0.15)
