"""Several seeds as a mean and an interval, and as paired differences to one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t

LEVEL = 0.95
_MEASURES = ("recall", "ndcg")
_PAID = ("steps_to_goal", "processor_seconds_to_goal", "seconds_to_goal")


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The mean, and half the width of its t interval at 95 %: t s / sqrt(n); None for one value."""
    array = np.asarray(values, np.float64)
    half = None
    if len(array) > 1:
        half = float(t.ppf((1 + LEVEL) / 2, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array)))
    return {"mean": float(array.mean()), "half": half, "values": array.tolist()}


def row(found: list[dict[str, Any]], base: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of the study over its seeds, against the base row of the same seeds.

    What it took to reach the goal is a mean over the seeds that reached it; `reached` says how many did.
    """
    result: dict[str, Any] = {}
    for name in _MEASURES:
        mine, theirs = ([run[name] for run in runs] for runs in (found, base))
        result[name] = spread(mine)
        result[f"{name}_difference"] = spread(np.subtract(mine, theirs).tolist())
    for name in _PAID:
        there = [run[name] for run in found if run[name] is not None]
        result[name] = spread(there) if there else None
    result["reached"] = sum(run[_PAID[0]] is not None for run in found)
    for name in found[0]:
        if name not in result:
            result[name] = spread([run[name] for run in found])
    return result


def summary(seeds: list[dict[str, Any]], base: str) -> dict[str, Any]:
    """All rows over all seeds, the mean curves, and what each seed said about k."""
    names = list(seeds[0]["rows"])
    by_name = {name: [seed["rows"][name] for seed in seeds] for name in names}
    curves = {
        name: np.mean([seed["curves"][name] for seed in seeds], axis=0).round(4).tolist() for name in seeds[0]["curves"]
    }
    kept = [{name: value for name, value in seed.items() if name not in ("rows", "curves")} for seed in seeds]
    return {
        "seeds": len(seeds),
        "interval": LEVEL,
        "quantity": kept,
        "rows": {name: row(found, by_name[base]) for name, found in by_name.items()},
        "validation_recall_curves": curves,
    }
