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
@settings(max_examples=100, deadline=None)
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
    """Up to a tenth of what is free the series is used: on both sides of the change it is exact."""
    for wanted in {min(free, w) for w in (0, 1, free // 10, free // 10 + 1, 1500)}:
        wanted = min(wanted, 5000)
        line = np.full(wanted + 2, np.nan)
        uniform.fill_log_q(line, wanted, free)
        assert np.abs(line[:wanted] + np.log(free - np.arange(wanted))).max(initial=0) < 1e-13
        assert line[wanted:].tolist() == [0.0, 0.0]


def plain_row(state, known, size, wanted, tries):
    """The row slot by slot: the first try if it is free and new, else later tries, else a rank past all used ones."""
    line, used = [], set(known)
    positives = Positives.from_pairs([0] * len(known), sorted(known), 1, size)
    rows = (positives.indices, positives.filter, 0, len(known))
    for slot in range(wanted):
        item = int(below(np.uint64(number(state, slot)), size))
        for i in range(tries):
            if item not in used:
                break
            item = int(uniform.free_item(state, slot, i * (tries + 1), tries, *rows, size))
        if item in used:
            left = sorted(set(range(size)) - used)
            item = left[int(below(np.uint64(retry(state, slot, tries * (tries + 1))), len(left)))]
        line.append(item)
        used.add(item)
    return line


@pytest.mark.parametrize("tries", [1, 2, 32])
@pytest.mark.parametrize(
    ("size", "degree", "wanted"),
    [(12, 3, 4), (40, 4, 16), (90, 30, 30), (300, 20, 100), (70, 0, 35), (4300, 10, 2100)],
)
def test_a_distinct_row_is_what_drawing_slot_by_slot_gives(size, degree, wanted, tries):
    """Narrow rows look at doubtful slots only, wide ones ask a table: neither changes a single id."""
    known = set(np.random.default_rng(size).permutation(size)[:degree].tolist())
    positives = Positives.from_pairs([0] * degree, sorted(known), 1, size)
    rows = 2 if wanted > 1000 else 12
    out, log_q = np.empty((rows, wanted), np.int64), np.empty((rows, wanted))
    asked = (np.zeros(rows, np.int64), np.full(rows, wanted))
    uniform.draw(0, rows, (np.uint64(99), tries, False), asked, positives._rows, size, out, log_q)
    for row in range(rows):
        assert out[row].tolist() == plain_row(state_of(99, row), known, size, wanted, tries)
