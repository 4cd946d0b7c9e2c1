"""What is audited: every format with the same answer, duplicates counted, vectors found by name."""

import json

import numpy as np
import pytest

import naysay as ns
from naysay.auditing._given_vectors import moved, opened, rows_of
from naysay.auditing._training_set import training_set
from naysay.formats import read_negatives, write_negatives
from naysay.formats._table import FORMATS
from naysay.search import open_vectors

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
    assert training_set(read_negatives(lists), None).duplicates is None


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
        (3, None, "audit: `negatives` must be the path of a training file, a TrainingFile or Mined, got a int."),
        ("lost.parquet", None, "audit: `path` must be an existing file, got 'lost.parquet'."),
        ("a.jsonl", "tripet", "audit: `format` must be one of 'triplet',"),
    ],
)
def test_what_is_refused(given, format, message):
    with pytest.raises(ns.NaysayError) as caught:
        training_set(given, format)
    assert str(caught.value).startswith(message)


def test_a_set_without_negatives_and_a_format_for_no_file(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('{"query": "a", "pos": ["p"], "neg": []}\n')
    with pytest.raises(ns.NaysayError, match="audit: `negatives` must be at least one negative, got none in "):
        training_set(path, None)
    with pytest.raises(ns.NaysayError, match="`format` must be None where the negatives are no file, got 'ids'"):
        training_set(read_negatives(path), "ids")


# ---- vectors by name ------------------------------------------------------------------------------------------------

VECTORS = np.arange(8.0).reshape(4, 2) + 1


def test_vectors_come_in_the_order_of_the_set():
    vectors = open_vectors(VECTORS)
    rows = rows_of("corpus", 2, ["c", "a"], ["a", "b", "c", "d"], vectors)
    assert rows.tolist() == [2, 0]
    ordered = moved(vectors, rows)
    assert ordered.n == 4
    assert ordered.rows(0, 9).tolist() == VECTORS[[2, 0, 1, 3]].tolist()
    assert ordered.take(np.array([0, 3])).tolist() == VECTORS[[2, 3]].tolist()
    assert moved(vectors, np.arange(4)) is vectors
    assert rows_of("corpus", 2, None, None, vectors).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("size", "names", "given", "message"),
    [
        (5, None, None, "`corpus_vectors` must be of at least 5 rows, like the set, got 4."),
        (3, ["a", "b", "c"], None, "`corpus_vectors` must be of 3 rows, like the set, got 4. Pass corpus_ids"),
        (2, None, ["a"], "`corpus_ids` must be None where the set has row numbers, got 1 names."),
        (2, ["a", "b"], "ab", "`corpus_ids` must be an existing file, got 'ab'."),
        (2, ["a", "b"], b"ab", "`corpus_ids` must be a list of names, or a file of them, got b'ab'."),
        (2, ["a", "b"], ["a"], "`corpus_ids` must be 4 names, one for each row of corpus_vectors, got 1."),
        (
            2,
            ["a", "x"],
            ["a", "b", "c", "d"],
            "`corpus_ids` must be names of all rows of the set, got none for 'x' (1 ",
        ),
    ],
)
def test_names_that_do_not_fit(size, names, given, message):
    with pytest.raises(ns.NaysayError) as caught:
        rows_of("corpus", size, names, given, open_vectors(VECTORS))
    assert str(caught.value).startswith(f"audit: {message}")


def test_vectors_without_a_score_are_refused():
    bad = VECTORS.copy()
    bad[2] = 0
    with pytest.raises(
        ns.NaysayError, match="audit: `query_vectors` must be without zero vectors, which have no cosine"
    ):
        opened("query_vectors", bad, "cosine")
    assert opened("query_vectors", bad, "dot").n == 4
