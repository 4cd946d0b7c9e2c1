"""Jobs on a real Ray: the same bytes as without it, whatever ends in the meantime; bad data in one sentence."""

import os
import shutil
import sys

import numpy as np
import pytest
import ray

from naysay.errors import NaysayError
from tests.integrations.own_environment.ray_world import SMALL, Large, kill_a_worker
from tests.jobs.job_world import Encoder, after_parts, in_parts, stopped

pytestmark = pytest.mark.filterwarnings("ignore")
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import tests
ON_RAY = {"engine": "ray", "workers": 2}


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A Ray whose workers stand in a folder of their own, as on another machine."""
    before, elsewhere = os.getcwd(), tmp_path_factory.mktemp("node")
    os.chdir(elsewhere)
    try:
        ray.init(num_cpus=4, **SMALL)
    finally:
        os.chdir(before)
    yield elsewhere
    ray.shutdown()


@pytest.fixture(scope="module")
def world(tmp_path_factory, started):
    world = Large(tmp_path_factory.mktemp("world"))
    world.run("local.jsonl")
    return world


def same(world, output):
    return (world.folder / output).read_bytes() == (world.folder / "local.jsonl").read_bytes()


@pytest.mark.parametrize("workers", [1, 3])
def test_the_same_bytes_for_any_number_of_workers(world, workers):
    world.run("out.jsonl", engine="ray", workers=workers)
    assert same(world, "out.jsonl")


@pytest.mark.parametrize(
    "asked",
    [
        {"judge": "margin:0.05", "metric": "l2"},
        {"judge": "max_score:0.4", "k": "8", "select": "random", "depth": 40, "on_short": "random"},
    ],
)
def test_other_judges_and_metrics(world, asked):
    for output, engine in (("plain.jsonl", {}), ("out.jsonl", ON_RAY)):
        world.run(output, **asked, **engine)
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "plain.jsonl").read_bytes()


def test_a_worker_that_is_killed_is_replaced(world, monkeypatch):
    in_parts(monkeypatch, 150)
    after_parts(monkeypatch, 1, kill_a_worker)
    world.run("out.jsonl", **ON_RAY)
    assert same(world, "out.jsonl")


def test_begun_here_and_ended_on_ray(world, monkeypatch):
    stopped(world, monkeypatch, 2, rows=400, output="out.jsonl", fresh=True)
    world.run("out.jsonl", resume=True, **ON_RAY)
    assert same(world, "out.jsonl")


def test_a_vector_that_is_not_finite(world):
    bad = world.corpus.copy()
    bad[30_000:30_002, 3] = np.nan
    np.save(world.folder / "bad.npy", bad)
    messages = []
    for engine in ({}, ON_RAY):
        with pytest.raises(NaysayError) as caught:
            world.run("never.jsonl", corpus_vectors="bad.npy", **engine)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "got nan at row 30000" in messages[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (None, "`--corpus-vectors` must be an existing file, got '/proc/self/cwd/here.npy'.* This is shard 1 of 1"),
        (lambda whole: whole[:-100], r"must be a file of at least .* It seems cut off: write it again\. This is shard"),
        (lambda whole: np.lib.format.magic(1, 0) + whole[8:200], "`--corpus-vectors` must be"),
    ],
)
def test_a_file_that_is_another_on_a_node(world, started, monkeypatch, make, message):
    shutil.copy(world.folder / "c.npy", world.folder / "here.npy")
    (started / "here.npy").unlink(missing_ok=True)
    if make is not None:
        (started / "here.npy").write_bytes(make((world.folder / "c.npy").read_bytes()))
    monkeypatch.chdir(world.folder)
    with pytest.raises(NaysayError, match=message):
        world.run("never.jsonl", corpus_vectors="/proc/self/cwd/here.npy", engine="ray", workers=1)
    assert not (world.folder / "never.jsonl").exists()


def test_workers_encode_texts(world):
    for name, engine in (("local", {}), ("ray", ON_RAY)):
        given = {"query_vectors": None, "corpus_vectors": None, "model": Encoder(), "judge": "none"}
        world.run(f"{name}.ids.jsonl", encoded=world.folder / name, queries=None, **given, **engine)
    vectors = [sorted(file.name for file in (world.folder / name).iterdir()) for name in ("local", "ray")]
    assert vectors[0] == vectors[1]  # the names hold checksums
    assert (world.folder / "ray.ids.jsonl").read_bytes() == (world.folder / "local.ids.jsonl").read_bytes()


def test_more_workers_than_processors(world):
    with pytest.raises(NaysayError, match="`--workers` must be at most 4, for 4 processors in the cluster and 1 for"):
        world.run("never.jsonl", engine="ray", workers=5)
