"""The part of the benchmarks page about `mine` against faiss by hand, and about the first call of a process."""

from __future__ import annotations

from typing import Any

from benchmarks.docs.detectors import Table, megabytes

AGAINST = """\
`mine` against the margin rule by hand with faiss, as many documents as queries, k = 10, one thread. "Memory beyond the
result" is the peak of the call without the arrays that it returns. Only where labels are a random part of the positives
("labelled by chance") can "auto" estimate false negatives; elsewhere it says so, and `Calibrated` takes its place.

The goals are 0.6 of the time, a third of the memory, and 15 % for the posterior. The largest of all kinds of documents
that were measured, by size:
"""
WHY = """\
"Products" is the time of the 8-bit products of all pairs alone, as a share of `mine` without a judge: a search that
rounds to 8 bits cannot take less.

What "auto" adds is of two kinds. It fits the posterior to 2,000 anchors, whatever the size of the corpus. And where the
posterior judges, it reads the scores at ranks 11 to 50 of each anchor, so that all anchors are searched 53 deep instead
of 10: more pairs pass the bounds of the search, and more are scored exactly. Both grow slower than the number of pairs,
so the share falls with the size. Shorter lists would cost less, but an anchor with many positives would have no
background in its list, and its positives would be taken for that.

Time and memory are measured in processes of their own. The allocator of Linux keeps freed blocks for the next call, so
that memory would depend on what ran before; that is switched off where memory is measured, for faiss as well.
"""
FIRST = """\
The first call of a process against the second, {queries:,} queries in {documents:,} documents, compiled loops on disk,
in processor time; "above" is the first without the quickest of the next two. numba and the modules of the library are
loaded in that time. torch is not loaded for a search of this size: that takes longer than the search without it.
"""


def against_faiss(runs: list[dict[str, Any]], table: Table) -> list[str]:
    """`mine` with several judges against faiss by hand, at several sizes."""
    if not runs:
        return []
    rows = []
    for run in runs:
        for name, row in run["contenders"].items():
            part, peak = row.get("of_by_hand", {}), row["peak_extra_bytes"]
            beyond = part.get("memory_beyond_result")
            shares = (f"{part['cpu_seconds']:.2f}" if part else "", "" if beyond is None else f"{beyond:.2f}")
            cells = f"{row['cpu_seconds']:.1f} s", "-" if peak is None else megabytes(peak)
            adds = f"{100 * run['auto_adds']:.0f} %, by {run['auto_judges_by']}" if name.endswith("auto") else ""
            rows.append((f"{run['size']:,}", run["world"], name, *cells, *shares, adds))
    headings = (
        "queries",
        "documents",
        "method",
        "processor time",
        "memory",
        "time / faiss",
        "memory beyond the result / faiss",
        "time above no judge",
    )
    return ["### Against faiss by hand", AGAINST, _goals(runs, table), WHY, table(headings, rows)]


def _goals(runs: list[dict[str, Any]], table: Table) -> str:
    """The largest ratios of each size."""
    names, rows = ("mine, no judge", "mine, share 0.95", "mine, auto"), []
    for size in sorted({run["size"] for run in runs}):
        here = [run for run in runs if run["size"] == size]
        parts = [[run["contenders"][name]["of_by_hand"] for run in here] for name in names]
        times = [f"{max(part['cpu_seconds'] for part in each):.2f}" for each in parts]
        memory = [f"{max(part['memory_beyond_result'] or 0 for part in each):.2f}" for each in parts]
        adds = [f"{100 * run['auto_adds']:.0f} %" for run in sorted(here, key=lambda run: run["auto_adds"])]
        least = [
            run["products_alone_cpu_seconds"] / run["contenders"][names[0]]["cpu_seconds"]
            for run in here
            if "products_alone_cpu_seconds" in run
        ]
        ends = f"{adds[0]} to {adds[-1]}" if len(adds) > 1 else adds[0]
        rows.append((f"{size:,}", " / ".join(times), " / ".join(memory), ends, f"{min(least):.2f}" if least else ""))
    headings = (
        "queries",
        "time / faiss: no judge / share / auto",
        "memory / faiss: no judge / share / auto",
        "auto adds",
        "products",
    )
    return table(headings, rows)


def first_calls(runs: list[dict[str, Any]], table: Table) -> list[str]:
    """The first call of a process."""
    rows = [
        (run["loaded"], run["judge"], *(f"{seconds:.2f} s" for seconds in (*run["cpu_seconds"][:2], run["above"])))
        for run in runs
    ]
    return (
        [FIRST.format(**runs[0]), table(("loaded before", "judge", "first", "second", "above"), rows)] if runs else []
    )
