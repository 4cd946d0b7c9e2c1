"""StreamingFrequency: the recursion by hand, its limit, hashes, the state, and errors."""

import numpy as np
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.pools import StreamingFrequency


def seen(frequency, step, *items):
    frequency.observe(ns.Query([0] * len(items), positives=list(items), step=step))


def test_the_recursion_of_the_paper():
    """An item every four steps, rate 0.1, from a gap of 1: 1.3, 1.57, 1.813, ... and in the end 4."""
    frequency, gaps = StreamingFrequency(3, rate=0.1), []
    for step in range(0, 4 * 200, 4):
        seen(frequency, step, 1)
        gaps.append(np.exp(-frequency.log_q([1])[0]))
    assert gaps[:4] == pytest.approx([1.0, 1.3, 1.57, 1.813])
    assert gaps[-1] == pytest.approx(4.0, abs=1e-6)


def test_twice_in_a_batch_counts_once():
    once, twice = (StreamingFrequency(3, rate=0.5) for _ in range(2))
    for step in (0, 5):
        seen(once, step, 2)
        seen(twice, step, 2, 2, 2)
    assert once.log_q([2]) == twice.log_q([2]) == -np.log(3.0)


def test_the_gap_is_unbiased_for_independent_batches():
    """Items that come with probability q a step have geometric gaps, of mean 1 / q."""
    rng, chance = np.random.default_rng(0), np.array([0.5, 0.2, 0.05])
    frequency, total = StreamingFrequency(3, rate=0.05, initial=5.0), np.zeros(3)
    for step in range(6000):
        came = np.flatnonzero(rng.random(3) < chance)
        seen(frequency, step, *came)
        if step >= 2000:
            total += np.exp(-frequency.log_q([0, 1, 2]))
    np.testing.assert_allclose(total / 4000, 1 / chance, rtol=0.1)


def test_several_hashes_take_the_largest_gap():
    """Frequent neighbours in a cell make an item look frequent in that table, not in all."""
    rng = np.random.default_rng(1)
    shared, several = StreamingFrequency(64, hashes=2, rate=0.2), StreamingFrequency(64, hashes=6, rate=0.2)
    for step in range(300):
        items = [*rng.integers(0, 20, 6), 1000 if step % 10 == 0 else 0]
        seen(shared, step, *items)
        seen(several, step, *items)
    true = 10.0
    gaps = [np.exp(-frequency.log_q([1000])[0]) for frequency in (shared, several)]
    assert gaps[1] == pytest.approx(true, rel=0.02)
    assert gaps[0] <= gaps[1] + 1e-9


def test_mid_run_state():
    one, other = StreamingFrequency(9), StreamingFrequency(9)
    for step in range(10):
        seen(one, step, step % 5, 8)
        if step == 4:
            other.restore(one.state())
        if step > 4:
            seen(other, step, step % 5, 8)
    np.testing.assert_array_equal(one.log_q([0, 3, 8]), other.log_q([0, 3, 8]))


def test_errors():
    frequency = StreamingFrequency(9)
    seen(frequency, 3, 1)
    with pytest.raises(
        NaysayError, match=r"^StreamingFrequency.log_q: `ids` must be items that were seen, got 4 at row 1"
    ):
        frequency.log_q([1, 4])
    assert StreamingFrequency(9, unseen=100.0).log_q([[4]]).tolist() == [[-np.log(100.0)]]
    with pytest.raises(NaysayError, match=r"^StreamingFrequency.observe: `query` must be a query of a later step than"):
        seen(frequency, 3, 1)
    with pytest.raises(NaysayError, match=r"^StreamingFrequency.observe: `ids` must be .*, got 9"):
        seen(frequency, 4, 9)
    with pytest.raises(NaysayError, match=r"^StreamingFrequency: `rate` must be"):
        StreamingFrequency(9, rate=0)
