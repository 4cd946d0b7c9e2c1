"""The plan of a job on Ray, before it runs: shards, blocks, memory, bytes, and the time by a short probe.

A shard of r rows costs a worker, for q queries in b blocks,

    r (b a + q p) seconds:  a to read and round a row, p for its product with a query

which two searches of each worker measure, all workers at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from naysay._urls import Url
from naysay.checks import raise_invalid, shown
from naysay.jobs._prepare import PARTS_ON_WORKERS, open_file, within
from naysay.jobs._ray import Cluster, cluster_of, sharded
from naysay.jobs._sharded import Call, Sharded, Workers, rows_of_block
from naysay.jobs._worker import Block
from naysay.jobs.options import JobOptions
from naysay.kernels.threads import threads
from naysay.mining.options import MiningOptions
from naysay.mining.problem import Problem, checked_problem
from naysay.positives import Positives
from naysay.search._scores import METRICS
from naysay.search._shards import Shard
from naysay.search._survey import measured
from naysay.search.vectors import as_vectors
from naysay.text import counted

_ROWS, _FEW, _MANY = 1 << 15, 64, 1024  # rows of a shard, and queries, of the two searches
_ENOUGH = 3600.0  # seconds that one machine may take
_PASSES = 1  # over the corpus before the search: its norms


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What a job on Ray will do. str() is what `naysay mine --engine ray --dry-run` prints.

    Args:
        queries: How many anchors.
        documents: Rows of the corpus.
        width: Numbers of a vector.
        workers: Workers, with `threads` threads each.
        threads: Threads of a worker.
        shards: Shards of the corpus.
        blocks: Blocks of queries.
        worker_bytes: Peak memory of a worker in the probe.
        budget: What a worker, and the driver, may take beside its libraries.
        read_bytes: Bytes of the corpus that all workers read.
        merged_bytes: Bytes that the workers send to the driver.
        seconds: Expected time of the search.
        one_machine: The same without Ray, on all processors of this machine.
    """

    queries: int
    documents: int
    width: int
    workers: int
    threads: int
    shards: int
    blocks: int
    worker_bytes: int
    budget: int
    read_bytes: int
    merged_bytes: int
    seconds: float
    one_machine: float

    @property
    def enough(self) -> bool:
        """Whether one machine is enough: it takes less than an hour, or hardly longer than the workers."""
        return self.one_machine <= max(_ENOUGH, 1.2 * self.seconds)

    def __str__(self) -> str:
        """Five lines."""
        advice = "One machine is enough: leave --engine out." if self.enough else "One machine is too slow."
        return (
            f"Corpus: {self.documents:,} x {self.width} in {counted(self.shards, 'shard')} of up to "
            f"{-(-self.documents // self.shards):,} rows; {self.queries:,} queries in {counted(self.blocks, 'block')}: "
            f"{counted(self.shards * self.blocks, 'task')} for {counted(self.workers, 'worker')} with "
            f"{counted(self.threads, 'thread')} each.\n"
            f"Memory: {self.worker_bytes / 1e6:,.0f} MB of a worker in the probe; --budget allows it, and the driver, "
            f"{self.budget / 1e6:,.0f} MB beside the libraries.\n"
            f"Bytes: the workers read {self.read_bytes / 1e9:,.2f} GB and send {self.merged_bytes / 1e9:,.2f} GB.\n"
            f"Time: about {_time(self.seconds)} for the search, by a probe of two searches. Tables, encoding and "
            f"judging come on top.\n"
            f"Without Ray: about {_time(self.one_machine)} on this machine. {advice}"
        )


def show_plan(job: JobOptions, mining: MiningOptions, log: Callable[[str], None], show: Callable[[str], None]) -> Plan:
    """Plan a job, and show it: start its workers, let each of them search twice, and count."""
    if job.model is not None:
        raise_invalid("dry_run", "left out with `model`: it needs vectors", "both")
    remote = next((path for path in (job.query_vectors, job.corpus_vectors) if isinstance(path, Url)), None)
    if remote is not None:
        raise_invalid("dry_run", "left out for vectors in a store: they are copied first", shown(str(remote)))
    with cluster_of(job, mining, log) as cluster:
        if cluster is None:
            raise_invalid("dry_run", "left out without the engine 'ray'", shown(job.engine))
        plan = _planned(job, mining, cluster)
    show(str(plan))
    return plan


def _planned(job: JobOptions, mining: MiningOptions, cluster: Cluster) -> Plan:
    both = {name: open_file(f"--{name}-vectors", path) for name, path in job.vector_files.items()}
    queries, corpus, each = both["query"], both["corpus"], mining.threads or 1
    anchors = np.arange(queries.n)
    known = Positives.from_pairs(anchors, np.zeros_like(anchors), queries.n, corpus.n)  # as if each had one
    problem = checked_problem(queries, corpus, known, None, job.k, {}, mining)
    shards = sharded(cluster, job, job.vector_files["corpus"], corpus, each)
    problem, size = within(problem, job.budget, PARTS_ON_WORKERS)
    rows = min(size, rows_of_block(problem.first_depth))
    blocks = max(1, sum(-(-min(size, queries.n - start) // rows) for start in range(0, queries.n, size)))
    row_seconds, pair_seconds = _probed(problem, shards)
    passes = blocks + _PASSES
    work = corpus.n * (passes * row_seconds + queries.n * pair_seconds)  # of one worker, for all
    workers = len(shards.shards)
    return Plan(
        queries=queries.n,
        documents=corpus.n,
        width=corpus.width,
        workers=workers,
        threads=each,
        shards=workers,
        blocks=blocks,
        worker_bytes=max(about["peak"] for about in shards.pool.about()),
        budget=job.budget,
        read_bytes=passes * corpus.n * corpus.width * corpus.dtype.itemsize,
        merged_bytes=queries.n * problem.first_depth * 12 * workers,
        seconds=work / workers,
        one_machine=work * each / threads(),
    )


def _probed(problem: Problem, shards: Sharded) -> tuple[float, float]:
    """Seconds of a worker to read and round a row, and for a product, while all workers work."""
    counts = [min(count, problem.queries.n) for count in (_FEW, _MANY)]
    sample = np.asarray(problem.queries.rows(0, counts[1]))
    norm = measured(as_vectors("queries", sample), METRICS[problem.options.metric], threads()).survey.largest
    runs = [_shorter(shard) for shard in shards.shards]
    seconds = []
    for count in (counts[1], *counts):  # the first to load and to compile
        none = np.zeros(count + 1, np.int64), np.empty(0, np.int64)
        block = Block(
            sample[:count], none, problem.first_depth, problem.options.metric, problem.options.engine, (norm, norm)
        )
        start = time.perf_counter()
        for _ in shards.pool.each("search", _calls(shards.pool, runs, block)):
            pass
        seconds.append((time.perf_counter() - start) / max(1, runs[0].stop - runs[0].start))
    few, many = seconds[1:]
    pair = max(0.0, many - few) / max(1, counts[1] - counts[0])
    return max(0.0, few - counts[0] * pair), pair or many / counts[1]


def _shorter(shard: Shard) -> Shard:
    return replace(shard, stop=min(shard.stop, shard.start + _ROWS))


def _calls(pool: Workers, runs: list[Shard], block: Block) -> Iterator[Call]:
    shared = pool.share(block)
    return (Call(str(shard), shard.number, (shard, shared)) for shard in runs)


def _time(seconds: float) -> str:
    """Seconds, minutes, hours or days in words."""
    for size, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} s"
