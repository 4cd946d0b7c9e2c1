"""Invalid calls of the formats: `error.parameter` and the reason; nothing half-written is left behind."""

import gzip
import sys

import numpy as np
import pyarrow as pa
import pytest

from naysay.errors import MissingExtraError, NaysayError
from naysay.formats import read_beir, read_negatives, read_run, write_negatives, write_run
from naysay.positives import Positives
from naysay.search import Found

KNOWN = Positives.from_pairs([0, 1], [0, 1], 2, 4)
GIVEN = {"ids": [[2, 3], [3, -1]], "positives": KNOWN}
TEXTS = {"query_texts": ["a", "b"], "corpus_texts": ["c", "d", "e", "f"]}
ONES = np.ones((2, 2))
SCORED = {**TEXTS, "with_scores": True}


@pytest.mark.parametrize(
    ("name", "changed", "parameter", "reason"),
    [
        ("triplets", {}, "format", "Did you mean 'triplet'?"),
        ("triplet", {"ids": [2, 3]}, "ids", "shape (2,)"),
        ("triplet", {"ids": [[0.5], [1.0]]}, "ids", "float64"),
        ("triplet", {"ids": [[2, -2], [3, 3]]}, "ids", "-2 at row 0, slot 1"),
        ("ids", {"positives": KNOWN.with_ignored([0, 0], [2, 3])}, "ids", "item 2 of anchor 0 (2 such pairs)"),
        ("n-tuple", {**TEXTS, "short": "raise"}, "ids", "1 at row 1 (1 such row)"),
        ("triplet", {"positives": None}, "positives", "NoneType"),
        ("triplet", {**TEXTS, "positives": Positives.from_pairs([0], [4])}, "positives", "got 5"),
        ("triplet", {"query_texts": ["a"]}, "query_texts", "of 2 strings"),
        ("triplet", {"query_texts": ["a", None]}, "query_texts", "None at row 1 (1 such row)"),
        ("triplet", {"query_texts": pa.array([1, 2])}, "query_texts", "an Arrow column of int64"),
        ("triplet", {"query_ids": ["a", "a"]}, "query_ids", "'a' at rows 0 and 1"),
        ("tevatron", {"query_texts": ["a", "b"]}, "corpus_texts", "format='ids'"),
        ("flagembedding", {"corpus_texts": TEXTS["corpus_texts"]}, "query_texts", "format='ids'"),
        ("labeled-list", {}, "query_texts", "None"),
        ("triplet", {**TEXTS, "corpus_texts": ["c", "d", "e\udc80", "f"]}, "corpus_texts", "at row 2"),
        ("triplet", {"corpus_titles": ["a"] * 4}, "corpus_titles", "titles"),
        ("n-tuple", {"short": "pad"}, "short", "'pad'"),
        ("triplet", {"corpus_path": "x"}, "corpus_path", "'x'"),
        ("nemo", {}, "corpus_path", "None"),
        ("nemo", {**TEXTS, "corpus_path": "x"}, "path", "ends in .json"),
        ("tevatron", SCORED, "with_scores", "True"),
        ("triplet", SCORED, "scores", "None"),
        ("triplet", {**SCORED, "scores": ONES}, "positive_scores", "None"),
        ("ids", {"scores": [[1.0, np.nan]] * 2, "with_scores": True}, "scores", "nan at row 0, slot 1"),
        ("ids", {"scores": ONES, "positive_scores": [1.0, np.inf], "with_scores": True}, "positive_scores", "row 1"),
        ("trec", {}, "scores", "None"),
        ("trec", {"scores": ONES, "query_ids": ["a", "b c"]}, "query_ids", "'b c' at row 1"),
        ("trec", {"scores": ONES, "tag": ""}, "tag", "''"),
    ],
)
def test_write_negatives(name, changed, parameter, reason, tmp_path):
    with pytest.raises(NaysayError) as error:
        write_negatives(tmp_path / "train.jsonl", name, **GIVEN | changed)
    assert error.value.parameter == parameter
    assert str(error.value).startswith(f"write_negatives: `{parameter}` must be ")
    assert reason in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["no/train.jsonl", "", "train.csv", "no/train.hf", "mine.hf"])
def test_places_that_cannot_be_written(name, tmp_path):
    (tmp_path / "mine.hf").mkdir()
    (tmp_path / "mine.hf" / "thesis.txt").write_text("years of work")
    with pytest.raises(NaysayError) as error:
        write_negatives(tmp_path / name, "triplet", **GIVEN, **TEXTS)
    assert error.value.parameter == "path"
    assert [file.name for file in tmp_path.rglob("*")] == ["mine.hf", "thesis.txt"]


@pytest.mark.parametrize("name", ["train.jsonl", "train.parquet", "run.trec"])
def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_else(name, tmp_path, monkeypatch):
    path = tmp_path / name
    path.write_text("old")
    kind, given = ("trec", {"scores": ONES}) if name == "run.trec" else ("triplet", TEXTS)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(NaysayError, match="the disk is full") as error:
        write_negatives(path, kind, **GIVEN, **given)
    assert error.value.parameter == "path"
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"^write_negatives: datasets is not installed. Run: pip install"):
        write_negatives(tmp_path / "train.hf", "triplet", **GIVEN, **TEXTS)
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    (tmp_path / "train.hf").mkdir()
    monkeypatch.setattr("naysay._packages.version", lambda name: "3.6.0")
    with pytest.raises(MissingExtraError, match=r"^read_negatives: datasets 3.6.0 is too old. Run: pip install 'datas"):
        read_negatives(tmp_path / "train.hf")


TEVATRON = '{"query_id": "1", "query": "a", "positive_passages": [%s], "negative_passages": []}\n'
BESIDE = '{"query_id": "1", "query": "%s", "positive_document_ids": [], "negative_document_ids": []}\n'
SWIFT = '{"messages": [{"content": "a"}], "positive_messages": %s}\n'


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("", None, "Pass `format` for an empty one"),
        ('{"query": "a", "neg": ["b"]}', None, "got columns 'query', 'neg'. Pass `format`"),
        ('{"anchor": "a"\n', None, "in line 1 of train.jsonl"),
        ('{"a": "x", "b": "y", "c": "z"}\n\n{"a": "x", "b": "y",, "c": "z"}\n', None, "at character 20 in line 3"),
        ('{"a": "x", "b": "y", "c": "z"}\n{"a": "x", "b": "y"}\n', None, "for 'c' in every line, got None in line 2"),
        ('{"a": "x", "b": 1.5, "c": "z"}\n', None, "for 'b' in every line, got 1.5 in line 1"),
        ('{"a": "x", "b": 1, "c": "z"}\n', None, "got 'z' in line 1"),
        ('{"a": -1, "b": 1, "c": 2}\n', None, "got -1 in line 1"),
        ('{"a": 0, "b": 1, "c": 99999999999}\n', None, "without wide gaps, got 99999999999"),
        ('{"a": "x", "b": "y", "c": "z", "scores": [1]}\n', None, "got [1.0] in line 1"),
        ('{"a": "x", "b": "y"}\n', None, "a file with negatives"),
        ('{"query": "a", "pos": "b", "neg": ["c"]}\n', None, "for 'pos' in every line, got 'b' in line 1"),
        ('{"query": "a", "pos": ["b"], "neg": ["c", null]}\n', None, "got ['c', None] in line 1"),
        ('{"a": "x", "b": "y", "label": 2}\n', None, "got 2 in line 1"),
        ('{"a": "x", "b": "y", "score": 0.5}\n', None, "Scores alone do not say which"),
        ('{"a": "x", "b": ["y"], "labels": ["z"]}\n', None, "for 'labels' in every line, got ['z'] in line 1"),
        ('{"a": "x", "b": ["y"], "labels": [1, 0]}\n', None, "in line 1"),
        ('{"a": "x"}\n', "triplet", "got columns 'a'"),
        ("[1, 2, 3]\n", "triplet", "got [1, 2, 3]"),
        ('[1, [2, "x"], [3, 0.5]]\n', None, "got [2, 'x'] in line 1"),
        ("[1, [2, 0.5], [3, 0.5, 1]]\n", None, "got [3, 0.5, 1] in line 1"),
        (TEVATRON.replace('"a"', "5") % "", None, "for 'query' in every line, got 5 in line 1"),
        (TEVATRON % '{"docid": "x", "text": "y", "title": 1}', None, "'title': 1}] in line 1"),
        (BESIDE % "a" + BESIDE % "b", None, "got '1' in line 2"),
        (SWIFT % "[[{}]]", None, "got [[{}]] in line 1"),
        (SWIFT % '[{"content": "b"}]', None, "got [{'content': 'b'}] in line 1"),
    ],
)
def test_malformed_files(text, name, reason, tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(text)
    with pytest.raises(NaysayError) as error:
        read_negatives(path, name)
    assert str(error.value).startswith("read_negatives: `path` must be ")
    assert reason in str(error.value)


WHOLE = gzip.compress(b'{"a": "x", "b": "y", "c": "z"}\n' * 1000)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("train.csv", None, "ends in .parquet, .jsonl, .json or .hf"),
        ("train.jsonl", None, "an existing file"),
        ("a.parquet", b"nonsense", "a.parquet"),
        ("a.jsonl.gz", WHOLE[:-9], "a whole file"),
        ("a.jsonl", b'{"a": "\xff"}\n', "text in UTF-8"),
        ("a.json", b"[1", "Expecting"),
        ("a.json", b'{"corpus": 1}', 'a list "data", got None'),
        ("other.hf", None, "a data set on disk"),
    ],
)
def test_files_that_are_not_there_or_damaged(name, data, reason, tmp_path):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(NaysayError) as error:
        read_negatives(tmp_path / name)
    assert error.value.parameter == "path"
    assert reason in str(error.value)


# ---- Runs and BEIR ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "changed", "parameter", "reason"),
    [
        ("q Q0 d 1 0.5\n", {}, "path", "5 fields in line 1: 'q Q0 d 1 0.5'"),
        ("q Q0 d 1 high t\n", {}, "path", "'high' in line 1"),
        ("q Q0 d 1 0.5 t\nq Q0 e 2 nan t\n", {}, "path", "'nan' in line 2"),
        ("q Q0 d 1 0.5 t\nq Q0 e 2 0.4 t\nq Q0 d 3 0.3 t\nq Q0 e 3 0.3 t\n", {}, "path", "line 3 (2 such lines)"),
        (None, {}, "path", "an existing file"),
        ("p Q0 d 1 0.5 t\n", {}, "query_ids", "'p' in line 1. Pass 'drop' for"),
        ("q Q0 f 1 0.5 t\n", {}, "corpus_ids", "'f' in line 1"),
        ("", {"query_ids": ["q", "q"]}, "query_ids", "'q' at rows 0 and 1"),
        ("", {"depth": 0}, "depth", "got 0"),
        ("", {"unknown": "skip"}, "unknown", "'skip'"),
    ],
)
def test_read_run(text, changed, parameter, reason, tmp_path):
    if text is not None:
        (tmp_path / "run").write_text(text)
    with pytest.raises(NaysayError) as error:
        read_run(tmp_path / "run", **{"query_ids": ["q"], "corpus_ids": ["d", "e"]} | changed)
    assert error.value.parameter == parameter
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("name", "changed", "parameter"),
    [
        ("run", {"query_ids": ["q"], "corpus_ids": ["a b"]}, "corpus_ids"),
        ("run", {"query_ids": ["q", "r"]}, "query_ids"),
        ("run", {"tag": "a b"}, "tag"),
        ("no/run", {}, "path"),
    ],
)
def test_write_run(name, changed, parameter, tmp_path):
    with pytest.raises(NaysayError) as error:
        write_run(tmp_path / name, Found(np.array([[0]]), np.array([[0.5]], np.float32)), **changed)
    assert error.value.parameter == parameter
    assert not list(tmp_path.iterdir())


BEIR = {
    "corpus.jsonl": '{"_id": "d1", "text": "purr"}\n{"_id": "d2", "text": "bark"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "cat?"}\n',
    "test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\n",
}


@pytest.mark.parametrize(
    ("name", "text", "parameter", "reason"),
    [
        ("corpus.jsonl", None, "folder", "got 'qrels, queries.jsonl'"),
        ("test.tsv", None, "split", "no such folder, or nothing in it"),
        ("corpus.jsonl", "{}\n", "folder", "{} in line 1 of corpus.jsonl"),
        ("queries.jsonl", '{"_id": "q"\n', "folder", "at character 12 in line 1 of queries.jsonl"),
        ("corpus.jsonl", BEIR["corpus.jsonl"] * 2, "folder", "'d1' again in line 3 of corpus.jsonl"),
        ("test.tsv", BEIR["test.tsv"] + "q1 d2 1\n", "split", "['q1 d2 1'] in line 3 of test.tsv"),
        ("test.tsv", BEIR["test.tsv"] + "q1\td2\thigh\n", "split", "'high'] in line 3"),
        ("test.tsv", BEIR["test.tsv"] + "q1\td7\t1\n", "split", "'d7', '1'] in line 3"),
    ],
)
def test_read_beir(name, text, parameter, reason, tmp_path):
    (tmp_path / "qrels").mkdir()
    for file, contents in (BEIR | {name: text}).items():
        if contents is not None:
            (tmp_path / ("qrels" if file == "test.tsv" else "") / file).write_text(contents)
    with pytest.raises(NaysayError) as error:
        read_beir(tmp_path)
    assert error.value.parameter == parameter
    assert reason in str(error.value)


def test_read_beir_of_nothing(tmp_path):
    for folder, changed, parameter in ((tmp_path / "none", {}, "folder"), (tmp_path, {"min_grade": 0}, "min_grade")):
        with pytest.raises(NaysayError) as error:
            read_beir(folder, **changed)
        assert error.value.parameter == parameter
