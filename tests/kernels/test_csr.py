"""The loops over sorted rows, one by one, against Python lists."""

import bisect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import _rows as rows
from naysay.kernels import csr

COMPILING = settings(deadline=None)  # a first call compiles
ROW = st.lists(st.integers(0, 60), unique=True, max_size=40).map(sorted)
KINDS = st.sampled_from([np.int32, np.int64])


def csr_of(lists, kind=np.int32):
    indptr = rows.offsets(np.array([len(row) for row in lists], np.int64))
    indices = np.array([item for row in lists for item in row], kind)
    return rows.frozen(indptr), rows.frozen(indices), rows.frozen(rows.filter_of(indptr, indices))


@COMPILING
@given(ROW, ROW, st.integers(-1, 62), KINDS)
def test_lower_bound_is_bisect_within_the_row(before, row, item, kind):
    _, indices, _ = csr_of([before, row, before], kind)
    start = len(before)
    found = csr.lower_bound(indices, start, start + len(row), item)
    assert found == start + bisect.bisect_left(row, item)


@COMPILING
@given(ROW, ROW, st.integers(0, 62), KINDS)
def test_membership_and_its_filter(before, row, item, kind):
    _, indices, bits = csr_of([before, row], kind)
    start, stop = len(before), len(before) + len(row)
    assert csr.row_contains(indices, bits, start, stop, np.int64(item)) == (item in row)
    if item in row:
        assert csr.may_contain(bits, start, len(row), np.int64(item)) == 1


@COMPILING
@given(st.integers(0, 2**62), st.integers(1, 10**6))
def test_filter_bits_stay_in_their_row(item, degree):
    for multiplier in (csr.HASH_A, csr.HASH_B):
        assert 0 <= csr.filter_bit(np.int64(item), np.int64(degree), multiplier) < 8 * degree


@COMPILING
@given(st.integers(0, 2**31 - 1), st.integers(1, 1000))
def test_narrow_and_wide_ids_share_their_filter_bits(item, degree):
    for multiplier in (csr.HASH_A, csr.HASH_B):
        wide = csr.filter_bit(np.int64(item), np.int64(degree), multiplier)
        assert csr.filter_bit(np.int32(item), np.int64(degree), multiplier) == wide


def test_a_filter_is_exactly_the_bits_of_its_ids():
    lists = [[3], [], [0, 5, 9, 40], list(range(0, 90, 3))]
    indptr, _, bits = csr_of(lists)
    for row, start in zip(lists, indptr[:-1].tolist(), strict=True):
        expected = {
            int(csr.filter_bit(np.int64(i), np.int64(len(row)), h)) for i in row for h in (csr.HASH_A, csr.HASH_B)
        }
        mine = np.unpackbits(bits[start : start + len(row)], bitorder="little")
        assert set(np.flatnonzero(mine).tolist()) == expected


@pytest.mark.parametrize("spread", ["dense", "random", "beyond 32 bits", "high word only"])
def test_the_filter_rules_out_nineteen_of_twenty(spread):
    rng = np.random.default_rng(0)
    ids = {
        "dense": np.arange(0, 8000, 2),
        "random": np.unique(rng.integers(0, 2**31, 4000)),
        "beyond 32 bits": np.unique(rng.integers(0, 2**50, 4000)),
        "high word only": (np.arange(0, 8000, 2) << 32) + 7,
    }[spread]
    _, _, bits = csr_of([ids.tolist()], np.int64)
    others = rng.integers(0, ids.max(), 20_000)
    if spread == "high word only":
        others = ((others >> 32) << 32) + 7
    others = np.setdiff1d(others, ids)
    passed = np.mean([csr.may_contain(bits, 0, len(ids), item) for item in others])
    assert passed < 0.07  # (1 - e^(-1/4))^2 is 0.049


@COMPILING
@given(ROW, ROW, KINDS)
def test_shifted_counts_what_is_outside(before, row, kind):
    _, indices, _ = csr_of([before, row], kind)
    outside = [item for item in range(61) if item not in row]
    found = [csr.shifted(indices, len(before), len(before) + len(row), rank) for rank in range(len(outside))]
    assert found == outside


@COMPILING
@given(st.lists(ROW, min_size=1, max_size=4), KINDS, st.data())
def test_contains_gives_the_place(lists, kind, data):
    indptr, indices, bits = csr_of(lists, kind)
    pairs = st.tuples(st.integers(-1, len(lists) - 1), st.integers(-1, 62))
    asked = data.draw(st.lists(pairs, max_size=30))
    anchors, items = (np.array([pair[i] for pair in asked], np.int64) for i in (0, 1))
    out = np.full(len(asked) + 2, 77)
    csr.contains(1, len(asked), anchors, items, (indptr, indices, bits), out)
    expected = [int(indptr[a]) + lists[a].index(i) if a >= 0 and i in lists[a] else -1 for a, i in asked[1:]]
    if asked:
        assert out.tolist() == [77, *expected, 77, 77]  # only the rows from start to stop are written


@COMPILING
@given(st.lists(ROW, min_size=1, max_size=4), st.integers(61, 70))
def test_nth_negative_ends_with_minus_one(lists, n_items):
    indptr, indices, _ = csr_of(lists)
    for row, ids in enumerate(lists):
        left = [item for item in range(n_items) if item not in ids]
        ranks = np.arange(n_items + 1)
        out = np.empty(len(ranks), np.int64)
        csr.nth_negative(0, len(ranks), np.full(len(ranks), row), ranks, indptr, indices, n_items, out)
        assert out.tolist() == left + [-1] * (n_items + 1 - len(left))


@COMPILING
@given(st.lists(st.lists(st.integers(0, 9), max_size=40), max_size=5))
def test_sort_and_pack(lists):
    indptr = rows.offsets(np.array([len(row) for row in lists], np.int64))
    indices = np.array([item for row in lists for item in row], np.int32)
    kept = np.empty(len(lists), np.int64)
    csr.sort_rows(0, len(lists), indptr, indices, kept)
    packed = rows.offsets(kept)
    out = np.full(packed[-1], -1, np.int32)
    csr.pack_rows(indptr, packed, indices, out)
    assert out.tolist() == [item for row in lists for item in sorted(set(row))]


def test_scatter_moves_each_cursor_to_its_end():
    cursor, out = np.array([0, 2, 2]), np.full(5, -1)
    csr.scatter(np.array([2, 0, 2, 0, 2]), np.array([9, 8, 7, 6, 5]), cursor, out)
    assert out.tolist() == [8, 6, 9, 7, 5]
    assert cursor.tolist() == [2, 2, 5]
