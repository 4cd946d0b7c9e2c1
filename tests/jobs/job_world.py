"""A small world in files, and the job on it: what the tests of jobs share."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import naysay as ns
from naysay.jobs import parts as job_parts
from naysay.jobs import prepare as job_prepare
from naysay.jobs.command import mine_files


class World:
    """Vectors, pairs and documents in a folder; anchors stand in the order of the vectors."""

    def __init__(self, folder, n=60, items=150, seed=3):
        world = ns.planted_world(n, items, per_anchor=8, noise=0.3, seed=seed)
        self.folder, self.n, self.items = folder, n, items
        self.queries, self.corpus = world.anchor_vectors.astype(np.float16), world.item_vectors.astype(np.float16)
        self.known, self.world = world.known, world
        self.texts = [f"text of document {row % 140} and {row % 7}" for row in range(items)]
        np.save(folder / "q.npy", self.queries)
        np.save(folder / "c.npy", self.corpus)
        anchors, positives = world.known.pairs()
        assert len(np.unique(anchors)) == n  # so that the distinct anchors are all, in order
        self.anchors = [f"question {row}" for row in range(n)]
        table = {"anchor": [self.anchors[row] for row in anchors], "positive": [f"d{row}" for row in positives]}
        pq.write_table(pa.table(table), folder / "pairs.parquet")
        names = [f"d{row}" for row in range(items)]
        pq.write_table(pa.table({"id": names, "text": self.texts}), folder / "docs.parquet")

    def run(self, output="out.jsonl", **given):
        """The job, with this world's files."""
        usual = {"corpus": "docs.parquet", "query_vectors": "q.npy", "corpus_vectors": "c.npy"}
        usual |= {"k": "5", "format": "ids", "with_scores": True}
        files = ("corpus", "queries", "query_vectors", "corpus_vectors", "ignore", "report", "job")
        merged = {
            name: self.folder / value if name in files and value is not None else value
            for name, value in {**usual, **given}.items()
        }
        pairs = self.folder / merged.pop("pairs", "pairs.parquet")
        return mine_files(pairs, output=self.folder / output, **merged)

    def job(self, output="out.jsonl"):
        """The folder of an unfinished job."""
        return self.folder / f".{output}.naysay-job"


class Encoder:
    """A model that makes vectors of texts, and remembers how it was called."""

    cache_key = "letters"

    def __init__(self):
        self.seen, self.options = 0, []

    def encode(self, texts, prompt="", **options):
        self.seen += len(texts)
        self.options.append({"prompt": prompt, **options})
        return np.array([[(prompt + text).count(sign) + 0.1 for sign in "0123456789 cq"] for text in texts], np.float32)


class Families(World):
    """Anchors with three documents each around them, one of them labelled at random, and many others."""

    def __init__(self, folder, n=300, others=1500, width=32, unlabelled=0, seed=1):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(n, width))
        own = centres[:, None] + 0.6 * rng.normal(size=(n, 3, width))
        self.folder, self.n, self.items = folder, n, 3 * n + others
        self.corpus = np.concatenate([own.reshape(-1, width), rng.normal(size=(others, width))]).astype(np.float32)
        self.queries = (centres + 0.3 * rng.normal(size=(n, width))).astype(np.float32)
        self.labelled = 3 * np.arange(n) + rng.integers(0, 3, n)
        if unlabelled:
            self.labelled[::unlabelled] = -1
        np.save(folder / "q.npy", self.queries)
        np.save(folder / "c.npy", self.corpus)
        has = np.flatnonzero(self.labelled >= 0)
        names = pa.array([f"d{row}" for row in range(self.items)])
        pq.write_table(pa.table({"id": names, "text": names}), folder / "docs.parquet")
        pq.write_table(pa.table({"id": [f"q{row}" for row in range(n)]}), folder / "queries.parquet")
        pairs = {"anchor": [f"q{row}" for row in has], "positive": [f"d{row}" for row in self.labelled[has]]}
        pq.write_table(pa.table(pairs), folder / "pairs.parquet")

    def run(self, output="out.jsonl", **given):
        return super().run(output, **{"queries": "queries.parquet", **given})

    def ids(self, path):
        """(n, k) the negatives of a file, for anchors in order."""
        return [[int(name[1:]) for name in row["negatives"]] for row in lines(path)]

    def share(self, path):
        """The share of false negatives in a file with one row for each anchor."""
        rows = self.ids(path)
        false = [item < 3 * self.n and item // 3 == row for row, items in enumerate(rows) for item in items]
        return sum(false) / len(false)


def in_parts(monkeypatch, rows):
    """Mine so many anchors at a time."""
    monkeypatch.setattr(job_prepare, "MIN_PART_ROWS", rows)
    monkeypatch.setattr(job_prepare, "MIN_PARTS", 1 << 30)


def lines(path):
    """The rows of a .jsonl file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


class Stop(Exception):
    """What ends a job in the middle."""


def after_parts(monkeypatch, count, act):
    """Call `act` before the part with this number is written; return where the parts begin that are mined."""
    write, written = job_parts.write_part, []

    def wrapped(folder, start, stop, arrays):
        if len(written) == count:
            act()
        written.append(start)
        write(folder, start, stop, arrays)

    monkeypatch.setattr(job_parts, "write_part", wrapped)
    return written


def stopped(world, monkeypatch, after, rows=5, **given):
    """Run the job until so many parts are done."""

    def stop():
        raise Stop

    in_parts(monkeypatch, rows)
    with monkeypatch.context() as patched:
        written = after_parts(patched, after, stop)
        with pytest.raises(Stop):
            world.run(**given)
    return written
