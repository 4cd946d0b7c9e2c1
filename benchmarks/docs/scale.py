"""The tables of docs/scale.md: jobs on Ray as measured, and the cost model that carries them further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]
WIDTH, BYTES, BLOCK, DEPTH, CANDIDATE = (
    384,
    2,
    5000,
    100,
    12,
)  # float16; queries of a block; candidates, and their bytes
SAMPLES, SAMPLED = 2, 2000  # the fit of the judge and the sample of the report: queries that are searched deeper
CORES, SHARDS = 1000, 100  # of the cluster that is projected
CASES = ((10**7, 10**5), (10**8, 10**6), (5 * 10**8, 5 * 10**6), (10**9, 10**6), (10**9, 10**8))


def blocks(result: dict[str, Any], table: Table) -> dict[str, str]:
    """{name of a block: its text}."""
    terms = fitted(result["model"])
    return {
        "ray-speed": _speed(result["speed"], terms, table),
        "ray-memory": _memory(result["memory"], table),
        "ray-terms": _terms(terms, table),
        "ray-projected": _projected(terms, table),
    }


def fitted(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Processor seconds of each term; those of a row and of a product by least squares over the sizes of a block."""
    each = {row["term"]: row["seconds"] / row["units"] for row in rows}
    lines = {depth: _line(each, f"search to depth {depth} for ") for depth in (11, 100)}
    jobs = [row for row in rows if row["term"].startswith("a whole job")]
    query = (jobs[1]["seconds"] - jobs[0]["seconds"]) / (jobs[1]["units"] - jobs[0]["units"])
    passes = each["norms of rows"] + each["keys of rows"]
    workers = {"row": lines[11][1], "product": lines[11][0], "deep": lines[100][0], "passes": passes}
    return workers | {"merge": each["merged candidates"], "byte": each["bytes hashed"], "query": query}


def _line(each: dict[str, float], start: str) -> tuple[float, float]:
    """Seconds of a product, and of a row without one."""
    found = {int(name.removeprefix(start).split()[0]): value for name, value in each.items() if name.startswith(start)}
    slope, rest = np.polyfit(list(found), list(found.values()), 1)
    return float(slope), max(0.0, float(rest))


def cost(terms: dict[str, float], documents: int, queries: int, shards: int) -> dict[str, float]:
    """Processor seconds of all workers and of the driver, and bytes."""
    passes, sampled = -(-queries // BLOCK) + SAMPLES, SAMPLES * min(queries, SAMPLED)
    products = queries * terms["product"] + sampled * terms["deep"]
    sent = queries * shards * DEPTH
    return {
        "workers": documents * (passes * terms["row"] + products + terms["passes"]),
        "read": documents * WIDTH * BYTES * (passes + 2),
        "sent": sent * CANDIDATE,
        "driver": queries * terms["query"] + sent * terms["merge"] + documents * WIDTH * BYTES * terms["byte"],
    }


def _best(rows: list[dict[str, Any]], workers: int) -> dict[str, Any]:
    return min((row for row in rows if row["workers"] == workers), key=lambda row: row["processor_seconds"])


def _speed(rows: list[dict[str, Any]], terms: dict[str, float], table: Table) -> str:
    plain, lines = _best(rows, 0)["processor_seconds"], []
    expected = cost(terms, 10**6, 5000, 1)["workers"]
    for workers in sorted({row["workers"] for row in rows}):
        row = _best(rows, workers)
        seconds, searched = row["processor_seconds"], sum(row["worker_processor_seconds"])
        every = [f"{one['processor_seconds']:.0f}" for one in rows if one["workers"] == workers]
        lines.append((
            "the plain job, two threads" if workers == 0 else f"Ray, {workers} worker{'s' * (workers > 1)}",
            f"{row['driver_processor_seconds']:.1f}",
            f"{searched:.1f}" if workers else "",
            f"{seconds:.1f}",
            f"{100 * (seconds / plain - 1):+.1f} %" if workers else "",
            f"{100 * (expected / searched - 1):+.0f} %" if workers else "",
            ", ".join(every),
        ))  # fmt: skip
    headings = ("job", "driver", "workers", "processor seconds", "overhead", "the model's error", "all runs")
    same = len({row["output"] for row in rows}) == 1
    loads = [row["load"] for row in rows]
    text = "All outputs are equal, byte for byte." if same else "Outputs differ."
    text += f" Meanwhile {min(loads):.0f} to {max(loads):.0f} processes shared the two cores, so equal runs differ."
    return f"{table(headings, lines)}\n\n{text}"


def _memory(rows: list[dict[str, Any]], table: Table) -> str:
    least = rows[0]["peak_own_bytes"]
    lines = [
        (
            f"{row['documents']:,}",
            f"{row['peak_own_bytes'] / 1e6:,.0f}",
            f"{(row['peak_own_bytes'] - least) / 1e6:+,.0f}",
        )
        for row in rows
    ]
    return table(("documents", "peak of the driver, MB", "above the smallest, MB"), lines)


def _terms(terms: dict[str, float], table: Table) -> str:
    names = {
        "row": (f"a row of {WIDTH} read and rounded, for a block of queries", 1e6, "µs"),
        "product": ("a row and a query, 11 candidates wanted", 1e9, "ns"),
        "deep": ("a row and a query, 100 candidates wanted", 1e9, "ns"),
        "passes": ("a row in the two passes before", 1e6, "µs"),
        "merge": ("a candidate merged by the driver", 1e9, "ns"),
        "query": ("a query read, judged, selected and written by the driver", 1e6, "µs"),
        "byte": ("a byte of the corpus hashed by the driver", 1e9, "ns"),
    }
    lines = [(name, f"{terms[key] * scale:.3g}", unit) for key, (name, scale, unit) in names.items()]
    return table(("term", "processor time", "unit"), lines)


def _projected(terms: dict[str, float], table: Table) -> str:
    lines = []
    for documents, queries in CASES:
        found = cost(terms, documents, queries, SHARDS)
        search, driver = found["workers"] / CORES / 3600, found["driver"] / 3600
        lines.append((
            f"{documents:.0e}".replace("e+0", "e"),
            f"{queries:.0e}".replace("e+0", "e"),
            f"{found['workers'] / 3600:,.0f}",
            f"{search:,.1f}",
            f"{driver:,.1f}",
            f"{found['read'] / 1e12:,.0f}",
            f"{found['sent'] / 1e12:,.2f}",
            "the products" if search > driver else "the driver",
        ))  # fmt: skip
    headings = ("documents", "queries", "core hours", f"hours on {CORES:,} cores", "hours of the driver")
    return table((*headings, "TB read by workers", "TB sent to the driver", "what binds"), lines)
