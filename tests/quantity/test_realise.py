"""A k that is not whole: floor(k) + Bernoulli(k - floor(k)), so that the mean is k."""

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from naysay import rng_for
from naysay.quantity import realise

NUMBERS = st.floats(0, 50) | st.integers(0, 50)


def untouched(rng, seed):
    return rng.bit_generator.random_raw() == rng_for(seed).bit_generator.random_raw()


@given(NUMBERS, st.integers(0, 40), st.integers(0, 2**32))
def test_every_number_is_the_floor_or_the_ceiling(k, size, seed):
    counts = realise(k, size, rng_for(seed))
    assert counts.dtype == np.int64
    assert counts.shape == (size,)
    assert set(counts.tolist()) <= {int(np.floor(k)), int(np.ceil(k))}
    assert counts.flags.writeable


@given(st.lists(NUMBERS), st.integers(0, 2**32))
def test_every_row_has_its_own_k(ks, seed):
    counts = realise(np.array(ks, float), len(ks), rng_for(seed)).tolist()
    assert all(np.floor(k) <= count <= np.ceil(k) for k, count in zip(ks, counts, strict=True))


@pytest.mark.parametrize("k", [0.25, 2.5, 7.9])
def test_the_mean_is_k(k):
    counts = realise(k, 20_000, rng_for(1))
    above = int((counts > np.floor(k)).sum())
    assert scipy.stats.binomtest(above, 20_000, k - np.floor(k)).pvalue > 1e-4
    by_row = realise(np.full(20_000, k), 20_000, rng_for(1))
    assert by_row.tolist() == counts.tolist()


@pytest.mark.parametrize(
    "k", [3, 3.0, np.int8(3), np.float32(3), [3, 3], np.array([3.0, 3.0]), torch.tensor([3, 3]), torch.tensor(3)]
)
def test_a_whole_k_takes_nothing_from_the_generator(k):
    rng = rng_for(4)
    assert realise(k, 2, rng).tolist() == [3, 3]
    assert untouched(rng, 4)


@pytest.mark.parametrize(("size", "by_row"), [(0, False), (1, False), (1000, False), (1, True), (1000, True)])
def test_any_other_takes_one_key_whatever_the_size(size, by_row):
    rng, counted = rng_for(4), rng_for(4)
    realise(np.full(size, 2.5) if by_row else 2.5, size, rng)
    counted.bit_generator.random_raw()
    assert rng.bit_generator.random_raw() == counted.bit_generator.random_raw()
