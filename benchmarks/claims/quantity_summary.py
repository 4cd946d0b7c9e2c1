"""Arms of the study of quantity side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.training.seed_summaries import spread

Row = dict[str, Any]
_MEANS = ("validation", "best_step", "last", "milliseconds_a_step", "processor_seconds")


def summary(seeds: list[dict[str, Row]]) -> Row:
    """All arms over the seeds that are finished, with differences to k = 1, to K* and to the best fixed k."""
    said = [seed["K* by"] for seed in seeds]
    names = [name for name in seeds[0] if name != "K* by"]
    arms = {name: [seed[name] for seed in seeds if name in seed] for name in names}
    measure = next(iter(arms["k = 1"][0]["test"]))
    fixed = [name for name in names if name.startswith("k = ")]
    best = max(fixed, key=lambda name: np.mean([run["validation"] for run in arms[name]]))
    bases = {"over k = 1": "k = 1", "over K*": "K*", "over the best fixed k": best}
    rows = {name: row(runs, measure, {key: arms[base] for key, base in bases.items()}) for name, runs in arms.items()}
    return {"measure": measure, "seeds": len(seeds), "best_fixed": best, "K*": said, "arms": rows}


def row(runs: list[Row], measure: str, bases: dict[str, list[Row]]) -> Row:
    """One arm: quality of validation and test, cost, and paired differences."""
    found: Row = {"seeds": len(runs), "k": [run["k"] for run in runs]}
    found |= {name: sorted({run[name] for run in runs}) for name in ("rate", "decay")}
    found["test"] = {name: spread([run["test"][name] for run in runs]) for name in runs[0]["test"]}
    found |= {name: spread([run[name] for run in runs]) for name in _MEANS}
    for key, base in bases.items():
        gaps = [(mine, its) for mine, its in zip(runs, base, strict=False)]
        found[key] = spread([mine["test"][measure] - its["test"][measure] for mine, its in gaps])
        found[f"validation {key}"] = spread([mine["validation"] - its["validation"] for mine, its in gaps])
    found["curve"] = {
        "step": runs[0]["step"],
        "seconds": np.mean([run["seconds"] for run in runs], axis=0).round(3).tolist(),
        "value": np.mean([run["value"] for run in runs], axis=0).round(5).tolist(),
    }
    return found
