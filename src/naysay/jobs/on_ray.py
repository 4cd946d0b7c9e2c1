"""Ray: the workers of a job in other processes, on this machine or on many. Only this file knows it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn, final
from urllib.parse import urlsplit

from naysay._packages import need_package
from naysay.checks import raise_invalid, shown
from naysay.encode.model import load_model
from naysay.errors import MissingExtraError, NaysayError
from naysay.jobs.folder import KeptJobError
from naysay.jobs.options import JobOptions
from naysay.jobs.shards import Call, CorpusFile, ShardedCorpus, shards_of
from naysay.kernels.threads import threads
from naysay.mining.options import MiningOptions
from naysay.search.vectors import Vectors
from naysay.text import first_line, versions

MAX_RETRIES = 3  # of a task whose worker ends, or that cannot read its file
ANSWER_SECONDS = 10.0  # that an address has to accept a connection
JOIN_SECONDS = 90.0  # that a cluster has to accept this process
JOIN_ATTEMPTS = 3  # a Ray Client server forks a process for each client, which sometimes ends at once
OBJECT_STORE_BYTES = 512 << 20  # memory that the processes of a local Ray share
SAME_VERSIONS = ("naysay", "numpy")  # they decide the bytes of a result
_RESUME = "Nothing is lost: run again with --resume."
_FEWER = "Pass fewer `workers`, or a smaller `budget`, which is that of each worker."


@final
class Cluster:
    """A Ray that this process is connected to."""

    def __init__(self, ray: Any, job: JobOptions, threads_each: int) -> None:
        resources = ray.cluster_resources()
        self._ray = ray
        self._job = job
        self._threads = threads_each
        self.processors = int(resources.get("CPU", 0))
        self.devices = int(resources.get("GPU", 0))

    @property
    def n_workers(self) -> int:
        """Workers of a search: as many as were asked for, or as the processors allow."""
        most = max(1, self.processors // self._threads)
        wanted = self._job.workers
        if wanted is not None and wanted > most:
            rule = (
                f"at most {most}, for {self.processors} processors in the cluster and {self._threads} for each worker"
            )
            raise_invalid("workers", rule, wanted)
        return wanted or most

    def corpus(self, path: Path, queries: Vectors, vectors: Vectors, mining: MiningOptions) -> ShardedCorpus:
        """The vectors of a file, to be searched by workers, a shard each; all vectors are checked."""
        file = CorpusFile(
            path=path.absolute(),
            n=vectors.n,
            width=vectors.width,
            dtype=str(vectors.dtype),
            metric=mining.metric,
            engine=mining.engine,
            budget=self._job.budget,
            threads=self._threads,
        )
        corpus = ShardedCorpus(file, shards_of(vectors.n, self.n_workers), self)
        corpus.check(queries)
        return corpus

    def share(self, value: Any) -> Any:
        """Put a value in Ray's object store, from which each node reads it once."""
        return self._ray.put(value)

    def run(self, function: Callable[..., Any], calls: Iterable[Call]) -> Iterator[tuple[Call, Any]]:
        """Make all calls as tasks, two for each worker at a time, and yield their results as they come."""
        task = self._ray.remote(
            num_cpus=self._threads,
            max_retries=MAX_RETRIES,
            retry_exceptions=[OSError],
            scheduling_strategy="SPREAD",
        )(_checked_call)
        driver_versions = versions(*SAME_VERSIONS)
        remaining = iter(calls)
        pending: dict[Any, Call] = {}

        def start(count: int) -> None:
            for call in islice(remaining, count):
                pending[task.remote(function, driver_versions, *call.arguments)] = call

        start(2 * self.n_workers)
        while pending:
            (done,), _ = self._ray.wait(list(pending), num_returns=1)
            call = pending.pop(done)
            try:
                result = self._ray.get(done)
            except Exception as error:  # of Ray, or of the worker
                for other in pending:
                    with suppress(Exception):
                        self._ray.cancel(other)
                _raise_failed(str(call.shard), error)
            yield call, result
            start(1)

    @contextmanager
    def encoding(self) -> Iterator[Callable[[Any, Iterable[list[str]]], Iterator[Any]]]:
        """Give a function that encodes blocks of texts in order, by workers with a model each.

        There is one for each GPU, or else for each processor. The function is the `each` of `encode_texts`.
        """
        model = self._job.model
        if isinstance(model, str | Path) and Path(model).is_dir():
            model = Path(model).absolute()
        most = self.devices or self.processors
        count = max(1, min(self._job.workers or most, most))
        options = {"num_cpus": 1, "num_gpus": min(1, self.devices)}
        actor = self._ray.remote(
            **options, max_restarts=MAX_RETRIES, max_task_retries=MAX_RETRIES, scheduling_strategy="SPREAD"
        )(Encoder)
        actors = [actor.remote(model, self._job.device) for _ in range(count)]
        try:
            yield partial(self._encoded, actors)
        finally:
            for one in actors:
                self._ray.kill(one)

    def _encoded(self, actors: list[Any], encode: Any, blocks: Iterable[list[str]]) -> Iterator[Any]:
        """Vectors of the blocks in order; `encode.keywords` are the options of the model."""
        pool = self._ray.util.ActorPool(actors)
        n_waiting = 0
        try:
            for block in blocks:
                pool.submit(lambda actor, texts: actor.encode.remote(texts, encode.keywords), block)
                n_waiting += 1
                if n_waiting == 2 * len(actors):  # so that memory does not hold all texts
                    yield pool.get_next()
                    n_waiting -= 1
            while pool.has_next():
                yield pool.get_next()
        except self._ray.exceptions.RayError as error:
            _raise_failed("encoding texts", error)


class Encoder:
    """A process that holds a model."""

    def __init__(self, model: Any, device: str | None) -> None:
        is_name = isinstance(model, str | Path)
        self._model = load_model(model, device=device) if is_name else model

    def encode(self, texts: list[str], options: dict[str, Any]) -> Any:
        """Encode a block of texts."""
        return self._model.encode(texts, **options)


def _checked_call(function: Callable[..., Any], driver_versions: dict[str, str], *arguments: Any) -> Any:
    """Call a function in a worker that has the versions of the driver."""
    here = versions(*SAME_VERSIONS)
    for package, version in driver_versions.items():
        if here[package] != version:
            got = f"{here[package]} on {socket.gethostname()} and {version} here"
            raise_invalid("address", f"a cluster with the same version of {package}", got)
    return function(*arguments)


def _raise_failed(what: str, error: Exception) -> NoReturn:
    """Raise the error of a task as one sentence."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, NaysayError | MissingExtraError):
        message = f"{cause.args[0]} This is {what}."
    elif isinstance(cause, MemoryError) or "OutOfMemory" in type(error).__name__:
        message = f"{what}: its worker is out of memory. {_FEWER}"
    else:
        reason = cause or error
        message = f"{what} failed: {type(reason).__name__}: {first_line(reason)}. {_RESUME}"
        raise KeptJobError(message) from None
    raise NaysayError(message) from None


# ---- the connection -------------------------------------------------------------------------------------------------


@contextmanager
def cluster_of(job: JobOptions, mining: MiningOptions) -> Iterator[Cluster]:
    """Connect to the Ray of a job, or start one here, which ends with the block."""
    if mining.approximate is not None:
        raise_invalid("approximate", "left out with the engine 'ray', which is exact", shown(mining.approximate))
    ray = need_package("ray", "2.40", below="3", extra="ray")
    threads_each = mining.threads or 1
    was_connected = ray.is_initialized()
    if not was_connected and job.address is not None:
        _check_answers(job.address)
        _join(ray, job.address)
    elif not was_connected:
        processors = max(threads(), threads_each) if job.workers is None else job.workers * threads_each
        _start(ray, processors)
    try:
        yield Cluster(ray, job, threads_each)
    finally:
        if not was_connected:
            ray.shutdown()


def _start(ray: Any, processors: int) -> None:
    try:
        ray.init(
            address="local",
            num_cpus=processors,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except Exception as error:
        message = f"Ray could not be started on this machine: {first_line(error)}"
        raise NaysayError(message) from error


def _join(ray: Any, address: str) -> None:
    """Join a cluster; raise what goes wrong as one sentence."""
    for _ in range(JOIN_ATTEMPTS):
        error = _join_error(ray, address)
        if not isinstance(error, ConnectionAbortedError):
            break
    if error is None:
        return
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        advice = "Install the same versions here and on the cluster."
        raise_invalid("address", "a cluster with the same versions of Ray and Python", text.rstrip("."), advice)
    reason = _reason(error)
    if "RAY_AUTH_MODE" not in os.environ:
        token = "If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
        reason = f"{reason.rstrip('.')}. {token}"
    raise_invalid("address", "a Ray that answers", shown(address), reason)


def _join_error(ray: Any, address: str) -> BaseException | None:
    """Call `ray.init` in a thread, since it may never return, and return its error, if any."""
    errors: list[BaseException] = []

    def init() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except BaseException as error:  # of many kinds
            errors.append(error)

    thread = Thread(target=init, daemon=True)
    thread.start()
    thread.join(JOIN_SECONDS)
    if thread.is_alive():
        return TimeoutError(f"It has not answered within {JOIN_SECONDS:g} s.")
    return errors[0] if errors else None


def _reason(error: BaseException) -> str:
    """Why Ray did not accept this process: the first line, and the last one where the first is only a heading."""
    heading = first_line(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if heading.endswith(":") and len(lines) > 1:
        return f"{heading} {lines[-1]}"
    return heading


def _check_answers(address: str) -> None:
    """Raise unless something listens at an address; Ray itself would try for minutes."""
    if address == "auto":
        return
    place = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = place.hostname, place.port
    except ValueError:
        host, port = None, None
    if port is None and place.scheme == "ray":
        port = 10001  # the port of Ray Client
    if not host or port is None:
        raise_invalid("address", "auto, HOST:PORT or ray://HOST:PORT", shown(address))
    try:
        socket.create_connection((host, port), ANSWER_SECONDS).close()
    except OSError as error:
        got = f"{shown(address)} ({error.strerror or first_line(error)})"
        raise_invalid("address", "a Ray that answers", got)
