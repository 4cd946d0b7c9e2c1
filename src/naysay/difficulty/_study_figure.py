"""A study as one Vega-Lite specification, in the manner of Figs. 4, 5 and 6 of Cai et al. (2020)."""

from __future__ import annotations

from typing import Any

from naysay.difficulty._study_text import Plain
from naysay.plots import stacked

PARTS = ("all", "bands", "percentiles", "consistency")
# Okabe and Ito's colours, distinguishable for colour-blind readers.
_BLUE, _ORANGE, _GREY = "#0072B2", "#E69F00", "#767676"
_MEASURES = {
    "same_class": "share of the anchor's class",
    "depth": "depth of the least common ancestor",
    "score": "mean score",
    "gradient": "share of the gradient",
}
Spec = dict[str, Any]


def figure(found: Plain, part: str) -> Spec:
    """Return the panels of one part, or of all, from a study's numbers. Names of classes do not appear."""
    rows = {"bands": _bands(found), "percentiles": _percentiles(found), "consistency": _consistency(found)}
    chosen = list(rows.values()) if part == "all" else [rows[part]]
    return stacked(chosen, spacing=40)


def _row(title: str, subtitle: str, panels: list[Spec]) -> Spec:
    heading = {"text": title, "subtitle": subtitle, "fontSize": 17, "fontWeight": "bold", "offset": 12}
    return {"title": heading, "hconcat": panels, "spacing": 40, "resolve": {"scale": {"color": "independent"}}}


def _known(found: Plain, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if found[name] is not None]


def _bands(found: Plain) -> Spec:
    """Fig. 4: easy, hard and hardest negatives, a panel for each measure."""
    bands = found["by_band"]
    names = _known(bands, ("same_class", "depth", "gradient") if bands["same_class"] else ("score", "gradient"))
    shares = f"hard: the hardest {100 * found['hard']:g} %, without the very hardest {100 * found['hardest']:g} %"
    return _row("Negatives by band", f"{shares}; lines: two standard errors", [_bars(bands, name) for name in names])


def _bars(bands: Plain, name: str) -> Spec:
    curve = bands[name]
    values = [
        {"band": band, "mean": mean, "low": mean - 2 * (error or 0.0), "high": mean + 2 * (error or 0.0)}
        for band, mean, error in zip(bands["names"], curve["mean"], curve["error"], strict=True)
        if mean is not None
    ]
    x = {"field": "band", "type": "nominal", "sort": bands["names"], "title": None, "axis": {"labelAngle": 0}}
    y = {"field": "mean", "type": "quantitative", "title": _MEASURES[name]}
    rule = {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
    return {
        "width": 220,
        "height": 230,
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "bar", "color": _BLUE, "width": 44}, "encoding": {"x": x, "y": y}},
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": rule},
        ],
    }


def _percentiles(found: Plain) -> Spec:
    """Fig. 5: the same by percentile, the easiest on the left."""
    bins = found["by_percentile"]
    panels = [_line(bins[name], name) for name in _known(bins, ("same_class", "depth", "score"))]
    return _row("Negatives by percentile", "100 % is the hardest; shaded: two standard errors over anchors", panels)


def _line(curve: Plain, name: str) -> Spec:
    values = [
        {
            "place": (low + high) / 2,
            "mean": mean,
            "low": mean - 2 * (error or 0.0),
            "high": mean + 2 * (error or 0.0),
        }
        for low, high, mean, error in zip(curve["low"], curve["high"], curve["mean"], curve["error"], strict=True)
        if mean is not None
    ]
    x: Spec = {"field": "place", "type": "quantitative", "title": "percentile of the negative"}
    x |= {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}}
    y: Spec = {"type": "quantitative", "title": _MEASURES[name], "scale": {"zero": name != "depth"}}
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "color": _BLUE, "opacity": 0.25},
            "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "color": _BLUE, "strokeWidth": 2, "point": {"size": 18, "color": _BLUE}},
            "encoding": {"x": x, "y": {"field": "mean", **y}},
        },
    ]
    if name == "score":
        zero = {"mark": {"type": "rule", "color": _GREY, "strokeDash": [5, 4]}, "encoding": {"y": {"datum": 0}}}
        layers.append(zero)
    return {"width": 300, "height": 230, "data": {"values": values}, "layer": layers}


def _consistency(found: Plain) -> Spec:
    """Fig. 6: how often negatives are hard, and the same for a shuffle."""
    numbers = found["consistency"]
    anchors, shown = max(numbers["anchors"], 1), numbers["histogram"]
    edges = [edge / anchors for edge in shown["edges"]]
    kinds = {"as measured": shown["observed"], "shuffled": shown["shuffled"]}
    values = [
        {"from": low, "to": high, "share": share, "negatives": kind}
        for kind, shares in kinds.items()
        for low, high, share in zip(edges[:-1], edges[1:], shares, strict=True)
    ]
    spread = f"the mean is {100 * numbers['mean_rate']:.3g} % by definition"
    if numbers["shuffled"]["ratio"] is not None:
        spread += f"; the variance is {numbers['shuffled']['ratio']:.3g} times that of a shuffle"
    x = {"field": "from", "bin": {"binned": True}, "type": "quantitative", "axis": {"format": "~%", "tickCount": 8}}
    panel = {
        "width": 620,
        "height": 260,
        "data": {"values": values},
        "mark": {"type": "bar", "binSpacing": 0, "opacity": 0.6},
        "encoding": {
            "x": x | {"title": "share of anchors for which a negative is hard"},
            "x2": {"field": "to"},
            "y": {"field": "share", "type": "quantitative", "title": "share of negatives", "stack": None},
            "color": {
                "field": "negatives",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(kinds), "range": [_BLUE, _ORANGE]},
            },
        },
    }
    return _row("How often a negative is hard", spread, [panel])
