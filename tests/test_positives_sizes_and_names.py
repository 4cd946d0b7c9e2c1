"""Sizes that cannot be meant, and vocabularies that splits share."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from positives_as_sets import as_set, refusal, same
from pyarrow import csv

import naysay as ns


def test_from_triples_rejects_more_rows_than_fit():
    owner = "Positives.from_triples: `triples` must be"
    message = f"{owner} of at most 2^27 pairs of entity and relation, got 5000000 x 800."
    wanted = ns.Positives.from_triples, [[0, 0, 1]], 5_000_000, 800
    assert refusal(*wanted) == f"{message} naysay.Triples numbers only those that occur."
    assert "rows of one length" in refusal(ns.Positives.from_triples, [[0, 0, 1], [0]])


@pytest.mark.parametrize(
    ("make", "given", "parameter", "advice"),
    [
        (
            ns.Positives.from_pairs,
            ([10**12, 3], [0, 1]),
            "anchors",
            "Pass n_anchors, or anchor_names=True for a vocabulary of those that occur.",
        ),
        (
            ns.Positives.from_pairs,
            ([0, 1], [3, 10**12]),
            "items",
            "Pass n_items, or item_names=True for a vocabulary of those that occur.",
        ),
        (ns.Positives.from_csr, ([0, 2], [3, 10**12]), "indices", "Pass n_items, or number those that occur from 0."),
        (ns.Positives.from_edges, ([0, 1], [3, 10**12]), "targets", "Pass n_nodes, or number those that occur from 0."),
    ],
)
def test_ids_with_wide_gaps_are_rejected(make, given, parameter, advice):
    rule = "must be numbered from 0 without wide gaps, got 1000000000000 among 2 ids."
    assert refusal(make, *given) == f"Positives.{make.__name__}: `{parameter}` {rule} {advice}"


MOVIES = np.array([1, 296, 593, 296, 2571])  # ids with gaps, as in MovieLens
USERS = np.array([7, 7, 7, 9, 9])
GAPS = (
    "2,568 of the 2,572 item ids from 0 to 2,571 (99.8%) occur nowhere, and may be drawn as negatives. "
    "Pass n_items=2572 if they all exist, or "
)
NUMBERED = GAPS + "item_names=True for a vocabulary of those that occur."


@pytest.mark.parametrize("kind", ["pairs", "arrow", "parquet", "csv"])
def test_unused_item_ids_are_said_and_counted(kind, tmp_path):
    """73 % of uniform negatives were items that do not exist, silently."""
    table = pa.table({"user": USERS, "item": MOVIES})
    pq.write_table(table, tmp_path / "pairs.parquet")
    csv.write_csv(table, tmp_path / "pairs.csv")
    make, given = {
        "pairs": (ns.Positives.from_pairs, (USERS, MOVIES)),
        "arrow": (ns.Positives.from_arrow, (table, "user", "item")),
        "parquet": (ns.Positives.from_parquet, (tmp_path / "pairs.parquet", "user", "item")),
        "csv": (ns.Positives.from_csv, (tmp_path / "pairs.csv", "user", "item")),
    }[kind]
    with pytest.warns(ns.NaysayWarning) as caught:
        known = make(*given)
    assert [str(one.message) for one in caught] == [NUMBERED]
    assert caught[0].filename == __file__
    assert known.unused_items == 2568
    assert "unused_items=2568" in repr(known)
    declared = make(*given, n_items=2572)  # whoever gives the number has said that they exist
    assert declared.unused_items == 0
    named = make(*given, item_names=True)
    assert (named.n_items, named.unused_items, named.n_anchors) == (4, 0, 10)
    assert named.item_names.ids(MOVIES).tolist() == [0, 1, 2, 1, 3]
    assert named.item_names.ids([2571]).tolist() == named.item_names.ids(["2571"]).tolist() == [3]
    assert as_set(named) == {(7, 0), (7, 1), (7, 2), (9, 1), (9, 3)}
    split = ns.Positives.from_pairs([7], named.item_names.ids([2571]), item_names=named.item_names)
    assert named.union(split).contains([7], [3]).all()
    both = make(*given, anchor_names=True, item_names=True)
    assert (both.n_anchors, both.anchor_names.names([0, 1])) == (2, ["7", "9"])


def test_unused_ids_are_counted_on_the_way(tmp_path):
    with pytest.warns(ns.NaysayWarning, match="2,568 of the 2,572"):
        known = ns.Positives.from_pairs(USERS, MOVIES)
    known.save(tmp_path / "known")
    assert ns.Positives.load(tmp_path / "known").unused_items == 2568
    assert known.union(ns.Positives.from_pairs([0], [2], n_items=3)).unused_items == 2567
    assert known.with_ignored([0], [2]).unused_items == 2567  # an ignored pair is a pair
    with pytest.warns(ns.NaysayWarning) as caught:
        ns.Positives.from_csr([0, 5], np.sort(MOVIES))
    assert str(caught[0].message) == GAPS + "number those that occur from 0."
    with pytest.warns(ns.NaysayWarning, match=r"298 of the 300 node ids .* Pass n_nodes=300 if they all exist"):
        ns.Positives.from_edges([0], [299])
    few = ns.Positives.from_pairs([0, 1], [0, 99])  # a small example is not worth a warning
    assert (few.unused_items, few.with_ignored([0], [5]).unused_items) == (98, 97)


def test_columns_go_by_place_too(tmp_path):
    (tmp_path / "pairs.csv").write_text("user,item\n0,1\n")
    assert as_set(ns.Positives.from_csv(tmp_path / "pairs.csv", "user", "item")) == {(0, 1)}
    rule = "Positives.from_csv: `anchors` must be one of the columns 'user', 'item', got None."
    assert refusal(ns.Positives.from_csv, tmp_path / "pairs.csv") == rule


def test_a_size_that_is_given_allows_gaps():
    assert ns.Positives.from_pairs([0], [10**12], n_items=10**12 + 1).contains([0], [10**12]).all()
    with pytest.warns(ns.NaysayWarning, match="134,217,727 of the"):
        assert ns.Positives.from_pairs([0], [2**27 - 1]).n_items == 2**27


def test_vocabularies_that_are_given():
    names = ns.Vocabulary(["ann", "bob", "eve"])
    known = ns.Positives.from_pairs(["eve", "ann"], [1, 0], anchor_names=names, n_items=5)
    assert as_set(known) == {(2, 1), (0, 0)}
    assert (known.n_anchors, known.n_items) == (3, 5)
    assert known.anchor_names is names
    assert as_set(ns.Positives.from_pairs([2, 0], [1, 0], anchor_names=names)) == {(2, 1), (0, 0)}
    owner = "Positives.from_pairs: "
    rule = "`anchors` must be between 0 and 2 (3 anchors), got 3 at row 0 (1 such row)."
    assert refusal(ns.Positives.from_pairs, [3], [0], anchor_names=names) == f"{owner}{rule}"
    rule = "`items` must be among the 3 known names, got 'x' at row 1 (2 such rows)."
    unknown = [0, 0, 0], ["ann", "x", "y"]
    assert refusal(ns.Positives.from_pairs, *unknown, item_names=names) == f"{owner}{rule}"
    rule = "`item_names` must be a Vocabulary, got list. Pass Vocabulary(names), or True to make one."
    assert refusal(ns.Positives.from_pairs, [0], ["x"], item_names=["x"]) == f"{owner}{rule}"


def test_tables_take_sizes_and_sign_their_errors(tmp_path):
    table = pa.table({"user": [1, 0], "item": ["x", "y"]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    (tmp_path / "pairs.csv").write_text("user,item\n1,x\n0,y\n")
    names = ns.Vocabulary(["x"])
    for name, source in (("arrow", table), ("parquet", tmp_path / "pairs.parquet"), ("csv", tmp_path / "pairs.csv")):
        make = getattr(ns.Positives, f"from_{name}")
        known = make(source, anchors="user", items="item", n_anchors=4, n_items=3)
        assert (known.n_anchors, known.n_items) == (4, 3)
        message = f"Positives.from_{name}: `items` must be among the 1 known names, got 'y' at row 1 (1 such row)."
        assert refusal(make, source, anchors="user", items="item", item_names=names) == message


def test_two_splits_with_one_vocabulary(tmp_path):
    (tmp_path / "train.csv").write_text("user,item\nann,7\nbob,x\nann,x\n")
    (tmp_path / "test.csv").write_text("user,item\nbob,7\nbob,7\n")
    train = ns.Positives.from_csv(tmp_path / "train.csv", anchors="user", items="item")
    names = {"anchor_names": train.anchor_names, "item_names": train.item_names}
    csv = ns.Positives.from_csv(tmp_path / "test.csv", anchors="user", items="item", **names)
    table = pa.table({"user": ["bob", "bob"], "item": ["7", "7"]})
    pq.write_table(table, tmp_path / "test.parquet")
    parquet = ns.Positives.from_parquet(tmp_path / "test.parquet", anchors="user", items="item", **names)
    arrow = ns.Positives.from_arrow(table, anchors="user", items="item", **names)
    pairs = ns.Positives.from_pairs(["bob", "bob"], ["7", "7"], **names)
    for test in (csv, parquet, arrow, pairs):
        assert same(test, csv)
        assert test.anchor_names == train.anchor_names
        assert (test.n_anchors, test.n_items, test.duplicates) == (2, 2, 1)
        both = train.union(test)
        assert as_set(both) == {(0, 0), (0, 1), (1, 0), (1, 1)}
        assert both.item_names.names([0, 1]) == ["7", "x"]
        assert both.contains(["ann", "bob"], [["7"], ["x"]]).all()
