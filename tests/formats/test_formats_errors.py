"""Errors of write_negatives and read_negatives, by their sentence; nothing half-written is left behind."""

import sys

import numpy as np
import pyarrow as pa
import pytest

from naysay.errors import MissingExtraError, NaysayError
from naysay.formats.read_negatives import read_negatives
from naysay.formats.write_negatives import write_negatives
from naysay.positives import Positives

KNOWN = Positives.from_pairs([0, 1], [0, 1], 2, 4)
GIVEN = {"ids": [[2, 3], [3, -1]], "positives": KNOWN}
TEXTS = {"query_texts": ["a", "b"], "corpus_texts": ["c", "d", "e", "f"]}


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("triplets", {}, r"`format` must be one of 'triplet', .* got 'triplets'. Did you mean 'triplet'\?"),
        ("triplet", {"ids": [2, 3]}, r"`ids` must be of shape \(n, k\), got shape \(2,\)"),
        (
            "triplet",
            {"ids": np.empty((2, 0), int)},
            r"`ids` must be of shape \(n, k\), k at least 1, got shape \(2, 0\)",
        ),
        ("triplet", {"ids": [[0.5], [1.0]]}, "`ids` must be whole numbers, got dtype float64"),
        (
            "triplet",
            {"ids": [[2, -2], [3, 3]]},
            r"`ids` must be between -1 and 3 \(4 documents\), got -2 at row 0, slot 1",
        ),
        (
            "triplet",
            {"ids": [[4], [3]], **TEXTS},
            r"`ids` must be between -1 and 3 \(4 documents\), got 4 at row 0, slot 0",
        ),
        ("triplet", {"positives": None}, "`positives` must be a Positives, got NoneType"),
        (
            "triplet",
            {"positives": Positives.from_pairs([2], [0])},
            "`positives` must be of at most 2 anchors, the rows of ids, got 3",
        ),
        (
            "triplet",
            {**TEXTS, "positives": Positives.from_pairs([0], [4])},
            "`positives` must be of at most 4 items, the size of the corpus, got 5",
        ),
        (
            "triplet",
            {"ids": [[2, 3], [1, 0]]},
            r"`ids` must be negatives, none of them known to be a positive or to be ignored, got item 1 of anchor 1",
        ),
        (
            "ids",
            {"positives": KNOWN.with_ignored([0, 0], [2, 3])},
            r"or to be ignored, got item 2 of anchor 0 \(2 such pairs\)",
        ),
        ("triplet", {"query_texts": ["a"]}, "`query_texts` must be of 2 strings, one for each row, got 1"),
        ("triplet", {"corpus_texts": ["a"] * 3, "corpus_ids": list("abcd")}, "`corpus_texts` must be of 4 strings"),
        ("triplet", {"query_texts": "ab"}, "`query_texts` must be a sequence of strings, got 'ab'"),
        ("triplet", {"query_texts": ["a", None]}, r"`query_texts` must be strings, got None at row 1 \(1 such row\)"),
        ("triplet", {"query_texts": [1, 2]}, r"`query_texts` must be strings, got 1 at row 0 \(2 such rows\)"),
        ("triplet", {"query_texts": pa.array([1, 2])}, "`query_texts` must be strings, got an Arrow column of int64"),
        ("triplet", {"query_texts": pa.array(["a", None])}, "must be an Arrow column without nulls, got 1 nulls"),
        ("triplet", {"query_ids": ["a", "a"]}, "`query_ids` must be distinct, got 'a' at rows 0 and 1"),
        ("flagembedding", {}, "`query_texts` must be given for the format 'flagembedding', got None"),
        ("tevatron", {"query_texts": ["a", "b"]}, "`corpus_texts` must be given for the format 'tevatron', got None"),
        ("triplet", {"short": "raise"}, "`short` must be left out for the format 'triplet', which holds rows of any"),
        ("n-tuple", {"short": "pad"}, "`short` must be one of 'drop', 'raise', got 'pad'"),
        (
            "n-tuple",
            {**TEXTS, "short": "raise"},
            r"`ids` must be 2 negatives for each anchor, because `short` is 'raise', got 1 at row 1 \(1 such row\)",
        ),
        ("triplet", {"tag": "x"}, "`tag` must be left out for the format 'triplet', got 'x'"),
        ("triplet", {"corpus_path": "x"}, "`corpus_path` must be left out for the format 'triplet', got 'x'"),
        ("nemo", {}, "`corpus_path` must be given for the format 'nemo', got None. It is the folder"),
        ("nemo", {**TEXTS, "corpus_path": "x"}, "`path` must be a file that ends in .json for the format 'nemo', got"),
        (
            "triplet",
            {"corpus_titles": ["a"] * 4},
            "`corpus_titles` must be left out for the format 'triplet', got titles",
        ),
        (
            "tevatron",
            {**TEXTS, "with_scores": True},
            "`with_scores` must be False for the format 'tevatron', which has",
        ),
        ("triplet", {**TEXTS, "with_scores": True}, "`scores` must be given for a file with scores, got None"),
        (
            "triplet",
            {**TEXTS, "with_scores": True, "scores": np.ones((2, 2))},
            "`positive_scores` must be given for a file with scores in the format 'triplet', got None",
        ),
        (
            "triplet",
            {"scores": [[1.0], [1.0]]},
            r"`scores` must be numbers of shape \(2, 2\), got shape \(2, 1\) float64",
        ),
        (
            "ids",
            {"scores": [[1.0, np.nan], [1.0, np.nan]], "with_scores": True},
            r"`scores` must be finite, got nan at row 0, slot 1 \(1 such row\)",
        ),
        (
            "ids",
            {"scores": [[1e300, 1.0]] * 2, "with_scores": True},
            r"`scores` must be finite, got inf at row 0, slot 0",
        ),
        (
            "ids",
            {"scores": np.ones((2, 2)), "positive_scores": [1.0, np.inf], "with_scores": True},
            r"`positive_scores` must be finite, got inf at row 1",
        ),
        ("trec", {}, "`scores` must be given for the format 'trec', got None"),
        (
            "trec",
            {"scores": np.ones((2, 2)), "query_ids": ["a", "b c"]},
            "`query_ids` must be without white space, and not empty, got 'b c' at row 1",
        ),
        ("trec", {"scores": np.ones((2, 2)), "tag": ""}, "`tag` must be without white space, and not empty, got ''"),
    ],
)
def test_errors_before_anything_is_written(name, changed, message, tmp_path):
    path = tmp_path / "train.jsonl"
    with pytest.raises(NaysayError, match=f"^write_negatives: .*{message}"):
        write_negatives(path, name, **GIVEN | changed)
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written_raise(tmp_path):
    with pytest.raises(NaysayError, match="write_negatives: `path` must be in an existing folder, got"):
        write_negatives(tmp_path / "no" / "train.jsonl", "triplet", **GIVEN)
    with pytest.raises(NaysayError, match="write_negatives: `path` must be a file, got the folder"):
        write_negatives(tmp_path, "triplet", **GIVEN)
    with pytest.raises(
        NaysayError, match=r"`path` must be a file that ends in .parquet or .jsonl or .hf for the format"
    ):
        write_negatives(tmp_path / "train.csv", "triplet", **GIVEN)
    with pytest.raises(NaysayError, match="`path` must be in an existing folder, got"):
        write_negatives(tmp_path / "no" / "train.hf", "triplet", **GIVEN)
    (tmp_path / "mine.hf").mkdir()
    (tmp_path / "mine.hf" / "thesis.txt").write_text("years of work")
    with pytest.raises(NaysayError, match="`path` must be new, or a data set on disk, got"):
        write_negatives(tmp_path / "mine.hf", "triplet", **GIVEN)
    assert (tmp_path / "mine.hf" / "thesis.txt").exists()


def test_parquet_raises_what_utf8_cannot_hold(tmp_path):
    texts = {"query_texts": ["a", "b"], "corpus_texts": ["c", "d", "e\udc80", "f"]}
    message = (
        r"`corpus_texts` must be text that UTF-8 can hold, got 'e\\udc80' at row 2. Parquet holds UTF-8 only; .jsonl"
    )
    with pytest.raises(NaysayError, match=message):
        write_negatives(tmp_path / "train.parquet", "triplet", **GIVEN, **texts)
    assert not list(tmp_path.iterdir())
    write_negatives(tmp_path / "train.jsonl", "triplet", **GIVEN, **texts)
    assert "e\udc80" in read_negatives(tmp_path / "train.jsonl").corpus_texts


@pytest.mark.parametrize("name", ["train.jsonl", "train.parquet", "run.trec"])
def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_else(name, tmp_path, monkeypatch):
    path = tmp_path / name
    path.write_text("old")
    kind, given = ("trec", {"scores": np.ones((2, 2))}) if name == "run.trec" else ("triplet", TEXTS)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    message = r"`path` must be a file that can be written, got .* \(the disk is full\)"
    with pytest.raises(NaysayError, match=message):
        write_negatives(path, kind, **GIVEN, **given)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        MissingExtraError, match=r"write_negatives: datasets is not installed. Run: pip install 'datasets>=4.0'"
    ):
        write_negatives(tmp_path / "train.hf", "triplet", **GIVEN, **TEXTS)
    assert not list(tmp_path.iterdir())
    (tmp_path / "train.hf").mkdir()
    with pytest.raises(MissingExtraError, match="read_negatives: datasets is not installed"):
        read_negatives(tmp_path / "train.hf")
    monkeypatch.undo()
    monkeypatch.setattr("naysay._packages.version", lambda name: "3.6.0")
    with pytest.raises(MissingExtraError, match=r"read_negatives: datasets 3.6.0 is too old. Run: pip install 'datas"):
        read_negatives(tmp_path / "train.hf")


def test_a_data_set_on_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    path = tmp_path / "train.hf"
    for _ in range(2):  # and over it once more
        write_negatives(path, "triplet", **GIVEN, **TEXTS)
    assert datasets.load_from_disk(str(path)).column_names == ["anchor", "positive", "negative"]
    read = read_negatives(path)
    assert (read.rows, read.query_texts, read.ids.tolist()) == (3, ["a", "b"], [[2, 3], [3, -1]])
    assert [file.name for file in tmp_path.iterdir()] == ["train.hf"]
    with pytest.raises(NaysayError, match="`path` must be a data set on disk, got"):
        read_negatives(tmp_path / "other.hf")
