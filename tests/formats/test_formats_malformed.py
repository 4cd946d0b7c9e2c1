"""Training files that are read: malformed ones raise with their line, odd ones are read as they are."""

import gzip
import lzma

import numpy as np
import pyarrow.parquet as pq
import pytest

from naysay import tables as table_files
from naysay.errors import NaysayError
from naysay.formats.read_negatives import read_negatives
from naysay.formats.write_negatives import write_negatives
from naysay.positives import Positives


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", None, "a file with rows, got none in .* Pass `format` for an empty one"),
        (
            '{"query": "a", "neg": ["b"]}',
            None,
            "a file of a known format, got columns 'query', 'neg'. Pass `format`",
        ),
        (
            '{"anchor": "a"\n',
            None,
            "a file of one JSON value a line, got Expecting .* in line 1 of train.jsonl",
        ),
        (
            '{"a": "x", "b": "y", "c": "z"}\n\n{"a": "x", "b": "y",, "c": "z"}\n',
            None,
            "got Expecting property name enclosed in double quotes at character 20 in line 3 of train.jsonl",
        ),
        ('{"a": "x", "b": "y", "c": "z"}\n[1]\n', None, r"in which every line is a JSON object, got \[1\] in line 2"),
        ('{"a": "x", "b": "y", "c": "z"}\n{"a": "x", "b": "y"}\n', None, "for 'c' in every line, got None in line 2"),
        (
            '{"a": "x", "b": 1.5, "c": "z"}\n',
            None,
            "with a string or a whole number for 'b' in every line, got 1.5 in line",
        ),
        ('{"a": "x", "b": 1, "c": "z"}\n', None, "with documents that are whole numbers throughout, got 'z'"),
        ('{"a": 1, "b": "y", "c": 2}\n', None, "with documents that are strings throughout, got 2"),
        ('{"a": -1, "b": 1, "c": 2}\n', None, "with queries numbered from 0, got -1"),
        (
            '{"a": 0, "b": 1, "c": 99999999999}\n',
            None,
            "with documents numbered from 0 without wide gaps, got 99999999999",
        ),
        ('{"a": "x", "b": "y", "c": "z", "scores": [1]}\n', None, r"with 2 scores in every line, got \[1\] in line 1"),
        (
            '{"query": "a", "pos": "b", "neg": ["c"]}\n',
            None,
            "with a list of strings or whole numbers for 'pos' in every",
        ),
        (
            '{"query": "a", "pos": ["b"], "neg": ["c", null]}\n',
            None,
            r"for 'neg' in every line, got \['c', None\] in line 1",
        ),
        (
            '{"query": "a", "pos": ["b"], "neg": ["c"], "neg_scores": [1, 2]}\n',
            None,
            r"with one of 'neg_scores' for each document, got \[1, 2\] in line 1",
        ),
        ('{"a": "x", "b": "y", "label": 2}\n', None, "with labels of 0 and 1, got 2 in line 1"),
        ('{"a": "x", "b": "y", "score": 0.5}\n', None, "got columns 'a', 'b', 'score'. Scores alone do not say which"),
        (
            '{"a": "x", "b": ["y"], "labels": ["z"]}\n',
            None,
            "with a list of numbers or whole numbers for 'labels' in every",
        ),
        ('{"a": "x"}\n', "triplet", "with three columns beside scores for the format 'triplet', got columns 'a'"),
        ('{"a": "x"}\n', "labelled-list", "with an anchor, documents and 'labels' or 'scores', got columns 'a'"),
        ('{"a": "x"}\n', "flagembedding", "for the format 'flagembedding', got no 'query' among 'a'"),
        ('{"a": "x"}\n', "colbert", "lines of JSON arrays for the format 'colbert', got {'a': 'x'}"),
        ("[1, 2, 3]\n", "triplet", r"lines of JSON objects for the format 'triplet', got \[1, 2, 3\]"),
        ("[1, 2]\n", None, r"with \[query, positive, negative, ...\] in every line, got \[1, 2\] in line 1"),
        ('[1, [2, "x"], [3, 0.5]]\n', None, "of the format 'colbert-nway', got could not convert .* in lines 1 to 1"),
        (
            '{"a": 1' + "0" * 30 + ', "b": 1, "c": 2}\n',
            None,
            "of the format 'triplet', got .*too large",
        ),
        (
            '{"query_id": "1", "query": 5, "positive_passages": [], "negative_passages": []}\n',
            None,
            "with a string for 'query' in every line, got 5 in line 1",
        ),
        (
            '{"query_id": "1", "query": "a", "positive_passages": [{"docid": "x", "text": "y", "title": 1}],'
            ' "negative_passages": []}\n',
            None,
            "of the format 'tevatron', got .* in lines 1 to 1",
        ),
        ("[1, [2, 0.5], [3, 0.5, 1]]\n", None, r"in which all passages have a score, or none, got"),
        (
            '{"query_id": "1", "query": "a", "positive_passages": [{"docid": "x"}], "negative_passages": []}\n',
            None,
            "with docid and text, strings, in all positive_passages, got {'docid': 'x'} in line 1",
        ),
        (
            '{"query_id": "1", "query": "a", "positive_document_ids": [], "negative_document_ids": []}\n' * 2
            + '{"query_id": "1", "query": "b", "positive_document_ids": [], "negative_document_ids": []}\n',
            None,
            "with one text for each of its queries, got two for '1'",
        ),
    ],
)
def test_malformed_files_raise_with_their_line(text, name, message, tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(text)
    with pytest.raises(NaysayError, match=f"^read_negatives: `path` must be .*{message}"):
        read_negatives(path, name)


def test_files_that_are_not_there_or_damaged_raise(tmp_path):
    with pytest.raises(NaysayError, match=r"must be a file that ends in .parquet, .jsonl, .json or .hf, got"):
        read_negatives(tmp_path / "train.csv")
    for name in ("train.jsonl", "train.parquet", "train.jsonl.gz"):
        with pytest.raises(NaysayError, match="`path` must be an existing file, got"):
            read_negatives(tmp_path / name)
    for name, message in (
        ("a.parquet", "a file of Parquet"),
        ("a.jsonl.gz", "a whole file"),
        ("a.jsonl.xz", "a whole file"),
    ):
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(NaysayError, match=f"`path` must be {message}, got"):
            read_negatives(tmp_path / name)
    whole = gzip.compress(b'{"a": "x", "b": "y", "c": "z"}\n' * 1000)
    (tmp_path / "b.jsonl.gz").write_bytes(whole[:-9])
    with pytest.raises(NaysayError, match="`path` must be a whole file, got"):
        read_negatives(tmp_path / "b.jsonl.gz")
    (tmp_path / "c.json").write_text("[1")
    with pytest.raises(NaysayError, match="`path` must be a file of one JSON object, got Expecting"):
        read_negatives(tmp_path / "c.json")
    (tmp_path / "c.json").write_text('{"corpus": 1}')
    with pytest.raises(NaysayError, match=r'a file of one JSON object with a list "data", got None in c.json'):
        read_negatives(tmp_path / "c.json")
    (tmp_path / "d.jsonl").mkdir()
    with pytest.raises(NaysayError, match=r"`path` must be an existing file, got the folder .*, which has no .parquet"):
        read_negatives(tmp_path / "d.jsonl")


def test_compressed_files_marks_and_broken_bytes_are_read(tmp_path):
    line = b'{"a": "\xff\xfex", "b": "y", "c": "z"}\r\n'
    for name, data in (("a.jsonl.gz", gzip.compress(line)), ("b.jsonl.xz", lzma.compress(line))):
        (tmp_path / name).write_bytes(data)
        assert read_negatives(tmp_path / name).query_texts == ["\udcff\udcfex"]
    (tmp_path / "c.jsonl").write_bytes(b"\xef\xbb\xbf" + line + b"\n  \n" + line)
    read = read_negatives(tmp_path / "c.jsonl")
    assert (read.rows, read.query_texts) == (2, ["\udcff\udcfex"])


def test_an_empty_file_of_a_known_format_is_empty(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    read = read_negatives(tmp_path / "a.jsonl", "triplet")
    assert (read.rows, read.ids.shape, len(read.positives)) == (0, (0, 0), 0)
    none = Positives.from_pairs(np.empty(0, int), np.empty(0, int), 0, 0)
    texts = {"query_texts": [], "corpus_texts": []}
    write_negatives(tmp_path / "b.parquet", "triplet", ids=np.empty((0, 3), int), positives=none, **texts)
    assert pq.read_schema(tmp_path / "b.parquet").names == ["anchor", "positive", "negative"]
    assert read_negatives(tmp_path / "b.parquet").rows == 0


def test_the_blocks_in_which_it_is_read_do_not_show(tmp_path, monkeypatch):
    lines = [f'{{"query": "q{i % 7}", "pos": ["p{i % 5}"], "neg": ["p{(i + 1) % 5}", "n{i % 11}"]}}' for i in range(40)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    whole = read_negatives(tmp_path / "a.jsonl")
    monkeypatch.setattr(table_files, "_BYTES", 1)
    parts = read_negatives(tmp_path / "a.jsonl")
    assert whole.corpus_texts == parts.corpus_texts == [f"p{i}" for i in range(5)] + [f"n{i}" for i in range(11)]
    assert np.array_equal(whole.ids, parts.ids)
    assert np.array_equal(whole.positives.indices, parts.positives.indices)
    assert whole.query_texts == parts.query_texts
