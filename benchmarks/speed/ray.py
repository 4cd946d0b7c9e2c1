"""Mining on Ray against the plain job: processor seconds by number of workers, and the driver's memory by documents.

speed    1,000,000 documents x 384 and 5,000 queries in float16, k = 8: the plain job, and Ray with 1, 2 and 4 workers
memory   the peak of the command with two workers, by the number of documents

`fitted` and `cost` are the cost model of docs/speed.md. Its terms, part "model" of results/ray.json, were measured by a
script of 0.1.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.harness import Options, Row, command
from benchmarks.speed.mining import files, job

WORKERS = (0, 1, 2, 4)  # 0 is the plain job


def jobs_on_ray(sizes: tuple[int, ...], workers: tuple[int, ...], options: Options) -> list[Row]:
    """One row for each number of documents and of workers; the command with its start-up."""
    rows = []
    for documents in sizes:
        documents, queries = options.size(documents, 500), options.size(5000, 20)
        with tempfile.TemporaryDirectory() as folder:
            files(Path(folder), queries, documents)
            for count in workers:
                engine = ("--engine", "ray", "--workers", str(count)) if count else ("--threads", "2")
                rows.append(
                    {"documents": documents, "queries": queries, "workers": count, **job(Path(folder), *engine)}
                )
    return rows


def fitted(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The terms of the cost model in processor seconds; those of a row and of a product by least squares."""
    each = {row["term"]: row["seconds"] / row["units"] for row in rows}
    product, row = _line(each, "search to depth 11 for ")
    deep, _ = _line(each, "search to depth 100 for ")
    few, many = (one for one in rows if one["term"].startswith("a whole job"))
    return {
        "row": row,
        "product": product,
        "deep": deep,
        "passes": each["norms of rows"] + each["keys of rows"],
        "merge": each["merged candidates"],
        "byte": each["bytes hashed"],
        "query": (many["seconds"] - few["seconds"]) / (many["units"] - few["units"]),
    }


def _line(each: dict[str, float], start: str) -> tuple[float, float]:
    """Seconds of a product, and of a row without one, from searches for several numbers of queries."""
    found = {int(name.removeprefix(start).split()[0]): value for name, value in each.items() if name.startswith(start)}
    slope, rest = np.polyfit(list(found), list(found.values()), 1)
    return float(slope), max(0.0, float(rest))


def cost(terms: dict[str, float], documents: int, queries: int, shards: int) -> dict[str, float]:
    """Processor seconds of all workers and of the driver, and bytes read and sent: the model of docs/speed.md."""
    row_bytes = 384 * 2
    samples, sampled = 2, 2000  # the fit of the judge and the report: queries that are searched deeper
    passes = -(-queries // 5000) + samples
    products = queries * terms["product"] + samples * min(queries, sampled) * terms["deep"]
    candidates = queries * shards * 100
    return {
        "workers": documents * (passes * terms["row"] + products + terms["passes"]),
        "read": documents * row_bytes * (passes + 2),
        "sent": candidates * 12,
        "driver": queries * terms["query"] + candidates * terms["merge"] + documents * row_bytes * terms["byte"],
    }


RESULTS = {
    "ray_jobs": {
        "speed": lambda options: jobs_on_ray((1_000_000,), WORKERS, options),
        "memory": lambda options: jobs_on_ray((100_000, 1_000_000, 10_000_000), (2,), options),
    }
}

if __name__ == "__main__":
    command(__doc__, RESULTS)
