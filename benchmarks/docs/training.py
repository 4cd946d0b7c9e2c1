"""The part of the benchmarks page about what negatives do to a model: the recommendation study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

RECOMMENDATION = """\
Seven kinds of negatives, {seeds} seeds, {steps:,} gradient steps of {batch:,} pairs each: {likes:,} likes (ratings of
{liked_from} and 5) of {users:,} users among {items:,} items; a tenth of each user's likes is for validation and a
tenth for the test. LightGCN with two hops, d = 64; `info_nce`, which is BPR for k = 1. Recall and NDCG at {top} are
of the test part at the step of the best validation recall. Values are means with 95 % CI (Student's t) over seeds;
differences are paired by seed. Dynamic and mixing select from {candidates} candidates; popularity has the power
{power}. "Uniform's best" is the highest validation recall of uniform with k = 1 in the first table, same seed. Times
are processor seconds of training on {threads} thread{s}, without evaluation.
"""
SHARED = """\
All with the learning rate and weight decay that are best for uniform, {rate:g} and {decay:g}, chosen on a separate
split:
"""
TUNED = """\
Each with its own best learning rate, of {rates}, chosen on that split; and uniform with {longer} times the steps at
the lowest rate, to distinguish slow from worse:
"""
QUANTITY = """\
K* by seed is {ks}, from training AUCs of {train} and validation AUCs up to {validation} in a run with one uniform
negative, which costs {cost:.1f} s and is not in the times above. By the formula, any k from {low} to {high} is within
1 % of the best v for every seed.
"""
_NAMES = {
    "uniform": "uniform, k = 1",
    "popularity": "popularity, k = 1",
    "popularity, restored": "popularity, k = 1, log q added to the scores",
    "dynamic": "dynamic, k = 1",
    "mixing": "mixing, k = 1",
    "uniform, K*": "uniform, k = K*",
    "uniform, scheduled": "uniform, k scheduled to K*",
    "uniform, longer": "uniform, k = 1, {longer} x the steps",
}
_HEADINGS = (
    "negatives",
    "rate",
    "recall@{top}",
    "NDCG@{top}",
    "recall against uniform",
    "best at step",
    "uniform's best in steps",
    "in processor seconds",
    "ms a step",
    "held-out likes among the negatives",
)


def mean(spread: dict[str, Any], figures: int, sign: str = "") -> str:
    """A mean and half its interval."""
    half = "" if spread["half"] is None else f" ± {spread['half']:.{figures}f}"
    return f"{spread['mean']:{sign}.{figures}f}{half}"


def to_goal(row: dict[str, Any], name: str, figures: int, seeds: int) -> str:
    """The mean over the seeds that reached uniform's best, and how many did if not all."""
    if not row["reached"]:
        return "never"
    some = "" if row["reached"] == seeds else f" ({row['reached']} of {seeds} seeds)"
    return f"{row[name]['mean']:,.{figures}f}{some}"


def recommendation(result: dict[str, Any], table: Table) -> list[str]:
    """The two tables, with what they were made by."""
    settings, rows, seeds = result["tuning"]["settings"], result["rows"], result["seeds"]
    shared = settings["uniform"]

    def cells(name: str, title: str, rate: float) -> tuple[str, ...]:
        row = rows[name]
        return (
            title.format(**result),
            f"{rate:g}",
            mean(row["recall"], 4),
            mean(row["ndcg"], 4),
            "" if name == "uniform" else mean(row["recall_difference"], 4, "+"),
            f"{row['best_step']['mean']:,.0f}",
            to_goal(row, "steps_to_goal", 0, seeds),
            to_goal(row, "processor_seconds_to_goal", 1, seeds),
            f"{row['milliseconds_a_step']['mean']:.1f}",
            f"{row['false_percent']['mean']:.1f} %",
        )

    first = [cells(name, _NAMES[name], shared["rate"]) for name in settings]
    own = [
        cells(f"{name}, tuned" if f"{name}, tuned" in rows else name, _NAMES[name], settings[name]["rate"])
        for name in settings
    ]
    rates = sorted({float(tried.split(",")[0]) for tried in result["tuning"]["validation_recall"]["uniform"]})
    found = result["quantity"]
    words = {
        "ks": ", ".join(str(one["k"]) for one in found),
        "train": _range([one["training_auc"] for one in found]),
        "validation": _range([one["validation_auc"] for one in found]),
        "cost": sum(one["first_run_processor_seconds"] for one in found) / len(found),
        "low": max(one["k_flat"][0] for one in found),
        "high": min(one["k_flat"][1] for one in found),
    }
    headings = tuple(heading.format(**result) for heading in _HEADINGS)
    return [
        "## Which and how many negatives for recommendation",
        RECOMMENDATION.format(**result, s="" if result["threads"] == 1 else "s"),
        SHARED.format(**shared),
        table(headings, first),
        TUNED.format(rates=", ".join(f"{rate:g}" for rate in rates), longer=result["longer"]),
        table(headings, [*own, cells("uniform, longer", _NAMES["uniform, longer"], min(rates))]),
        QUANTITY.format(**words),
    ]


def _range(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"
