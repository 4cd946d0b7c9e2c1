"""Choosing slots: the highest in order, ties by slot, and noise that makes a softmax of the highest."""

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from naysay import rng_for
from naysay._slots import gather
from naysay.rng import key_from
from naysay.samplers._top_k import gumbel, top

SHAPES = st.tuples(st.integers(0, 5), st.integers(1, 12))
# Few different values, so that scores are often equal; -inf marks an empty slot.
SCORES = SHAPES.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=st.sampled_from([-np.inf, -1.5, 0, 2, 3])))


def highest(row, width):
    """Slots by score, the earlier slot first among equals."""
    return sorted(range(len(row)), key=lambda slot: (-row[slot], slot))[:width]


@given(SCORES, st.data())
def test_the_highest_first_and_the_earlier_slot_among_equals(scores, data):
    width = data.draw(st.integers(0, scores.shape[1]))
    expected = [highest(row, width) for row in scores.tolist()]
    found = top(scores, width)
    assert found.shape == (len(scores), width)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        tensors = top(torch.from_numpy(scores).to(dtype), width)
        assert tensors.dtype == torch.int64
        assert tensors.tolist() == expected


def test_the_highest_of_many():
    scores = np.random.default_rng(0).standard_normal((50, 300)).round(1)  # with ties
    for width in (1, 7, 299, 300):
        assert top(scores, width).tolist() == [highest(row, width) for row in scores.tolist()]


def test_scores_are_left_as_they_were():
    scores = np.random.default_rng(0).standard_normal((5, 9))
    before = scores.copy()
    top(scores, 3)
    top(torch.from_numpy(scores), 3)
    assert (scores == before).all()


@pytest.mark.parametrize("beyond", [(), (3,), (2, 3)])
def test_gather_takes_slots_row_by_row(beyond):
    values = np.random.default_rng(0).standard_normal((4, 6, *beyond))
    order = np.random.default_rng(1).integers(0, 6, (4, 3))
    expected = [[values[row, slot].tolist() for slot in order[row]] for row in range(4)]
    assert gather(values, order).tolist() == expected
    assert gather(torch.from_numpy(values), torch.from_numpy(order)).tolist() == expected
    assert gather(values[:0], order[:0]).shape == (0, 3, *beyond)


def noise_of(seed, shape, like):
    return gumbel(shape, key_from(rng_for(seed)), like)


def test_noise_is_gumbel_and_the_same_in_numpy_and_torch():
    plain = noise_of(0, (200, 100), np.zeros(1))
    assert scipy.stats.kstest(plain.ravel(), "gumbel_r").pvalue > 1e-4
    assert noise_of(0, (200, 100), torch.zeros(1, dtype=torch.float64)).tolist() == plain.tolist()
    single = noise_of(0, (200, 100), np.zeros(1, np.float32))
    assert single.dtype == np.float32
    assert single.tolist() == plain.astype(np.float32).tolist()
    tensors = noise_of(0, (200, 100), torch.zeros(1))
    assert tensors.dtype == torch.float32
    assert tensors.tolist() == single.tolist()
    assert (noise_of(1, (200, 100), np.zeros(1)) != plain).all()
    assert noise_of(0, (0, 4), np.zeros(1)).shape == (0, 4)


def test_noise_is_finite_even_where_chance_is_0(monkeypatch):
    class Zero:
        def __init__(self, bits):
            pass

        def standard_exponential(self, size):
            return np.zeros(size)

    key = key_from(rng_for(0))
    monkeypatch.setattr(np.random, "Generator", Zero)
    assert np.isfinite(gumbel((2, 2), key, np.zeros(1))).all()
