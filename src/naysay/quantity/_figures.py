"""The paper's v over k (its Figs. 2b, 3b, 4b) and the schedule (Fig. 8) of given runs, as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from naysay.plots import Spec, axis, layer, stacked
from naysay.quantity.effectiveness import mean_effectiveness
from naysay.quantity.estimate import Estimate
from naysay.quantity.schedules import adaptive

WEIGHTS = (0.8, 0.85, 0.9, 0.95)
_POINTS = 160  # of a curve over k, more than the picture resolves
# Okabe and Ito's colours, distinguishable for colour-blind readers.
_BLUE, _RED, _GREEN, _PINK, _ORANGE, _GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#767676"


def figure(runs: Mapping[str, Estimate]) -> Spec:
    """Return a row of two panels for each run, by its name. Names are data, never read as markup."""
    rows = []
    for name, found in runs.items():
        title = {"text": f"k = {found.k} for {name}", "fontSize": 17, "fontWeight": "bold", "limit": 980, "offset": 12}
        rows.append({"title": title, "hconcat": [_by_weight(found), _schedule(found)], "spacing": 150})
    return {**stacked(rows, spacing=36), "resolve": {"scale": {"color": "independent"}}}


def shown_k(k_max: int, *also: int) -> list[int]:
    """Whole numbers from 1 to k_max, evenly spread over a log axis, with those that must be there."""
    spread = np.round(np.geomspace(1, k_max, _POINTS)).astype(int)
    return sorted({*spread.tolist(), *also})


def k_axis(k_max: int) -> Spec:
    """The log axis of k."""
    ticks = [10**power for power in range(8) if 10**power <= k_max]
    scale = {"type": "log", "domain": [1, max(k_max, 2)], "nice": False}
    return axis("k", title="k, negatives per positive", scale=scale, axis={"values": ticks, "format": "~s"})


def _by_weight(found: Estimate) -> Spec:
    """The mean v over the run, a line for each weight, and a dashed rule at the best k."""
    k_max = len(found.curve)
    weights = sorted({*WEIGHTS, found.weight})
    values = []
    for weight in weights:
        v = mean_effectiveness(found.separation, found.reached, weight=weight, k_max=k_max)
        values += [{"k": k, "v": float(v[k - 1]), "weight": f"{weight:g}"} for k in shown_k(k_max, found.k)]
    colours = dict(zip(weights, (_BLUE, _GREEN, _ORANGE, _PINK, _GREY), strict=False)) | {found.weight: _RED}
    scale = {"domain": [f"{weight:g}" for weight in weights], "range": [colours[weight] for weight in weights]}
    color = {"field": "weight", "type": "nominal", "scale": scale}
    encoding = {"x": k_axis(k_max), "y": axis("v", scale={"zero": False}), "color": color}
    dashed = {"strokeDash": [5, 4], "color": _GREY, "strokeWidth": 1.5}
    subtitle = f"dashed: the best k, {found.k}, at weight {found.weight:g}"
    return {
        "title": {"text": "Training effectiveness v, mean over the run", "subtitle": subtitle},
        "width": 410,
        "height": 230,
        "layer": [
            layer(values, "line", encoding, strokeWidth=2),
            layer([{"k": found.k}], "rule", {"x": axis("k")}, **dashed),
        ],
    }


def _schedule(found: Estimate) -> Spec:
    """The schedule of k through a run, with the turning point at 10 %."""
    k_at = adaptive(found.k, 1001)
    values = [{"share": step / 1000, "k": k_at(step)} for step in range(0, 1001, 10)]
    x = axis("share", title="share of the steps", axis={"format": ".0%"})
    y = axis("k", title="k", scale={"zero": True})
    title = {"text": f"A schedule: adaptive(peak={found.k}, steps)", "subtitle": "k rises in the first tenth"}
    line = layer(values, "line", {"x": x, "y": y}, strokeWidth=2.5, color=_BLUE)
    return {"title": title, "width": 380, "height": 230, **line}
