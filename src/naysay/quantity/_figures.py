"""The paper's figures for given runs, as one Vega-Lite specification. All numbers come from the library's functions.

v over k for several weights (its Figs. 2b, 3b, 4b)     the schedule (Fig. 8)
v and the shares of samples by stage of training (Figs. 6 and 7)
the best k of simulated runs over separation (Fig. 5)   AUC over separation (Fig. 11)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from naysay.plots import Spec, axis, layer, stacked
from naysay.quantity.effectiveness import auc, effectiveness, mean_effectiveness, shares, simulated
from naysay.quantity.estimate import Estimate, estimate
from naysay.quantity.schedules import adaptive

WEIGHTS = (0.8, 0.85, 0.9, 0.95)
STAGES = (0.0, 0.25, 0.5, 0.75, 1.0)
SEPARATIONS = tuple(round(tenth / 10, 1) for tenth in range(3, 46))
_FIG_5_K_MAX = 10_000
_POINTS = 160  # of a curve over k, more than the picture resolves
# Okabe and Ito's colours, distinguishable for colour-blind readers.
_BLACK, _BLUE, _RED, _GREEN, _PINK = "#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_ORANGE, _GREY = "#E69F00", "#767676"
_APART: Spec = {"scale": {"color": "independent", "strokeDash": "independent"}}


def figure(runs: Sequence[tuple[str, Estimate]]) -> Spec:
    """Return all panels: two rows for each run, and one row for all. Names are data, never read as markup."""
    rows = [_of_run(name, found) for name, found in runs]
    weight = runs[0][1].weight
    known = [
        {"separation": found.separation, "k": found.k, "AUC": auc(found.separation)}
        for _, found in runs
        if np.isfinite(found.separation)
    ]
    shared = _beside([_best_by_separation(weight, known), _auc_by_separation(known)], 70)
    rows.append({"title": _title("Over all separations"), **shared})
    spec = stacked(rows, spacing=36)
    spec["config"]["legend"]["symbolStrokeWidth"] = 3
    return {**spec, "resolve": _APART}


def _of_run(name: str, found: Estimate) -> Spec:
    """The panels of one run below its name; labels without noise have no stages."""
    parts: list[Spec] = [_beside([_by_weight(found), _schedule(found)], 150)]
    if np.isfinite(found.separation):
        parts.append(_beside([_stage(found, stage) for stage in STAGES], 20))
    return {"title": _title(f"k = {found.k} for {name}"), "vconcat": parts, "spacing": 24, "resolve": _APART}


def _beside(panels: list[Spec], spacing: int) -> Spec:
    return {"hconcat": panels, "spacing": spacing, "resolve": _APART, "bounds": "flush"}


def _title(text: str) -> Spec:
    return {"text": text, "fontSize": 17, "fontWeight": "bold", "limit": 980, "offset": 12}


def shown_k(k_max: int, *also: int) -> list[int]:
    """Whole numbers from 1 to k_max, evenly spread over a log axis, with those that must be there."""
    spread = np.round(np.geomspace(1, k_max, _POINTS)).astype(int)
    return sorted({*spread.tolist(), *also})


def k_axis(k_max: int, title: str = "k, negatives per positive", **options: Any) -> Spec:
    """The log axis of k."""
    ticks = [10**power for power in range(8) if 10**power <= k_max]
    scale = {"type": "log", "domain": [1, max(k_max, 2)], "nice": False}
    return axis("k", title=title, scale=scale, axis={"values": ticks, "format": "~s", **options})


def _by_weight(found: Estimate) -> Spec:
    """Figs. 2b to 4b: the mean v over the run, a line for each weight, and a dashed rule at the best k."""
    k_max, run = len(found.curve), (found.separation, found.reached)
    weights = sorted({*WEIGHTS, found.weight})
    curves = {weight: mean_effectiveness(*run, weight=weight, k_max=k_max) for weight in weights}
    values = [
        {"k": k, "v": float(v[k - 1]), "weight": f"{weight:g}"}
        for weight, v in curves.items()
        for k in shown_k(k_max, found.k)
    ]
    colours = dict(zip(weights, (_BLUE, _GREEN, _ORANGE, _PINK, _GREY), strict=False)) | {found.weight: _RED}
    scale = {"domain": [f"{weight:g}" for weight in weights], "range": [colours[weight] for weight in weights]}
    color = {"field": "weight", "type": "nominal", "scale": scale}
    encoding = {"x": k_axis(k_max, grid=True), "y": axis("v", scale={"zero": False}), "color": color}
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
    """Fig. 8: k through a run, with the turning point at 10 %."""
    k_at = adaptive(found.k, 1001)
    values = [{"share": step / 1000, "k": k_at(step)} for step in (*range(0, 1001, 10), 1000)]
    x = axis("share", title="share of the steps", axis={"format": ".0%"})
    y = axis("k", title="k", scale={"zero": True})
    title = {"text": f"A schedule: adaptive(peak={found.k}, steps)", "subtitle": "k rises in the first tenth"}
    line = layer(values, "line", {"x": x, "y": y}, strokeWidth=2.5, color=_BLUE)
    return {"title": title, "width": 380, "height": 230, **line}


def _stage(found: Estimate, stage: float) -> Spec:
    """Figs. 6 and 7: v and the shares of good, bad and easy samples over k at one stage of training."""
    places = np.array(shown_k(len(found.curve), found.k))
    reached = stage * found.separation
    now = shares(places, found.separation, reached)
    lines = {
        "v": effectiveness(places, found.separation, reached, weight=found.weight),
        "good": now.good,
        "bad": now.bad,
        "easy": now.easy,
    }
    values = [
        {"k": k, "value": value, "line": name}
        for name, line in lines.items()
        for k, value in zip(places.tolist(), line.tolist(), strict=True)
    ]
    first, last = stage == STAGES[0], stage == STAGES[-1]
    legend = {"title": None, "orient": "right", "symbolSize": 400} if last else None
    ranges: Spec = {
        "color": [_BLACK, _GREEN, _RED, _BLUE],
        "strokeDash": [[1, 0], [6, 2], [2, 2], [8, 3, 2, 3]],
    }
    series = {
        channel: {"field": "line", "type": "nominal", "scale": {"domain": list(lines), "range": one}, "legend": legend}
        for channel, one in ranges.items()
    }
    y = axis(
        "value",
        title="v, and shares of samples" if first else None,
        scale={"domain": [0, 1.06], "nice": False},
        axis={"labels": first, "ticks": first, "values": [0, 0.2, 0.4, 0.6, 0.8, 1]},
    )
    encoding = {"x": k_axis(len(found.curve), "k", grid=True), "y": y, **series}
    title = {"text": f"mu' / mu = {stage:g}", "fontSize": 13}
    return {"title": title, "width": 150, "height": 160, **layer(values, "line", encoding, strokeWidth=2)}


def _best_by_separation(weight: float, known: list[Spec]) -> Spec:
    """Fig. 5: the best k of a simulated run over the separation of the labels; those at the edge are left out."""
    found = {mu: estimate(auc(mu), auc(simulated(mu)), weight=weight, k_max=_FIG_5_K_MAX) for mu in SEPARATIONS}
    values = [{"separation": mu, "k": best.k} for mu, best in found.items() if not best.at_edge]
    scale = {"type": "log", "domain": [1, _FIG_5_K_MAX]}
    y = axis("k", title="best k", scale=scale, axis={"values": [1, 10, 100, 1000, 10_000], "format": "~s"})
    return _over_separation(f"Best k of a simulated run, weight {weight:g}", values, y, known, 5)


def _auc_by_separation(known: list[Spec]) -> Spec:
    """Fig. 11: the AUC that a separation means."""
    values = [{"separation": mu / 10, "AUC": auc(mu / 10)} for mu in range(61)]
    y = axis("AUC", title="AUC", scale={"domain": [0.5, 1]})
    return _over_separation("AUC and separation", values, y, known, 6)


def _over_separation(title: str, values: list[Spec], y: Spec, known: list[Spec], end: float) -> Spec:
    """A line over mu, and a dot for each of the runs."""
    domain = [0, max([end, *(run["separation"] for run in known)])]
    x = axis("separation", title="mu, separation of the labels", scale={"domain": domain, "nice": False})
    line = layer(values, "line", {"x": x, "y": y}, strokeWidth=2.5, color=_BLUE)
    dots = layer(known, "point", {"x": x, "y": y}, filled=True, size=90, color=_RED, opacity=1)
    return {"title": title, "width": 400, "height": 230, "layer": [line, dots]}
