"""Arms of a study side by side, over the seeds that are finished."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import numpy as np

from benchmarks.training.seed_summaries import spread

Row = dict[str, Any]
_MEANS = ("validation", "best_step", "last", "milliseconds_a_step", "processor_seconds", "false_percent")


def of_quantity(seeds: list[dict[str, Row]]) -> Row:
    """All arms, with differences to k = 1, to K* and to the fixed k that is best by validation."""
    said = [seed["K* by"] for seed in seeds]
    arms = _arms(seeds)
    fixed = [name for name in arms if name.startswith("k = ")]
    best = max(fixed, key=lambda name: np.mean([run["validation"] for run in arms[name]]))
    bases = {"over k = 1": "k = 1", "over K*": "K*", "over the best fixed k": best, "over adaptive": "adaptive"}
    rows = {name: row(runs, {key: arms[base] for key, base in bases.items()}) for name, runs in arms.items()}
    return {"measure": _measure(arms), "seeds": len(seeds), "best_fixed": best, "K*": said, "arms": rows}


def of_samplers(seeds: list[dict[str, Row]], base: str) -> Row:
    """All arms, with differences to one of them, and when they reached its best validation measure."""
    arms = _arms(seeds)
    rows = {}
    for name, runs in arms.items():
        rows[name] = row(runs, {f"over {base}": arms[base]})
        reached = [first_at(mine, its["validation"]) for mine, its in zip(runs, arms[base], strict=False)]
        there = [one for one in reached if one is not None]
        rows[name] |= {"reached": len(there)}
        for place, what in enumerate(("steps_to_goal", "seconds_to_goal")):
            rows[name][what] = spread([one[place] for one in there]) if there else None
    return {"measure": _measure(arms), "base": base, "seeds": len(seeds), "arms": rows}


def _arms(seeds: list[dict[str, Row]]) -> dict[str, list[Row]]:
    """The runs of each arm from the first seed on, up to the first that lacks it."""
    names = [name for name in seeds[0] if name != "K* by"]
    return {name: [seed[name] for seed in takewhile(lambda seed, name=name: name in seed, seeds)] for name in names}


def _measure(arms: dict[str, list[Row]]) -> str:
    return str(next(iter(next(iter(arms.values()))[0]["test"])))


def first_at(run: Row, goal: float) -> tuple[int, float] | None:
    """The step, and the processor seconds, of the first point with a validation measure of at least `goal`."""
    at = next((place for place, value in enumerate(run["value"]) if value >= round(goal, 5)), None)
    return None if at is None else (run["step"][at], run["seconds"][at])


def _is_known(runs: list[Row], name: str) -> bool:
    """Whether all runs have a number; without sampling, and for texts, there is no share of false negatives."""
    return all(run[name] is not None and not np.isnan(run[name]) for run in runs)


def row(runs: list[Row], bases: dict[str, list[Row]]) -> Row:
    """One arm: quality of validation and test, cost, and differences that are paired by seed."""
    found: Row = {"seeds": len(runs), "k": [run["k"] for run in runs]}
    found |= {name: sorted({run[name] for run in runs}) for name in ("rate", "decay")}
    found["test"] = {name: spread([run["test"][name] for run in runs]) for name in runs[0]["test"]}
    found |= {name: spread([run[name] for run in runs]) for name in _MEANS if _is_known(runs, name)}
    measure = next(iter(runs[0]["test"]))
    for key, base in bases.items():
        pairs = list(zip(runs, base, strict=False))
        found[key] = spread([mine["test"][measure] - its["test"][measure] for mine, its in pairs])
        found[f"validation {key}"] = spread([mine["validation"] - its["validation"] for mine, its in pairs])
    found["curve"] = {
        "step": runs[0]["step"],
        "seconds": np.mean([run["seconds"] for run in runs], axis=0).round(3).tolist(),
        "value": np.mean([run["value"] for run in runs], axis=0).round(5).tolist(),
    }
    if all("answers" in run for run in runs):
        found["answers"] = [run["answers"] for run in runs]
        found["why"] = [run["why"] for run in runs]
    return found
