"""A job on Ray writes the bytes of a job without it, and continues one that was begun without it."""

import json
import signal
import subprocess
import sys

import pytest
import ray

from tests.contract.command import ENVIRONMENT, run
from tests.contract.mined_world import Families
from tests.contract.test_jobs import KILLED

pytestmark = pytest.mark.filterwarnings("ignore")  # those of Ray
WORLD = Families(n=300, others=3000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ray")


@pytest.fixture(scope="module", autouse=True)
def started():
    """One Ray for all tests, whose workers load this copy of the library."""
    runtime = {"env_vars": {"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}}
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init(num_cpus=4, object_store_memory=100 << 20, runtime_env=runtime, **quiet)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def files(folder):
    return WORLD.write(folder)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--judge", "margin:0.05", "--metric", "l2"),
        ("-k", "5", "--select", "random", "--depth", "40", "--on-short", "random"),
    ],
    ids=["auto", "margin", "random"],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_ray_gives_the_same_bytes(folder, files, options, workers):
    for output, engine in (("plain.parquet", ()), ("ray.parquet", ("--engine", "ray", "--workers", workers))):
        done = run("mine", *files, *options, *engine, "-o", output, "--fresh", folder=folder)
        assert done.code == 0, done.err
    assert (folder / "ray.parquet").read_bytes() == (folder / "plain.parquet").read_bytes()


def test_a_job_that_was_killed_is_finished_on_ray(folder, files):
    job = ["mine", *files, "-k", "8", "--depth", "600", "--budget", "160MB", "-o"]
    assert run(*job, "whole.parquet", folder=folder).code == 0
    command = [sys.executable, "-c", KILLED, "3", *map(str, job), "half.parquet"]
    killed = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    done = run(*job, "half.parquet", "--resume", "--engine", "ray", "--workers", 2, folder=folder)
    assert done.code == 0, done.err
    assert (folder / "half.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()


@pytest.mark.parametrize("kill_at", [3, 7, 9, 12])  # before the review, about when it is kept, and among the parts
def test_a_job_with_a_reviewer_gives_the_same_bytes_on_ray_also_after_a_kill(folder, files, kill_at):
    review = folder / "review.jsonl"
    asked = ("--reviewer", "people", "--review", 120, "--review-file", review.name, "--false-negatives", "positive")
    job = ["mine", *files, "-k", 8, "--depth", 600, "--budget", "160MB", *asked, "--format", "flagembedding", "-o"]
    if not review.exists():
        assert run(*job, "first.jsonl", folder=folder).code == 0
        pairs = [json.loads(line) for line in review.read_text().splitlines()]
        for pair in pairs:
            query, document = int(pair["query_id"]), int(pair["document_id"][1:])
            pair["false_negative"] = "yes" if document < 3 * WORLD.n and document // 3 == query else "no"
        review.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        assert run(*job, "whole.jsonl", folder=folder).code == 0
    ray_too = ("--engine", "ray", "--workers", 2)
    command = [sys.executable, "-c", KILLED, str(kill_at), *map(str, job), "half.jsonl", *map(str, ray_too)]
    killed = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    done = run(*job, "half.jsonl", "--resume", *ray_too, folder=folder)
    assert done.code == 0, done.err
    assert "reviewed pairs" in done.out
    assert (folder / "half.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert (folder / "whole.jsonl").read_bytes() != (folder / "first.jsonl").read_bytes()
