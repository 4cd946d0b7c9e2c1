"""The rows of every format against plain loops, with texts that no one would wish for, and back again."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from negatives_as_lists import expected, lines_of, worlds

from naysay.formats import _writing as writing
from naysay.formats._formats import FORMATS
from naysay.formats.read_negatives import read_negatives
from naysay.formats.write_negatives import write_negatives
from naysay.positives import Positives
from naysay.vocabulary import Vocabulary

LINES = [name for name, each in FORMATS.items() if ".jsonl" in each.suffixes or ".json" in each.suffixes]
TABLES = [name for name, each in FORMATS.items() if ".parquet" in each.suffixes]
SCORED = [name for name, each in FORMATS.items() if each.scores != "none"]
TIMES = settings(max_examples=8)


def close(rows):
    """Rows with every number as the float32 that it stands for."""

    def turned(value):
        if isinstance(value, float):
            return float(np.float32(value))
        if isinstance(value, dict):
            return {name: turned(each) for name, each in value.items()}
        return [turned(each) for each in value] if isinstance(value, list) else value

    return [turned(row) for row in rows]


def options(name):
    return {"corpus_path": "data/wiki"} if name == "nemo" else {}


def files(name):
    return f"train{'.json' if name == 'nemo' else '.jsonl'}"


@pytest.mark.parametrize("name", LINES)
@TIMES
@given(world=worlds())
def test_lines_of_json_are_those_of_plain_loops(name, world):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / files(name)
        written = write_negatives(path, name, **world.arguments(), **options(name))
        rows = expected(world, name, scores=False)
        assert lines_of(path) == rows
        assert (written.path, written.format, written.rows) == (path, name, len(rows))
        assert [file.name for file in Path(folder).iterdir()] == [path.name]


@pytest.mark.parametrize("name", SCORED)
@TIMES
@given(world=worlds())
def test_scores_stand_beside_their_documents(name, world):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / files(name)
        write_negatives(path, name, **world.arguments(scores=True), **options(name))
        assert close(lines_of(path)) == close(expected(world, name, scores=True))


@pytest.mark.parametrize("name", TABLES)
@TIMES
@given(world=worlds())
def test_parquet_holds_the_same_rows(name, world):
    scores = name in SCORED
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.parquet"
        write_negatives(path, name, **world.arguments(scores=scores))
        rows = expected(world, name, scores=scores)
        table = pq.read_table(path)
        assert close(table.to_pylist()) == close(rows)
        if rows:
            assert table.column_names == list(rows[0])


@pytest.mark.parametrize("name", [name for name in LINES if name != "labelled-pair"])
@TIMES
@given(world=worlds())
def test_what_is_read_back_is_what_was_written(name, world):
    scores = name in SCORED
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / files(name)
        write_negatives(path, name, **world.arguments(scores=scores), **options(name))
        read = read_negatives(path, name)
        assert said(read, world) == kept(world, name)
        if read.scores is not None:
            there = read.ids >= 0
            assert np.isnan(read.scores[~there]).all()
            rows = [row for row in range(len(world.queries)) if kept(world, name).get(row, ([], []))[1]]
            assert read.scores[there].tolist() == [score for row in rows for score in world.scores[row]]
        if path.read_bytes().strip() and name not in ("triplet", "n-tuple", "colbert", "colbert-nway"):
            assert not expected(world, name, scores=False) or read_negatives(path).format == name


@TIMES
@given(world=worlds())
def test_labelled_pairs_are_read_back_by_their_labels(world):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        write_negatives(path, "labelled-pair", **world.arguments())
        read = read_negatives(path, "labelled-pair")
        pairs = {row: (known, found) for row, (known, found) in zipped(world) if known or found}
        assert said(read, world) == pairs


def zipped(world):
    return list(enumerate(zip(world.positives, world.negatives, strict=True)))


def kept(world, name):
    """{anchor: (positives, negatives)} of the anchors that a format has rows for."""
    if name == "ids":
        return {row: (known, found) for row, (known, found) in zipped(world)}
    short = name in ("n-tuple", "colbert-nway")
    return {
        row: (known, found)
        for row, (known, found) in zipped(world)
        if known and found and not (short and len(found) < world.k)
    }


def said(read, world):
    """The same from a file that was read: its rows put back to those of the world."""
    queries = numbers_of(read.query_ids, read.query_texts, world.queries, len(read.ids))
    corpus = numbers_of(read.corpus_ids, read.corpus_texts, world.corpus, read.positives.n_items)
    found = {}
    for row, query in enumerate(queries):
        items = read.positives.indices[read.positives.indptr[row] : read.positives.indptr[row + 1]]
        negatives = [corpus[item] for item in read.ids[row] if item >= 0]
        found[query] = (sorted(corpus[item] for item in items), negatives)
    if read.query_ids is None and read.query_texts is None and read.format != "ids":
        found = {query: both for query, both in found.items() if both != ([], [])}  # numbers that no line has
    return found


def numbers_of(ids, texts, known, size):
    """The numbers in the world of the rows of a file."""
    if ids is not None:
        if texts is not None:
            assert [known[int(name)] for name in ids] == texts
        return [int(name) for name in ids]
    return list(range(size)) if texts is None else [known.index(text) for text in texts]


@pytest.mark.parametrize("name", ["triplet", "labelled-list", "flagembedding", "tevatron", "nemo", "ids"])
def test_blocks_do_not_show(name, tmp_path, monkeypatch):
    """One anchor a block, or all of them in one: the same bytes."""
    rng = np.random.default_rng(0)
    ids = rng.permuted(np.tile(np.arange(20, 60), (50, 1)), axis=1)[:, :3]
    ids[rng.random(ids.shape) < 0.3] = -1
    known = Positives.from_pairs(rng.integers(0, 50, 90), rng.integers(0, 20, 90), 50, 60)
    given = {"ids": ids, "positives": known}
    given |= {"query_texts": [f"q{i}" for i in range(50)], "corpus_texts": [f"d{i}" for i in range(60)]}
    suffix = ".json" if name == "nemo" else ".jsonl"
    whole = write_negatives(tmp_path / f"whole{suffix}", name, **given, **options(name))
    monkeypatch.setattr(writing, "_FIRST_BLOCK", 1)
    monkeypatch.setattr(writing, "_MOST_CELLS", 1)
    parts = write_negatives(tmp_path / f"parts{suffix}", name, **given, **options(name))
    assert whole.path.read_bytes() == parts.path.read_bytes()
    assert (whole.rows, whole.dropped) == (parts.rows, parts.dropped)
    assert whole.rows > 30


def test_row_groups_of_parquet_are_cut_by_the_length_of_their_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_FIRST_BLOCK", 1)
    monkeypatch.setattr(writing, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(writing, "_GROUP", 400)
    known = Positives.from_pairs(np.arange(40), np.zeros(40, np.int64), 40, 3)
    texts = ["p", "n" * 30, "m" * 500]
    given = {"query_texts": [str(row) for row in range(40)], "corpus_texts": texts}
    path = tmp_path / "train.parquet"
    write_negatives(path, "flagembedding", ids=np.tile([1, 2], (40, 1)), positives=known, **given)
    assert pq.ParquetFile(path).num_row_groups > 10
    assert pq.read_table(path)["neg"].to_pylist() == [texts[1:]] * 40


def test_a_line_of_a_megabyte_survives(tmp_path):
    long = "".join(np.random.default_rng(0).choice(list('ab"\n\u05d0\u202e'), 1 << 20))
    known = Positives.from_pairs([0], [0], 1, 2)
    for name in ("train.jsonl", "train.parquet"):
        path = tmp_path / name
        write_negatives(path, "triplet", ids=[[1]], positives=known, query_texts=["q"], corpus_texts=["p", long])
        assert read_negatives(path).corpus_texts == ["p", long]


def test_names_and_texts_come_as_lists_arrays_arrow_or_a_vocabulary(tmp_path):
    known = Positives.from_pairs([0], [0], 1, 3)
    want = '{"anchor": "q", "positive": "a", "negative": "c"}\n'
    makers = (list, tuple, np.array, pa.array, lambda each: pa.chunked_array([each[:1], each[1:]]), Vocabulary)
    for make in makers:
        path = tmp_path / "train.jsonl"
        given = {"query_ids": make(["q"]), "corpus_ids": make(["a", "b", "c"])}
        texts = list if make is Vocabulary else make
        given |= {"query_texts": texts(["q"]), "corpus_texts": texts(["a", "b", "c"])}
        write_negatives(path, "triplet", ids=[[2]], positives=known, **given)
        assert path.read_text() == want


def test_rows_have_names_and_without_names_numbers(tmp_path):
    known = Positives.from_pairs([0], [0], 1, 2)
    path = tmp_path / "train.parquet"
    write_negatives(path, "ids", ids=[[1]], positives=known, corpus_ids=["x", "y"])
    assert pq.read_table(path).to_pylist() == [{"anchor": 0, "positives": ["x"], "negatives": ["y"]}]
    write_negatives(path, "ids", ids=[[1]], positives=known)
    assert pq.read_table(path).to_pylist() == [{"anchor": 0, "positives": [0], "negatives": [1]}]


def test_pairs_to_ignore_are_no_positives(tmp_path):
    known = Positives.from_pairs([0, 1], [1, 1], 2, 4).with_ignored([0, 1], [0, 0])
    scores = np.array([np.nan, 0.5, np.nan, 0.25], np.float32)
    path = tmp_path / "train.jsonl"
    given = {"scores": [[0.125], [0.75]], "positive_scores": scores, "with_scores": True}
    given |= {"query_texts": ["q", "r"], "corpus_texts": ["a", "b", "c", "d"]}
    write_negatives(path, "triplet", ids=[[2], [3]], positives=known, **given)
    assert lines_of(path) == [
        {"anchor": "q", "positive": "b", "negative": "c", "scores": [0.5, 0.125]},
        {"anchor": "r", "positive": "b", "negative": "d", "scores": [0.25, 0.75]},
    ]


def test_anchors_that_positives_does_not_reach_have_none(tmp_path):
    known = Positives.from_pairs([0], [0])
    texts = {"query_texts": ["q", "r", "s"], "corpus_texts": ["a", "b", "c", "d"]}
    written = write_negatives(tmp_path / "a.jsonl", "triplet", ids=[[2], [3], [-1]], positives=known, **texts)
    assert (written.rows, written.dropped) == (1, {"no positive": 2})


def test_a_score_is_written_with_as_few_digits_as_say_it(tmp_path):
    known = Positives.from_pairs([0], [0], 1, 3)
    path = tmp_path / "train.jsonl"
    given = {"scores": np.array([[0.1, 1e-30]], np.float32), "positive_scores": [1 / 3], "with_scores": True}
    write_negatives(path, "ids", ids=[[1, 2]], positives=known, **given)
    assert json.loads(path.read_text())["negative_scores"] == [0.1, 1e-30]
    assert json.loads(path.read_text())["positive_scores"] == [0.33333334]
