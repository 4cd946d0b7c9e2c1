"""Keeping a row distinct, step by step, against plain counting."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay.kernels import distinct
from naysay.kernels.random import row_state

NO_TABLE = np.empty(0, np.int64)


def state_of(key, row):
    return np.uint64(row_state(np.uint64(key), row))


def bits_for(rank, size):
    """64 bits whose image in 0 ... size - 1 is `rank`: the middle of its interval."""
    return np.uint64(((2 * rank + 1) << 63) // size)


@pytest.mark.parametrize("used", [(), (0,), (4,), (2, 0), (5, 1, 3), (5, 4, 3, 2, 1)])
def test_unused_rank_reaches_every_rank_that_is_left(used):
    free = 6
    left = [rank for rank in range(free) if rank not in used]
    got = []
    for rank in range(len(left)):
        ranks = np.array([*used, 77], np.int64)
        got.append(distinct.unused_rank(bits_for(rank, len(left)), ranks, len(used), free))
        assert sorted(ranks[: len(used)].tolist()) == ranks[: len(used)].tolist() == sorted(used)
        assert ranks[-1] == 77
    assert got == left


def test_shuffled_ranks_are_a_part_of_a_permutation():
    for seed, (wanted, free) in enumerate([(0, 0), (1, 1), (3, 5), (5, 5), (40, 70)]):
        ranks = np.full(80, -1, np.int64)
        distinct.shuffle_ranks(state_of(seed, 0), wanted, free, ranks)
        assert sorted(ranks[:free].tolist()) == list(range(free))


def test_repeats():
    for line, wanted in itertools.product(itertools.product(range(3), repeat=4), range(5)):
        assert distinct.repeats(np.array(line, np.int64), wanted) == (len(set(line[:wanted])) < wanted)


@pytest.mark.parametrize(("width", "room"), [(0, 0), (32, 0), (33, 256), (64, 256), (65, 512), (1000, 4096)])
def test_table_size(width, room):
    assert distinct.table_size(width) == room


@given(st.lists(st.integers(0, 2**40), max_size=60))
@settings(max_examples=60, deadline=None)
def test_both_ways_to_find_a_repetition_agree(items):
    """Comparing with all earlier slots, and asking a table, which wraps round its end."""
    line = np.array([*items, 0], np.int64)
    table = np.full(distinct.table_size(max(len(items), 33)), -1, np.int64)
    for slot, item in enumerate(items):
        expected = item in items[:slot]
        assert distinct.seen_before(line, slot, item, NO_TABLE) == expected
        assert distinct.seen_before(line, slot, item, table) == expected


@given(st.lists(st.integers(0, 500), max_size=300))
def test_every_repetition_is_doubtful_and_most_others_are_not(codes):
    line = np.array([*codes, 0], np.int64)
    bitmap = np.empty(distinct.bitmap_size(len(line)), np.uint64)
    doubtful = np.full(len(line), 7, np.uint8)
    marked = distinct.mark_collisions(line, len(codes), bitmap, doubtful)
    assert marked == doubtful[:-1].sum()
    repeated = [code in codes[:slot] for slot, code in enumerate(codes)]
    assert all(flag == 1 for flag, again in zip(doubtful, repeated, strict=False) if again)
    assert doubtful[-1] == 7
    falsely = sum(int(flag) for flag, again in zip(doubtful[:-1], repeated, strict=True) if not again)
    assert falsely <= 10 + len(codes) // 16


@pytest.mark.parametrize(("width", "words"), [(0, 64), (64, 64), (65, 128), (1000, 1024)])
def test_bitmap_size(width, words):
    assert distinct.bitmap_size(width) == words
