"""A job on files gives what `mine` gives, to the byte: for any size of its parts, budget and threads."""

import numpy as np
import pytest
from job_world import World, in_parts

import naysay as ns
from naysay.detectors import Bands, Calibrated, Margin, MaxScore, ShareOfPositive
from naysay.mining import bm25, mine
from naysay.search._scores import lowest_of


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


def expected(world, path, k, **given):
    mined = mine(world.queries, world.corpus, world.known, k, **given)
    names = [f"d{row}" for row in range(world.items)]
    mined.write(
        path,
        "ids",
        corpus_ids=names,
        corpus_texts=world.texts,
        query_ids=world.anchors,
        query_texts=world.anchors,
        with_scores=True,
    )
    return mined


def lowest(world):
    mined = mine(world.queries, world.corpus, world.known, 1, judge=None)
    return lowest_of(world.known.pairs()[0], mined.known_scores, world.n)


CASES = {
    "auto": ({}, {}),
    "none": ({"judge": "none"}, {"judge": None}),
    "calibrated": ({"judge": "calibrated:0.2"}, {"judge": Calibrated(0.2)}),
    "calibrated by itself": ({"judge": "calibrated"}, {"judge": Calibrated()}),
    "margin": ({"judge": "margin:0.05"}, lambda world: {"judge": Margin(0.05, lowest(world))}),
    "share": ({"judge": "share:0.9"}, lambda world: {"judge": ShareOfPositive(lowest(world), 0.9)}),
    "bands": ({"judge": "bands:0.1,0.5", "k": "auto", "max_k": 9}, {"judge": Bands(0.1, 0.5), "k": "auto", "max_k": 9}),
    "k auto": ({"k": "auto", "min_score": 0.1}, {"k": "auto", "min_score": 0.1}),
    "softmax": (
        {"select": "softmax", "temperature": 0.1, "seed": 7},
        {"select": "softmax", "temperature": 0.1, "seed": 7},
    ),
    "random": ({"select": "random", "seed": 2}, {"select": "random", "seed": 2}),
    "spread": ({"select": "spread", "rank_range": "3-40"}, {"select": "spread", "rank_range": (3, 40)}),
    "mmr": ({"select": "mmr", "mmr_lambda": 0.3}, {"select": "mmr", "mmr_lambda": 0.3}),
    "random filling": (
        {"judge": "max_score:0.6", "depth": 20, "on_short": "random", "seed": 5},
        {"judge": MaxScore(0.6), "depth": 20, "on_short": "random", "seed": 5},
    ),
    "relax": (
        {"judge": "max_score:0.6", "depth": 20, "on_short": "relax"},
        {"judge": MaxScore(0.6), "depth": 20, "on_short": "relax"},
    ),
    "drop": (
        {"judge": "max_score:0.7", "depth": 20, "on_short": "drop"},
        {"judge": MaxScore(0.7), "depth": 20, "on_short": "drop"},
    ),
    "deeper": ({"judge": "max_score:-0.2"}, {"judge": MaxScore(-0.2)}),
    "dot, floor": ({"metric": "dot", "min_score": 0.3}, {"metric": "dot", "min_score": 0.3}),
    "l2": ({"metric": "l2"}, {"metric": "l2"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_job_is_mine(world, monkeypatch, name):
    asked, given = CASES[name]
    given = dict(given(world)) if callable(given) else dict(given)
    mined = expected(world, world.folder / "whole.jsonl", given.pop("k", 5), **given)
    for rows in (1, 7, world.n) if name == "random filling" else (13,):
        in_parts(monkeypatch, rows)
        found = world.run(**asked)
        assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()
        assert found.negatives == np.count_nonzero(mined.mask)
        assert (found.short, found.missing) == (mined.short, mined.missing.sum())
        assert before_advice(found.rule) == before_advice(mined.rule)
        assert found.notes == tuple(note.replace("depth=", "--depth ") for note in mined.notes)
        assert found.dropped == {reason: counts.sum() for reason, counts in mined.dropped.items()}
        assert not world.job().exists()


def before_advice(rule):
    """A rule without its last sentence, which names the command in a job and the function in memory."""
    return rule.partition("A review would settle it")[0]


def test_other_sources_and_what_is_ignored(world, monkeypatch):
    words = bm25(world.anchors, world.texts, 100, exclude=world.known)
    (world.folder / "ignore.csv").write_text("anchor,positive\nquestion 3,d5\nquestion 3,d9\nquestion 11,d140\n")
    given = {"sources": {"bm25": words}, "quotas": {"search": 3, "bm25": 2}, "ignore": ([3, 3, 11], [5, 9, 140])}
    expected(world, world.folder / "whole.jsonl", 5, **given)
    in_parts(monkeypatch, 13)
    world.run(source=["bm25"], quotas="search=3,bm25=2", ignore="ignore.csv")
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "whole.jsonl").read_bytes()


def test_anchors_that_are_documents(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 6)).astype(np.float32)
    vectors[10:20] = vectors[:10]  # duplicates
    np.save(tmp_path / "v.npy", vectors)
    anchors, items = np.arange(50), (np.arange(50) * 7 + 3) % 50
    rows = "\n".join(f'{{"anchor": {a}, "positive": {i}}}' for a, i in zip(anchors, items, strict=True))
    (tmp_path / "pairs.jsonl").write_text(rows)
    texts = [f"word{row % 9} word{row % 4} word{row % 5}" for row in range(50)]
    (tmp_path / "texts.csv").write_text("text,number\n" + "".join(f"{text},1\n" for text in texts))
    known = ns.Positives.from_pairs(anchors, items, 50, 50)
    words = bm25(texts, texts, 100, exclude=known.with_ignored(anchors, anchors))
    given = {"query_texts": texts, "corpus_texts": texts, "with_scores": True}
    world = World.__new__(World)
    world.folder = tmp_path
    files = {"pairs": "pairs.jsonl", "queries": "texts.csv", "corpus": "texts.csv"}
    files |= {"query_vectors": "v.npy", "corpus_vectors": "v.npy", "k": "4", "same_ids": True, "depth": 9}
    for sources, asked in (({}, {}), ({"bm25": words.ids[:, :9]}, {"source": ["bm25"]})):
        mined = mine(vectors, vectors, known, 4, same_ids=True, sources=sources, depth=9)
        mined.write(tmp_path / "whole.jsonl", "ids", **given)
        in_parts(monkeypatch, 9)
        found = world.run(**files, **asked)
        assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
        assert found.dropped == {reason: counts.sum() for reason, counts in mined.dropped.items()}


@pytest.mark.parametrize(
    ("name", "suffix", "given"),
    [
        ("triplet", ".parquet", {}),
        ("triplet", ".jsonl", {"with_scores": True}),
        ("n-tuple", ".parquet", {"short": "drop"}),
        ("labelled-pair", ".jsonl", {}),
        ("labelled-list", ".parquet", {"with_scores": True}),
        ("flagembedding", ".jsonl", {"with_scores": True}),
        ("tevatron", ".jsonl", {}),
        ("tevatron-ids", ".parquet", {}),
        ("nemo", ".json", {"corpus_path": "somewhere/corpus"}),
        ("nemo-inline", ".jsonl", {}),
        ("colbert", ".jsonl", {}),
        ("colbert-nway", ".jsonl", {"with_scores": True}),
        ("ids", ".parquet", {"with_scores": True}),
        ("trec", ".trec", {"tag": "run"}),
    ],
)
def test_every_format_as_mined_writes_it(world, name, suffix, given):
    mined = mine(world.queries, world.corpus, world.known, 5, judge=MaxScore(0.6), depth=30)
    labels = {"corpus_ids": [f"d{row}" for row in range(world.items)], "corpus_texts": world.texts}
    labels["query_texts"] = world.anchors
    if name == "ids":
        labels["query_ids"] = world.anchors  # which the pairs name, and no file
    written = mined.write(world.folder / f"whole{suffix}", name, **labels, **given)
    asked = {"judge": "max_score:0.6", "depth": 30, "format": name}
    found = world.run(f"out{suffix}", **asked, **({"with_scores": False} | given))
    assert found.rows == written.rows > 0
    assert (world.folder / f"out{suffix}").read_bytes() == (world.folder / f"whole{suffix}").read_bytes()
