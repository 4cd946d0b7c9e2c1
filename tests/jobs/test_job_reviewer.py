"""`naysay mine --reviewer`: a language model is asked, people check its yes answers, and a stop changes no byte."""

import csv
import json
import re

import numpy as np
import pytest

from naysay.jobs import parts
from naysay.jobs.command import mine_files

pytest.importorskip("openai")
from grading_server import MODEL, Grader, serving

N, HIDDEN, K = 240, 2, 4
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pairs, texts and vectors: document d belongs to query d // 3 if d < 720, and the first of each is labelled."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(0)

    def near(vectors, distance):
        moved = vectors + distance * rng.normal(size=vectors.shape) / np.sqrt(vectors.shape[1])
        return (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)

    topics = rng.normal(size=(N, 16))
    topics /= np.linalg.norm(topics, axis=1, keepdims=True)
    documents = np.concatenate([near(np.repeat(topics, 1 + HIDDEN, axis=0), 0.7), near(rng.normal(size=(N, 16)), 0.1)])
    np.save(folder / "queries.npy", near(topics, 0.7))
    np.save(folder / "documents.npy", documents)
    texts = {"queries": [f"query {n}" for n in range(N)], "corpus": [f"document {n}" for n in range(len(documents))]}
    for name, listed in texts.items():
        lines = [json.dumps({"id": f"{name[0]}{n}", "text": text}) for n, text in enumerate(listed)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    pairs = [json.dumps({"anchor": f"q{n}", "positive": f"c{n * (1 + HIDDEN)}"}) for n in range(N)]
    (folder / "pairs.jsonl").write_text("\n".join(pairs))
    return folder


def is_false(query, document):
    return document < N * (1 + HIDDEN) and document // (1 + HIDDEN) == query


def grade(text):
    query, document = (int(re.search(rf"{name} (\d+)", text).group(1)) for name in ("query", "document"))
    return 3 if is_false(query, document) else 1


def mine(files, output, url, **options):
    return mine_files(
        files / "pairs.jsonl",
        queries=files / "queries.jsonl",
        corpus=files / "corpus.jsonl",
        query_vectors=files / "queries.npy",
        corpus_vectors=files / "documents.npy",
        k=K,
        output=output,
        format="flagembedding",
        reviewer=f"llm:{MODEL}@{url}",
        review=60,
        **options,
    )


def test_a_stop_changes_no_byte_and_no_pair_is_paid_for_twice(files, tmp_path, monkeypatch, capsys):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for folder in (whole, stopped):
        folder.mkdir()
    grader = Grader(grade)
    with serving(grader) as url:
        first = mine(files, whole / "train.jsonl", url)
        asked = dict(grader.asked)
        assert sum(asked.values()) <= 60 + 15
        grader.asked.clear()

        def stops(*_, **__):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(parts, "mine_parts", stops)  # after the review
            with pytest.raises(KeyboardInterrupt):
                mine(files, stopped / "train.jsonl", url)
        summary = mine(files, stopped / "train.jsonl", url, resume=True)
        assert dict(grader.asked) == asked
        again = mine(files, stopped / "other.jsonl", url, answers=stopped / "train.answers.jsonl", false_share=0.02)
        assert again.false_negatives is not None
        assert sum(grader.asked.values()) <= sum(asked.values()) + 60  # another target may ask about other pairs
    assert (whole / "train.jsonl").read_bytes() == (stopped / "train.jsonl").read_bytes()
    assert summary.false_negatives.bound
    assert any(MODEL in note for note in first.notes)  # what it cost
    printed = "".join(capsys.readouterr())
    written = "".join(path.read_text() for path in [*whole.iterdir(), *stopped.iterdir()] if path.is_file())
    assert KEY not in printed + written


def test_people_check_what_the_model_said(files, tmp_path):
    grader = Grader(grade)
    output, review = tmp_path / "train.jsonl", tmp_path / "train.review.csv"
    with serving(grader) as url:
        first = mine(files, output, url)
        assert first.false_negatives.bound
        assert not (tmp_path / "train.found.jsonl").exists()  # they are left out
        head, *rows = csv.reader(review.read_text().splitlines())
        assert rows
        assert all(is_false(int(row[0][1:]), int(row[2][1:])) for row in rows)
        with review.open("w", newline="") as stream:
            csv.writer(stream).writerows([head, *([*row[:-1], "yes"] for row in rows)])
        paid = sum(grader.asked.values())
        second = mine(files, output, url, false_negatives="positive")
        assert sum(grader.asked.values()) == paid
    assert not second.false_negatives.bound
    written = [json.loads(line) for line in output.read_text().splitlines()]
    several = [row for row in written if len(row["pos"]) > 1]
    assert len(several) == len(rows)
    found = [json.loads(line) for line in (tmp_path / "train.found.jsonl").read_text().splitlines()]
    asked = {(row[0], row[2]) for row in rows}
    assert {(each["anchor"], each["positive"]) for each in found} == asked  # which positives are not labelled ones
    assert all(0 < each["score"] < 1 for each in found)
    negatives = [(row["query"], text) for row in written for text in row["neg"]]
    numbers = [(int(query.split()[1]), int(text.split()[1])) for query, text in negatives]
    true_share = np.mean([is_false(*pair) for pair in numbers])
    assert second.false_negatives.low <= true_share <= second.false_negatives.high


def test_an_unusable_reviewer_ends_the_command_before_it_mines(files, tmp_path):
    nobody = "people:notes.txt", "llm:@http://127.0.0.1:9/v1", f"llm:{MODEL}@http://127.0.0.1:9/v1"
    for reviewer in ("someone", "llm:", "encoder:./no such folder", *nobody):
        with pytest.raises(ValueError, match="reviewer") as caught:
            mine_files(
                files / "pairs.jsonl",
                queries=files / "queries.jsonl",
                corpus=files / "corpus.jsonl",
                query_vectors=files / "queries.npy",
                corpus_vectors=files / "documents.npy",
                output=tmp_path / "train.jsonl",
                format="flagembedding",
                reviewer=reviewer,
            )
        assert caught.value.parameter == "reviewer"
        assert not (tmp_path / "train.jsonl").exists()
