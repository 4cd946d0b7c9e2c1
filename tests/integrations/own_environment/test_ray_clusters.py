"""Jobs on a Ray of two nodes: a node that is lost, a file that one node lacks, other versions; and no Ray at all."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
import ray
from ray.cluster_utils import Cluster

from naysay.errors import NaysayError
from naysay.jobs import on_ray
from tests.integrations.own_environment.ray_world import SMALL, Large
from tests.jobs.job_world import after_parts, in_parts

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = Large(tmp_path_factory.mktemp("world"))
    world.run("local.jsonl")
    return world


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes of one processor, the second in a folder of its own, as (cluster, second node)."""
    before, elsewhere = os.getcwd(), tmp_path_factory.mktemp("node")
    memory = {"object_store_memory": SMALL["object_store_memory"]}
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **memory})
    os.chdir(elsewhere)
    try:
        second = nodes.add_node(num_cpus=1, **memory)
    finally:
        os.chdir(before)
    yield nodes, second
    ray.shutdown()
    nodes.shutdown()


def same(world, output):
    return (world.folder / output).read_bytes() == (world.folder / "local.jsonl").read_bytes()


def mine(output, *more):
    """The words of the command."""
    words = ["mine", "pairs.parquet", "--corpus", "docs.parquet", "--queries", "queries.parquet", "-o", output]
    words += ["--query-vectors", "q.npy", "--corpus-vectors", "c.npy", "-k", "5", "--format", "ids", "--with-scores"]
    return [*words, "--engine", "ray", *more]


@pytest.fixture(scope="module")
def with_a_token():
    """A cluster of `ray start`, which asks for a token, as (its port, that for clients, the token)."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [str(free.getsockname()[1]) for free in (one, other)]
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    words = ["start", "--head", "--port", ports[0], "--ray-client-server-port", ports[1], "--num-cpus", "1"]
    words += ["--include-dashboard", "false", "--object-store-memory", "100000000", "--disable-usage-stats"]
    with tempfile.TemporaryDirectory() as folder:  # a short name: it has sockets in it
        ray_command, settings = [sys.executable, "-m", "ray.scripts.scripts"], {**os.environ, **token}
        quiet = {"env": settings, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        # In the foreground, so that its processes end with it and no other Ray is touched.
        with subprocess.Popen([*ray_command, *words, "--temp-dir", folder, "--block"], **quiet) as head:
            _wait_for(int(ports[0]), int(ports[1]))
            yield *ports, token
            os.killpg(head.pid, signal.SIGKILL)


def _wait_for(*ports):
    for port in ports:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)


@pytest.mark.parametrize("way", ["a driver", "a client"])
def test_a_cluster_that_asks_for_a_token(world, with_a_token, way):
    port, client, token = with_a_token
    address = f"127.0.0.1:{port}" if way == "a driver" else f"ray://127.0.0.1:{client}"
    command = [sys.executable, "-m", "naysay", *mine(f"{way}.jsonl", "--address", address, "--workers", "1")]
    done = subprocess.run(command, cwd=world.folder, env={**os.environ, **token}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert same(world, f"{way}.jsonl")


@pytest.mark.parametrize("lost", [2, 3])
def test_a_server_of_clients_that_loses_its_process(lost):
    """It is asked three times: the process that it forks for a client may die at once."""
    calls = []

    def init(**options):
        calls.append(options["address"])
        if len(calls) <= lost:
            raise ConnectionAbortedError("Initialization failure from server:\nTraceback:\n  RuntimeError: It died.\n")

    def join():
        on_ray._join(SimpleNamespace(init=init), "ray://here:1")

    if lost == 2:
        join()
    else:
        rule = "`address` must be a Ray that answers, got 'ray://here:1'"
        with pytest.raises(NaysayError, match=f"{rule}. Initialization failure from server: RuntimeError: It died."):
            join()
    assert calls == ["ray://here:1"] * 3


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("PORT", r"`--address` must be a Ray that answers, got '127\.0\.0\.1:\d+' \(Connection refused\)\."),
        ("nowhere", r"`--address` must be auto, HOST:PORT or ray://HOST:PORT, got 'nowhere'\."),
        (
            "auto",
            r"`--address` must be a Ray that answers, got 'auto'\. (Could not find|It has not answered)",
        ),
    ],
)
def test_an_address_that_does_not_answer(world, monkeypatch, address, message):
    monkeypatch.setattr(
        on_ray, "JOIN_SECONDS", 5.0
    )  # a Ray that was killed leaves its address behind, which "auto" tries
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = address.replace("PORT", f"127.0.0.1:{free.getsockname()[1]}")
        with pytest.raises(NaysayError, match=message):
            world.run("never.jsonl", engine="ray", address=address)
    assert not (world.folder / "never.jsonl").exists()
    assert not world.job("never.jsonl").exists()


def test_a_server_that_is_no_ray(world, monkeypatch):
    monkeypatch.setattr(on_ray, "JOIN_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(NaysayError, match=f"got '{address}'. It has not answered within 1 s."):
            world.run("never.jsonl", engine="ray", address=address)


def test_another_version_of_ray(world, cluster, monkeypatch):
    monkeypatch.setattr(ray, "__version__", "2.0.0")
    rule = "`--address` must be a cluster with the same versions of Ray and Python, got "
    with pytest.raises(NaysayError, match=f"{rule}.*2.0.0.*Install the same versions here and on the cluster"):
        world.run("never.jsonl", engine="ray", address=cluster[0].address)


def test_a_file_that_one_node_lacks(world, cluster, monkeypatch):
    shutil.copy(world.folder / "c.npy", world.folder / "here.npy")
    monkeypatch.chdir(world.folder)
    with pytest.raises(NaysayError, match=r"must be an existing file, got '/proc/self/cwd/here.npy'.*This is shard"):
        world.run("never.jsonl", corpus_vectors="/proc/self/cwd/here.npy", engine="ray", address=cluster[0].address)
    assert not (world.folder / "never.jsonl").exists()


def test_a_node_is_lost(world, cluster, monkeypatch):
    in_parts(monkeypatch, 150)
    nodes, second = cluster
    after_parts(monkeypatch, 1, lambda: nodes.remove_node(second, allow_graceful=False))
    world.run("out.jsonl", engine="ray", address=nodes.address)
    assert same(world, "out.jsonl")
