"""Training sets: every format gives the same, duplicates are counted, names are read."""

import json

import numpy as np
import pytest

import naysay as ns
from naysay.audits._training_set import read_names, training_set
from naysay.formats import read_negatives, write_negatives
from naysay.formats._formats import FORMATS

KNOWN = ns.Positives.from_pairs([0, 0, 1, 2], [0, 1, 2, 3], 3, 9)
IDS = np.array([[4, 5], [6, 7], [8, 4]])
QUERIES = ["a?", "b?", "c?"]
CORPUS = [f"text {row}" for row in range(9)]


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_gives_the_same_set(tmp_path, name):
    path = tmp_path / f"train{FORMATS[name].suffixes[0]}"
    extra = {"corpus_path": "corpus"} if name == "nemo" else {}
    named = {} if name.startswith("colbert") else {"query_texts": QUERIES, "corpus_texts": CORPUS}
    if name in ("tevatron", "tevatron-ids", "nemo"):
        named |= {"query_ids": ["q0", "q1", "q2"], "corpus_ids": [f"d{row}" for row in range(9)]}
    write_negatives(path, name, ids=IDS, positives=KNOWN, **named, **extra)
    found = training_set(path, None if name not in ("colbert",) else name)
    read = read_negatives(path, found.format)
    assert (found.path, found.duplicates) == (path, 0)
    assert found.ids.tolist() == read.ids.tolist()
    assert (found.ids >= 0).sum() == 6
    assert found.positives.pairs()[1].tolist() == read.positives.pairs()[1].tolist()
    assert found.query_names == (read.query_ids or read.query_texts)


def test_duplicates_are_counted_by_anchor_and_positive(tmp_path):
    rows = [("a", "p", "x"), ("a", "p", "x"), ("a", "p", "y"), ("b", "p", "x"), ("b", "q", "x"), ("b", "q", "x")]
    path = tmp_path / "train.jsonl"
    path.write_text(
        "\n".join(json.dumps(dict(zip(("anchor", "positive", "negative"), row, strict=True))) for row in rows)
    )
    assert training_set(path, None).duplicates == 2  # a-x once more, and b-x thrice for two positives
    lists = tmp_path / "lists.jsonl"
    lists.write_text('{"query": "a", "pos": ["p", "q"], "neg": ["x", "x", "y"]}\n')
    assert training_set(lists, None).duplicates == 1
    assert training_set(read_negatives(lists), None).duplicates == 1


def test_mined_negatives_and_ignored_pairs():
    rng = np.random.default_rng(0)
    queries, corpus = rng.normal(size=(5, 4)), rng.normal(size=(20, 4))
    mined = ns.mine(queries, corpus, ([0, 1, 2], [3, 4, 5]), 3, ignore=([0], [9]), judge=None)
    found = training_set(mined, None)
    assert found.positives.pairs()[1].tolist() == [3, 4, 5]
    assert len(found.positive_scores) == 3
    assert np.array_equal(np.isnan(found.scores), found.ids < 0)
    assert found.duplicates == 0


@pytest.mark.parametrize(
    ("given", "format", "message"),
    [
        (3, None, "`negatives` must be the path of a training file, a TrainingFile or Mined, got a int."),
        ("lost.parquet", None, "`path` must be an existing file, got 'lost.parquet'."),
        ("a.jsonl", "tripet", "`format` must be one of 'triplet',"),
    ],
)
def test_what_is_no_training_set(given, format, message):
    with pytest.raises(ns.NaysayError) as caught:
        training_set(given, format)
    assert str(caught.value).startswith(message)


def test_a_set_without_negatives_and_a_format_for_no_file(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('{"query": "a", "pos": ["p"], "neg": []}\n')
    with pytest.raises(ns.NaysayError, match="`negatives` must be at least one negative, got none in "):
        training_set(path, None)
    with pytest.raises(ns.NaysayError, match="`format` must be left out where the negatives are not a file, got 'ids'"):
        training_set(read_negatives(path), "ids")


def test_names(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, table, two = tmp_path / "a.txt", tmp_path / "a.parquet", tmp_path / "b.parquet"
    text.write_bytes(b"a\r\nb c\n\xff\n")
    assert read_names("--query-ids", text) == ["a", "b c", "\udcff"]
    pq.write_table(pa.table({"id": [1, 2]}), table)
    assert read_names("--query-ids", table) == ["1", "2"]
    pq.write_table(pa.table({"a": [1], "b": [2]}), two)
    (tmp_path / "c.parquet").write_bytes(b"no")
    (tmp_path / "a.jsonl").write_text('{"name": "x"}\n{"name": "y"}\n')
    assert read_names("--query-ids", tmp_path / "a.jsonl") == ["x", "y"]
    for path, message in (
        (tmp_path / "lost.txt", "an existing file"),
        (tmp_path / "lost.parquet", "an existing file"),
        (two, "a file with one column, got 2 in"),
        (tmp_path / "c.parquet", "a file that can be read to its end, got"),
        (tmp_path / "a.npy", "a"),
    ):
        with pytest.raises(ns.NaysayError, match=f"`--query-ids` must be {message}"):
            read_names("--query-ids", path)
    (tmp_path / "damaged.jsonl").write_text("{")
    with pytest.raises(ns.NaysayError, match="`--query-ids` must be a file of one JSON value a line"):
        read_names("--query-ids", tmp_path / "damaged.jsonl")
