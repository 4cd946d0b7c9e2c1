"""Positives against a Python set of pairs."""

import copy
import pickle
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.positives import IGNORE, POSITIVE

COMPILING = settings(deadline=None)  # a first call compiles
N_ANCHORS, N_ITEMS = 5, 9
PAIRS = st.lists(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1)), max_size=60)
ARRAYS = ("indptr", "indices", "filter", "relation")
BIG = 2**31 + 5


def build(pairs, n_anchors=N_ANCHORS, n_items=N_ITEMS):
    return ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], n_anchors, n_items)


def with_ignored(pairs, ignored):
    return build(pairs).with_ignored([a for a, _ in ignored], [i for _, i in ignored])


def as_set(known, relation="any"):
    anchors, items = known.pairs()
    kept = known.contains(anchors, items, relation=relation)
    return set(zip(anchors[kept].tolist(), items[kept].tolist(), strict=True))


def same(one, other):
    """Whether two have the same arrays, sizes and names."""
    arrays = all(
        (getattr(one, name) is None) == (getattr(other, name) is None)
        and (getattr(one, name) is None or np.array_equal(getattr(one, name), getattr(other, name)))
        for name in ARRAYS
    )
    rest = ("n_anchors", "n_items", "duplicates", "anchor_names", "item_names")
    return arrays and all(getattr(one, name) == getattr(other, name) for name in rest)


def refusal(call, *arguments, **named):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- asking ---------------------------------------------------------------------------------------------


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


def test_asking_refuses():
    known = build([(0, 1)])
    rule = "between 0 and 4 (5 anchors), got 5 at row 1 (1 such row)."
    assert refusal(known.contains, [0, 5], [0, 0]) == f"Positives.contains: `anchors` must be {rule}"
    assert refusal(known.count, [0, 5]) == f"Positives.count: `anchors` must be {rule}"
    assert refusal(known.nth_negative, [0, 5], [0, 0]) == f"Positives.nth_negative: `anchors` must be {rule}"
    rule = "between 0 and 4 (5 anchors), got -1 at row 0 (1 such row)."
    assert refusal(known.contains, [-1], [0]) == f"Positives.contains: `anchors` must be {rule}"
    rule = "Positives.contains: `items` must be between -1 and 8 (9 items), got"
    assert refusal(known.contains, [0], [-2]) == f"{rule} -2 at row 0 (1 such row)."
    assert refusal(known.contains, [0, 0], [[0, 1], [2, 9]]) == f"{rule} [2, 9] at row 1 (1 such row)."
    assert refusal(known.contains, 0, 9) == f"{rule} 9 at row 0 (1 such row)."
    rule = "Positives.contains: `items` must be whole numbers, got dtype float64. Ids count from 0."
    assert refusal(known.contains, [0], [0.5]) == rule
    assert refusal(known.nth_negative, [0], [-1]) == "Positives.nth_negative: `ranks` must be at least 0, got -1."
    rule = "`relation` must be one of 'positive', 'ignore', 'any', got 'ignored'. Did you mean 'ignore'?"
    assert refusal(known.contains, [0], [0], relation="ignored") == f"Positives.contains: {rule}"
    assert refusal(known.count, relation="ignored") == f"Positives.count: {rule}"


# ---- making one -----------------------------------------------------------------------------------------


@COMPILING
@given(PAIRS, st.permutations(range(60)))
def test_rows_are_sorted_whatever_the_order(pairs, order):
    shuffled = [pairs[place] for place in order if place < len(pairs)]
    known = build(shuffled)
    assert known.duplicates == len(pairs) - len(set(pairs))
    assert same(known, build(pairs))
    for row in range(N_ANCHORS):
        ids = known.indices[known.indptr[row] : known.indptr[row + 1]].tolist()
        assert ids == sorted({item for anchor, item in pairs if anchor == row})


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        np.array,
        torch.tensor,
        pa.array,
        lambda ids: np.array(ids, np.uint8),
        lambda ids: np.array(ids, np.uint64),
        lambda ids: np.array(ids, ">i4"),
        lambda ids: torch.tensor(ids, dtype=torch.int32),
        lambda ids: np.repeat(np.array(ids), 2)[::2],
        lambda ids: np.array(ids)[::-1][::-1],
    ],
)
def test_ids_in_any_form(form):
    known = ns.Positives.from_pairs(form([1, 0, 1]), form([2, 3, 0]))
    assert as_set(known) == {(1, 2), (0, 3), (1, 0)}
    assert (known.n_anchors, known.n_items) == (2, 4)
    assert known.anchor_names is known.item_names is None


@pytest.mark.parametrize("empty", [[], np.array([]), torch.tensor([]), np.array([], np.int32), pa.array([])])
def test_no_pairs(empty):
    for known in (ns.Positives.from_pairs(empty, empty), ns.Positives.from_pairs(empty, empty, 3, 4)):
        assert len(known) == 0
        assert known.contains([], []).tolist() == []
        assert known.count().tolist() == [0] * known.n_anchors
        assert known.item_counts().tolist() == [0] * known.n_items
    assert known.contains([0, 2], [3, 0]).tolist() == [False, False]
    assert known.nth_negative([0, 2], [3, 4]).tolist() == [3, -1]


def test_sizes_default_to_the_largest_id():
    assert repr(ns.Positives.from_pairs([2], [1000])) == "Positives(1 pairs, 3 anchors x 1,001 items)"
    assert repr(ns.Positives.from_pairs([2], [1000], 7, 2000)) == "Positives(1 pairs, 7 anchors x 2,000 items)"


def test_strings_get_a_vocabulary():
    known = ns.Positives.from_pairs(["ann", "bob", "ann"], ["x", "y", "x"])
    assert known.duplicates == 1
    assert as_set(known) == {(0, 0), (1, 1)}
    assert known.anchor_names.names([0, 1]) == ["ann", "bob"]
    assert known.contains(known.anchor_names.ids(["bob"]), known.item_names.ids(["y"])).tolist() == [True]
    mixed = ns.Positives.from_pairs(["ann", "bob"], [5, 6])
    assert mixed.item_names is None
    assert (mixed.n_anchors, mixed.n_items) == (2, 7)


@pytest.mark.parametrize(
    ("anchors", "items", "sizes", "message"),
    [
        ([0, 1], [0], {}, "`anchors` must be as long as its partners, got anchors 2, items 1."),
        ([0, -1], [0, 0], {}, "`anchors` must be at least 0, got -1 at row 1 (1 such row)."),
        ([0, 0], [-7, -1], {}, "`items` must be at least 0, got -7 at row 0 (2 such rows)."),
        (
            [0, 3],
            [0, 0],
            {"n_anchors": 3},
            "`anchors` must be between 0 and 2 (3 anchors), got 3 at row 1 (1 such row).",
        ),
        ([0, 0], [-1, 0], {"n_items": 3}, "`items` must be between 0 and 2 (3 items), got -1 at row 0 (1 such row)."),
        ([0], [0], {"n_items": 0}, "`items` must be empty (there are 0 items), got 0 at row 0 (1 such row)."),
        ([], [], {"n_items": -1}, "`n_items` must be at least 0, got -1."),
        ([], [], {"n_anchors": 2.0}, "`n_anchors` must be a whole number, got 2.0."),
        ([0.0], [0], {}, "`anchors` must be whole numbers, got dtype float64. Ids count from 0."),
        ([[0]], [0], {}, "`anchors` must be of shape (n,), got shape (1, 1)."),
        ([True], [0], {}, "`anchors` must be whole numbers, got dtype bool. Ids count from 0."),
        (["a"], [None], {}, "`items` must be whole numbers, or strings throughout, got values of type NoneType."),
    ],
)
def test_from_pairs_refuses(anchors, items, sizes, message):
    assert refusal(ns.Positives.from_pairs, anchors, items, **sizes) == f"Positives.from_pairs: {message}"


@COMPILING
@given(PAIRS)
def test_csr_and_scipy_say_the_same(pairs):
    rows = [[item for anchor, item in pairs if anchor == row] for row in range(N_ANCHORS)]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([item for row in rows for item in row], np.int64)
    given_arrays = indptr.copy(), indices.copy()
    known = ns.Positives.from_csr(indptr, indices, N_ITEMS)
    assert same(known, build(pairs))
    assert np.array_equal(indptr, given_arrays[0])  # what was given is not sorted in place
    assert np.array_equal(indices, given_arrays[1])
    dense = np.zeros((N_ANCHORS, N_ITEMS))
    for pair in pairs:
        dense[pair] += 0.5
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array, scipy.sparse.lil_matrix):
        matrix = kind(dense)
        found = ns.Positives.from_scipy(matrix)
        assert as_set(found) == set(pairs)
        assert (found.n_anchors, found.n_items) == (N_ANCHORS, N_ITEMS)
        assert matrix.nnz == len(set(pairs))


def test_explicit_zeros_are_not_positives():
    matrix = scipy.sparse.csr_array(
        (np.array([1.0, 0.0, -2.0]), np.array([0, 1, 2]), np.array([0, 2, 3])), shape=(2, 3)
    )
    assert as_set(ns.Positives.from_scipy(matrix)) == {(0, 0), (1, 2)}
    assert matrix.nnz == 3  # the matrix is left as it was


@pytest.mark.parametrize(
    ("indptr", "indices", "n_items", "message"),
    [
        ([], [], None, "`indptr` must be a rising sequence from 0 to the 0 indices, got 0 values, [] to []."),
        ([1, 2], [0, 0], None, "`indptr` must be a rising sequence from 0 to the 2 indices, got 2 values, [1] to [2]."),
        ([0, 1], [0, 0], None, "`indptr` must be a rising sequence from 0 to the 2 indices, got 2 values, [0] to [1]."),
        (
            [0, 3, 1, 2],
            [0, 0],
            None,
            "`indptr` must be a rising sequence from 0 to the 2 indices, got a fall to 1 at row 1 (1 such row).",
        ),
        ([0, 2], [0, 5], 5, "`indices` must be between 0 and 4 (5 items), got 5 at row 1 (1 such row)."),
        ([0, 1], [-1], None, "`indices` must be at least 0, got -1 at row 0 (1 such row)."),
        ([0, 1], [0.5], None, "`indices` must be whole numbers, got dtype float64. Ids count from 0."),
    ],
)
def test_from_csr_refuses(indptr, indices, n_items, message):
    assert refusal(ns.Positives.from_csr, indptr, indices, n_items) == f"Positives.from_csr: {message}"


def test_from_scipy_refuses():
    message = "Positives.from_scipy: `matrix` must be a scipy.sparse matrix, got ndarray."
    assert refusal(ns.Positives.from_scipy, np.eye(2)) == message


@COMPILING
@given(PAIRS, st.booleans(), st.booleans())
def test_edges(edges, directed, self_pairs):
    edges = [(a, i % N_ANCHORS) for a, i in edges]
    sources, targets = [a for a, _ in edges], [i for _, i in edges]
    known = ns.Positives.from_edges(sources, targets, N_ANCHORS, directed=directed, self_pairs=self_pairs)
    expected = set(edges) if directed else {*edges, *((b, a) for a, b in edges)}
    loops = {(v, v) for v in range(N_ANCHORS)} - expected
    assert as_set(known, "positive") == expected
    assert as_set(known, "ignore") == (set() if self_pairs else loops)
    assert known.n_anchors == known.n_items == N_ANCHORS


def test_edges_default_to_both_ways_and_ignore_self_pairs():
    known = ns.Positives.from_edges([0], [2])
    assert known.n_anchors == known.n_items == 3
    assert as_set(known, "positive") == {(0, 2), (2, 0)}
    assert as_set(known, "ignore") == {(0, 0), (1, 1), (2, 2)}
    assert len(ns.Positives.from_edges([], [])) == 0


@pytest.mark.parametrize(
    ("sources", "targets", "n_nodes", "message"),
    [
        ([0, 1], [0], None, "`sources` must be as long as its partners, got sources 2, targets 1."),
        ([0, -1], [0, 0], None, "`sources` must be at least 0, got -1 at row 1 (1 such row)."),
        ([0], [-1], None, "`targets` must be at least 0, got -1 at row 0 (1 such row)."),
        ([0], [4], 4, "`targets` must be between 0 and 3 (4 nodes), got 4 at row 0 (1 such row)."),
        ([0], [1], 1.5, "`n_nodes` must be a whole number, got 1.5."),
        (["a"], ["b"], None, "`sources` must be whole numbers, got dtype <U1. Ids count from 0."),
    ],
)
def test_from_edges_refuses(sources, targets, n_nodes, message):
    assert refusal(ns.Positives.from_edges, sources, targets, n_nodes) == f"Positives.from_edges: {message}"


def test_tables_of_numbers_and_strings(tmp_path):
    table = pa.table({"user": [1, 0, 1], "item": ["x", "y", "x"], "when": [None, 1.5, 2.5]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    (tmp_path / "pairs.csv").write_text("user;item;when\n1;x;\n0;y;1.5\n1;x;2.5\n")
    from_arrow = ns.Positives.from_arrow(table, anchors="user", items="item")
    from_parquet = ns.Positives.from_parquet(tmp_path / "pairs.parquet", anchors="user", items="item")
    from_csv = ns.Positives.from_csv(tmp_path / "pairs.csv", anchors="user", items="item", delimiter=";")
    assert as_set(from_arrow) == {(1, 0), (0, 1)}
    assert from_arrow.duplicates == 1
    assert from_arrow.anchor_names is None
    assert from_arrow.item_names.names([0, 1]) == ["x", "y"]
    assert same(from_arrow, from_parquet)
    assert same(from_arrow, from_csv)


def test_an_empty_table(tmp_path):
    (tmp_path / "pairs.csv").write_text("user,item\n")
    assert len(ns.Positives.from_csv(tmp_path / "pairs.csv", anchors="user", items="item")) == 0
    assert len(ns.Positives.from_arrow(pa.table({"u": [], "i": []}), anchors="u", items="i")) == 0


def test_tables_refuse(tmp_path):
    table = pa.table({"user": [1, None], "item": [1, 2]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    (tmp_path / "pairs.csv").write_text("user,item\n1,1\n,2\n")
    nulls = "Positives.from_arrow: `anchors` must be a column without nulls ('user'), got null at row 1 (1 such row)."
    near = "`items` must be one of the columns 'user', 'item', got 'itm'. Did you mean 'item'?"
    for name, source in (("arrow", table), ("parquet", tmp_path / "pairs.parquet"), ("csv", tmp_path / "pairs.csv")):
        make = getattr(ns.Positives, f"from_{name}")
        assert refusal(make, source, anchors="user", items="item") == nulls
        assert refusal(make, source, anchors="user", items="itm") == f"Positives.from_{name}: {near}"
    missing = tmp_path / "none.parquet"
    message = f"Positives.from_parquet: `path` must be an existing file, got {str(missing)!r}."
    assert refusal(ns.Positives.from_parquet, missing, anchors="user", items="item") == message


# ---- size and speed -------------------------------------------------------------------------------------


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


def test_five_bytes_a_pair_and_two_seconds_a_million():
    rng = np.random.default_rng(0)
    build([(0, 1)])  # compiled
    anchors, items = rng.integers(0, 50_000, 1_000_000), rng.integers(0, 200_000, 1_000_000)
    start = time.perf_counter()
    known = ns.Positives.from_pairs(anchors, items)
    took = time.perf_counter() - start
    assert took < 2.0
    assert len(known) + known.duplicates == 1_000_000
    assert known.nbytes == sum(getattr(known, name).nbytes for name in ("indptr", "indices", "filter"))
    assert known.nbytes <= 5 * len(known) + 8 * (known.n_anchors + 1)
    assert known.contains(anchors, items).all()
    others = rng.integers(0, known.n_items, 1_000_000)
    keys = np.unique(anchors * 200_000 + items)
    assert np.array_equal(known.contains(anchors, others), np.isin(anchors * 200_000 + others, keys))
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


# ---- combining ------------------------------------------------------------------------------------------


@COMPILING
@given(PAIRS, PAIRS, PAIRS, PAIRS)
def test_union_holds_both_and_positive_wins(a, a_ignored, b, b_ignored):
    one, other = with_ignored(a, a_ignored), with_ignored(b, b_ignored)
    both = one.union(other)
    assert as_set(both, "positive") == {*a, *b}
    assert as_set(both, "ignore") == {*a_ignored, *b_ignored} - {*a, *b}
    assert both.duplicates == one.duplicates + other.duplicates
    swapped = other.union(one)
    assert same(both, swapped)
    assert np.array_equal(both.filter, build([*a, *b, *a_ignored, *b_ignored]).filter)


@COMPILING
@given(PAIRS, PAIRS)
def test_a_relation_byte_only_where_it_is_used(pairs, ignored):
    known = with_ignored(pairs, ignored)
    if set(ignored) <= set(pairs):
        assert known.relation is None
        assert known.nbytes == 5 * len(known) + 8 * (N_ANCHORS + 1)
    else:
        assert set(known.relation.tolist()) <= {POSITIVE, IGNORE}
        assert known.nbytes == 6 * len(known) + 8 * (N_ANCHORS + 1)


def test_sizes_grow_to_the_larger():
    small, large = ns.Positives.from_pairs([0], [1]), ns.Positives.from_pairs([3], [0], 5, 2)
    for both in (small.union(large), large.union(small)):
        assert (both.n_anchors, both.n_items) == (5, 2)
        assert as_set(both) == {(0, 1), (3, 0)}
    empty = ns.Positives.from_pairs([], [])
    assert same(empty.union(small), small)
    assert same(small.union(empty), small)


def test_neither_is_changed():
    one, other = with_ignored([(0, 1)], [(0, 2)]), build([(0, 2)])
    before = copy.deepcopy(one)
    one.union(other)
    one.with_ignored([0], [3])
    assert same(one, before)


def test_ignored_by_name():
    known = ns.Positives.from_pairs(["ann", "bob"], ["x", "y"])
    ignored = known.with_ignored(["bob"], ["x"])
    assert as_set(ignored, "ignore") == {(1, 0)}
    assert as_set(ignored, "positive") == {(0, 0), (1, 1)}
    assert ignored.anchor_names == known.anchor_names
    assert same(ignored, known.with_ignored([1], [0]))


def test_combining_refuses():
    known, named = build([]), ns.Positives.from_pairs(["ann"], [0])
    assert refusal(known.union, [(0, 1)]) == "Positives.union: `other` must be a Positives, got list."
    rule = "must be of the same anchor names, got another vocabulary. Encode both with one vocabulary first"
    assert rule in refusal(known.union, named)
    assert "of the same item names" in refusal(
        ns.Positives.from_pairs([0], ["x"]).union, ns.Positives.from_pairs([0], ["y"])
    )
    owner = "Positives.with_ignored"
    rule = "`items` must be between 0 and 8 (9 items), got 9 at row 0 (1 such row)."
    assert refusal(known.with_ignored, [0], [9]) == f"{owner}: {rule}"
    rule = "`anchors` must be between 0 and 4 (5 anchors), got -1 at row 0 (1 such row)."
    assert refusal(known.with_ignored, [-1], [0]) == f"{owner}: {rule}"
    rule = "`anchors` must be as long as its partners, got anchors 1, items 2."
    assert refusal(known.with_ignored, [0], [0, 1]) == f"{owner}: {rule}"
    rule = "`anchors` must be whole numbers, got dtype <U3. Ids count from 0."
    assert refusal(known.with_ignored, ["ann"], [0]) == f"{owner}: {rule}"
    rule = "Vocabulary.ids: `names` must be among the 1 known names, got 'eve' at row 0 (1 such row)."
    assert refusal(named.with_ignored, ["eve"], [0]) == rule


# ---- keeping --------------------------------------------------------------------------------------------


def is_mapped(array):
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAIRS, PAIRS, st.booleans())
def test_loading_gives_identical_answers(tmp_path, pairs, ignored, mmap):
    known = with_ignored(pairs, ignored)
    known.save(tmp_path / "known")  # over the last one
    loaded = ns.Positives.load(tmp_path / "known", mmap=mmap)
    assert same(loaded, known)
    assert as_set(loaded, "positive") == set(pairs)
    assert (
        loaded.nth_negative([0, 1], [[0, 1], [2, 3]]).tolist() == known.nth_negative([0, 1], [[0, 1], [2, 3]]).tolist()
    )
    for name in ARRAYS:
        array = getattr(loaded, name)
        if array is not None:
            assert is_mapped(array) == mmap
            assert not array.flags.writeable
    query = ns.Query([0, 1, 2])
    drawn = [ns.pools.Everything(one).draw(query, 3, rng=ns.rng_for(0)).ids.tolist() for one in (known, loaded)]
    assert drawn[0] == drawn[1]


def test_names_are_saved_beside(tmp_path):
    known = ns.Positives.from_pairs(["ann", "\N{SNOWMAN}", ""], ["x", "y", "x"])
    known.save(tmp_path / "known")
    loaded = ns.Positives.load(tmp_path / "known")
    assert same(loaded, known)
    assert loaded.anchor_names.names([1, 2]) == ["\N{SNOWMAN}", ""]
    assert loaded.item_names.ids(["y"]).tolist() == [1]


def test_the_folder_is_plain(tmp_path):
    with_ignored([(0, 1)], [(0, 2)]).save(tmp_path / "known")
    names = sorted(path.name for path in (tmp_path / "known").iterdir())
    assert names == ["filter.npy", "header.json", "indices.npy", "indptr.npy", "relation.npy"]
    for path in (tmp_path / "known").glob("*.npy"):
        assert np.load(path, allow_pickle=False).dtype != object


def test_one_loaded_may_be_saved_over_itself(tmp_path):
    known = build([(0, 1), (3, 4)])
    known.save(tmp_path / "known")
    loaded = ns.Positives.load(tmp_path / "known")
    loaded.union(build([(2, 2)])).save(tmp_path / "known")
    assert as_set(ns.Positives.load(tmp_path / "known")) == {(0, 1), (2, 2), (3, 4)}
    assert same(loaded, known)


def test_a_failed_save_leaves_the_old_one(tmp_path, monkeypatch):
    known = build([(0, 1)])
    known.save(tmp_path / "known")

    def full(*_, **__):
        message = "No space left on device"
        raise OSError(message)

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="No space left"):
        build([(1, 2)]).save(tmp_path / "known")
    assert [path.name for path in tmp_path.iterdir()] == ["known"]
    assert same(ns.Positives.load(tmp_path / "known"), known)


def test_a_foreign_folder_is_not_saved_over(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    message = f"save: `path` must be new, or a folder that naysay wrote, got {str(tmp_path / 'mine')!r}."
    assert refusal(build([]).save, tmp_path / "mine") == message
    assert (tmp_path / "mine" / "file").read_text() == "x"


def scribble(folder: Path, name: str, array: np.ndarray):
    np.save(folder / f"{name}.npy", array, allow_pickle=True)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "indices.npy").unlink(), "a complete folder, got indices.npy: [Errno 2]"),
        (lambda folder: (folder / "filter.npy").write_bytes(b""), "a complete folder, got filter.npy: "),
        (
            lambda folder: (folder / "indptr.npy").write_bytes((folder / "indptr.npy").read_bytes()[:-1]),
            "a complete folder, got indptr.npy: ",
        ),
        (lambda folder: (folder / "header.json").write_text("{"), "a folder with a sound header, got "),
        (
            lambda folder: (folder / "header.json").write_text('{"kind": "positives", "format": 1, "arrays": []}'),
            "a folder with a sound header, got ",
        ),
        (lambda folder: (folder / "header.json").unlink(), "a folder that naysay wrote, got "),
        (lambda folder: scribble(folder, "indices", np.array([{}], object)), "a complete folder, got indices.npy: "),
        (
            lambda folder: scribble(folder, "indices", np.zeros(1, np.int32)),
            "a folder of matching arrays, got filter: ",
        ),
        (
            lambda folder: scribble(folder, "indices", np.zeros(2)),
            "a folder of matching arrays, got indices: (2,) float64",
        ),
        (
            lambda folder: scribble(folder, "indptr", np.array([0, 9])),
            "a folder of matching arrays, got indptr: not from",
        ),
    ],
)
def test_a_damaged_folder_is_one_sentence(tmp_path, damage, message, mmap):
    build([(0, 1), (1, 2)]).save(tmp_path / "known")
    damage(tmp_path / "known")
    found = refusal(ns.Positives.load, tmp_path / "known", mmap=mmap)
    assert found.startswith(f"Positives.load: `path` must be {message}")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_it_travels_to_other_processes_read_only(tmp_path, copied):
    known = ns.Positives.from_pairs(["a", "b"], ["x", "y"]).with_ignored([0], [1])
    known.save(tmp_path / "known")
    for one in (known, ns.Positives.load(tmp_path / "known")):
        other = copied(one)
        assert same(other, known)
        assert as_set(other, "ignore") == {(0, 1)}
        for name in ARRAYS:
            assert not getattr(other, name).flags.writeable


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_only(name):
    for known in (with_ignored([(0, 1)], [(0, 2)]), with_ignored([(0, 1)], [(0, 2)]).union(build([(1, 1)]))):
        with pytest.raises(ValueError, match="read-only"):
            getattr(known, name)[0] = 0
