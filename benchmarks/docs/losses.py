"""The parts of the benchmarks page about losses and about how many negatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

LOSSES = """\
`in_batch` against the plain form, which builds the whole score matrix; d = {width}, float32, {threads} threads, torch
{torch}, one forward and one backward pass of `.mean()`, best of several alternating repetitions. Memory is the peak
above the level before. "Uneven factors" is a backward pass with a different gradient for each row.
"""
LARGEST = """\
A batch whose score matrix alone would be {matrix:.1f} GB:
"""
NT_XENT = """\
NT-Xent with labels, 256 vectors of 32 classes, d = 128, forward and backward, one thread: `sup_con` with
`denominator="negatives"` against {peer}, with the same value in the same run.
"""
ESTIMATE = """\
One `estimate`, best of several; the first call of a process imports SciPy and computes the quadrature nodes.
"""


def megabytes(size: int | None) -> str:
    """Bytes as MB, where they could be measured."""
    return "-" if size is None else f"{size / 1e6:,.0f} MB"


def losses(result: dict[str, Any], table: Table) -> list[str]:
    """In-batch losses, and the peer."""
    rows = [
        (
            row["form"],
            f"{row['rows']:,}",
            f"{row['blocks']['seconds']:.3f} s",
            f"{row['plain']['seconds']:.3f} s",
            f"{row['times_of_plain']:.2f}",
            megabytes(row["blocks"]["peak_extra_bytes"]),
            megabytes(row["plain"]["peak_extra_bytes"]),
        )
        for row in result["both_fit"]
    ]
    large = [
        (row["form"], f"{row['rows']:,}", f"{row['seconds']:.2f} s", megabytes(row["peak_extra_bytes"]))
        for row in result["largest"]
    ]
    peer, ours = result["nt_xent"]["pml"], result["nt_xent"]["naysay"]
    parts = [
        "## Losses",
        LOSSES.format(**result),
        table(("form", "batch", "in blocks", "plain", "ratio", "memory in blocks", "memory, plain"), rows),
        LARGEST.format(matrix=result["largest"][0]["matrix_bytes"] / 1e9),
        table(("form", "batch", "in blocks", "memory in blocks"), large),
        "Gradients differ from the plain form's, in float64 and relative to the largest, by at most "
        f"{max(result['gradient_error_float64'].values()):.0e}.",
    ]
    if "missing" in peer:
        return [*parts, NT_XENT.format(peer="pytorch-metric-learning"), peer["missing"]]
    times = peer["seconds"] / ours["seconds"]
    return [
        *parts,
        NT_XENT.format(peer=f"pytorch-metric-learning {peer['versions']['version']}"),
        table(
            ("", "seconds", "memory", "loss"),
            [
                ("naysay", f"{ours['seconds']:.4f}", megabytes(ours["peak_extra_bytes"]), f"{ours['loss']:.6f}"),
                ("peer", f"{peer['seconds']:.2f}", megabytes(peer["peak_extra_bytes"]), f"{peer['loss']:.6f}"),
                ("ratio", f"{times:,.0f} x", "", ""),
            ],
        ),
    ]


def estimate(result: dict[str, Any], table: Table) -> list[str]:
    """The time of one estimate by the length of its curve and by k_max."""
    widths = sorted({row["k_max"] for row in result["rows"]})
    by_points: dict[int, dict[int, float]] = {}
    for row in result["rows"]:
        by_points.setdefault(row["points"], {})[row["k_max"]] = row["seconds"]
    rows = [(f"{n:,}", *(f"{1e3 * found[width]:.2f}" for width in widths)) for n, found in by_points.items()]
    return [
        "## How many negatives",
        f"{ESTIMATE.strip()} The first took {result['first_seconds']:.2f} s.",
        table(("points of the curve", *(f"k_max {width:,}, ms" for width in widths)), rows),
    ]


ONLINE = """\
`Online` on simulated runs whose best k is known: {probes} probes of 1,000 pairs with 8 uniform negatives each,
{seeds} seeds. "Lost" is the loss of effectiveness against the best k, which matters where the maximum is flat. The
interval is meant to cover the best k in {confidence:.0%} of runs. The last row is a run whose curve does not have the
assumed shape.
"""
MODEL = """\
On a trained model (matrix factorisation, {seeds} seeds), the paper's procedure, a run with k = 1 beforehand, gives k
= {low} to {high}; the first estimate of `Online`, after {at_low} to {at_high} % of the run, is {first_low} to
{first_high}.
"""


def online(result: dict[str, Any], table: Table) -> list[str]:
    """How soon and how well k is found during a run."""

    def of_run(row: dict[str, Any]) -> tuple[str, ...]:
        first, last = row["first"], row["last"]
        return (
            f"{row['labels']}, {row['shape']}",
            f"{row['known_k']}",
            f"{row['first_at_percent_10_50_90'][1]:.0f} %",
            " / ".join(map(str, first["k_10_50_90"])),
            f"{first['lost_percent_mean']:.2f} %",
            f"{last['lost_percent_mean']:.2f} %",
            f"{row['lost_percent_of_k_4']:.1f} %",
            f"{first['covered_percent']:.0f} %",
        )

    paper = [row for row in result["paper"] if (row["n"], row["m"], row["length"]) == (1000, 8, 3)]
    other = [row for row in result["other_shapes"] if (row["shape"], row["labels"]) == ("power", 3)]
    model = result["model"]
    firsts = [run["first"] for run in model]
    words = {
        "seeds": len(model),
        "low": min(run["paper_k"] for run in model),
        "high": max(run["paper_k"] for run in model),
        "first_low": min(first["k"] for first in firsts),
        "first_high": max(first["k"] for first in firsts),
        "at_low": min(first["at_percent"] for first in firsts),
        "at_high": max(first["at_percent"] for first in firsts),
    }
    headings = (
        "separation, curve",
        "best k",
        "first estimate at",
        "k then, 10 / 50 / 90 %",
        "lost then",
        "lost at the end",
        "k = 4 would lose",
        "interval covers",
    )
    return [
        "### During the run",
        ONLINE.format(probes=result["probes"], confidence=result["confidence"], seeds=paper[0]["seeds"]),
        table(headings, [of_run(row) for row in (*paper, *other)]),
        MODEL.format(**words),
    ]
