"""Training files with scores, letter by letter, and files of the libraries that we did not write."""

import gzip

import numpy as np
import pyarrow.parquet as pq
import pytest

from naysay import Positives
from naysay.formats import read_negatives, write_negatives

# Two queries; the first has two positives and two negatives, the second one of each.
GIVEN = {
    "ids": np.array([[3, 0], [2, -1]]),
    "positives": Positives.from_pairs([0, 0, 1], [1, 2, 3], 2, 4),
    "query_ids": ["q1", "q2"],
    "query_texts": ["what is a cat", "\u05de\u05d4 \u202e\u05db\u05dc\u05d1"],
    "corpus_ids": ["d0", "d1", "d2", "d3"],
    "corpus_texts": ["a fish", 'a "cat"', "a pet\nthat purrs", "a dog"],
}
SCORES = {
    "scores": np.array([[0.75, 0.5], [0.25, -np.inf]], np.float32),
    "positive_scores": [1, 0.9, 0.8],
    "with_scores": True,
}
CAT, PET, DOG, FISH = '"a \\"cat\\""', '"a pet\\nthat purrs"', '"a dog"', '"a fish"'
ONE, TWO = '"what is a cat"', '"\u05de\u05d4 \u202e\u05db\u05dc\u05d1"'

WITH_SCORES = {
    "triplet": f"""\
{{"anchor": {ONE}, "positive": {CAT}, "negative": {DOG}, "scores": [1.0, 0.75]}}
{{"anchor": {ONE}, "positive": {CAT}, "negative": {FISH}, "scores": [1.0, 0.5]}}
{{"anchor": {ONE}, "positive": {PET}, "negative": {DOG}, "scores": [0.9, 0.75]}}
{{"anchor": {ONE}, "positive": {PET}, "negative": {FISH}, "scores": [0.9, 0.5]}}
{{"anchor": {TWO}, "positive": {DOG}, "negative": {PET}, "scores": [0.8, 0.25]}}
""",
    "labelled-pair": f"""\
{{"anchor": {ONE}, "document": {CAT}, "score": 1.0}}
{{"anchor": {ONE}, "document": {PET}, "score": 0.9}}
{{"anchor": {ONE}, "document": {DOG}, "score": 0.75}}
{{"anchor": {ONE}, "document": {FISH}, "score": 0.5}}
{{"anchor": {TWO}, "document": {DOG}, "score": 0.8}}
{{"anchor": {TWO}, "document": {PET}, "score": 0.25}}
""",
    "flagembedding": f"""\
{{"query": {ONE}, "pos": [{CAT}, {PET}], "neg": [{DOG}, {FISH}], "pos_scores": [1.0, 0.9], "neg_scores": [0.75, 0.5]}}
{{"query": {TWO}, "pos": [{DOG}], "neg": [{PET}], "pos_scores": [0.8], "neg_scores": [0.25]}}
""",
    "colbert-nway": "[0, [1, 1.0], [3, 0.75], [0, 0.5]]\n[0, [2, 0.9], [3, 0.75], [0, 0.5]]\n",
}
NEMO = f"""\
{{"corpus": {{"path": "data/wiki"}}, "data": [
{{"question_id": "q1", "question": {ONE}, "corpus_id": "wiki", "pos_doc": [{{"id": "d1", "score": 1.0}}, {{"id": "d2", \
"score": 0.9}}], "neg_doc": [{{"id": "d3", "score": 0.75}}, {{"id": "d0", "score": 0.5}}]}},
{{"question_id": "q2", "question": {TWO}, "corpus_id": "wiki", "pos_doc": [{{"id": "d3", "score": 0.8}}], "neg_doc": \
[{{"id": "d2", "score": 0.25}}]}}
]}}
"""


@pytest.mark.parametrize("name", WITH_SCORES)
def test_golden_files_with_scores(name, tmp_path):
    path = tmp_path / "train.jsonl"
    write_negatives(path, name, **GIVEN, **SCORES)
    assert path.read_text(encoding="utf-8") == WITH_SCORES[name]


def test_golden_nemo_with_its_header(tmp_path):
    write_negatives(tmp_path / "train.json", "nemo", **GIVEN, **SCORES, corpus_path="data/wiki")
    assert (tmp_path / "train.json").read_text(encoding="utf-8") == NEMO


def test_tevatron_keeps_titles_apart(tmp_path):
    path = tmp_path / "train.jsonl"
    write_negatives(path, "tevatron", **GIVEN, corpus_titles=["Fish", "", "Pet", "Dog"])
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert f'"positive_passages": [{{"docid": "d1", "title": "", "text": {CAT}}}' in first
    assert f'{{"docid": "d3", "title": "Dog", "text": {DOG}}}' in first
    assert read_negatives(path).corpus_texts[:2] == ['a "cat"', "Pet a pet\nthat purrs"]


def test_the_spelling_of_sentence_transformers_is_known(tmp_path):
    path = tmp_path / "train.jsonl"
    assert write_negatives(path, "labeled-list", **GIVEN).format == "labelled-list"
    assert read_negatives(path, "labeled-list").format == "labelled-list"


def told(tmp_path, text, name="theirs.jsonl"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_negatives(path)


def test_columns_of_other_names_are_read_by_their_order(tmp_path):
    """As on the Hub: query, answer, negative."""
    text = '{"query": "q", "answer": "p", "negative": "n"}\n{"query": "q", "answer": "p", "negative": "m"}\n'
    read = told(tmp_path, text)
    assert (read.format, read.rows, read.query_texts, read.corpus_texts) == ("triplet", 2, ["q"], ["p", "n", "m"])
    assert (read.ids.tolist(), read.positives.pairs()[1].tolist()) == ([[1, 2]], [0])
    read = told(tmp_path, '{"query": "q", "answer": "p", "negative_1": "n", "negative_2": "m", "scores": [3, 2, 1]}\n')
    assert (read.format, read.ids.tolist(), read.scores.tolist()) == ("n-tuple", [[1, 2]], [[2, 1]])
    assert read.positive_scores.tolist() == [3]


def test_files_of_the_others_are_told_by_their_columns(tmp_path):
    read = told(tmp_path, '{"query": "q", "pos": ["p"], "neg": ["n"], "prompt": "find", "type": "normal"}\n')
    assert (read.format, read.corpus_texts, read.scores) == ("flagembedding", ["p", "n"], None)
    text = '{"query_id": "1", "query": "q", "positive_document_ids": ["a"], "negative_document_ids": ["b"]}\n'
    read = told(tmp_path, text)
    assert (read.format, read.query_ids, read.query_texts, read.corpus_ids) == (
        "tevatron-ids",
        ["1"],
        ["q"],
        ["a", "b"],
    )
    text = '{"corpus": [{"path": "x"}], "data": [{"question_id": "1", "question": "q", "corpus_id": "x", '
    read = told(tmp_path, text + '"pos_doc": [{"id": "a"}], "neg_doc": [{"id": "b"}, "c"]}]}', "train.json")
    assert (read.format, read.corpus_ids, read.ids.tolist(), read.scores) == ("nemo", ["a", "b", "c"], [[1, 2]], None)
    read = told(tmp_path, '{"query": "q", "pos_doc": ["p", "r"], "neg_doc": ["n"]}\n')
    assert (read.format, len(read.positives)) == ("nemo-inline", 2)
    text = (
        '{"messages": [{"role": "system", "content": "find"}, {"role": "user", "content": "q"}], "positive_messages": '
    )
    read = told(
        tmp_path,
        text
        + '[[{"role": "user", "content": "p"}]]}\n'
        + text
        + '[[{"content": "p"}]], "negative_messages": [[{"content": "n"}]]}\n',
    )
    assert (read.format, read.query_texts, read.corpus_texts) == ("ms-swift", ["find\nq"], ["p", "n"])
    read = told(
        tmp_path, '{"sentence1": "a", "sentence2": "b", "label": 1}\n{"sentence1": "a", "sentence2": "c", "label": 0}'
    )
    assert (read.format, read.rows, read.ids.tolist()) == ("labelled-pair", 2, [[1]])
    assert told(tmp_path, "[5, 7, 9]\n").format == "colbert"
    assert told(tmp_path, "[5, [7, 1.5], [9, 0.5]]\n").scores[5].tolist() == [0.5]


def test_a_negative_that_the_file_calls_positive_is_seen(tmp_path):
    """Released hard negatives of MS MARCO hold the positive itself: a reader must not hide that."""
    read = told(tmp_path, '{"query": "q", "pos": ["p"], "neg": ["p", "n"]}\n')
    assert read.ids.tolist() == [[0, 1]]
    assert read.positives.contains([0], read.ids).tolist() == [[True, False]]


def test_marks_compression_and_line_ends_are_read(tmp_path):
    line = b'{"a": "x", "b": "y", "c": "z"}\r\n'
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(line))
    (tmp_path / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + line + b"\n  \n" + line)
    assert read_negatives(tmp_path / "a.jsonl.gz").query_texts == ["x"]
    assert read_negatives(tmp_path / "b.jsonl").rows == 2


def test_an_empty_file_of_a_known_format_is_empty(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    read = read_negatives(tmp_path / "a.jsonl", "triplet")
    assert (read.rows, read.ids.shape, len(read.positives)) == (0, (0, 0), 0)
    none = Positives.from_pairs(np.empty(0, int), np.empty(0, int), 0, 0)
    texts = {"query_texts": [], "corpus_texts": []}
    write_negatives(tmp_path / "b.parquet", "triplet", ids=np.empty((0, 3), int), positives=none, **texts)
    assert pq.read_schema(tmp_path / "b.parquet").names == ["anchor", "positive", "negative"]
    assert read_negatives(tmp_path / "b.parquet").rows == 0
