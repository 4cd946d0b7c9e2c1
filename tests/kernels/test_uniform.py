"""The uniform loops, part by part, against plain counting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import Positives
from naysay.kernels import uniform
from naysay.kernels.random import below, number, retry, row_state


def state_of(key, row):
    return np.uint64(row_state(np.uint64(key), row))


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**32 - 1))
@settings(max_examples=500, deadline=None)
def test_below_is_the_high_half_of_the_product(bits, size):
    assert below(np.uint64(bits), np.int64(size)) == (bits * size) >> 64


def test_numbers_of_a_row_and_its_tries_do_not_meet():
    """First tries of 2,000 slots, and all 1,057 tries of 40 slots, of three rows: no two numbers are equal."""
    seen = set()
    for row in range(3):
        state = state_of(12345, row)
        seen |= {number(state, slot) for slot in range(2000)}
        seen |= {retry(state, slot, attempt) for slot in range(40) for attempt in range(1057)}
    assert len(seen) == 3 * (2000 + 40 * 1057)


@pytest.mark.parametrize("tries", [0, 1, 2, 32])
@pytest.mark.parametrize("known", [[], [0], [3, 4], [0, 1, 2, 3, 4, 5], [0, 1, 3, 4, 5, 6], list(range(1, 7))])
def test_free_item_is_free_and_reaches_every_free_item(tries, known):
    positives = Positives.from_pairs([0] * len(known), known, 1, 7)
    found = set()
    for row in range(200):
        state = state_of(tries, row)
        rows = (positives.indices, positives.filter, 0, len(known))
        found.add(int(uniform.free_item(state, 0, 0, tries, *rows, 7)))
    assert found == set(range(7)) - set(known)


@pytest.mark.parametrize("free", [1, 5, 999, 1001, 40_000, 10**6, 4 * 10**9])
def test_log_q_series_is_the_logarithm(free):
    """Up to a thousandth of what is free the series is used: on both sides of the change it is exact."""
    for wanted in {min(free, w) for w in (0, 1, free // 1000, free // 1000 + 1, 1500)}:
        wanted = min(wanted, 5000)
        line = np.full(wanted + 2, np.nan)
        uniform.fill_log_q(line, wanted, free)
        assert np.abs(line[:wanted] + np.log(free - np.arange(wanted))).max(initial=0) < 1e-13
        assert line[wanted:].tolist() == [0.0, 0.0]
