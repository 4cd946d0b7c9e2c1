"""Counter-based numbers: exact arithmetic, known outputs, and no visible pattern."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from naysay.kernels.random import below, below_wide, mixed, number, retry, row_state, uniforms

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
WORDS = st.integers(0, MASK) | st.integers(0, 5) | st.integers(MASK - 5, MASK)


def splitmix(value):
    """SplitMix64's output function, in Python's whole numbers."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def fractions(key, rows, slots):
    out = np.zeros((rows, slots))
    uniforms(0, rows, np.uint64(key), out)
    return out


def test_the_published_outputs_of_splitmix64():
    states = [(1234567 + GOLDEN * t) & MASK for t in range(1, 6)]
    assert [int(mixed(np.uint64(state))) for state in states] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@given(WORDS, st.integers(0, 2**40), st.integers(0, 2**20), st.integers(0, 4095))
def test_a_slot_has_its_own_numbers(key, row, slot, attempt):
    state = splitmix(key ^ splitmix((row + GOLDEN) & MASK))
    assert int(row_state(np.uint64(key), row)) == state
    assert int(number(np.uint64(state), slot)) == splitmix((state + slot * GOLDEN) & MASK)
    counter = 2**40 + slot * 4096 + attempt
    assert int(retry(np.uint64(state), slot, attempt)) == splitmix((state + counter * GOLDEN) & MASK)


@given(WORDS, st.integers(1, 2**63 - 1) | st.integers(1, 2**32 - 1))
@example(MASK, 2**63 - 1)
@example(2**63, 2**62 + 1)
@example(MASK, 2**32 - 1)
def test_below_is_exact(bits, size):
    assert below_wide(np.uint64(bits), size) == bits * size // 2**64
    if size < 2**32:
        assert below(np.uint64(bits), size) == bits * size // 2**64


def test_numbers_between_0_and_1_are_those_of_their_row_and_slot():
    whole, part = fractions(3, 20, 30), np.zeros((20, 30))
    uniforms(15, 20, np.uint64(3), part)
    assert (whole[15:] == part[15:]).all()
    state = splitmix(3 ^ splitmix((7 + GOLDEN) & MASK))
    expected = [((splitmix((state + slot * GOLDEN) & MASK) >> 12) + 0.5) / 2**52 for slot in range(30)]
    assert whole[7].tolist() == expected


@pytest.mark.parametrize("shape", [(1, 200_000), (200_000, 1), (450, 450)], ids=["a row", "a column", "both"])
def test_numbers_are_uniform_and_neighbours_independent(shape):
    drawn = fractions(5, *shape)
    assert scipy.stats.kstest(drawn.ravel()[:50_000], "uniform").pvalue > 1e-3
    for size in (7, 1000):
        assert scipy.stats.chisquare(np.bincount((drawn.ravel() * size).astype(int), minlength=size)).pvalue > 1e-4
    high = (drawn * 8).astype(int).ravel()
    assert scipy.stats.chisquare(np.bincount(high[:-1] * 8 + high[1:], minlength=64)).pvalue > 1e-4
