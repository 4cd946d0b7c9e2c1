"""Pictures of the studies: quality against k, and quality against steps and processor seconds.

python -m benchmarks.claims.pictures
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS
from naysay.plots import Spec, as_picture, axis, layer, stacked

Row = dict[str, Any]
SHOWN = ("uniform", "popularity^0.75", "DNS(16)", "DNS(64)", "MixGCF(16)", "cache", "adversarial", "no sampling")
# Okabe and Ito's colours, distinguishable for colour-blind readers.
COLOURS = ("#000000", "#E69F00", "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#767676")
TITLES = {
    "likes": "ml-100k, matrix factorisation",
    "text": "packages, text encoder",
    "mf": "yelp2018, one in four users, matrix factorisation",
    "lightgcn": "yelp2018, one in eight users, LightGCN",
    "mf-all": "yelp2018, all users, matrix factorisation, large batches",
    "lightgcn-all": "yelp2018, all users, LightGCN, large batches",
}


def by_k(result: Row) -> Spec:
    """A panel for each task: the test measure of fixed k, the range of K*, and the level of adaptive."""
    panels = []
    for name, task in result["tasks"].items():
        fixed = [row for arm, row in task["arms"].items() if arm.startswith("k = ") or arm in ("K*", "4 K*")]
        values = [
            {"k": k, "value": value, "mean": row["test"][task["measure"]]["mean"]}
            for row in fixed
            for k, value in zip(row["k"], row["test"][task["measure"]]["values"], strict=True)
        ]
        means = [
            {"k": sum(row["k"]) / len(row["k"]), "value": row["test"][task["measure"]]["mean"]}
            for row in sorted(fixed, key=lambda row: sum(row["k"]))
        ]
        x = axis("k", title="k, negatives per positive", scale={"type": "log", "domain": [1, 1000]})
        y = axis("value", title=f"{task['measure']} of the test part", scale={"zero": False})
        level = task["arms"]["adaptive"]["test"][task["measure"]]["mean"]
        ks = [one["k"] for one in task["K*"]]
        panels.append(
            {
                "title": {"text": TITLES[name], "subtitle": "vertical: K* of each seed; dashed: adaptive"},
                "width": 400,
                "height": 240,
                "layer": [
                    layer([{"k": k} for k in ks], "rule", {"x": x}, color="#E69F00", opacity=0.6),
                    layer([{"value": level}], "rule", {"y": y}, color="#009E73", strokeDash=[5, 4], strokeWidth=2),
                    layer(values, "point", {"x": x, "y": y}, color="#767676", size=18, filled=True, opacity=0.5),
                    layer(means, "line", {"x": x, "y": y}, color="#0072B2", strokeWidth=2, point=True),
                ],
            }
        )
    return stacked([{"hconcat": panels, "spacing": 60}], spacing=30)


def by_time(result: Row) -> Spec:
    """A row for each task: the mean validation recall against steps and against processor seconds."""
    rows = []
    for name, task in result["tasks"].items():
        arms = [arm for arm in SHOWN if arm in task["arms"]]
        scale = {"domain": arms, "range": [COLOURS[SHOWN.index(arm)] for arm in arms]}
        panels = []
        for field, title in (("step", "gradient steps"), ("seconds", "processor seconds of training")):
            values = [
                {field: at, "recall": value, "arm": arm}
                for arm in arms
                for at, value in zip(
                    task["arms"][arm]["curve"][field], task["arms"][arm]["curve"]["value"], strict=True
                )
            ]
            log = {"type": "log"} if field == "seconds" else {}
            encoding = {
                "x": axis(field, title=title, scale=log),
                "y": axis("recall", title="validation recall@20"),
                "color": {"field": "arm", "type": "nominal", "scale": scale, "title": None},
            }
            panels.append({"width": 400, "height": 260, **layer(values, "line", encoding, strokeWidth=2)})
        seeds = "1 seed" if task["seeds"] == 1 else f"mean of {task['seeds']} seeds"
        rows.append({"title": {"text": TITLES[name], "subtitle": seeds}, "hconcat": panels, "spacing": 40})
    return stacked(rows, spacing=30)


def draw(folder: Path = RESULTS) -> None:
    """Draw what there are results of."""
    for name, made in (("quantity", by_k), ("samplers", by_time)):
        result = json.loads((folder / f"claims_{name}.json").read_text())
        (folder / f"claims-{name}.svg").write_bytes(as_picture(made(result), ".svg"))


if __name__ == "__main__":
    draw()
