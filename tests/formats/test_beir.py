"""BEIR's folders: what is read, and errors that name the line."""

import gzip
import lzma

import pytest

from naysay.errors import NaysayError
from naysay.formats.beir import read_beir

CORPUS = """\
{"_id": "d1", "title": "Cats", "text": "purr"}
{"_id": "d2", "title": "", "text": "say \\"no\\"\\n\u202e"}
{"_id": 3, "text": "no title", "metadata": {}}
"""
QUERIES = (
    '{"_id": "q9", "text": "unjudged"}\n{"_id": "q1", "text": "cat?"}\n{"_id": "q2", "text": "dog?", "metadata": {}}\n'
)
JUDGED = "query-id\tcorpus-id\tscore\nq2\td2\t1\nq1\td1\t2\nq1\t3\t0\n"


def folder(tmp_path, **changed):
    files = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/test.tsv": JUDGED} | changed
    (tmp_path / "qrels").mkdir()
    for name, text in files.items():
        if text is not None:
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path


def check(read):
    assert (read.query_ids, read.query_texts) == (["q1", "q2"], ["cat?", "dog?"])
    assert read.corpus_ids == ["d1", "d2", "3"]
    assert read.corpus_titles == ["Cats", "", ""]
    assert read.corpus_texts == ["purr", 'say "no"\n\u202e', "no title"]
    assert read.documents() == ["Cats purr", 'say "no"\n\u202e', "no title"]
    assert [part.tolist() for part in read.positives.pairs()] == [[0, 1], [0, 1]]
    assert read.positives.contains(["q1", "q2"], ["d1", "d2"]).all()
    assert (read.positives.n_anchors, read.positives.n_items) == (2, 3)
    assert read.dropped == {"grade below 1": 1}


def test_a_folder(tmp_path):
    check(read_beir(folder(tmp_path)))


def test_compressed_files(tmp_path):
    packed = {"corpus.jsonl.xz": lzma.compress(CORPUS.encode()), "queries.jsonl.gz": gzip.compress(QUERIES.encode())}
    packed["qrels/test.tsv.gz"] = gzip.compress(JUDGED.replace("\n", "\r\n").encode())
    packed |= {"corpus.jsonl": None, "queries.jsonl": None, "qrels/test.tsv": None}
    check(read_beir(folder(tmp_path, **packed)))


def test_another_split_and_another_grade(tmp_path):
    root = folder(tmp_path, **{"qrels/train.tsv": JUDGED})
    read = read_beir(root, "train", min_grade=2)
    assert [part.tolist() for part in read.positives.pairs()] == [[0], [0]]
    assert read.dropped == {"grade below 2": 2}
    assert read.query_ids == ["q1", "q2"]


def test_broken_bytes_stay(tmp_path):
    broken = b'{"_id": "d1", "text": "\xff"}\n{"_id": "d2", "text": ""}\n{"_id": "3", "text": "\xe2\x80\xa8"}\n'
    assert read_beir(folder(tmp_path, **{"corpus.jsonl": broken})).corpus_texts == ["\udcff", "", "\u2028"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"corpus.jsonl": None},
            "`folder` must be one with .*/corpus.jsonl, also .gz or .xz, got 'qrels, queries.jsonl'",
        ),
        (
            {"qrels/test.tsv": None},
            "`split` must be one with qrels/test.tsv, also .gz or .xz, got no such folder, or noth",
        ),
        (
            {"corpus.jsonl": "{}\n"},
            "object of _id and text, both strings, in every line, got {} in line 1 of corpus.jsonl",
        ),
        ({"queries.jsonl": '["q1"]\n'}, r"in every line, got \['q1'\] in line 1 of queries.jsonl"),
        (
            {"queries.jsonl": QUERIES + '{"_id": "q"\n'},
            "got Expecting ',' delimiter at character 12 in line 4 of queries.js",
        ),
        (
            {"corpus.jsonl": CORPUS + CORPUS},
            "one in which every id is there once, got 'd1' again in line 4 of corpus.jsonl",
        ),
        ({"qrels/test.tsv": JUDGED + "q1 d2 1\n"}, r"with tabs between, got \['q1 d2 1'\] in line 5 of test.tsv"),
        ({"qrels/test.tsv": JUDGED + "q1\td2\thigh\n"}, r"with tabs between, got \['q1', 'd2', 'high'\] in line 5"),
        ({"qrels/test.tsv": JUDGED + "q1\td7\t1\n"}, "one that judges documents of the folder, got 'd7' in line 5"),
        ({"qrels/test.tsv": JUDGED + "q7\td1\t1\n"}, "one that judges queries of the folder, got 'q7' in line 5"),
    ],
)
def test_errors(changed, message, tmp_path):
    with pytest.raises(NaysayError, match=f"^read_beir: .*{message}"):
        read_beir(folder(tmp_path, **changed))


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(NaysayError, match="read_beir: `folder` must be an existing folder, got"):
        read_beir(tmp_path / "none")
    with pytest.raises(NaysayError, match="read_beir: `min_grade` must be at least 1, got 0"):
        read_beir(tmp_path, min_grade=0)
