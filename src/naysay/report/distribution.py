"""Where the scores lie: of positives, of the negatives kept, and of what was dropped, with the lines between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.report._plain_text import number, short_names
from naysay.report.contents import Chart, Table
from naysay.report.scores import AnyFloats, Scores

_BINS, _REASONS = 60, 4
# Colours are the page's own variables; each kind also has its own dash, for those who cannot tell colours apart.
_KINDS = (("positive", [1, 0]), ("kept", [8, 3]), ("first", [3, 2]), ("second", [9, 3, 2, 3]), ("third", [1, 3]))
_LAST = ("fourth", [5, 2, 1, 2, 1, 2])


def score_distribution(scores: Scores) -> Chart:
    """The share of each kind's scores over the score, lines at the thresholds, and quantiles beside it.

    The four commonest reasons for dropping have a curve each; others share one. Shares are of the kind itself, so
    that ten positives and a million candidates can be compared. The line at `sample.line` moves with the page's slider.
    """
    groups = _groups(scores)
    lines = [(name, line) for name, line in (("low", scores.low), ("high", scores.high)) if np.isfinite(line)]
    whole = np.concatenate([*groups.values(), np.array([line for _, line in lines])])
    start, stop = (float(whole.min()), float(whole.max())) if len(whole) else (0.0, 1.0)
    if start == stop:
        start, stop = start - 0.5, stop + 0.5
    edges = np.linspace(start, stop, _BINS + 1)
    middles = ((edges[:-1] + edges[1:]) / 2).tolist()
    values = [
        {"kind": name, "score": middle, "share": count / len(group), "scores": count}
        for name, group in groups.items()
        for middle, count in zip(middles, np.histogram(group, edges)[0].tolist(), strict=True)
        if len(group)
    ]
    table = Table(
        "Scores",
        ("of", "scores", "lowest", "5 %", "median", "95 %", "highest"),
        tuple((name, len(group), *_quantiles(group)) for name, group in groups.items()),
        "How many scores there are of each kind, and where they lie.",
    )
    told = "; ".join(f"half of the {name} scores are above {_median(group)}" for name, group in groups.items())
    said = "".join(f" The {name} line is at {number(line)}." for name, line in lines)
    return Chart(
        "Where the scores lie",
        _spec(groups, values, (start, stop), lines, scores),
        f"Curves of the share of scores over the score: {told}.{said}",
        table,
        "Each curve is the share of its own kind, so that kinds of different size can be compared.",
    )


def _groups(scores: Scores) -> dict[str, AnyFloats]:
    """{name: scores}; the commonest reasons by themselves."""
    counts = np.bincount(scores.why, minlength=len(scores.reasons))
    order = [place for place in np.argsort(-counts, kind="stable").tolist() if counts[place]]
    groups = {"positives": scores.positives, "kept negatives": scores.kept}
    own = order if len(order) <= _REASONS else order[: _REASONS - 1]
    names = short_names(scores.reasons[place] for place in own)
    groups |= {f"dropped: {name}": scores.dropped[scores.why == at] for name, at in zip(names, own, strict=True)}
    if len(own) < len(order):
        groups["dropped: other reasons"] = scores.dropped[~np.isin(scores.why, own)]
    return groups


def _spec(
    groups: dict[str, AnyFloats],
    values: list[dict[str, Any]],
    ends: tuple[float, float],
    lines: list[tuple[str, float]],
    scores: Scores,
) -> dict[str, Any]:
    looks = [*_KINDS, _LAST][: len(groups)]
    names = list(groups)
    colour = {"domain": names, "range": [f"var(--{name})" for name, _ in looks]}
    dash = {"domain": names, "range": [pattern for _, pattern in looks]}
    x = {"field": "score", "type": "quantitative", "title": "score", "scale": {"domain": list(ends), "nice": False}}
    legend = {"title": None, "orient": "bottom", "columns": 3, "symbolSize": 300, "labelLimit": 300}
    curves = {
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step", "strokeWidth": 2, "tooltip": True},
        "encoding": {
            "x": x,
            "y": {"field": "share", "type": "quantitative", "title": "share of its kind", "axis": {"format": "~%"}},
            "color": {"field": "kind", "type": "nominal", "scale": colour, "legend": legend},
            "strokeDash": {"field": "kind", "type": "nominal", "scale": dash, "legend": legend},
        },
    }
    fixed = {"data": {"values": [{"score": line, "line": name} for name, line in lines]}}
    ruled = {**fixed, "mark": {"type": "rule", "color": "var(--ink)", "strokeDash": [2, 3]}, "encoding": {"x": x}}
    named = {
        **fixed,
        "mark": {"type": "text", "align": "left", "dx": 4, "y": 7, "color": "var(--ink)"},
        "encoding": {"x": x, "text": {"field": "line", "type": "nominal"}},
    }
    layers = [curves, *([ruled, named] if lines else [])]
    spec: dict[str, Any] = {"width": 700, "height": 240, "layer": layers}
    if scores.sample is not None and scores.sample.by == "score":
        at = min(max(scores.sample.line, ends[0]), ends[1])
        spec["params"] = [{"name": "line", "value": at}]
        moving = {
            "data": {"values": [{"here": 0}]},
            "transform": [{"calculate": "line", "as": "score"}],
            "mark": {"type": "rule", "color": "var(--accent)", "strokeWidth": 2.5, "clip": True},
            "encoding": {"x": x},
        }
        spec["layer"] = [*layers, moving]
    return spec


def _quantiles(group: AnyFloats) -> tuple[float, ...]:
    if not len(group):
        return (float("nan"),) * 5
    return tuple(float(value) for value in np.quantile(group, [0, 0.05, 0.5, 0.95, 1]))


def _median(group: AnyFloats) -> str:
    return number(float(np.median(group))) if len(group) else "no value, since there are none"
