"""Positives against a Python set of pairs: what they answer, how small and how fast they are."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from positives_as_sets import BIG, COMPILING, N_ANCHORS, N_ITEMS, PAIRS, as_set, build, refusal, same, with_ignored

import naysay as ns


@COMPILING
@given(PAIRS, PAIRS)
def test_every_pair_is_known_or_not(pairs, ignored):
    known = with_ignored(pairs, ignored)
    positive, ignore = set(pairs), set(ignored) - set(pairs)
    anchors, items = np.divmod(np.arange(N_ANCHORS * N_ITEMS), N_ITEMS)
    grid = list(zip(anchors.tolist(), items.tolist(), strict=True))
    for relation, expected in (("positive", positive), ("ignore", ignore), ("any", positive | ignore)):
        found = known.contains(anchors, items, relation=relation)
        assert found.dtype == bool
        assert found.tolist() == [pair in expected for pair in grid]
        counts = [sum(anchor == row for anchor, _ in expected) for row in range(N_ANCHORS)]
        assert known.count(relation=relation).tolist() == counts
        assert known.count([4, 0, 4], relation=relation).tolist() == [counts[4], counts[0], counts[4]]
    assert known.contains(anchors, items).tolist() == known.contains(anchors, items, relation="positive").tolist()
    assert known.count().tolist() == known.count(relation="positive").tolist()
    assert known.item_counts().tolist() == [sum(item == i for _, i in positive) for item in range(N_ITEMS)]
    assert list(zip(*(part.tolist() for part in known.pairs()), strict=True)) == sorted(positive | ignore)
    assert len(known) == len(positive | ignore)


@COMPILING
@given(PAIRS, PAIRS)
def test_the_nth_negative_is_the_nth_of_what_is_left(pairs, ignored):
    known = with_ignored(pairs, ignored)
    for row in range(N_ANCHORS):
        left = [item for item in range(N_ITEMS) if (row, item) not in {*pairs, *ignored}]
        expected = [*left, *[-1] * (N_ITEMS + 2 - len(left))]
        ranks = np.arange(N_ITEMS + 2)
        assert known.nth_negative(np.full(len(ranks), row), ranks).tolist() == expected
        assert known.nth_negative([row], ranks[None]).tolist() == [expected]
    assert known.nth_negative([0, 1], [[0], [0]]).shape == (2, 1)


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
        ([], [], (0,)),
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
    for form in (lambda value: value, torch.tensor, lambda value: np.array(value, np.int32)):
        if np.size(items):
            found = build(pairs).contains(form(anchors), form(items))
            assert found.shape == shape
            assert found.tolist() == expected.tolist()
    assert build(pairs).contains(anchors, items).shape == shape


@pytest.mark.parametrize("items", [[[0, 1, 2], [3, 4, 5]], [0, 1], np.zeros((3, 2, 2), int)])
def test_anchors_never_go_along_the_slots(items):
    message = refusal(build([]).contains, [0, 1, 2], items)
    shapes = f"shapes (3,) and {np.shape(items)}"
    assert message == f"Positives.contains: `items` must be of shape (B,) or (B, K) for anchors (B,), got {shapes}."


def test_an_empty_slot_is_never_known():
    known = with_ignored([(0, 0), (0, N_ITEMS - 1)], [(1, N_ITEMS - 1)])
    for relation in ("positive", "ignore", "any"):
        assert known.contains([0, 1], [[-1, -1], [-1, -1]], relation=relation).any() == np.False_


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_memory_layout(order):
    known = build([(0, 1), (1, 2)])
    items = np.asarray(np.array([[1, 2], [1, 2]]), order=order)
    assert known.contains([0, 1], items).tolist() == [[True, False], [False, True]]
    assert known.contains(np.array([1, 0])[::-1], items[:, ::-1]).tolist() == [[False, True], [True, False]]
    assert known.contains(np.array([0, 1], ">i4"), np.array([1, 2], ">i8")).tolist() == [True, True]


def test_asking_rejects():
    known = build([(0, 1)])
    rule = "between 0 and 4 (5 anchors), got 5 at row 1 (1 such row)."
    assert refusal(known.contains, [0, 5], [0, 0]) == f"Positives.contains: `anchors` must be {rule}"
    assert refusal(known.count, [0, 5]) == f"Positives.count: `anchors` must be {rule}"
    assert refusal(known.nth_negative, [0, 5], [0, 0]) == f"Positives.nth_negative: `anchors` must be {rule}"
    rule = "between 0 and 4 (5 anchors), got -1 at row 0 (1 such row)."
    assert refusal(known.contains, [-1], [0]) == f"Positives.contains: `anchors` must be {rule}"
    rule = "Positives.contains: `items` must be between -1 and 8 (9 items), got"
    assert refusal(known.contains, [0], [-2]) == f"{rule} -2 at row 0 (1 such row)."
    assert refusal(known.contains, [0, 0], [[0, 1], [2, 9]]) == f"{rule} 9 at row 1, slot 1 (1 such row)."
    assert refusal(known.contains, 0, 9) == f"{rule} 9 at row 0 (1 such row)."
    rule = "Positives.contains: `items` must be whole numbers, got dtype float64. Ids count from 0."
    assert refusal(known.contains, [0], [0.5]) == rule
    assert refusal(known.nth_negative, [0], [-1]) == "Positives.nth_negative: `ranks` must be at least 0, got -1."
    rule = "`relation` must be one of 'positive', 'ignore', 'any', got 'ignored'. Did you mean 'ignore'?"
    assert refusal(known.contains, [0], [0], relation="ignored") == f"Positives.contains: {rule}"
    assert refusal(known.count, relation="ignored") == f"Positives.count: {rule}"


def test_questions_by_name():
    known = ns.Positives.from_pairs(["ann", "ann", "bob"], ["tea", "jam", "tea"]).with_ignored(["bob"], ["jam"])
    assert known.contains(["ann", "bob"], ["jam", "jam"]).tolist() == [True, False]
    assert known.contains(["bob", "ann"], [["tea", "jam"], ["tea", "jam"]]).tolist() == [[True, False], [True, True]]
    assert known.contains("bob", "jam", relation="ignore")
    assert known.contains(["bob"], [0]).tolist() == [True]  # a name with an id
    assert known.contains([1], [-1]).tolist() == [False]
    assert known.count(["bob", "ann", "bob"]).tolist() == [1, 2, 1]
    assert known.count([1, 0, 1]).tolist() == [1, 2, 1]
    assert known.count(["bob"], relation="ignore").tolist() == [1]
    assert known.nth_negative(["ann", "bob"], [0, 0]).tolist() == [-1, -1]
    rule = "must be among the 2 known names, got 'eve' at row 1 (1 such row)."
    assert refusal(known.contains, ["ann", "eve"], ["tea", "tea"]) == f"Positives.contains: `anchors` {rule}"
    assert refusal(known.contains, ["ann", "ann"], ["tea", "eve"]) == f"Positives.contains: `items` {rule}"
    assert refusal(known.count, ["ann", "eve"]) == f"Positives.count: `anchors` {rule}"
    ragged = "must be rows of one length, got rows of different lengths."
    assert refusal(known.contains, [0, 1], [[0], [0, 1]]) == f"Positives.contains: `items` {ragged}"


def test_counting_a_few_anchors_reads_only_their_rows():
    known = with_ignored([(0, 1), (0, 2), (4, 3)], [(0, 5), (4, 4), (2, 2)])
    read = []

    class Watched(np.ndarray):
        def __getitem__(self, places):
            read.append(np.size(places))
            return super().__getitem__(places)

        def __eq__(self, other):
            read.append(self.size)
            return np.asarray(self) == other

        __hash__ = None

    known.relation = known.relation.view(Watched)
    assert known.count([4]).tolist() == [1]
    assert max(read) == 2


# ---- size and speed


@pytest.mark.parametrize(("n_items", "kind"), [(2**31 - 1, np.int32), (BIG, np.int64)])
def test_ids_are_as_small_as_they_can_be(n_items, kind):
    known = ns.Positives.from_pairs([0, 0, 1], [n_items - 1, 3, n_items - 2], n_items=n_items)
    assert known.indices.dtype == kind
    assert known.contains([0, 0, 1, 1], [[n_items - 1], [2], [n_items - 2], [n_items - 1]]).ravel().tolist() == [
        True,
        False,
        True,
        False,
    ]
    assert known.nth_negative([0, 0, 0, 0], [0, 3, n_items - 3, n_items - 2]).tolist() == [0, 4, n_items - 2, -1]
    more = ns.Positives.from_pairs([1], [5]).union(known)
    assert (more.n_items, more.indices.dtype) == (n_items, kind)
    assert as_set(more) == {(0, 3), (0, n_items - 1), (1, 5), (1, n_items - 2)}
    ignored = known.with_ignored([1], [0])
    assert ignored.count(relation="ignore").tolist() == [0, 1]


def test_five_bytes_a_pair():
    rng = np.random.default_rng(0)
    anchors, items = rng.integers(0, 50_000, 1_000_000), rng.integers(0, 200_000, 1_000_000)
    known = ns.Positives.from_pairs(anchors, items)
    assert len(known) + known.duplicates == 1_000_000
    assert known.nbytes == sum(getattr(known, name).nbytes for name in ("indptr", "indices", "filter"))
    assert known.nbytes <= 5 * len(known) + 8 * (known.n_anchors + 1)
    assert known.contains(anchors, items).all()
    others, keys = rng.integers(0, known.n_items, 50_000), anchors * 200_000 + items
    assert np.array_equal(known.contains(anchors[:50_000], others), np.isin(anchors[:50_000] * 200_000 + others, keys))
    related = known.with_ignored([0], [next(i for i in range(9) if not known.contains(0, i))])
    assert related.nbytes == known.nbytes + 5 + len(related)


def test_threads_change_nothing():
    rng = np.random.default_rng(1)
    anchors, items = rng.integers(0, 900, 200_000), rng.integers(0, 5000, 200_000)
    before, built = ns.kernels.threads.threads(), []
    try:
        for count in (1, 2, 4):
            ns.set_threads(count)
            known = ns.Positives.from_pairs(anchors, items).union(ns.Positives.from_pairs(items % 900, anchors))
            answers = known.contains(items % 900, anchors).all(), known.nth_negative(anchors, items % 900).sum()
            built.append((known, answers))
    finally:
        ns.set_threads(before)
    for known, answers in built[1:]:
        assert same(known, built[0][0])
        assert answers == built[0][1]
    assert built[0][1][0]
