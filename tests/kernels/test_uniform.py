"""The uniform loops, part by part, against plain counting."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import Positives
from naysay.kernels import uniform
from naysay.kernels.random import below, number, retry, row_state

NO_TABLE = np.empty(0, np.int64)


def state_of(key, row):
    return np.uint64(row_state(np.uint64(key), row))


def bits_for(rank, size):
    """64 bits whose image in 0 ... size - 1 is `rank`: the middle of its interval."""
    return np.uint64(((2 * rank + 1) << 63) // size)


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


@pytest.mark.parametrize("used", [(), (0,), (4,), (2, 0), (5, 1, 3), (5, 4, 3, 2, 1)])
def test_unused_rank_reaches_every_rank_that_is_left(used):
    free = 6
    left = [rank for rank in range(free) if rank not in used]
    got = []
    for rank in range(len(left)):
        ranks = np.array([*used, 77], np.int64)
        got.append(uniform.unused_rank(bits_for(rank, len(left)), ranks, len(used), free))
        assert sorted(ranks[: len(used)].tolist()) == ranks[: len(used)].tolist() == sorted(used)
        assert ranks[-1] == 77
    assert got == left


def test_shuffled_ranks_are_a_part_of_a_permutation():
    for seed, (wanted, free) in enumerate([(0, 0), (1, 1), (3, 5), (5, 5), (40, 70)]):
        ranks = np.full(80, -1, np.int64)
        uniform.shuffle_ranks(state_of(seed, 0), wanted, free, ranks)
        assert sorted(ranks[:free].tolist()) == list(range(free))


def test_repeats():
    for line, wanted in itertools.product(itertools.product(range(3), repeat=4), range(5)):
        assert uniform.repeats(np.array(line, np.int64), wanted) == (len(set(line[:wanted])) < wanted)


@pytest.mark.parametrize(("width", "room"), [(0, 0), (32, 0), (33, 128), (64, 128), (65, 256), (1000, 2048)])
def test_table_size(width, room):
    assert uniform.table_size(width) == room


@given(st.lists(st.integers(0, 2**40), max_size=60))
@settings(max_examples=200, deadline=None)
def test_both_ways_to_find_a_repetition_agree(items):
    """Comparing with all earlier slots, and asking a table at half load, which wraps round its end."""
    line = np.array([*items, 0], np.int64)
    table = np.full(uniform.table_size(max(len(items), 33)), -1, np.int64)
    for slot, item in enumerate(items):
        expected = item in items[:slot]
        assert uniform.seen_before(line, slot, item, NO_TABLE) == expected
        assert uniform.seen_before(line, slot, item, table) == expected


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
