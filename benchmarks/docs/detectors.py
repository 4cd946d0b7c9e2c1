"""The parts of the benchmarks page about detectors in planted worlds, thresholds, clusters, and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

WORLD = """\
{anchors:,} anchors have {true_items} true items each among {items:,}, {labelled} of them labelled. Every rule takes
the top {k} candidates that it does not flag; alpha is {alpha:g}. Encoders are named by the mean score of positives
and of all pairs. Cells: miss rate (false negatives that are not flagged) / false negatives among the selected / mean
score of the selected.
"""
FEW = """\
Calibration with few positives, repeated: the promise is about the mean; single thresholds vary.
"""
ESTIMATES = """\
Estimates without labels against the truth, in {seeds} worlds each: how often the 95 % CI covers the truth, then
truth, estimate and upper bound, in per cent.
"""
MIXTURES = """\
The bound at the calibrated threshold where positives and negatives are well separated, so that errors are visible:
"""
THRESHOLDS = """\
`choose_thresholds` on streams of blocks of {block:,} scores: with a grid of {grid_values} values, and with a sketch
instead of a grid. Memory is the peak above the level before the call.
"""
HELD = """\
{scores:,} scores in memory, without a grid, in two passes. `numpy.partition` finds one threshold, in a copy:
"""
ERRORS = """\
Rank errors of the sketch on streams of {scores:,} scores, as a share of the scores, and the error bound that it
states:
"""
INCREMENTAL = """\
`Incremental.update` against faiss's k-means alone, {iterations} iterations, d = {width}, {threads} threads, faiss
{faiss}. The last column is the size of a samples x clusters matrix, which is never allocated.
"""
IMAGES = """\
SimCLR on {train:,} images of Fashion-MNIST, {epochs} epochs, {seeds} seeds: accuracy of a linear probe on {test:,}
test images. Oracles know the classes. 95 % CI by Student's t over seeds; differences are paired by seed. "Found" and
"kept" are the mean true-positive and true-negative rates over epochs, for {clusters} clusters.
"""
COVERAGE = """\
How often the 95 % CI of each estimate contains the truth, in worlds with known false negatives: held / told, where an
estimate that says that it cannot tell is not counted. `mine`: the share of false negatives among the nearest {k}, among
what `judge="auto"` returns, and among what it returns after a review of 100 pairs; `audit`: among the nearest {k};
bounds from random documents; the share of unlabelled positives above a threshold. Mean truth, mean estimate and mean
interval are in per cent. "Easiest" and "own" labels, and encoders trained on the labels (codex-s), break the assumption
that labels are random; weak encoders break that the highest scores are positives, and scifact that scores mean the same
for all anchors. Uneven worlds break the last one, too: anchors with many positives have more of them near. The estimate
is then too low, and with 5,000 anchors the interval is too narrow to include the truth; a review of 100 pairs mends it.
Not blind: the model, its penalty and the error of the model itself were chosen on some of these worlds (one or two
seeds of a cell, one of each real data set).
"""
OVERALL = """\
All planted worlds with random labels, and with the easiest positives as labels:
"""
CURVE = """\
Calibration: the mean posterior of candidates in each bin -> the share of them that are false, of the {slots} nearest.
"""
_ESTIMATED = {
    "hidden": "hidden positives flagged",
    "unlabelled": "unlabelled among candidates",
    "below_line": "false negatives below the threshold",
    "taken": "false negatives among the selected",
}


def megabytes(size: int) -> str:
    """Bytes as MB."""
    return f"{size / 1e6:,.1f} MB"


def false_negatives(result: dict[str, Any], table: Table) -> list[str]:
    """Planted worlds: rules, estimates and bounds."""
    rules = list(result["rules"][0]["rules"])
    rows, few = [], []
    for encoder in result["rules"]:
        cells = [
            f"{r['let_through_percent']:.1f} % / {r['false_of_taken_percent']:.1f} % / {r['mean_score_taken']:.3f}"
            for r in encoder["rules"].values()
        ]
        rows.append((encoder["encoder"], *cells))
        one = encoder["few_positives"]
        span = "{:.1f} to {:.1f} %".format(*one["let_through_10_90"])
        promised = f"{one['promised_percent']:.1f} %"
        missed = f"{one['let_through_percent']:.2f} ± {one['let_through_error']:.2f} %"
        few.append((encoder["encoder"], str(one["positives"]), promised, missed, span))
    estimated = [
        (
            row["encoder"],
            title,
            f"{row[part]['covered_percent']:.0f} %",
            *(f"{row[part][f'{name}_percent']:.3g}" for name in ("truth", "estimate", "high")),
        )
        for row in result["estimates"]
        for part, title in _ESTIMATED.items()
    ]
    names = ("anchors", "candidates", "false_negatives_each", "deviations_apart", "deviation_by_anchor", "positives")
    apart = [
        (
            *(f"{row[name]:g}" for name in names),
            f"{row['covered_percent']:.1f} %",
            *(f"{row[f'{name}_percent']:.3g}" for name in ("truth", "estimate", "high")),
        )
        for row in result["mixtures"]
    ]
    said = ("CI covers", "truth, %", "estimate, %", "upper bound, %")
    return [
        "## False negatives in planted worlds",
        WORLD.format(**result["world"]),
        table(("encoder", *rules), rows),
        FEW,
        table(("encoder", "positives", "promised", "miss rate, ± standard error", "80 % of the thresholds"), few),
        ESTIMATES.format(seeds=result["estimates"][0]["seeds"]),
        table(("encoder", "of what", *said), estimated),
        MIXTURES,
        table((*(name.replace("_", " ") for name in names), *said), apart),
    ]


def coverage(result: dict[str, Any], table: Table) -> list[str]:
    """Whether intervals contain the truth, and the calibration of the posterior."""
    methods = (
        "mine, nearest",
        "mine, returned",
        "mine, reviewed",
        "audit",
        "unlabelled_share",
        "false_negative_rate",
        "hidden_positives",
    )
    cells = result["cells"]
    rows = []
    for name, cell in cells.items():
        said = [_said(cell, method) for method in methods[:2]]
        rows.append((name, str(cell["worlds"]), *said, *(_held([cell], method) for method in methods)))
    planted = {
        labels: [cell for name, cell in cells.items() if f", {labels}, " in name and "anchors" in name]
        for labels in ("random", "easiest")
    }
    overall = [(labels, *(_held(part, method) for method in methods)) for labels, part in planted.items()]
    return [
        "## Coverage of the estimates",
        COVERAGE.format(**result),
        table(("world", "worlds", "nearest: truth -> estimate", "returned: truth -> estimate", *methods), rows),
        OVERALL,
        table(("labels", *methods), overall),
        CURVE.format(slots=2 * result["k"]),
        table(
            ("world", *(f"{low:g} to {high:g}" for low, high in zip(result["bins"], result["bins"][1:], strict=False))),
            [(name, *map(_bin, cell["bins"])) for name, cell in cells.items() if "bins" in cell],
        ),
    ]


def _held(cells: list[dict[str, Any]], method: str) -> str:
    """How many intervals contain the truth, of those that were told."""
    held, told = (sum(cell[part].get(method, 0) for cell in cells) for part in ("held", "told"))
    return f"{held} / {told}" if told else "-"


def _said(cell: dict[str, Any], method: str) -> str:
    """The mean truth, and the mean estimate with its interval, in per cent."""
    if method not in cell["truth"]:
        return "-"
    truth, estimate, low, high = (100 * cell[part][method] for part in ("truth", "estimate", "low", "high"))
    return f"{truth:.1f} -> {estimate:.1f} ({low:.1f} to {high:.1f})"


def _bin(numbers: list[float]) -> str:
    """One bin of a calibration curve, if it has at least 30 slots."""
    slots, total, false = numbers
    return f"{total / slots:.2f} -> {false / slots:.2f}" if slots >= 30 else "-"


def thresholds(result: dict[str, Any], table: Table) -> list[str]:
    """What choosing thresholds costs, and how exact a sketch is."""
    rows = [
        (
            f"{row['scores']:,}",
            way,
            f"{row[way]['seconds']:.2f} s",
            f"{row[way]['per_second'] / 1e6:.0f} M/s",
            megabytes(row[way]["peak_extra_bytes"]),
        )
        for row in result["growth"]
        for way in ("grid", "sketch")
    ]
    held = [
        (name, f"{row['seconds']:.2f} s", megabytes(row["peak_extra_bytes"]) if "peak_extra_bytes" in row else "-")
        for name, row in result["held"].items()
        if name != "scores"
    ]
    errors = [
        (
            name,
            *(f"{row[way]['rank_error']:.1e}" for way in ("whole", "merged")),
            f"{row['whole']['stated_rank_error']:.1e}",
        )
        for name, row in result["errors"]["streams"].items()
    ]
    return [
        "## Thresholds by shares",
        THRESHOLDS.format(**result),
        table(("scores", "by", "time", "scores per second", "memory"), rows),
        HELD.format(**result["held"]),
        table(("what", "time", "memory"), held),
        ERRORS.format(**result["errors"]),
        table(("stream", "one sketch", "merged", "stated"), errors),
    ]


def incremental(result: dict[str, Any], table: Table) -> list[str]:
    """What an update of clusters costs."""
    rows = [
        (
            f"{row['samples']:,}",
            ", ".join(map(str, row["clusters"])),
            f"{row['update_seconds']:.1f} s",
            f"{row['times_of_kmeans']:.2f}",
            megabytes(row["update_peak_extra_bytes"]),
            megabytes(row["samples_by_clusters_bytes"]),
        )
        for row in (result["paper"], *result["by_samples"], *result["by_clusters"])
    ]
    headings = ("samples", "clusters", "update", "ratio to k-means", "memory", "samples x clusters")
    return ["## Incremental detection", INCREMENTAL.format(**result), table(headings, rows)]


def images(result: dict[str, Any], table: Table) -> list[str]:
    """Whether a model gets better for it."""
    rows = []
    for arm, row in result["arms"].items():
        rates = [row.get(f"mean_{name}") for name in ("true_positive", "true_negative")]
        closed = row.get("closed_percent", {})
        rows.append(
            (
                arm,
                _mean(row["accuracy"]),
                _mean(row["over_plain"], "+") if "over_plain" in row else "",
                *("" if rate is None else " / ".join(f"{value:.1f}" for value in rate) for rate in rates),
                ", ".join(f"{value:.0f} % of {oracle}" for oracle, value in closed.items() if value is not None),
            )
        )
    settings = result["settings"]
    words = {"clusters": " / ".join(map(str, settings["clusters"])), "test": result["test"], "seeds": result["seeds"]}
    headings = ("arm", "accuracy, %", "over plain", "found, %", "kept, %", "gap closed")
    return ["## Incremental detection in training", IMAGES.format(**settings | words), table(headings, rows)]


def _mean(spread: dict[str, Any], sign: str = "") -> str:
    half = "" if spread["half_interval"] is None else f" ± {spread['half_interval']:.2f}"
    return f"{spread['mean']:{sign}.2f}{half}"
