"""Counter-based numbers: exact arithmetic, known outputs, and no visible pattern."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from naysay.kernels.compile import inlined
from naysay.kernels.random import below, below_wide, mixed, number, retry, row_state, uniforms

COMPILING = settings(deadline=None, max_examples=100)  # a first call compiles
MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
WORDS = st.integers(0, MASK) | st.integers(0, 5) | st.integers(MASK - 5, MASK)


def splitmix(value):
    """SplitMix64's output function, in Python's whole numbers."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


@inlined
def table(key, rows, slots, attempt, out):
    """The numbers of some rows: first tries, or a later attempt."""
    for row in range(rows):
        state = row_state(key, row)
        for slot in range(slots):
            out[row, slot] = number(state, slot) if attempt < 0 else retry(state, slot, attempt)


def numbers(key, rows, slots, attempt=-1):
    out = np.empty((rows, slots), np.uint64)
    table(np.uint64(key), rows, slots, attempt, out)
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


@COMPILING
@given(WORDS)
def test_mixed_against_whole_numbers(value):
    assert int(mixed(np.uint64(value))) == splitmix(value)


@COMPILING
@given(WORDS, st.integers(0, 2**40), st.integers(0, 2**20), st.integers(0, 4095))
def test_a_slot_has_its_own_numbers(key, row, slot, attempt):
    state = splitmix(key ^ splitmix((row + GOLDEN) & MASK))
    assert int(row_state(np.uint64(key), row)) == state
    assert int(number(np.uint64(state), slot)) == splitmix((state + slot * GOLDEN) & MASK)
    counter = 2**40 + slot * 4096 + attempt
    assert int(retry(np.uint64(state), slot, attempt)) == splitmix((state + counter * GOLDEN) & MASK)


@COMPILING
@given(WORDS, st.integers(1, 2**32 - 1))
@example(MASK, 2**32 - 1)
@example(0, 1)
def test_below_is_exact(bits, size):
    found = below(np.uint64(bits), size)
    assert found == bits * size // 2**64
    assert 0 <= found < size


@COMPILING
@given(WORDS, st.integers(1, 2**63 - 1) | st.integers(1, 2**33))
@example(MASK, 2**63 - 1)
@example(2**63, 2**62 + 1)
def test_below_wide_is_exact(bits, size):
    found = below_wide(np.uint64(bits), size)
    assert found == bits * size // 2**64
    assert 0 <= found < size


def test_rows_slots_keys_and_attempts_all_differ():
    drawn = [numbers(key, 300, 20, attempt) for key in (0, 1, MASK) for attempt in (-1, 0, 1, 4095)]
    everything = np.concatenate([part.ravel() for part in drawn])
    assert len(np.unique(everything)) == everything.size


def test_more_slots_do_not_change_the_first():
    assert np.array_equal(numbers(7, 50, 80)[:, :8], numbers(7, 50, 8))
    assert np.array_equal(numbers(7, 90, 8)[:50], numbers(7, 50, 8))


@pytest.mark.parametrize("view", ["along a row", "down a column", "keys", "retries"])
@pytest.mark.parametrize("size", [2, 7, 100, 1000])
def test_uniform_however_it_is_read(view, size):
    drawn = {
        "along a row": lambda: numbers(3, 1, 200_000)[0],
        "down a column": lambda: numbers(3, 200_000, 1)[:, 0],
        "keys": lambda: np.array([numbers(key, 1, 4) for key in range(5000)]).ravel(),
        "retries": lambda: numbers(3, 2000, 100, 1).ravel(),
    }[view]()
    scaled = ((drawn >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32)
    counts = np.bincount(scaled.astype(np.int64), minlength=size)
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("bit", [0, 1, 31, 32, 62, 63])
def test_every_bit_is_fair(bit):
    drawn = numbers(11, 1000, 200).ravel()
    ones = int(((drawn >> np.uint64(bit)) & np.uint64(1)).sum())
    assert scipy.stats.binomtest(ones, drawn.size).pvalue > 1e-4


def test_neighbours_are_independent():
    drawn = numbers(5, 500, 401)
    high = (drawn >> np.uint64(61)).astype(np.int64)
    for one, other in ((high[:, :-1], high[:, 1:]), (high[:-1], high[1:])):
        pairs = np.bincount((one * 8 + other).ravel(), minlength=64)
        assert scipy.stats.chisquare(pairs).pvalue > 1e-4


def test_numbers_between_0_and_1_are_those_of_their_row_and_slot():
    whole, part = np.zeros((200, 50)), np.zeros((200, 50))
    uniforms(0, 200, np.uint64(3), whole)
    uniforms(150, 200, np.uint64(3), part)
    assert (whole[150:] == part[150:]).all()
    assert not part[:150].any()
    bits = numbers(3, 200, 50) >> np.uint64(12)
    assert (whole == (bits + 0.5) / 2**52).all()
    assert ((np.array([0, 2**52 - 1]) + 0.5) / 2**52 % 1).all()  # neither 0 nor 1: a logarithm of it is finite
    assert scipy.stats.kstest(whole.ravel(), "uniform").pvalue > 1e-3
