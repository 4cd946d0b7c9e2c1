"""Positives from arrays, CSR, scipy, edges, triples, tables and files: the same rows from each, and what is invalid."""

import datetime
import subprocess
import sys

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from positives_as_sets import COMPILING, N_ANCHORS, N_ITEMS, PAIRS, as_set, build, same

import naysay as ns

P = ns.Positives


# ---- Arrays ----------------------------------------------------------------------------------------------------------


@COMPILING
@given(PAIRS, st.permutations(range(60)))
def test_rows_are_sorted_whatever_the_order(pairs, order):
    known = build([pairs[place] for place in order if place < len(pairs)])
    assert known.duplicates == len(pairs) - len(set(pairs))
    for row in range(N_ANCHORS):
        ids = known.indices[known.indptr[row] : known.indptr[row + 1]].tolist()
        assert ids == sorted({item for anchor, item in pairs if anchor == row})


@pytest.mark.parametrize(
    "form",
    [
        list,
        torch.tensor,
        pa.array,
        lambda ids: np.array(ids, np.uint64),
        lambda ids: np.array(ids, ">i4"),
        lambda ids: np.repeat(np.array(ids), 2)[::2],
    ],
)
def test_ids_in_any_form(form):
    known = P.from_pairs(form([1, 0, 1]), form([2, 3, 0]))
    assert as_set(known) == {(1, 2), (0, 3), (1, 0)}
    assert (known.n_anchors, known.n_items) == (2, 4)
    assert known.anchor_names is known.item_names is None


@pytest.mark.parametrize("empty", [[], np.array([]), torch.tensor([]), pa.array([])])
def test_no_pairs(empty):
    known = P.from_pairs(empty, empty, 3, 4)
    assert (len(known), len(P.from_pairs(empty, empty))) == (0, 0)
    assert known.contains([], []).tolist() == []
    assert known.count().tolist() == [0] * 3
    assert known.contains([0, 2], [3, 0]).tolist() == [False, False]
    assert known.nth_negative([0, 2], [3, 4]).tolist() == [3, -1]


def test_the_repr_has_sizes():
    assert repr(P.from_pairs([2], [9])) == "Positives(1 pairs, 3 anchors x 10 items, unused_items=9)"
    assert repr(P.from_pairs([2], [1000], 7, 2000)) == "Positives(1 pairs, 7 anchors x 2,000 items)"


@COMPILING
@given(PAIRS)
def test_csr_and_scipy_have_the_same_pairs(pairs):
    rows = [[item for anchor, item in pairs if anchor == row] for row in range(N_ANCHORS)]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([item for row in rows for item in row], np.int64)
    before = indices.copy()
    assert same(P.from_csr(indptr, indices, N_ITEMS), build(pairs))
    assert np.array_equal(indices, before)  # not sorted in place
    dense = np.zeros((N_ANCHORS, N_ITEMS))
    for pair in pairs:
        dense[pair] += 0.5
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.lil_matrix):
        assert as_set(P.from_scipy(kind(dense))) == set(pairs)


def test_entries_of_scipy_are_never_summed_and_zeros_are_no_positives():
    places = np.array([0, 0, 1, 1, 1]), np.array([2, 2, 0, 0, 1])
    for kind in (scipy.sparse.coo_array, scipy.sparse.coo_matrix):
        known = P.from_scipy(kind((np.array([1.0, -1.0, 2.0, 3.0, 0.0]), places), shape=(2, 3)))
        assert as_set(known) == {(0, 2), (1, 0)}
        assert (known.duplicates, known.n_anchors, known.n_items) == (2, 2, 3)
    repeated = scipy.sparse.csr_array((np.array([1.0, 1.0, 0.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    known = P.from_scipy(repeated)
    assert (as_set(known), known.duplicates, repeated.nnz) == ({(0, 1)}, 1, 3)


@COMPILING
@given(PAIRS, st.booleans(), st.booleans())
def test_edges(edges, directed, self_pairs):
    edges = [(a, i % N_ANCHORS) for a, i in edges]
    ends = [a for a, _ in edges], [i for _, i in edges]
    known = P.from_edges(*ends, N_ANCHORS, directed=directed, self_pairs=self_pairs)
    expected = set(edges) if directed else {*edges, *((b, a) for a, b in edges)}
    assert as_set(known, "positive") == expected
    assert as_set(known, "ignore") == (set() if self_pairs else {(v, v) for v in range(N_ANCHORS)} - expected)
    assert same(P.from_edges(np.array(edges, int).reshape(-1, 2), n_nodes=N_ANCHORS), P.from_edges(*ends, N_ANCHORS))


# ---- Sizes and vocabularies ------------------------------------------------------------------------------------------


def test_a_size_that_is_given_allows_gaps():
    assert P.from_pairs([0], [10**12], n_items=10**12 + 1).contains([0], [10**12]).all()


def test_unused_ids_are_counted_and_many_are_warned_of_once(tmp_path):
    films = np.random.default_rng(0).choice(10_000, 300, replace=False)
    frame = pd.DataFrame({"user": np.arange(300) % 7, "film": films})
    with pytest.warns(ns.NaysayWarning, match=r"occur nowhere.*or item_names=True for a vocabulary of those") as caught:
        known = P.from_table(frame, "user", "film")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    unused = films.max() + 1 - 300
    assert known.unused_items == unused
    known.save(tmp_path / "known")
    assert P.load(tmp_path / "known").unused_items == unused
    new = next(item for item in range(9999) if item not in films)
    assert known.with_ignored([0], [new]).unused_items == unused - 1  # an ignored pair is a pair
    numbered = P.from_table(frame, "user", "film", item_names=True)
    assert (numbered.n_items, numbered.unused_items) == (300, 0)
    again = P.from_table(frame[:9], "user", "film", item_names=numbered.item_names)
    assert numbered.contains(*again.pairs()).all()
    drawn = ns.pools.Everything(numbered).draw(ns.Query([0]), 50, rng=ns.rng_for(0)).ids
    assert set(map(int, numbered.item_names.names(drawn[0]))) <= set(films.tolist())
    assert P.from_pairs([0, 1], [0, 99]).unused_items == 98  # a small example is not worth a warning
    for make in (lambda: P.from_csr([0, 1], [999]), lambda: P.from_edges([0], [999])):
        with pytest.warns(ns.NaysayWarning, match=r"number those that occur from 0"):
            make()


def test_vocabularies_that_are_given():
    names = ns.Vocabulary(["ann", "bob", "eve"])
    known = P.from_pairs(["eve", "ann"], [1, 0], anchor_names=names, n_items=5)
    assert as_set(known) == {(2, 1), (0, 0)}
    assert (known.n_anchors, known.n_items, known.anchor_names) == (3, 5, names)
    assert as_set(P.from_pairs([2, 0], [1, 0], anchor_names=names)) == {(2, 1), (0, 0)}


def test_two_splits_with_one_vocabulary(tmp_path):
    (tmp_path / "train.csv").write_text("user,item\nann,7\nbob,x\nann,x\n")
    (tmp_path / "test.csv").write_text("user,item\nbob,7\nbob,7\n")
    train = P.from_csv(tmp_path / "train.csv", "user", "item")
    names = {"anchor_names": train.anchor_names, "item_names": train.item_names}
    table = pa.table({"user": ["bob", "bob"], "item": ["7", "7"]})
    pq.write_table(table, tmp_path / "test.parquet")
    for test in (
        P.from_csv(tmp_path / "test.csv", "user", "item", **names),
        P.from_parquet(tmp_path / "test.parquet", "user", "item", **names),
        P.from_table(table, "user", "item", **names),
        P.from_table(pa.table({"user": ["bob", "bob"], "item": [7, 7]}), "user", "item", **names),
        P.from_pairs(["bob", "bob"], ["7", "7"], **names),
    ):
        assert as_set(test) == {(1, 0)}
        assert (test.n_anchors, test.n_items, test.duplicates) == (2, 2, 1)
        assert as_set(train.union(test)) == {(0, 0), (0, 1), (1, 0), (1, 1)}


# ---- Tables ----------------------------------------------------------------------------------------------------------

USERS, ITEMS, TIMES = [3, 0, 3, 1, 0, 3], ["tea", "jam", "jam", "tea", "tea", "tea"], [50, 20, 10, 60, 30, 40]
DAYS = [datetime.datetime(2024, 5, time // 10) for time in TIMES]
FRAME = pd.DataFrame({"user": USERS, "item": ITEMS, "time": TIMES, "day": DAYS, "odd": [1, "a", None, 2.5, b"x", ()]})


class Stream:
    """What Polars and DuckDB have in common: a stream of Arrow, whose strings may be views."""

    def __init__(self, kind=None):
        self.table = pa.table({"user": USERS, "item": pa.array(ITEMS, kind or pa.string_view()), "time": TIMES,
                               "day": DAYS})  # fmt: skip

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Lazy:
    def collect(self):
        return FRAME


def dataset():
    return datasets.Dataset.from_dict({"user": USERS, "item": ITEMS, "time": TIMES, "day": DAYS})


SOURCES = {
    "pandas": lambda: FRAME,
    "pandas, another index": lambda: FRAME.set_index("odd"),
    "pandas, categories": lambda: FRAME.assign(item=FRAME["item"].astype("category")),
    "Arrow": lambda: Stream(pa.large_string()).table,
    "a reader": lambda: Stream(pa.string()).table.to_reader(),
    "views of strings": Stream,
    "categories of views": lambda: Stream(pa.dictionary(pa.int32(), pa.string())),
    "a dataset": dataset,
    "a part of a dataset": lambda: datasets.concatenate_datasets([dataset(), dataset()]).select(range(6)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_table_gives_the_pairs_of_its_columns_also_those_before_a_time(source):
    expected = P.from_pairs(USERS, ITEMS)
    assert same(P.from_table(SOURCES[source](), "user", "item"), expected)
    early = np.array(TIMES) < 40
    expected = P.from_pairs(np.array(USERS)[early], np.array(ITEMS)[early])
    for times, before in (("time", 40), ("day", "2024-05-04"), ("day", datetime.datetime(2024, 5, 4))):
        assert same(P.from_table(SOURCES[source](), "user", "item", times=times, before=before), expected)


def test_files_give_the_same_as_tables(tmp_path):
    table = pa.table({"user": [1, 0, 1], "item": ["x", "y", "x"], "when": [None, 1.5, 2.5]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    (tmp_path / "pairs.csv").write_text("user;item;when\n1;x;\n0;y;1.5\n1;x;2.5\n")
    known = P.from_table(table, "user", "item")
    assert as_set(known) == {(1, 0), (0, 1)}
    assert same(known, P.from_parquet(tmp_path / "pairs.parquet", "user", "item"))
    assert same(known, P.from_csv(tmp_path / "pairs.csv", "user", "item", delimiter=";"))
    (tmp_path / "empty.csv").write_text("user,item\n")
    assert len(P.from_csv(tmp_path / "empty.csv", "user", "item")) == 0
    assert len(P.from_table(pa.table({"u": [], "i": []}), "u", "i")) == 0


def test_pandas_and_polars_are_never_imported():
    program = "import sys, naysay; naysay.Positives.from_pairs([0], [0]); print({'pandas', 'pyarrow'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# ---- RecBole ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path):
    rows = zip(USERS, ITEMS, TIMES, strict=True)
    lines = [f"{user}\t{item}\t{1 + place % 5}\t{time}\n" for place, (user, item, time) in enumerate(rows)]
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "shop.inter").write_text(header + "".join(lines))
    return tmp_path / "shop"


def test_an_atomic_file_is_read_with_its_tokens_and_rows_are_chosen(shop):
    known = P.from_recbole(shop / "shop.inter")
    assert known.anchor_names.names(range(3)) == ["3", "0", "1"]
    assert known.item_names.names(range(2)) == ["tea", "jam"]
    assert same(known, P.from_recbole(shop))
    later = P.from_recbole(shop, anchor_names=known.anchor_names, item_names=known.item_names)
    assert later.union(known).n_items == 2
    assert as_set(P.from_recbole(shop, liked=4)) == {(0, 0), (1, 0)}
    early = P.from_recbole(shop, before=30)
    assert (early.item_names.names([0]), len(early)) == (["jam"], 2)


# ---- Invalid calls ---------------------------------------------------------------------------------------------------

TABLE = pa.table({"user": [1, None], "item": [1, 2]})
INVALID = [
    (P.from_pairs, {"anchors": [0, 1], "items": [0]}, "anchors"),
    (P.from_pairs, {"anchors": [0, -1], "items": [0, 0]}, "anchors"),
    (P.from_pairs, {"anchors": [0, 3], "items": [0, 0], "n_anchors": 3}, "anchors"),
    (P.from_pairs, {"anchors": [0.0], "items": [0]}, "anchors"),
    (P.from_pairs, {"anchors": [[0]], "items": [0]}, "anchors"),
    (P.from_pairs, {"anchors": [True], "items": [0]}, "anchors"),
    (P.from_pairs, {"anchors": [10**12, 3], "items": [0, 1]}, "anchors"),  # wide gaps: most rows would be empty
    (P.from_pairs, {"anchors": [3], "items": [0], "anchor_names": ns.Vocabulary(["a"])}, "anchors"),
    (P.from_pairs, {"anchors": [0], "items": [-7]}, "items"),
    (P.from_pairs, {"anchors": [0], "items": [0], "n_items": 0}, "items"),
    (P.from_pairs, {"anchors": ["a"], "items": [None]}, "items"),
    (P.from_pairs, {"anchors": [0], "items": ["b"], "item_names": ns.Vocabulary(["a"])}, "items"),
    (P.from_pairs, {"anchors": [0], "items": ["x"], "item_names": ["x"]}, "item_names"),
    (P.from_pairs, {"anchors": [], "items": [], "n_items": -1}, "n_items"),
    (P.from_pairs, {"anchors": [], "items": [], "n_anchors": 2.0}, "n_anchors"),
    (P.from_csr, {"indptr": [], "indices": []}, "indptr"),
    (P.from_csr, {"indptr": [1, 2], "indices": [0, 0]}, "indptr"),
    (P.from_csr, {"indptr": [0, 1], "indices": [0, 0]}, "indptr"),
    (P.from_csr, {"indptr": [0, 3, 1, 2], "indices": [0, 0]}, "indptr"),
    (P.from_csr, {"indptr": [0, 2], "indices": [0, 5], "n_items": 5}, "indices"),
    (P.from_csr, {"indptr": [0, 1], "indices": [0.5]}, "indices"),
    (P.from_scipy, {"matrix": np.eye(2)}, "matrix"),
    (P.from_scipy, {"matrix": scipy.sparse.coo_array(np.ones(3))}, "matrix"),
    (P.from_edges, {"sources": [0, 1], "targets": [0]}, "sources"),
    (P.from_edges, {"sources": [0, -1], "targets": [0, 0]}, "sources"),
    (P.from_edges, {"sources": ["a"], "targets": ["b"]}, "sources"),
    (P.from_edges, {"sources": [0, 1, 2]}, "sources"),
    (P.from_edges, {"sources": np.zeros((2, 3), int)}, "sources"),
    (P.from_edges, {"sources": [0], "targets": [4], "n_nodes": 4}, "targets"),
    (P.from_edges, {"sources": [0], "targets": [1], "n_nodes": 1.5}, "n_nodes"),
    (P.from_table, {"table": [1], "anchors": "user", "items": "item"}, "table"),
    (P.from_table, {"table": Lazy(), "anchors": "user", "items": "item"}, "table"),
    (P.from_table, {"table": datasets.DatasetDict({"train": dataset()}), "anchors": "user", "items": "item"}, "table"),
    (P.from_table, {"table": FRAME, "anchors": "user", "items": "odd"}, "table"),
    (P.from_table, {"table": FRAME, "anchors": "usr", "items": "item"}, "anchors"),
    (P.from_table, {"table": TABLE, "anchors": "user", "items": "item"}, "anchors"),
    (P.from_table, {"table": dataset(), "anchors": "user", "items": "itm"}, "items"),
    (P.from_table, {"table": FRAME, "anchors": "user", "items": "item", "before": 3}, "times"),
    (P.from_table, {"table": FRAME, "anchors": "user", "items": "item", "times": "time"}, "before"),
    (P.from_table, {"table": FRAME, "anchors": "user", "items": "item", "times": "time", "before": "May"}, "before"),
    (P.from_table, {"table": FRAME, "anchors": "user", "items": "item", "times": "day", "before": "May"}, "before"),
    (P.from_parquet, {"path": "none.parquet", "anchors": "user", "items": "item"}, "path"),
    (P.from_parquet, {"path": "pairs.csv", "anchors": "user", "items": "item"}, "path"),
    (P.from_parquet, {"path": "pairs.parquet", "anchors": "user", "items": "item"}, "anchors"),
    (P.from_parquet, {"path": "pairs.parquet", "anchors": "user", "items": "itm"}, "items"),
    (P.from_csv, {"path": "pairs.csv"}, "anchors"),
    (P.from_csv, {"path": "pairs.csv", "anchors": "user", "items": "item"}, "anchors"),
    (P.from_csv, {"path": "pairs.csv", "anchors": "user", "items": "item", "delimiter": ",,"}, "delimiter"),
    (P.from_recbole, {"path": "pairs.csv"}, "path"),
    (P.from_recbole, {"path": "headings.inter"}, "path"),
    (P.from_recbole, {"path": "plain.inter", "before": 3}, "before"),
    (P.from_recbole, {"path": "plain.inter", "liked": 3}, "liked"),
]


@pytest.mark.parametrize(("make", "arguments", "parameter"), INVALID)
def test_invalid_calls(make, arguments, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "pairs.parquet")
    (tmp_path / "pairs.csv").write_text("user,item\n1,1\n,2\n")
    (tmp_path / "headings.inter").write_text("a:token\tb:token\n1\t2\n")
    (tmp_path / "plain.inter").write_text("user_id:token\titem_id:token\n1\t2\n")
    with pytest.raises(ns.NaysayError) as error:
        make(**arguments)
    assert error.value.parameter == parameter
    sentence = str(error.value)
    assert sentence.startswith(f"Positives.{make.__name__}: `{parameter}` must be ")
    assert "\n" not in sentence
