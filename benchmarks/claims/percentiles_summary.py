"""The runs of `images_percentiles` as rows over seeds, and their picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.claims.picture_worlds import paired
from benchmarks.training.seed_summaries import spread
from naysay.plots import Spec, as_picture, axis, layer, stacked

_MEASURES = ("accuracy", "validation", "group_accuracy", "left", "same_class", "processor_seconds")


def summary(rows: dict[tuple[str, int], dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """One row per arm that has run, with the number of its seeds; differences are paired by seed."""
    found: dict[str, Any] = {}
    runs = {name: {seed: one for (arm, seed), one in sorted(rows.items()) if arm == name} for name in names}
    for name, of_arm in runs.items():
        if not of_arm:
            continue
        row: dict[str, Any] = {"seeds": len(of_arm)}
        row |= {measure: spread([one[measure] for one in of_arm.values()]) for measure in _MEASURES}
        if name != "all":
            for measure in ("accuracy", "validation"):
                mine, base = ({seed: one[measure] for seed, one in of.items()} for of in (of_arm, runs["all"]))
                both = paired(mine, base)
                row.setdefault("over_all", {})[measure] = spread(both) if both else None
        found[name] = row
    return found


def draw(result: dict[str, Any], path: Path) -> None:
    """Accuracy of each arm against all negatives, a panel for each temperature and number of classes: an SVG."""
    panels = [_panel(one) for one in result["studies"] if "all" in one["arms"]]
    if panels:
        path.write_bytes(as_picture(stacked(panels, spacing=30), ".svg"))


def _panel(study: dict[str, Any]) -> Spec:
    values = []
    arms = {name: row for name, row in study["arms"].items() if name != "untrained"}  # far below the others
    for name, row in arms.items():
        mean, half = row["accuracy"]["mean"], row["accuracy"]["half"] or 0.0
        values.append({"negatives": name, "mean": mean, "low": mean - half, "high": mean + half})
    order = list(arms)
    y = {"field": "negatives", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 400}}
    x = {"title": "accuracy, %, 95 % CI over seeds", "scale": {"zero": False}}
    base = [{"all": study["arms"]["all"]["accuracy"]["mean"]}]
    layers = [
        layer(base, "rule", {"x": axis("all", **x)}, strokeDash=[5, 4], color="#999999"),
        layer(values, "rule", {"y": y, "x": axis("low", **x), "x2": {"field": "high"}}, strokeWidth=2),
        layer(values, "point", {"y": y, "x": axis("mean", **x)}, filled=True, size=50),
    ]
    title = f"{10 ** study['parts']} classes, temperature {study['temperature']:g}"
    return {"title": title, "width": 420, "height": 24 * len(values), "layer": layers}
