"""What Positives answer beyond the contract: ranks of negatives, shapes, names, unions, sizes in memory."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from positives_as_sets import ARRAYS, COMPILING, N_ANCHORS, N_ITEMS, PAIRS, as_set, build, same, with_ignored

import naysay as ns


@COMPILING
@given(PAIRS, PAIRS)
def test_the_nth_negative_is_the_nth_of_what_is_left(pairs, ignored):
    known = with_ignored(pairs, ignored)
    ranks = np.arange(N_ITEMS + 2)
    for row in range(N_ANCHORS):
        left = [item for item in range(N_ITEMS) if (row, item) not in {*pairs, *ignored}]
        expected = [*left, *[-1] * (N_ITEMS + 2 - len(left))]
        assert known.nth_negative(np.full(len(ranks), row), ranks).tolist() == expected
        assert known.nth_negative([row], ranks[None]).tolist() == [expected]


@COMPILING
@given(st.integers(0, 2**31 - 1), st.integers(30, 400), st.integers(1, 2**40))
def test_long_rows_of_any_ids(seed, length, n_items):
    ids = np.random.default_rng(seed).integers(0, n_items, length)
    known = ns.Positives.from_csr([0, length], ids, n_items)
    asked = np.unique(np.concatenate([ids, ids - 1, ids + 1, [-1, 0, n_items - 1]]).clip(-1, n_items - 1))
    members = set(ids.tolist())
    assert known.contains(np.zeros(len(asked), int), asked).tolist() == [item in members for item in asked.tolist()]
    free = n_items - len(members)
    for rank in {0, free // 2, free - 1} if free else ():
        item = int(known.nth_negative([0], [rank])[0])
        assert item not in members
        assert item - sum(member < item for member in members) == rank


@pytest.mark.parametrize(
    ("anchors", "items", "shape"),
    [
        ([], np.empty((0, 3), int), (0, 3)),
        ([0, 1], [0, 1], (2,)),
        ([0, 1], [[0, 1, 2], [3, 4, 5]], (2, 3)),
        ([0, 1], np.empty((2, 0), int), (2, 0)),
        ([[0], [1]], [[0, 1, 2], [3, 4, 5]], (2, 3)),
        ([1], [[0, 1, 2], [3, 4, 5]], (2, 3)),
        (1, [0, 1, 2], (3,)),
        ([0, 1, 2], 4, (3,)),
        (0, 1, ()),
        ([0, 1, 2], [[0, 1, 2], [3, 4, 5], [6, 7, 8]], (3, 3)),
    ],
)
def test_anchors_go_with_items_row_by_row(anchors, items, shape):
    pairs = [(0, 0), (0, 1), (1, 4), (1, 1), (2, 4), (2, 6), (0, 6)]
    owners = np.array(anchors, int)
    if owners.ndim == 1 and np.ndim(items) == 2:
        owners = owners[:, None]
    owners, partners = np.broadcast_arrays(owners, np.array(items, int))
    flat = zip(owners.ravel().tolist(), partners.ravel().tolist(), strict=True)
    expected = np.array([pair in pairs for pair in flat], bool).reshape(shape)
    for form in (np.array, torch.tensor, lambda value: np.asarray(value, ">i4", order="F")):
        if np.size(items):
            assert build(pairs).contains(form(anchors), form(items)).tolist() == expected.tolist()
    assert build(pairs).contains(anchors, items).shape == shape


KNOWN = build([(0, 1)])
NAMED = ns.Positives.from_pairs(["ann", "ann", "bob"], ["tea", "jam", "tea"]).with_ignored(["bob"], ["jam"])


@pytest.mark.parametrize(
    ("call", "arguments", "options", "parameter"),
    [
        (KNOWN.contains, ([0, 5], [0, 0]), {}, "anchors"),
        (KNOWN.contains, ([-1], [0]), {}, "anchors"),
        (KNOWN.contains, ([0], [-2]), {}, "items"),
        (KNOWN.contains, ([0, 0], [[0, 1], [2, 9]]), {}, "items"),
        (KNOWN.contains, ([0], [0.5]), {}, "items"),
        (KNOWN.contains, ([0, 1], [[0], [0, 1]]), {}, "items"),
        (KNOWN.contains, ([0, 1, 2], [[0, 1, 2], [3, 4, 5]]), {}, "items"),  # never along the slots
        (KNOWN.contains, ([0, 1, 2], np.zeros((3, 2, 2), int)), {}, "items"),
        (KNOWN.contains, ([0], [0]), {"relation": "ignored"}, "relation"),
        (KNOWN.count, ([0, 5],), {}, "anchors"),
        (KNOWN.count, (), {"relation": "ignored"}, "relation"),
        (KNOWN.nth_negative, ([0, 5], [0, 0]), {}, "anchors"),
        (KNOWN.nth_negative, ([0], [-1]), {}, "ranks"),
        (KNOWN.union, ([(0, 1)],), {}, "other"),
        (KNOWN.union, (ns.Positives.from_pairs(["ann"], [0]),), {}, "other"),  # four anchors have no name
        (KNOWN.with_ignored, ([0], [9]), {}, "items"),
        (KNOWN.with_ignored, ([-1], [0]), {}, "anchors"),
        (KNOWN.with_ignored, ([0], [0, 1]), {}, "anchors"),
        (KNOWN.with_ignored, (["ann"], [0]), {}, "anchors"),
        (NAMED.contains, (["ann", "eve"], ["tea", "tea"]), {}, "anchors"),
        (NAMED.contains, (["ann", "ann"], ["tea", "eve"]), {}, "items"),
        (NAMED.count, (["ann", "eve"],), {}, "anchors"),
        (NAMED.with_ignored, (["eve"], [0]), {}, "anchors"),
    ],
)
def test_invalid_questions(call, arguments, options, parameter):
    with pytest.raises(ns.NaysayError) as error:
        call(*arguments, **options)
    assert error.value.parameter == parameter
    assert str(error.value).startswith(f"Positives.{call.__name__}: `{parameter}` must be ")


def test_questions_by_name():
    assert NAMED.contains(["ann", "bob"], ["jam", "jam"]).tolist() == [True, False]
    assert NAMED.contains(["bob", "ann"], [["tea", "jam"], ["tea", "jam"]]).tolist() == [[True, False], [True, True]]
    assert NAMED.contains("bob", "jam", relation="ignore")
    assert NAMED.contains(["bob"], [0]).tolist() == [True]  # a name with an id
    assert NAMED.count(["bob", "ann", "bob"]).tolist() == NAMED.count([1, 0, 1]).tolist() == [1, 2, 1]
    assert NAMED.count(["bob"], relation="ignore").tolist() == [1]
    assert NAMED.nth_negative(["ann", "bob"], [0, 0]).tolist() == [-1, -1]


# ---- Unions ----------------------------------------------------------------------------------------------------------


@COMPILING
@given(PAIRS, PAIRS, PAIRS, PAIRS)
def test_in_a_union_positive_wins(a, a_ignored, b, b_ignored):
    one, other = with_ignored(a, a_ignored), with_ignored(b, b_ignored)
    before = copy.deepcopy(one)
    both = one.union(other)
    assert as_set(both, "positive") == {*a, *b}
    assert as_set(both, "ignore") == {*a_ignored, *b_ignored} - {*a, *b}
    assert both.duplicates == one.duplicates + other.duplicates
    assert same(both, other.union(one))
    assert same(one, before)
    assert np.array_equal(both.filter, build([*a, *b, *a_ignored, *b_ignored]).filter)
    assert (both.relation is None) == ({*a_ignored, *b_ignored} <= {*a, *b})  # a byte a pair only where it is used


def named_pairs(known, relation="positive"):
    anchors, items = known.pairs()
    chosen = known.contains(anchors, items, relation=relation)
    return set(zip(known.anchor_names.names(anchors[chosen]), known.item_names.names(items[chosen]), strict=True))


def test_a_union_takes_new_users_and_items_by_name():
    """Ids stay those of the first; the second is looked up by name, and its new names follow."""
    first = ns.Positives.from_pairs(["ann", "bob"], ["x", "y"])
    later = ns.Positives.from_pairs(["cy", "bob", "ann"], ["z", "x", "x"]).with_ignored(["cy"], ["x"])
    both = first.union(later)
    assert both.anchor_names.names([0, 1, 2]) == ["ann", "bob", "cy"]
    assert both.item_names.names([0, 1, 2]) == ["x", "y", "z"]
    assert named_pairs(both) == {("ann", "x"), ("bob", "y"), ("cy", "z"), ("bob", "x")}
    assert named_pairs(both, "ignore") == {("cy", "x")}
    assert both.contains(*first.pairs()).all()
    drawn = ns.pools.Everything(both).draw(ns.Query(both.anchor_names.ids(["cy"])), 3, rng=ns.rng_for(0))
    assert both.item_names.names(drawn.ids[drawn.ids >= 0]) == ["y"]


@COMPILING
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz")), min_size=1),
    st.lists(st.tuples(st.sampled_from("cdef"), st.sampled_from("yzuv")), min_size=1),
)
def test_a_union_of_names_is_the_union_of_sets(one, other):
    first, second = (ns.Positives.from_pairs([a for a, _ in part], [i for _, i in part]) for part in (one, other))
    assert named_pairs(first.union(second)) == {*one, *other}


def test_a_union_with_names_on_one_side_or_in_one_part():
    both = ns.Positives.from_pairs([0], ["x"]).union(ns.Positives.from_pairs([4], ["y"]))
    assert (both.n_anchors, both.item_names.names([0, 1])) == (5, ["x", "y"])
    assert as_set(both) == {(0, 0), (4, 1)}
    named = ns.Positives.from_pairs(["ann", "bob"], ["x", "y"])
    both = named.union(ns.Positives.from_pairs([0], [1], n_anchors=2, n_items=2))
    assert both.anchor_names == named.anchor_names
    assert as_set(both) == {(0, 0), (0, 1), (1, 1)}
    assert as_set(named.with_ignored(["bob"], ["x"]), "ignore") == {(1, 0)}


# ---- Size, threads and protection ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_items", "kind"), [(2**31 - 1, np.int32), (2**31 + 5, np.int64)])
def test_ids_are_as_small_as_they_can_be(n_items, kind):
    known = ns.Positives.from_pairs([0, 0, 1], [n_items - 1, 3, n_items - 2], n_items=n_items)
    assert known.indices.dtype == kind
    asked = [[n_items - 1], [2], [n_items - 2], [n_items - 1]]
    assert known.contains([0, 0, 1, 1], asked).ravel().tolist() == [True, False, True, False]
    assert known.nth_negative([0, 0, 0, 0], [0, 3, n_items - 3, n_items - 2]).tolist() == [0, 4, n_items - 2, -1]
    more = ns.Positives.from_pairs([1], [5]).union(known)
    assert (more.n_items, more.indices.dtype) == (n_items, kind)


def test_five_bytes_a_pair_and_six_with_ignored_ones():
    rng = np.random.default_rng(0)
    anchors, items = rng.integers(0, 5000, 200_000), rng.integers(0, 20_000, 200_000)
    known = ns.Positives.from_pairs(anchors, items)
    assert len(known) + known.duplicates == 200_000
    assert known.nbytes == 5 * len(known) + 8 * (known.n_anchors + 1)
    assert known.contains(anchors, items).all()  # by the compiled loop
    others, keys = rng.integers(0, known.n_items, 200_000), anchors * 20_000 + items
    assert np.array_equal(known.contains(anchors, others), np.isin(anchors * 20_000 + others, keys))
    related = known.with_ignored([0], [next(i for i in range(9) if not known.contains(0, i))])
    assert related.nbytes == known.nbytes + 5 + len(related)


def test_threads_change_nothing():
    rng = np.random.default_rng(1)
    anchors, items = rng.integers(0, 900, 200_000), rng.integers(0, 5000, 200_000)
    before, built = ns.kernels.threads.threads(), []
    try:
        for count in (1, 4):
            ns.set_threads(count)
            known = ns.Positives.from_pairs(anchors, items)
            built.append((known, known.contains(anchors, items[::-1]), known.nth_negative(anchors, items % 900)))
    finally:
        ns.set_threads(before)
    assert same(built[0][0], built[1][0])
    assert all(np.array_equal(one, other) for one, other in zip(built[0][1:], built[1][1:], strict=True))


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_only(name):
    for known in (with_ignored([(0, 1)], [(0, 2)]), with_ignored([(0, 1)], [(0, 2)]).union(build([(1, 1)]))):
        with pytest.raises(ValueError, match="read-only"):
            getattr(known, name)[0] = 0
