"""CSR rows against plain Python sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import _rows as rows
from naysay.errors import NaysayError

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=120)
TAGGED = st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 12)), st.sampled_from([1, 2]))
COMPILING = settings(deadline=None)  # a first call compiles


def as_lists(indptr, indices):
    return [indices[low:high].tolist() for low, high in itertools.pairwise(indptr)]


def tagged_rows(pairs, n_anchors, *, related):
    ordered = sorted(pairs)
    counts = np.bincount([anchor for anchor, _ in ordered], minlength=n_anchors).astype(np.int64)
    relation = np.array([pairs[pair] for pair in ordered], np.int8) if related else None
    return rows.Rows(rows.offsets(counts), np.array([item for _, item in ordered], np.int32), relation)


@pytest.mark.parametrize(
    ("n_items", "kind"), [(0, np.int32), (2**31 - 1, np.int32), (2**31, np.int64), (2**40, np.int64)]
)
def test_the_smallest_type_that_holds_every_id(n_items, kind):
    assert rows.index_type(n_items) is kind
    if n_items:
        assert n_items - 1 <= np.iinfo(kind).max


@given(st.lists(st.integers(0, 9)))
def test_offsets_are_running_sums(counts):
    starts = rows.offsets(np.array(counts, np.int64))
    assert starts.dtype == np.int64
    assert starts.tolist() == [sum(counts[:row]) for row in range(len(counts) + 1)]


def test_frozen_is_a_read_only_view():
    array = np.arange(3)
    view = rows.frozen(array)
    assert np.shares_memory(view, array)
    assert array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


@given(PAIRS, st.sampled_from([41, 2**61]))
def test_rows_are_sorted_and_distinct(pairs, n_items):
    anchors = np.array([anchor for anchor, _ in pairs], np.int64)
    items = np.array([item for _, item in pairs], np.int64)
    found, duplicates = rows.from_pairs(anchors, items, 6, n_items)
    expected = [sorted({item for anchor, item in pairs if anchor == row}) for row in range(6)]
    assert as_lists(found.indptr, found.indices) == expected
    assert duplicates == len(pairs) - sum(map(len, expected))
    assert found.relation is None
    indptr = rows.offsets(np.bincount(anchors, minlength=6))
    again, _ = rows.from_csr(indptr, items[np.argsort(anchors, kind="stable")], n_items)
    assert as_lists(again.indptr, again.indices) == expected


@given(st.lists(st.sets(st.integers(0, 50)), min_size=1, max_size=5), st.integers(51, 60))
def test_look_ups_agree_with_plain_lists(sets, n_items):
    """Small and large look-ups take two ways, which give the same places."""
    lists = [sorted(each) for each in sets]
    indptr = rows.offsets(np.array([len(row) for row in lists]))
    indices = np.array([item for row in lists for item in row], np.int32)
    known = (rows.frozen(indptr), rows.frozen(indices), rows.frozen(rows.filter_of(indptr, indices)))
    anchors = np.repeat(np.arange(len(lists)), n_items)
    items = np.tile(np.arange(n_items), len(lists))
    expected = [
        indptr[anchor] + lists[anchor].index(item) if item in lists[anchor] else -1
        for anchor, item in zip(anchors.tolist(), items.tolist(), strict=True)
    ]
    assert rows.positions(*known, anchors, items).tolist() == expected
    times = -(-(1 << 17) // len(items))
    assert rows.positions(*known, np.tile(anchors, times), np.tile(items, times)).tolist() == expected * times
    free = [[item for item in range(n_items) if item not in row] for row in lists]
    ranks = np.tile(np.arange(n_items), (len(lists), 1))
    found = rows.nth_negatives(*known[:2], n_items, np.repeat(np.arange(len(lists)), n_items), ranks)
    assert found.tolist() == [row + [-1] * (n_items - len(row)) for row in free]


@COMPILING
@given(TAGGED, TAGGED, st.booleans(), st.booleans(), st.integers(5, 7))
def test_merged_is_the_union_and_positive_wins(one, other, one_related, other_related, n_anchors):
    one = one if one_related else dict.fromkeys(one, 1)
    other = other if other_related else dict.fromkeys(other, 1)
    both = rows.merged(
        tagged_rows(one, 5, related=one_related), tagged_rows(other, 5, related=other_related), n_anchors, 13
    )
    expected = {pair: min(one.get(pair, 9), other.get(pair, 9)) for pair in one.keys() | other.keys()}
    lists = [sorted(item for anchor, item in expected if anchor == row) for row in range(n_anchors)]
    assert as_lists(both.indptr, both.indices) == lists
    if 2 in expected.values():
        assert both.relation.tolist() == [expected[pair] for pair in sorted(expected)]
    else:
        assert both.relation is None


def test_merged_widens_ids_where_the_union_needs_it():
    small = rows.Rows(np.array([0, 1]), np.array([3], np.int32))
    large = rows.Rows(np.array([0, 0, 1]), np.array([2**31 + 3]))
    both = rows.merged(small, large, 2, 2**31 + 4)
    assert both.indices.dtype == np.int64
    assert as_lists(both.indptr, both.indices) == [[3], [2**31 + 3]]


@pytest.mark.parametrize(
    ("changed", "got"),
    [
        ({"indices": np.zeros(3, np.int64)}, "indices: (3,) int64"),
        ({"filter": np.zeros(2, np.uint8)}, "filter: (2,) uint8"),
        ({"filter": np.zeros(3, np.int8)}, "filter: (3,) int8"),
        ({"relation": np.ones(4, np.int8)}, "relation: (4,) int8"),
        ({"indptr": np.array([0, 2])}, "indptr: not from 0 to 3"),
        ({"indptr": np.array([1, 3])}, "indptr: not from 0 to 3"),
        ({"indptr": np.empty(0, np.int64)}, "indptr: not from 0 to 3"),
        ({"indptr": np.array([[0, 3]])}, "indptr: (1, 2) int64"),
        ({"indices": np.array(3, np.int32)}, "indices: () int32"),
    ],
)
def test_saved_rows_that_do_not_fit_are_rejected(changed, got):
    with pytest.raises(NaysayError) as caught:
        rows.check_sound(sound() | changed, 5)
    assert str(caught.value) == f"`path` must be a folder of matching arrays, got {got}."


def sound():
    """Rows [0, 1], [1] and an empty one, as they are saved."""
    indptr, indices = np.array([0, 2, 3, 3]), np.array([0, 1, 1], np.int32)
    bits = rows.filter_of(indptr, indices)
    return {"indptr": indptr, "indices": indices, "filter": bits, "relation": np.array([1, 2, 1], np.int8)}


def test_sound_rows_are_taken():
    rows.check_sound(sound(), 5)
    rows.check_sound({name: array for name, array in sound().items() if name != "relation"}, 2)


@pytest.mark.parametrize(
    ("changed", "got"),
    [
        ({"indptr": np.array([0, 10**12, 3, 3])}, "row 1 damaged (1 such row)"),
        ({"indptr": np.array([0, -1, 3, 3])}, "row 0 damaged (1 such row)"),
        ({"indices": np.array([0, 5, 1], np.int32)}, "row 0 damaged (1 such row)"),
        ({"indices": np.array([0, 1, 2**31 - 1], np.int32)}, "row 1 damaged (1 such row)"),
        ({"indices": np.array([-1, 1, 1], np.int32)}, "row 0 damaged (1 such row)"),
        ({"indices": np.array([1, 0, 1], np.int32)}, "row 0 damaged (1 such row)"),
        ({"indices": np.array([1, 1, 1], np.int32)}, "row 0 damaged (1 such row)"),
        ({"filter": np.zeros(3, np.uint8)}, "row 0 damaged (2 such rows)"),
        ({"relation": np.array([1, 2, 0], np.int8)}, "row 1 damaged (1 such row)"),
        ({"relation": np.array([3, 1, 1], np.int8)}, "row 0 damaged (1 such row)"),
    ],
)
def test_every_saved_number_is_checked(changed, got):
    with pytest.raises(NaysayError) as caught:
        rows.check_sound(sound() | changed, 5)
    assert str(caught.value) == f"`path` must be a folder of ascending ids below 5 in every row, got {got}."


@given(st.lists(st.lists(st.sampled_from([1, 2]), max_size=5), min_size=1, max_size=6), st.data())
def test_counts_of_a_kind_are_those_of_the_chosen_rows(kinds, data):
    chosen = np.array(data.draw(st.lists(st.integers(0, len(kinds) - 1), max_size=8)), np.int64)
    indptr = rows.offsets(np.array([len(row) for row in kinds]))
    relation = np.array([kind for row in kinds for kind in row], np.int8)
    found = rows.counts_of_kind(relation, indptr[chosen], indptr[chosen + 1], 2)
    assert found.dtype == np.int64
    assert found.tolist() == [kinds[row].count(2) for row in chosen]


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)))
def test_distinct_values_are_those_of_numpy(values):
    array = np.array(values, np.int64)
    assert np.array_equal(rows.distinct_values(array), np.unique(array))
