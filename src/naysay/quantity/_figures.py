"""The paper's figures for given runs, as one Vega-Lite specification. All numbers come from the library's functions.

v over k for several weights (its Figs. 2b, 3b, 4b)     the schedule (Fig. 8)
v and the shares of samples by stage of training (Figs. 6 and 7)
the best k of simulated runs over separation (Fig. 5)   AUC over separation (Fig. 11)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from naysay.plots import stacked
from naysay.quantity.effectiveness import effectiveness, mean_effectiveness, shares
from naysay.quantity.estimate import Estimate, estimate
from naysay.quantity.schedules import adaptive
from naysay.quantity.separation import auc
from naysay.quantity.simulated import simulated

WEIGHTS = (0.8, 0.85, 0.9, 0.95)
STAGES = (0.0, 0.25, 0.5, 0.75, 1.0)
SEPARATIONS = tuple(round(tenth / 10, 1) for tenth in range(3, 46))
_FIG_5_K_MAX = 10_000
_POINTS = 160  # of a curve over k, more than the picture resolves
# Okabe and Ito's colours, distinguishable for colour-blind readers.
_BLACK, _BLUE, _RED, _GREEN, _PINK = "#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_ORANGE, _GREY = "#E69F00", "#767676"
Spec = dict[str, Any]
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


def _k_axis(k_max: int, title: str = "k, negatives per positive") -> Spec:
    ticks = [10**power for power in range(8) if 10**power <= k_max]
    return {
        "field": "k",
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": [1, max(k_max, 2)], "nice": False},
        "axis": {"values": ticks, "format": "~s", "grid": True},
    }


def _by_weight(found: Estimate) -> Spec:
    """Figs. 2b to 4b: the mean v over the run, a line for each weight, and a dashed rule at the best k."""
    k_max = len(found.curve)
    weights = sorted({*WEIGHTS, found.weight})
    places = shown_k(k_max, found.k)
    curves = {
        weight: found.curve
        if weight == found.weight
        else mean_effectiveness(found.separation, found.reached, weight=weight, k_max=k_max)
        for weight in weights
    }
    values = [{"k": k, "v": float(v[k - 1]), "weight": f"{weight:g}"} for weight, v in curves.items() for k in places]
    colours = dict(zip(weights, (_BLUE, _GREEN, _ORANGE, _PINK, _GREY), strict=False)) | {found.weight: _RED}
    scale = {"domain": [f"{weight:g}" for weight in weights], "range": [colours[weight] for weight in weights]}
    return {
        "title": {
            "text": "Training effectiveness v, mean over the run",
            "subtitle": f"dashed: the best k, {found.k}, at weight {found.weight:g}",
        },
        "width": 410,
        "height": 230,
        "layer": [
            {
                "data": {"values": values},
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {
                    "x": _k_axis(k_max),
                    "y": {"field": "v", "type": "quantitative", "scale": {"zero": False}},
                    "color": {"field": "weight", "type": "nominal", "scale": scale},
                },
            },
            {
                "data": {"values": [{"k": found.k}]},
                "mark": {"type": "rule", "strokeDash": [5, 4], "color": _GREY, "strokeWidth": 1.5},
                "encoding": {"x": {"field": "k", "type": "quantitative"}},
            },
        ],
    }


def _schedule(found: Estimate) -> Spec:
    """Fig. 8: k through a run, with the turning point at 10 %."""
    k_at = adaptive(found.k, 1001)
    values = [{"share": step / 1000, "k": k_at(step)} for step in (*range(0, 1001, 10), 1000)]
    return {
        "title": {"text": f"A schedule: adaptive(peak={found.k}, steps)", "subtitle": "k rises in the first tenth"},
        "width": 380,
        "height": 230,
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2.5, "color": _BLUE},
        "encoding": {
            "x": {"field": "share", "type": "quantitative", "title": "share of the steps", "axis": {"format": ".0%"}},
            "y": {"field": "k", "type": "quantitative", "title": "k", "scale": {"zero": True}},
        },
    }


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
    scale = {"domain": list(lines), "range": [_BLACK, _GREEN, _RED, _BLUE]}
    dash = {"domain": list(lines), "range": [[1, 0], [6, 2], [2, 2], [8, 3, 2, 3]]}
    legend = {"title": None, "orient": "right", "symbolSize": 400} if last else None
    return {
        "title": {"text": f"mu' / mu = {stage:g}", "fontSize": 13},
        "width": 150,
        "height": 160,
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": _k_axis(len(found.curve), "k"),
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": "v, and shares of samples" if first else None,
                "scale": {"domain": [0, 1.06], "nice": False},
                "axis": {"labels": first, "ticks": first, "values": [0, 0.2, 0.4, 0.6, 0.8, 1]},
            },
            "color": {"field": "line", "type": "nominal", "scale": scale, "legend": legend},
            "strokeDash": {"field": "line", "type": "nominal", "scale": dash, "legend": legend},
        },
    }


def _best_by_separation(weight: float, known: list[Spec]) -> Spec:
    """Fig. 5: the best k of a simulated run over the separation of the labels; those at the edge are left out."""
    found = {mu: estimate(auc(mu), auc(simulated(mu)), weight=weight, k_max=_FIG_5_K_MAX) for mu in SEPARATIONS}
    values = [{"separation": mu, "k": best.k} for mu, best in found.items() if not best.at_edge]
    y = {
        "field": "k",
        "type": "quantitative",
        "title": "best k",
        "scale": {"type": "log", "domain": [1, _FIG_5_K_MAX]},
        "axis": {"values": [1, 10, 100, 1000, 10_000], "format": "~s"},
    }
    return _over_separation(f"Best k of a simulated run, weight {weight:g}", values, y, known, 5)


def _auc_by_separation(known: list[Spec]) -> Spec:
    """Fig. 11: the AUC that a separation means."""
    values = [{"separation": mu / 10, "AUC": auc(mu / 10)} for mu in range(61)]
    y = {"field": "AUC", "type": "quantitative", "title": "AUC", "scale": {"domain": [0.5, 1]}}
    return _over_separation("AUC and separation", values, y, known, 6)


def _over_separation(title: str, values: list[Spec], y: Spec, known: list[Spec], end: float) -> Spec:
    """A line over mu, and a dot for each of the runs."""
    x: Spec = {"field": "separation", "type": "quantitative", "title": "mu, separation of the labels"}
    x["scale"] = {"domain": [0, max([end, *(run["separation"] for run in known)])], "nice": False}
    return {
        "title": title,
        "width": 400,
        "height": 230,
        "layer": [
            {
                "data": {"values": values},
                "mark": {"type": "line", "strokeWidth": 2.5, "color": _BLUE},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": known},
                "mark": {"type": "point", "filled": True, "size": 90, "color": _RED, "opacity": 1},
                "encoding": {"x": x, "y": y},
            },
        ],
    }
