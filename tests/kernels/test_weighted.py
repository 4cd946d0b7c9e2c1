"""The weighted loops against plain counting: the alias table, and the item at every weight x."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay._rows import frozen, offsets
from naysay.kernels import weighted
from naysay.kernels.random import below_wide, number, row_state

WEIGHTS = st.lists(st.integers(0, 6), min_size=1, max_size=9).filter(any)


def alias_shares(weights):
    """The probability of each item that a table spells out: of each cell, the threshold and the item beyond it."""
    whole = np.asarray(weights, np.int64)
    alias = np.empty(2 * len(whole), np.uint64)
    weighted.build_alias(whole, float(whole.sum()), alias)
    below = alias[::2].astype(np.float64) / 2.0**64
    shares = below.copy()
    np.add.at(shares, alias[1::2].astype(np.int64), 1.0 - below)
    return shares / len(whole), alias


@pytest.mark.parametrize(
    "weights",
    [
        [1],
        [1, 1],
        [3, 1],
        [0, 0, 7, 0],
        [1] * 1000,
        [0] * 500 + [3] * 7 + [0] * 493,
        [2**61, 2**61, 1],
        [1, 10**12, 1, 1],
        np.random.default_rng(0).integers(0, 1000, 3000),
        (2.0**40 / np.arange(1, 20_001)).astype(np.int64),
    ],
    ids=str,
)
def test_alias_table_spells_out_the_weights(weights):
    shares, alias = alias_shares(weights)
    expected = np.asarray(weights, np.float64) / float(np.sum(weights))
    assert np.abs(shares - expected).max() < 1e-15 + 1e-11 / len(expected)
    assert alias[1::2].max() < len(expected)


@given(WEIGHTS)
@settings(max_examples=40, deadline=None)
def test_alias_table_never_names_an_item_of_weight_0(weights):
    shares, alias = alias_shares(weights)
    zero = np.asarray(weights) == 0
    assert (alias[::2][zero] == 0).all()
    assert not np.isin(alias[1::2], np.flatnonzero(zero)).any()
    assert np.abs(shares - np.asarray(weights) / sum(weights)).max() < 1e-12


def test_alias_table_of_a_million_zeros_names_none_of_them():
    weights = np.zeros(1_000_000, np.int64)
    weights[::7919] = np.random.default_rng(1).integers(1, 1 << 50, len(weights[::7919]))
    shares, _ = alias_shares(weights)
    assert shares[weights == 0].max() == 0.0
    assert np.abs(shares - weights / weights.sum()).max() < 1e-12


@given(WEIGHTS, st.data())
@settings(max_examples=40, deadline=None)
def test_the_item_at_every_weight_is_the_one_that_counting_gives(weights, data):
    """All x below the free weight, for both maps, against a list with each free item as often as its weight."""
    n = len(weights)
    known = sorted(data.draw(st.sets(st.integers(0, n - 1))))
    free = [item for item in range(n) if item not in known]
    taken = sorted(data.draw(st.sets(st.sampled_from(free)))) if free else []
    cumulative = frozen(offsets(np.array(weights, np.int64)))
    indices = frozen(np.array(known, np.int32))
    before = weighted.sums_before(cumulative, indices, 0, len(known))
    assert before.tolist() == [sum(weights[i] for i in known[:j]) for j in range(len(known) + 1)]
    spread = [item for item in free for _ in range(weights[item])]
    by_rank = [weighted.heavy_item(x, cumulative, indices, 0, len(known), before) for x in range(len(spread))]
    assert by_rank == spread
    rest = [item for item in spread if item not in taken]
    place = np.array([*taken, -5, -5], np.int64)  # what stands past the used part is not looked at
    walked = [weighted.walked_item(x, cumulative, indices, 0, len(known), place, len(taken)) for x in range(len(rest))]
    assert walked == rest


def test_known_weights_are_sums_over_rows():
    known = ns.Positives.from_pairs([0, 0, 2, 2, 2], [1, 3, 0, 1, 4], n_anchors=4, n_items=5)
    cumulative = offsets(np.array([5, 7, 11, 13, 0]))
    out = np.empty(4, np.int64)
    weighted.known_weights(0, 4, known.indptr, known.indices, cumulative, out)
    assert out.tolist() == [20, 0, 12, 0]


@pytest.mark.parametrize("order", list(itertools.permutations([3, 1, 9, 4])))
def test_sorting_goes_on_from_any_slot(order):
    for used in range(5):
        line, taken = np.array([*order, 0], np.int64), np.full(5, -1, np.int64)
        taken[:used] = sorted(order[:used])
        weighted.sort_on(line, used, 4, taken)
        assert taken.tolist() == [1, 3, 4, 9, -1]
        assert line.tolist() == [*order, 0]


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**63 - 1))
@settings(max_examples=100, deadline=None)
def test_below_wide_is_the_high_half_of_the_product(bits, size):
    assert below_wide(np.uint64(bits), np.int64(size)) == (bits * size) >> 64


def test_a_row_with_nothing_known_draws_from_the_alias_table_also_where_the_weights_add_up_to_2_to_the_62():
    """Twice such a sum is 2^63, which is negative in 64 bits: the row must not be taken for a heavy one for that."""
    positives = ns.Positives.from_pairs([], [], n_anchors=1, n_items=2)
    pool = ns.pools.Everything(positives, weights=[3, 1], distinct=False)
    cumulative, alias, _ = pool._tables
    assert cumulative[-1] == 2**62
    rng = ns.rng_for(5)
    key = ns.rng_for(5).integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True)
    drawn = pool.draw(ns.Query([0]), 64, rng=rng).ids[0]
    bits = [np.uint64(number(np.uint64(row_state(key, 0)), slot)) for slot in range(64)]
    assert drawn.tolist() == [weighted.alias_item(one, 2, alias) for one in bits]
