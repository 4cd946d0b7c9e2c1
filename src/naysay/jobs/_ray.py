"""Ray: workers of a job in other processes, on this machine or on many. Only this file and `_pool.py` know it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, final
from urllib.parse import urlsplit

from naysay._packages import need_package
from naysay.checks import raise_invalid, shown
from naysay.errors import NaysayError
from naysay.jobs._fate_sharing import end_guarded, guarded
from naysay.jobs._pool import Pool
from naysay.jobs._sharded import Sharded, encoded_by
from naysay.jobs._worker import ASK, Corpus, EncodingWorker, ShardWorker
from naysay.jobs.options import JobOptions
from naysay.kernels.threads import threads
from naysay.mining.options import MiningOptions
from naysay.search._shards import shards_of
from naysay.search.vectors import Vectors
from naysay.text import first_line

_ANSWER, _JOIN = 10.0, 90.0  # seconds that an address has to answer, and a Ray to take this process in
_TRIES = 3  # to join a Ray that ends the connection
_TOKEN = "If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
_STORE = 512 << 20  # bytes of the memory that processes of a local Ray share


@final
class Cluster:
    """A Ray that this process is connected to, and the workers that it has there."""

    def __init__(self, ray: Any, log: Callable[[str], None]) -> None:
        found = ray.cluster_resources()
        self._ray, self._log, self._pools = ray, log, list[Pool]()
        self.processors, self.devices = int(found.get("CPU", 0)), int(found.get("GPU", 0))

    def pool(self, kind: type, arguments: tuple[Any, ...], count: int, *, cpus: int, gpus: int = 0) -> Pool:
        """Start workers of a class. Ray does not restart them, so that each end is seen here."""
        remote = self._ray.remote(
            num_cpus=cpus,
            num_gpus=gpus,
            max_restarts=0,
            max_task_retries=0,
            concurrency_groups={ASK: 1},  # to be asked while it works
            scheduling_strategy="SPREAD",
        )(kind)
        pool = Pool(self._ray, self._log, lambda: remote.remote(*arguments), count)
        self._pools.append(pool)
        return pool

    def close(self) -> None:
        """End all workers."""
        for pool in self._pools:
            pool.close()


@contextmanager
def cluster_of(job: JobOptions, mining: MiningOptions, log: Callable[[str], None]) -> Iterator[Cluster | None]:
    """Connect to the Ray of a job, or start one here, which ends with the block; None for the local engine."""
    if job.engine == "local":
        yield None
        return
    if mining.approximate is not None:
        raise_invalid("approximate", "left out with the engine 'ray', which is exact", shown(mining.approximate))
    ray = need_package("ray", "2.40", below="3", extra="ray")
    own, guard = not ray.is_initialized(), None
    if own and job.address is not None:
        _check_answers(job.address)
        _init(ray, job.address, {"address": job.address})
    elif own:
        each = mining.threads or 1
        processors = max(threads(), each) if job.workers is None else job.workers * each
        local = {"address": "local", "num_cpus": processors, "include_dashboard": False, "object_store_memory": _STORE}
        with guarded() as guard:
            _init(ray, None, local)
    cluster = Cluster(ray, log)
    try:
        yield cluster
    finally:
        cluster.close()
        if own:
            ray.shutdown()
        end_guarded(guard)


def sharded(cluster: Cluster, job: JobOptions, path: Path, corpus: Vectors, each: int) -> Sharded:
    """Start workers that search a corpus, a shard each, with `each` threads: as many as are asked for, or as fit."""
    most = max(1, cluster.processors // each)
    if job.workers is not None and job.workers > most:
        rule = f"at most {most}, for {cluster.processors} processors in the cluster and {each} for each worker"
        raise_invalid("workers", rule, job.workers)
    shards = shards_of(corpus.n, job.workers or most)
    file = Corpus(path.absolute(), corpus.n, corpus.width, str(corpus.dtype))
    return Sharded(cluster.pool(ShardWorker, (file, each, job.budget), len(shards), cpus=each), shards)


@contextmanager
def encoding(cluster: Cluster, job: JobOptions) -> Iterator[Any]:
    """Give the `each` of `encode_texts`: workers with a model each, one for each GPU, or else for each processor."""
    model, gpus = job.model, cluster.devices
    if isinstance(model, str | Path) and Path(model).is_dir():
        model = Path(model).absolute()
    count = min(job.workers or gpus or cluster.processors, gpus or cluster.processors)
    pool = cluster.pool(EncodingWorker, (model, job.device), max(1, count), cpus=1, gpus=min(1, gpus))
    try:
        yield partial(encoded_by, pool)
    finally:
        pool.close()


def _init(ray: Any, address: str | None, options: dict[str, Any]) -> None:
    """Start or join a Ray; raise what goes wrong as one sentence."""
    limit, tries = None if address is None else _JOIN, 1
    error = _attempt(ray, options, limit)
    while isinstance(error, ConnectionAbortedError) and tries < _TRIES:
        # A server of clients forks a process for each of them, which dies at once now and then.
        error, tries = _attempt(ray, options, limit), tries + 1
    if error is None:
        return
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        advice = "Install the same versions here and on the cluster."
        raise_invalid("address", "a cluster with the same versions of Ray and Python", text.rstrip("."), advice)
    if address is not None:
        advice = _reason(error)
        if "RAY_AUTH_MODE" not in os.environ:
            advice = f"{advice.rstrip('.')}. {_TOKEN}"
        raise_invalid("address", "a Ray that answers", shown(address), advice)
    message = f"Ray could not be started on this machine: {first_line(error)}"
    raise NaysayError(message) from error


def _attempt(ray: Any, options: dict[str, Any], limit: float | None) -> BaseException | None:
    """Call `ray.init` and return its error, if any. With a limit in seconds a thread calls: Ray may try for ever."""
    failed: list[BaseException] = []

    def init() -> None:
        try:
            ray.init(**options, log_to_driver=False, logging_level="ERROR")
        except BaseException as error:  # of many kinds
            failed.append(error)

    if limit is None:
        init()
    else:
        thread = Thread(target=init, daemon=True)
        thread.start()
        thread.join(limit)
        if thread.is_alive():
            return TimeoutError(f"It has not answered within {limit:g} s.")
    return failed[0] if failed else None


def _reason(error: BaseException) -> str:
    """Why Ray took nobody in: a server of clients sends a heading and a traceback, whose last line says it."""
    line = first_line(error)
    *_, last = [text.strip() for text in str(error).splitlines() if text.strip()] or [line]
    return f"{line} {last}" if line.endswith(":") and last != line else line


def _check_answers(address: str) -> None:
    """Raise unless something listens at an address; Ray itself would try for minutes."""
    if address == "auto":
        return
    place = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = place.hostname, place.port
    except ValueError:
        host, port = None, None
    if not host or not (port or place.scheme == "ray"):
        raise_invalid("address", "auto, HOST:PORT or ray://HOST:PORT", shown(address))
    try:
        socket.create_connection((host, port or 10001), _ANSWER).close()
    except OSError as error:
        got = f"{shown(address)} ({error.strerror or first_line(error)})"
        raise_invalid("address", "a Ray that answers", got)
