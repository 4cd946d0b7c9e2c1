"""BEIR's folders: what is read of them."""

import gzip

from naysay.formats import read_beir

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


def test_plain_and_compressed_files(tmp_path):
    (tmp_path / "plain").mkdir()
    check(read_beir(folder(tmp_path / "plain")))
    packed = {"corpus.jsonl.gz": gzip.compress(CORPUS.encode()), "queries.jsonl.gz": gzip.compress(QUERIES.encode())}
    packed["qrels/test.tsv.gz"] = gzip.compress(JUDGED.replace("\n", "\r\n").encode())
    packed |= {"corpus.jsonl": None, "queries.jsonl": None, "qrels/test.tsv": None}
    check(read_beir(folder(tmp_path, **packed)))


def test_another_split_and_another_grade(tmp_path):
    root = folder(tmp_path, **{"qrels/train.tsv": JUDGED})
    read = read_beir(root, "train", min_grade=2)
    assert [part.tolist() for part in read.positives.pairs()] == [[0], [0]]
    assert read.dropped == {"grade below 2": 2}
    assert read.query_ids == ["q1", "q2"]
