"""Anchors that are documents, in a job: by their ids, by row, by their text, by their vector."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import World, in_parts, lines, stopped

from naysay.mining import mine

N, ITEMS = 20, 60


class Own(World):
    """Twenty questions, of which every second is document 3 * row, and other documents."""

    def __init__(self, folder, query_ids, document_ids, query_texts, texts):
        rng = np.random.default_rng(1)
        self.folder, self.n, self.items = folder, N, ITEMS
        self.corpus = rng.normal(size=(ITEMS, 8)).astype(np.float32)
        self.queries = (self.corpus[::3] + 0.05 * rng.normal(size=(N, 8))).astype(np.float32)
        self.labelled = (np.arange(N) * 3 + 1) % ITEMS
        np.save(folder / "q.npy", self.queries)
        np.save(folder / "c.npy", self.corpus)
        pq.write_table(pa.table({"id": query_ids, "text": query_texts}), folder / "queries.parquet")
        pq.write_table(pa.table({"id": document_ids, "text": texts}), folder / "docs.parquet")
        positives = [document_ids[row] for row in self.labelled]
        pq.write_table(pa.table({"anchor": query_ids, "positive": positives}), folder / "pairs.parquet")

    def run(self, output="out.jsonl", **given):
        return super().run(output, **{"queries": "queries.parquet", "judge": "none", **given})

    def negatives(self):
        return [row["negatives"] for row in lines(self.folder / "out.jsonl")]


@pytest.fixture
def shared(tmp_path):
    """Every second question has the id of document 3 * row."""
    documents = [f"d{row}" for row in range(ITEMS)]
    queries = [f"d{3 * row}" if row % 2 == 0 else f"q{row}" for row in range(N)]
    texts = [f"text {row}" for row in range(ITEMS)]
    return Own(tmp_path, queries, documents, [f"question {row}" for row in range(N)], texts)


def test_by_ids(shared, monkeypatch):
    shared.run()
    assert all(row[0] == f"d{3 * place}" for place, row in enumerate(shared.negatives()))
    rows = np.where(np.arange(N) % 2 == 0, 3 * np.arange(N), -1)
    mined = mine(shared.queries, shared.corpus, shared.labelled, 5, judge=None, same_ids=rows)
    for size in (7, N):
        in_parts(monkeypatch, size)
        said = shared.run(same_ids=True)
        assert shared.negatives() == [[f"d{item}" for item in row] for row in mined.ids.tolist()]
        assert said.dropped["anchor"] == N // 2
        assert said.own_text == 0


@pytest.fixture
def texts(tmp_path):
    """Every second question has the text of document 3 * row, but for white space; one of them twice."""
    texts = [f"text {row}" for row in range(ITEMS - 1)] + ["text  0"]
    queries = [f" text\n{3 * row} " if row % 2 == 0 else f"question {row}" for row in range(N)]
    ids = [f"q{row}" for row in range(N)]
    return Own(tmp_path, ids, [f"d{row}" for row in range(ITEMS)], queries, texts)


@pytest.mark.parametrize("judge", ["none", "auto", "share:0.95"])
def test_its_own_text_is_left_out(texts, capsys, judge):
    said = texts.run(judge=judge)
    shown = capsys.readouterr()
    for place, row in enumerate(texts.negatives()):
        assert (f"d{3 * place}" in row) == (place % 2 == 1 and judge == "none"), place
    assert "d59" not in texts.negatives()[0]
    assert said.own_text == 10
    assert said.dropped["anchor"] in (10, 11)  # the copy may be too far down
    assert "own text of 10 anchors left out" in shown.out
    assert "10 anchors have their own text or vector in the corpus under another id. These documents are left out" in (
        shown.err
    )
    said = texts.run(judge="none", keep_own_text=True)
    assert said.own_text == 0
    assert texts.negatives()[0][0] == "d0"


def test_its_own_text_after_a_stop(texts, monkeypatch):
    texts.run("whole.jsonl")
    stopped(texts, monkeypatch, 2, rows=5)
    said = texts.run(resume=True)
    assert (texts.folder / "out.jsonl").read_bytes() == (texts.folder / "whole.jsonl").read_bytes()
    assert said.own_text == 10


def test_its_own_text_may_be_its_positive(texts):
    pairs = {"anchor": ["q0", "q2"], "positive": ["d0", "d7"]}
    pq.write_table(pa.table(pairs), texts.folder / "some.parquet")
    said = texts.run(pairs="some.parquet")
    row = lines(texts.folder / "out.jsonl")[0]
    assert row["positives"] == ["d0"]
    assert "d59" not in row["negatives"]
    assert said.own_text == 10


def test_its_own_vector_is_left_out(shared):
    shared.queries[1::2] = shared.corpus[3::6]
    np.save(shared.folder / "q.npy", shared.queries)
    said = shared.run()
    assert said.own_text == N // 2
    assert not any(f"d{3 * place}" in row for place, row in enumerate(shared.negatives()) if place % 2)
    mined = mine(shared.queries, shared.corpus, shared.labelled, 5, judge=None)
    assert shared.negatives() == [[f"d{item}" for item in row] for row in mined.ids.tolist()]


def test_pairs_alone(tmp_path):
    """Without files of texts, the pairs hold them: a question that is the positive of another."""
    rng = np.random.default_rng(0)
    world = World.__new__(World)
    world.folder = tmp_path
    names = [f"sentence {row}" for row in range(12)]
    table = {"anchor": names, "positive": [names[(row + 1) % 12] for row in range(12)]}
    pq.write_table(pa.table(table), tmp_path / "pairs.parquet")
    vectors = rng.normal(size=(12, 4)).astype(np.float32)
    np.save(tmp_path / "q.npy", vectors)
    np.save(tmp_path / "c.npy", vectors[(np.arange(12) + 1) % 12] + np.float32(0.01))
    said = world.run(corpus=None, format="triplet", with_scores=False, judge="none", k="3")
    assert said.own_text == 12
    rows = lines(tmp_path / "out.jsonl")
    assert len(rows) == 36
    assert not any(row["anchor"] == row["negative"] for row in rows)
