"""The part of the benchmarks page about samplers that use model scores: their cost in a training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

COST = """\
Matrix factorisation, d = {width}, batches of {batch:,} from {pairs:,} pairs of {users:,} users and {items:,} items,
dense Adam, torch {torch}: {candidates} candidates per row are drawn and scored, {k} selected, BPR over them.
Milliseconds per step, best of several repetitions. "Share" is the share of the step that draw, selection and loss
with its gradient take; scoring, forward, backward and the optimiser belong to the model. `in_blocks` makes the same
scoring several times faster, so the share is larger.
"""
SOURCES = """\
Processor seconds of a step, sample and observe, against as many scored candidates in `Dynamic`: batches of {batch:,},
k = {k}, {candidates} candidates for `Cached`, 32 for `Learned`. `Nearest` draws from the {depth} nearest of {vectors:,}
vectors for {queries:,} anchors; torch is a product and topk, which excludes nothing. `Walk` plans a million rows with
100 links each. Threads of torch sleep while they wait (`OMP_WAIT_POLICY=passive`). By default they spin, and on a busy
machine that time counts as the sampler's.
"""
SOURCE_NAMES = ("step", "threads", "measured", "limit")
STEPS = """\
The composition of each row of [the catalogue](methods.md) on one world of its data: 1 M pairs of 6,040 users and 3,706
items, a graph of 20,000 nodes and 100,000 edges, or 272,000 triples. Batches of {batch:,}, k = {k}, d = {width}, one
thread. A step is sample, and observe where the sampler has it. Milliseconds are of the processor, the best of several
steps. `Dynamic` scores {candidates} candidates; rows with more cost more for that reason. Of rows that are a pool and a
loss (in-batch) only the pool is measured. Where a step would take seconds, both have a batch of 32.
"""
RECBOLE = """\
Whole training steps with one negative of {candidates} candidates, alternating in the same run:
"""


def dynamic(result: dict[str, Any], table: Table) -> list[str]:
    """The cost of a step by way of choosing, and the peer."""
    parts = ["## Samplers that use model scores", COST.format(**result)]
    for threads in (1, 2):
        found = result[f"threads_{threads}"]
        rows = [
            (
                name,
                *(f"{row[part]:.1f}" for part in ("step", "scoring", "draw", "choice", "loss")),
                f"{100 * row['share']:.1f} %",
            )
            for name, row in found["cost"].items()
        ]
        headings = ("sampler", "step", "scoring", "draw", "selection", "loss", "share")
        parts += [f"### Training step, {threads} thread{'s' if threads > 1 else ''}", table(headings, rows)]
        parts += [RECBOLE.format(**result), _against(found["against_recbole"], table)]
    return parts


def hard_sources(result: dict[str, Any], table: Table) -> list[str]:
    """Caches, generators, the nearest items and walks, against their limits."""
    limits, walk = result["limits"], result["walk"]
    rows = []
    for threads in (1, 2):
        for name, found in result.get(f"threads_{threads}", {}).items():
            other = "torch" if name == "Nearest" else "Dynamic"
            limit = limits[f"{name.split(',')[0]} against {other}"]
            rows.append((f"{name}, against {other}", str(threads), f"{found['ratio']:.2f} x", f"{limit:g} x"))
    rows.append(("Walk, the plan of an epoch", "", f"{walk['seconds']:.1f} s", f"{limits['Walk, seconds']} s"))
    memory = (
        f"The plan takes {walk['bytes_per_row']:.0f} bytes per row beside the links." if "bytes_per_row" in walk else ""
    )
    return [
        "## Caches, generators, the nearest and batches",
        SOURCES.format(**result),
        table(SOURCE_NAMES, rows),
        memory,
    ]


def costs(result: dict[str, Any], table: Table) -> list[str]:
    """A step of every row of the catalogue, against Dynamic."""
    rows = [
        (
            name,
            row["data"],
            f"{row.get('batch', result['batch']):,}",
            f"{1e3 * row['seconds']:.1f}",
            f"{row['ratio']:.2f} x",
            row["class"],
        )
        for name, row in result["methods"].items()
    ]
    headings = ("method", "data", "batch", "ms", "ratio to Dynamic", "class")
    return ["## What a step of each method costs", STEPS.format(**result), table(headings, rows)]


def cost_classes(result: dict[str, Any], table: Table) -> str:
    """One line for each class: its limit, and its methods with their ratios."""
    limits = {name: f"at most {limit:g} x" for name, limit in result["classes"].items()} | {"high": "more"}
    lines = []
    for name, limit in limits.items():
        found = sorted((row["ratio"], method) for method, row in result["methods"].items() if row["class"] == name)
        lines.append(
            (name, limit, ", ".join(f"{method} {ratio:.{1 if ratio < 10 else 0}f}" for ratio, method in found))
        )
    return table(("class", "limit", "methods"), lines)


def _against(rows: dict[str, Any], table: Table) -> str:
    """Steps a second, ours and the peer's."""
    peer = rows["recbole_train"]
    if "missing" in peer:
        return f"RecBole: {peer['missing']}."
    lines = [
        (name, f"{row['steps_per_second']:.1f}", f"{row['steps_per_second'] / peer['steps_per_second']:.1f} x")
        for name, row in rows.items()
        if name != "recbole_train"
    ]
    theirs = (f"RecBole {peer['versions']['version']}, dynamic", f"{peer['steps_per_second']:.1f}", "")
    return table(("", "steps per second", "ratio to RecBole"), [*lines, theirs])
