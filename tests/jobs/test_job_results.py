"""The line at the end: hardness as in loops, the rate a bound on the truth; models, indices and reports in a job."""

import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_world import Encoder, Families, World, in_parts, lines

import naysay as ns
from naysay.detectors.rate import RateEstimate
from naysay.errors import NaysayError
from naysay.jobs import outputs
from naysay.jobs import parts as job_parts
from naysay.jobs.outputs import MinedFile
from naysay.mining import mine
from naysay.mining.options import INDEX_KINDS


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, n=24, items=60)


def test_hardness_as_in_loops(world, monkeypatch):
    mined = mine(world.queries, world.corpus, world.known, 5, judge=None)
    known = {(int(a), int(i)) for a, i in zip(*world.known.pairs(), strict=True)}
    every = mine(world.queries, world.corpus, None, 60, judge=None)  # all pairs there are, so none is drawn
    random = [
        float(score)
        for row in range(24)
        for item, score in zip(every.ids[row], every.scores[row], strict=True)
        if (row, int(item)) not in known
    ]
    shares = [sum(other < score for other in random) / len(random) for score in mined.scores[mined.mask].astype(float)]
    for rows in (7, 24):
        in_parts(monkeypatch, rows)
        assert world.run(judge="none").hardness == pytest.approx(sum(shares) / len(shares), abs=1e-12)


@pytest.mark.parametrize("judge", ["auto", "none", "share:0.95", "margin:0.05", "calibrated:0.2"])
def test_the_estimate_holds_the_truth_whatever_the_judge(tmp_path, judge):
    world = Families(tmp_path)
    found = world.run(judge=judge)
    truth = world.share(tmp_path / "out.jsonl")
    assert isinstance(found.false_negatives, RateEstimate)
    assert truth < found.false_negatives.high
    assert 0.6 * truth < found.false_negatives.estimate < max(0.06, 1.6 * truth)  # it errs upwards with few anchors
    if judge == "none":
        assert "Next: mine again with --judge auto" in str(found)
    if judge == "auto":
        assert found.rule.startswith("By labels alone, an estimated ")
        assert truth < 0.08
        assert found.advice == f"Next: train on {tmp_path / 'out.jsonl'}."


def test_a_rate_that_cannot_be_told(world):
    told = world.run(judge="none").false_negatives
    assert re.fullmatch(r"unknown \((the encoder|scores|no cut).*\)", told)
    pairs = pq.read_table(world.folder / "pairs.parquet").slice(0, 12)  # a few anchors, of vectors by row number
    first = {"anchor": [int(text.split()[1]) for text in pairs.column("anchor").to_pylist()]}
    pq.write_table(pa.table(first | {"positive": pairs.column("positive")}), world.folder / "few.parquet")
    told = world.run(pairs="few.parquet")
    assert "labelled positives are among the nearest candidates, and 15 are needed" in told.false_negatives
    assert told.advice.endswith("the false-negative rate is unknown.")


def test_the_summary():
    share = RateEstimate("", 0.0123, 0.0, 0.04, 0.95, 30, ())
    found = MinedFile("o.parquet", 9, 1000, 8, 7990, 3, 10, share, 0.98765, "Rule.", recall=0.9712)
    assert str(found) == (
        "o.parquet: 1,000 anchors, k = 8, 7,990 negatives, false negatives 1.2 % (95 % CI 0.0 to 4.0), hardness "
        "0.988, 3 anchors short by 10, recall 0.971"
    )
    none = MinedFile("o.parquet", 0, 10, "auto", 0, 0, 0, "unknown (why)", 0.0, "Rule.")
    assert str(none) == (
        "o.parquet: 10 anchors, k = auto, 0 negatives, false negatives unknown (why), no hardness, no anchor short"
    )


def test_the_sample_does_not_depend_on_parts(world, monkeypatch):
    seen = []
    own = outputs.Mined

    def keep(*given, **options):
        seen.append(own(*given, **options))
        return seen[-1]

    monkeypatch.setattr(outputs, "Mined", keep)
    whole = mine(world.queries, world.corpus, world.known, 5, on_short="random", judge=ns.detectors.MaxScore(0.1))
    for rows in (5, 24):
        in_parts(monkeypatch, rows)
        world.run(on_short="random", judge="max_score:0.1")
    for sample in seen:
        for name in ("ids", "scores", "rank", "suspicion", "positive_scores", "thresholds", "counts", "known_scores"):
            assert np.array_equal(getattr(sample, name), getattr(whole, name), equal_nan=True), name
        dropped = {reason: counts.tolist() for reason, counts in whole.dropped.items()}
        assert {reason: counts.tolist() for reason, counts in sample.dropped.items()} == dropped
        for row in range(24):
            assert str(sample.explain(row)) == str(whole.explain(row))
        assert (sample.known.indices == whole.known.indices).all()
        with pytest.raises(NaysayError, match=r"a job on disk keeps the candidates of a sample only\. Mine again"):
            sample.rethreshold(0.3)


def test_a_model_makes_the_vectors(world, monkeypatch):
    model = Encoder()
    found = world.run(model=model, query_vectors=None, corpus_vectors=None, encoded=world.folder / "kept")
    assert found.anchors == 24
    queries, corpus = (Encoder().encode(texts) for texts in (world.anchors, world.texts))
    expected = mine(queries, corpus, world.known, 5)
    ids = [[int(name[1:]) for name in row["negatives"]] for row in lines(world.folder / "out.jsonl")]
    assert ids == [[item for item in row if item >= 0] for row in expected.ids.tolist()]
    before = model.seen
    world.run(model=model, query_vectors=None, corpus_vectors=None, encoded=world.folder / "kept")
    assert model.seen == before  # the vectors were kept
    pq.write_table(pa.table({"id": [f"d{row}" for row in range(60)]}), world.folder / "bare.parquet")
    with pytest.raises(
        NaysayError, match=r"^mine: `--model` must be given where the corpus has texts, got ids alone\.$"
    ):
        world.run(model=model, query_vectors=None, corpus_vectors=None, corpus="bare.parquet")


def test_an_index(world, monkeypatch):
    built = []

    class Index:
        """The exact search under another name, with a recall of its own."""

        recall = 0.97

        @classmethod
        def build(cls, corpus, *, metric, kind, seed, threads):
            built.append(("build", kind))
            made = cls()
            made.corpus, made.metric = corpus, metric
            return made

        @classmethod
        def open(cls, path, corpus, *, threads):
            built.append("open")
            made = cls()
            made.corpus, made.metric = corpus, json.loads((path / "metric").read_text())
            return made

        def save(self, path):
            path.mkdir()
            (path / "metric").write_text(json.dumps(self.metric))

        def tune(self, queries, depth, *, min_recall, sample, seed):
            built.append(("tune", min_recall))

        def measure(self, queries, depth, *, sample, seed):
            return SimpleNamespace(value=self.recall, low=0.95, high=0.99, n=min(sample, queries.n))

        def search(self, queries, depth, *, exclude):
            return ns.search.search(queries, self.corpus, depth, metric=self.metric, exclude=exclude)

    module = SimpleNamespace(Index=Index)
    monkeypatch.setitem(sys.modules, "naysay.search.index", module)
    note = "The search was approximate: recall 97.0% (95 % CI 95.0% to 99.0%, 24 queries)."
    exact = mine(world.queries, world.corpus, world.known, 5)
    mined = mine(world.queries, world.corpus, world.known, 5, approximate="ivf")
    assert mined.notes[0] == note
    assert (mined.ids == exact.ids).all()
    assert built == [("build", "ivf"), ("tune", 0.95)]
    built.clear()
    in_parts(monkeypatch, 5)
    with monkeypatch.context() as patched:
        patched.setattr(job_parts, "write_part", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            world.run(approximate="auto")
    found = world.run(approximate="auto", resume=True)
    assert built == [("build", "auto"), ("tune", 0.95), "open"]
    assert found.recall == 0.97
    assert ", recall 0.970\n" in str(found)
    assert found.notes[0] == note
    Index.recall = 0.8
    rule = r"^mine: `approximate` must be an index with a recall of at least 90\.0%, got 80\.0% on 24 queri"
    with pytest.raises(NaysayError, match=rule):
        mine(world.queries, world.corpus, world.known, 5, approximate="auto")
    assert mine(world.queries, world.corpus, world.known, 5, approximate="auto", min_recall=0.5).ids.shape == (24, 5)
    with pytest.raises(
        NaysayError, match=r"^mine: `approximate` must be one of 'auto', 'ivf', 'hnsw', got 'ifv'\. Did you"
    ):
        mine(world.queries, world.corpus, world.known, 5, approximate="ifv")
    with pytest.raises(NaysayError, match=r"^mine: `min_recall` must be a number at least 0 and at most 1, got 90"):
        mine(world.queries, world.corpus, world.known, 5, min_recall=90)
    assert INDEX_KINDS == ("auto", "ivf", "hnsw")


def test_a_report_of_a_job(world, monkeypatch):
    asked = {}

    def report_mined(mined, path, **given):
        asked.update(given, mined=mined)
        path.write_text("report")
        return path

    monkeypatch.setitem(sys.modules, "naysay.mining.report", SimpleNamespace(report_mined=report_mined))
    world.run(report="report.html")
    assert (world.folder / "report.html").read_text() == "report"
    assert asked["query_texts"] == world.anchors
    assert asked["query_ids"] == [str(row) for row in range(24)]
    assert (asked["corpus_texts"][7], asked["corpus_ids"][7]) == (world.texts[7], "d7")
    assert asked["numbers"]["negatives"] == "120"
    assert asked["provenance"]["--metric"] == "cosine"
    assert len(asked["provenance"]["--corpus-vectors"]) == 64
    with pytest.raises(NaysayError, match=r"^mine: `--report` must be in an existing folder"):
        world.run(report="nowhere/report.html")
