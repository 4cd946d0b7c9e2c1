"""Positives from pairs, CSR, scipy, edges and tables: the same rows from each, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from positives_as_sets import COMPILING, N_ANCHORS, N_ITEMS, PAIRS, as_set, build, refusal, same

import naysay as ns
from naysay.errors import NaysayError


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
    assert repr(ns.Positives.from_pairs([2], [9])) == "Positives(1 pairs, 3 anchors x 10 items, unused_items=9)"
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
        ([0, 1], [0], {}, "`anchors` must be of the same length as the others, got anchors 2, items 1."),
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
def test_from_pairs_rejects(anchors, items, sizes, message):
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
            "`indptr` must be a rising sequence from 0 to the 2 indices, got a decrease to 1 at row 1 (1 such row).",
        ),
        ([0, 2], [0, 5], 5, "`indices` must be between 0 and 4 (5 items), got 5 at row 1 (1 such row)."),
        ([0, 1], [-1], None, "`indices` must be at least 0, got -1 at row 0 (1 such row)."),
        ([0, 1], [0.5], None, "`indices` must be whole numbers, got dtype float64. Ids count from 0."),
    ],
)
def test_from_csr_rejects(indptr, indices, n_items, message):
    assert refusal(ns.Positives.from_csr, indptr, indices, n_items) == f"Positives.from_csr: {message}"


def test_from_scipy_rejects():
    message = "Positives.from_scipy: `matrix` must be a scipy.sparse matrix, got ndarray."
    assert refusal(ns.Positives.from_scipy, np.eye(2)) == message
    message = "Positives.from_scipy: `matrix` must be of two dimensions, anchors x items, got shape (3,)."
    assert refusal(ns.Positives.from_scipy, scipy.sparse.coo_array(np.ones(3))) == message


@pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
def test_repeated_entries_are_duplicates_and_never_cancel(kind):
    places = np.array([0, 0, 1, 1, 1]), np.array([2, 2, 0, 0, 1])
    matrix = kind((np.array([1.0, -1.0, 2.0, 3.0, 0.0]), places), shape=(2, 3))
    known = ns.Positives.from_scipy(matrix)
    assert as_set(known) == {(0, 2), (1, 0)}
    assert (known.duplicates, known.n_anchors, known.n_items) == (2, 2, 3)
    repeated = scipy.sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert ns.Positives.from_scipy(repeated).duplicates == 1


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
        ([0, 1], [0], None, "`sources` must be of the same length as the others, got sources 2, targets 1."),
        ([0, -1], [0, 0], None, "`sources` must be at least 0, got -1 at row 1 (1 such row)."),
        ([0], [-1], None, "`targets` must be at least 0, got -1 at row 0 (1 such row)."),
        ([0], [4], 4, "`targets` must be between 0 and 3 (4 nodes), got 4 at row 0 (1 such row)."),
        ([0], [1], 1.5, "`n_nodes` must be a whole number, got 1.5."),
        (["a"], ["b"], None, "`sources` must be whole numbers, got dtype <U1. Ids count from 0."),
    ],
)
def test_from_edges_rejects(sources, targets, n_nodes, message):
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


def test_tables_reject(tmp_path):
    table = pa.table({"user": [1, None], "item": [1, 2]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    (tmp_path / "pairs.csv").write_text("user,item\n1,1\n,2\n")
    nulls = "`anchors` must be a column without nulls ('user'), got null at row 1 (1 such row)."
    near = "`items` must be one of the columns 'user', 'item', got 'itm'. Did you mean 'item'?"
    for name, source in (("arrow", table), ("parquet", tmp_path / "pairs.parquet"), ("csv", tmp_path / "pairs.csv")):
        make = getattr(ns.Positives, f"from_{name}")
        assert refusal(make, source, anchors="user", items="item") == f"Positives.from_{name}: {nulls}"
        assert refusal(make, source, anchors="user", items="itm") == f"Positives.from_{name}: {near}"
    missing = tmp_path / "none.parquet"
    message = f"Positives.from_parquet: `path` must be an existing file, got {str(missing)!r}."
    assert refusal(ns.Positives.from_parquet, missing, anchors="user", items="item") == message


def test_from_triples_lists_the_tails_of_each_head_and_relation():
    triples = [[0, 0, 1], [0, 1, 2], [0, 0, 2], [2, 1, 0], [0, 0, 1]]
    known = ns.Positives.from_triples(triples, n_entities=4)
    assert (known.n_anchors, known.n_items, known.duplicates) == (8, 4, 1)
    found = {(anchor // 2, anchor % 2, tail) for anchor, tail in zip(*known.pairs(), strict=True)}
    assert found == {tuple(triple) for triple in triples}


def test_from_triples_rejects_what_is_no_triple():
    with pytest.raises(NaysayError, match=r"^Positives\.from_triples: `triples` must be of shape \(n, 3\)"):
        ns.Positives.from_triples([[0, 1]])
    with pytest.raises(NaysayError, match=r"within 2 entities and 1 relations, got \[0, 0, 2\] at row 0"):
        ns.Positives.from_triples([[0, 0, 2]], n_entities=2)


def test_edges_may_be_one_array():
    edges = [[0, 1], [1, 2]]
    assert same(ns.Positives.from_edges(edges), ns.Positives.from_edges([0, 1], [1, 2]))
    message = r"`sources` must be of shape \(n, 2\) if there are no targets, got shape \(3,\)\. Pass targets"
    with pytest.raises(NaysayError, match=message):
        ns.Positives.from_edges([0, 1, 2])
    message = "`sources` must be of shape (n, 2) if there are no targets, got shape (2, 3). Pass the two rows apart"
    assert f"{message}: from_edges(*edge_index)." in refusal(ns.Positives.from_edges, np.zeros((2, 3), int))
    assert "`sources` must be rows of one length" in refusal(ns.Positives.from_edges, [[0, 1], [2]])
