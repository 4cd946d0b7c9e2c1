"""The runs of `images_detection` as rows over seeds, and their picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.claims.picture_worlds import paired
from benchmarks.training.seed_summaries import spread
from naysay.plots import Spec, as_picture, axis, layer, stacked

Runs = dict[int, dict[str, Any]]
SCHEMES = ("constant 100 %", "step to 100 %", "linear to 100 %")  # Fig. 6
ORACLES = ("oracle attract", "oracle eliminate")
_MEASURES = ("accuracy", "validation", "group_accuracy", "nmi", "processor_seconds")


def summary(rows: dict[tuple[str, int], dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """One row per arm that has run, with the number of its seeds; differences are paired by seed."""
    runs: dict[str, Runs] = {}
    for name in names:
        of_arm = {seed: found for (arm, seed), found in sorted(rows.items()) if arm == name}
        if of_arm:
            runs[name] = of_arm
    arms = {name: _row(of_arm, name, runs) for name, of_arm in runs.items()}
    curves = {name: _curve(runs[name]) for name in SCHEMES if name in runs and "through" in runs[name][min(runs[name])]}
    return {"arms": arms, "nmi_curves": curves}


def _row(of_arm: Runs, name: str, runs: dict[str, Runs]) -> dict[str, Any]:
    row: dict[str, Any] = {"seeds": len(of_arm)}
    row |= {measure: spread([found[measure] for found in of_arm.values()]) for measure in _MEASURES}
    base = "plain, flat rate" if "flat rate" in name else "plain"
    if base != name and base in runs:
        for measure in ("accuracy", "validation", "group_accuracy", "nmi"):
            both = paired(_of(of_arm, measure), _of(runs[base], measure))
            row.setdefault("over_plain", {})[measure] = spread(both) if both else None
    if "plain" in runs and not name.startswith(("plain", "oracle")):
        row["closed_percent"] = {oracle: closed(of_arm, runs, oracle) for oracle in ORACLES if oracle in runs}
    if "through" in of_arm[min(of_arm)]:
        row |= _detection(of_arm)
    return row


def _of(of_arm: Runs, measure: str) -> dict[int, float]:
    return {seed: found[measure] for seed, found in of_arm.items()}


def closed(of_arm: Runs, runs: dict[str, Runs], oracle: str) -> float | None:
    """The share of the gap between plain and an oracle that an arm closes, of means over common seeds."""
    plain, best = _of(runs["plain"], "accuracy"), _of(runs[oracle], "accuracy")
    seeds = [seed for seed in of_arm if seed in plain and seed in best]
    gap = sum(best[seed] - plain[seed] for seed in seeds)
    gain = sum(of_arm[seed]["accuracy"] - plain[seed] for seed in seeds)
    return round(100 * gain / gap, 1) if gap > 0 else None


def _detection(of_arm: Runs) -> dict[str, Any]:
    """What the labels found, at the first granularity: over training, weighted by the learning rate, and at its end.

    Before the first clustering nothing is found, which counts as 0 in the recall. Precision is of flagged pairs only.
    """
    recall, kept, precision, last = [], [], [], []
    for found in of_arm.values():
        weight = np.array([step["weight"] for step in found["through"]])
        values = {
            name: np.array([step[name][0] for step in found["through"]]) for name in ("recall", "kept", "precision")
        }
        recall.append(float(weight @ values["recall"]))
        kept.append(float(weight @ values["kept"] + 100 * (1 - weight.sum())))
        counts = weight * (values["recall"] > 0)
        precision.append(float(counts @ values["precision"] / counts.sum()) if counts.any() else 0.0)
        last.append({name: float(value[-1]) for name, value in values.items()})
    row = {"recall": spread(recall), "kept": spread(kept), "precision": spread(precision)}
    return row | {f"last_{name}": spread([one[name] for one in last]) for name in ("recall", "precision")}


def _curve(of_arm: Runs) -> dict[str, list[float]]:
    """NMI of the clusterings through training, of means over seeds."""
    steps = [found["through"] for found in of_arm.values()]
    values = np.mean([[step["nmi"][0] for step in one] for one in steps], axis=0)
    return {"epoch": [step["epoch"] for step in steps[0]], "nmi": values.round(2).tolist()}


def draw(result: dict[str, Any], path: Path) -> None:
    """Accuracy against plain for each arm and world, and NMI through training: an SVG."""
    panels = [_gains(found["arms"], parts) for parts, found in result["worlds"].items() if "plain" in found["arms"]]
    curves = [_through(found["nmi_curves"], parts) for parts, found in result["worlds"].items() if found["nmi_curves"]]
    rows = [{"hconcat": group, "spacing": 40} for group in (panels, curves) if group]
    if rows:
        path.write_bytes(as_picture(stacked(rows, spacing=40), ".svg"))


def _gains(arms: dict[str, Any], parts: str) -> Spec:
    values = []
    for name, row in arms.items():
        over = row.get("over_plain")
        if over is not None and over["accuracy"] is not None:
            mean, half = over["accuracy"]["mean"], over["accuracy"]["half"] or 0.0
            values.append({"arm": name, "mean": mean, "low": mean - half, "high": mean + half})
    y = {"field": "arm", "type": "nominal", "sort": list(arms), "title": None, "axis": {"labelLimit": 400}}
    x = {"title": "points over plain, 95 % CI over seeds"}
    layers = [
        layer(values, "rule", {"y": y, "x": axis("low", **x), "x2": {"field": "high"}}, strokeWidth=2),
        layer(values, "point", {"y": y, "x": axis("mean", **x)}, filled=True, size=50),
    ]
    return {"title": f"{10 ** int(parts)} classes", "width": 260, "height": 24 * len(values), "layer": layers}


def _through(curves: dict[str, Any], parts: str) -> Spec:
    values = [
        {"scheme": name, "epoch": epoch, "nmi": nmi}
        for name, curve in curves.items()
        for epoch, nmi in zip(curve["epoch"], curve["nmi"], strict=True)
    ]
    encoding = {
        "x": axis("epoch"),
        "y": axis("nmi", title="NMI with the classes, %", scale={"zero": False}),
        "color": {"field": "scheme", "type": "nominal", "title": None, "sort": list(curves)},
    }
    return {
        "title": f"Clusters, {10 ** int(parts)} classes",
        "width": 300,
        "height": 200,
        **layer(values, "line", encoding),
    }
