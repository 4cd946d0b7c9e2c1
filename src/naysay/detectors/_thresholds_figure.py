"""Thresholds as a Vega-Lite figure: the scores in their bands, and the share of pairs above any score."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.detectors._thresholds_show import histogram, in_words, middle
from naysay.detectors.bands import NAMES
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import Thresholds

_BINS, _POINTS = 120, 240
_COLOURS = ("#999999", "#0072B2", "#D55E00")  # Okabe and Ito's, which colour-blind readers can tell apart
Spec = dict[str, Any]


def figure(name: str, found: Thresholds, sketch: ScoreSketch) -> Spec:
    """Both panels, with a rule at each threshold. Thresholds of anchors are shown by their median."""
    cuts = middle(found)
    low, high = in_words(found)
    heading = f"low = {low}, high = {high}" + ", the median anchor's" * (found.scope == "anchor")
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "padding": 16,
        "title": {"text": heading, "subtitle": name, "fontSize": 17, "anchor": "start", "offset": 12, "limit": 980},
        "hconcat": [_scores(sketch, cuts), _shares(found, sketch, cuts)],
        "spacing": 60,
        "config": {
            "font": "sans-serif",
            "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "gridColor": "#e6e6e6"},
            "title": {"fontSize": 14, "fontWeight": "normal", "subtitleFontSize": 12, "subtitleColor": "#555"},
            "legend": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
            "view": {"stroke": "#cccccc"},
        },
    }


def _axis(sketch: ScoreSketch) -> Spec:
    edges = histogram(sketch, 1).edges.tolist()
    return {"type": "quantitative", "title": "score", "scale": {"domain": edges, "nice": False, "zero": False}}


def _scores(sketch: ScoreSketch, cuts: tuple[float, float]) -> Spec:
    """Bars over the score, coloured by band."""
    shown = histogram(sketch, _BINS)
    ends = shown.edges.tolist()
    values = [
        {"from": start, "to": stop, "pairs": count, "band": NAMES[sum((start + stop) / 2 >= cut for cut in cuts)]}
        for start, stop, count in zip(ends[:-1], ends[1:], shown.counts.tolist(), strict=True)
    ]
    y = {
        "field": "pairs",
        "type": "quantitative",
        "title": "negatives, on a log scale",
        "scale": {"type": "symlog"},
        "axis": {"values": [0, *(10**power for power in range(13))], "format": ","},
    }
    colour = {"field": "band", "type": "nominal", "scale": {"domain": [*NAMES], "range": [*_COLOURS]}}
    bars = {
        "data": {"values": values},
        "mark": {"type": "bar", "binSpacing": 0, "clip": True},
        "encoding": {
            "x": {"field": "from", "bin": {"binned": True}, **_axis(sketch)},
            "x2": {"field": "to"},
            "y": y,
            "color": colour,
        },
    }
    return {"title": "Scores of the negatives", "width": 420, "height": 260, "layer": [bars, _rules(cuts)]}


def _shares(found: Thresholds, sketch: ScoreSketch, cuts: tuple[float, float]) -> Spec:
    """The share of pairs at or above a score, with the two given shares as rules."""
    pairs = found.n_negatives + found.n_positives
    places = np.linspace(sketch.smallest, sketch.largest, _POINTS)
    values = [
        {"score": score, "share": count / pairs}
        for score, count in zip(places.tolist(), sketch.at_least(places).tolist(), strict=True)
        if count
    ]
    given = [
        {"share": share} for share in (found.false_share, round(found.false_share + found.hard_share, 12)) if share > 0
    ]
    y = {"field": "share", "type": "quantitative", "title": "share of all pairs", "scale": {"type": "log"}}
    y["axis"] = {"values": [10.0**-power for power in range(13)], "format": "~%"}
    line = {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2, "color": "#000000", "clip": True},
        "encoding": {"x": {"field": "score", **_axis(sketch)}, "y": y},
    }
    budgets = {
        "data": {"values": given},
        "mark": {"type": "rule", "strokeDash": [5, 4], "color": "#767676"},
        "encoding": {"y": {"field": "share", "type": "quantitative"}},
    }
    title = {"text": "Pairs at or above a score", "subtitle": "dashed: the given shares, false and false + hard"}
    return {"title": title, "width": 380, "height": 260, "layer": [line, budgets, _rules(cuts)]}


def _rules(cuts: tuple[float, float]) -> Spec:
    values = [{"score": cut, "band": band} for cut, band in zip(cuts, NAMES[1:], strict=True) if np.isfinite(cut)]
    scale = {"domain": [*NAMES], "range": [*_COLOURS]}
    return {
        "data": {"values": values},
        "mark": {"type": "rule", "strokeWidth": 1.5, "clip": True},
        "encoding": {
            "x": {"field": "score", "type": "quantitative"},
            "color": {"field": "band", "type": "nominal", "scale": scale},
        },
    }
