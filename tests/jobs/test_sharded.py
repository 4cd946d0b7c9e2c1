"""Shards: a corpus in any number of them gives what one search gives, to the byte; options of jobs on Ray."""

import sys

import numpy as np
import pytest
from job_world import World

import naysay as ns
from naysay.errors import MissingExtraError, NaysayError
from naysay.jobs import shards
from naysay.jobs.shards import CorpusFile, ShardedCorpus, shards_of
from naysay.search import search
from naysay.search.vectors import open_vectors


class Here:
    """Workers in this process; results come in another order."""

    def __init__(self):
        self.n_shared = 0

    def share(self, value):
        self.n_shared += 1
        return value

    def run(self, function, calls):
        for call in reversed(list(calls)):
            yield call, function(*call.arguments)


def sharded(path, rows, count, metric="cosine", n=None):
    n = len(rows) if n is None else n
    file = CorpusFile(path, n, rows.shape[1], str(rows.dtype), metric, "auto", 1 << 30, 1)
    return ShardedCorpus(file, shards_of(n, count), Here())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = rng.integers(-2, 3, (400, 6)).astype(np.float32) + np.float32(0.5)  # many equal scores, and equal vectors
    path = tmp_path_factory.mktemp("corpus") / "c.npy"
    np.save(path, rows)
    return path, rows


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_a_search_in_shards_is_one_search(corpus, monkeypatch, metric, count):
    path, rows = corpus
    queries = open_vectors(np.random.default_rng(1).integers(-2, 3, (50, 6)).astype(np.float32) + np.float32(0.5))
    known = ns.Positives.from_pairs(np.arange(50), np.arange(50) * 8 % 400, 50, 400)
    monkeypatch.setattr(shards, "MIN_BLOCK", 16)
    monkeypatch.setattr(shards, "RESULT_BYTES", 0)
    progress = []
    whole = sharded(path, rows, count, metric)
    found = whole.search(queries, 20, exclude=known, on_progress=progress.append)
    expected = search(queries, rows, 20, metric=metric, exclude=known)
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.scores, expected.scores)
    assert sum(progress) == pytest.approx(50)
    assert whole._workers.n_shared == 4  # a block of queries is sent once, not once for each shard


def test_bad_rows_are_named_as_in_one_pass(tmp_path):
    rows = np.ones((40, 3), np.float32)
    rows[25, 1] = rows[33, 0] = np.nan
    np.save(tmp_path / "c.npy", rows)
    with pytest.raises(NaysayError) as caught:
        sharded(tmp_path / "c.npy", rows, 4).check(open_vectors(np.ones((2, 3), np.float32)))
    assert caught.value.parameter == "corpus"
    assert "nan at row 25 (2 such rows)" in str(caught.value)


def test_another_file_on_a_node(corpus):
    path, rows = corpus
    with pytest.raises(NaysayError, match="the same file on each node, 500 x 6 float32, got 400 x 6 float32"):
        sharded(path, rows, 1, n=500).check(open_vectors(rows[:2]))


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"engine": "dask"}, "engine"),
        ({"workers": 2}, "workers"),
        ({"address": "auto"}, "address"),
        ({"engine": "ray", "workers": 0}, "workers"),
        ({"engine": "ray", "approximate": "ivf"}, "approximate"),
    ],
)
def test_options_that_do_not_fit(tmp_path, given, parameter):
    with pytest.raises(NaysayError) as caught:
        World(tmp_path).run(**given)
    assert caught.value.parameter.lstrip("-") == parameter
    assert not (tmp_path / "out.jsonl").exists()


def test_without_ray(tmp_path, monkeypatch):
    world = World(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[ray\]'"):
        world.run(engine="ray")
    assert sorted(tmp_path.glob("*out*")) == []
