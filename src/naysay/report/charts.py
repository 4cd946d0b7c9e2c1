"""Charts: the distribution of scores by kind, difficulty by percentile, and training effectiveness over k."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_kind, check_lengths, check_whole, public, raise_invalid
from naysay.plots import Spec, axis, layer
from naysay.quantity._figures import k_axis, shown_k
from naysay.quantity.estimate import Estimate
from naysay.report.contents import Cell, Chart, Table
from naysay.report.scores import AnyFloats, Scores, check_texts, score_array
from naysay.text import number

_BINS, _REASONS, _SHARES = 60, 4, 4
# Colours are variables of the page. Each series has its own dash, too, for readers who cannot tell colours apart.
_STYLES = {
    "positive": [1, 0],
    "kept": [8, 3],
    "first": [3, 2],
    "second": [9, 3, 2, 3],
    "third": [1, 3],
    "fourth": [5, 2, 1, 2, 1, 2],
}
_SHARE_STYLES = ("first", "kept", "second", "third")
_APART = {"scale": {"color": "independent", "strokeDash": "independent"}, "legend": {"color": "independent"}}


@public
def score_distribution(scores: Scores) -> Chart:
    """Plot the distribution of each kind of score, with the thresholds, and list its quantiles.

    Shares are within a kind, so that ten positives and a million candidates can be compared. The four most frequent
    reasons for dropping have a curve each; others share one.

    Args:
        scores: The scores.

    Examples:
        >>> score_distribution(Scores([0.9, 0.8], [0.5, 0.4], [], [])).table.rows[0][:2]
        ('positives', 2)
    """
    check_kind("scores", scores, Scores, "Scores")
    groups = _groups(scores)
    thresholds = {name: value for name, value in (("low", scores.low), ("high", scores.high)) if np.isfinite(value)}
    whole = np.concatenate([*groups.values(), np.array([*thresholds.values()])])
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
    columns = ("kind", "scores", "lowest", "5 %", "median", "95 %", "highest")
    none, levels = (np.nan,) * 5, [0, 0.05, 0.5, 0.95, 1]
    quantiles = {name: np.quantile(group, levels).tolist() if len(group) else none for name, group in groups.items()}
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, len(groups[name]), *each) for name, each in quantiles.items())
    medians = "; ".join(
        f"the median of the {name} is {number(float(np.median(group))) if len(group) else 'unknown, there are none'}"
        for name, group in groups.items()
    )
    at = "".join(f" The {name} threshold is {number(value)}." for name, value in thresholds.items())
    return Chart(
        "Score distribution",
        _distribution_spec(list(groups), values, (start, stop), thresholds),
        f"Share of scores over the score: {medians}.{at}",
        Table("Scores", columns, rows, "How many scores there are of each kind, and their quantiles."),
        "Shares are within each kind, so that kinds of different size can be compared.",
    )


def _groups(scores: Scores) -> dict[str, AnyFloats]:
    """Return {name: scores}; the most frequent reasons by themselves."""
    counts = np.bincount(scores.why, minlength=len(scores.reasons))
    order = [place for place in np.argsort(-counts, kind="stable").tolist() if counts[place]]
    groups = {"positives": scores.positives, "kept negatives": scores.kept}
    own = order if len(order) <= _REASONS else order[: _REASONS - 1]
    names = short_names(scores.reasons[place] for place in own)
    groups |= {f"dropped: {name}": scores.dropped[scores.why == at] for name, at in zip(names, own, strict=True)}
    if len(own) < len(order):
        groups["dropped: other reasons"] = scores.dropped[~np.isin(scores.why, own)]
    return groups


def _distribution_spec(
    names: list[str],
    values: list[Spec],
    ends: tuple[float, float],
    thresholds: Mapping[str, float],
) -> Spec:
    x = axis("score", title="score", scale={"domain": list(ends), "nice": False})
    y = axis("share", title="share of its kind", axis={"format": "~%"})
    series = named_series("kind", names, [*_STYLES], columns=3, limit=300)
    curve = {"interpolate": "step", "strokeWidth": 2, "tooltip": True}
    layers = [layer(values, "line", {"x": x, "y": y, **series}, **curve)]
    fixed = [{"score": value, "threshold": name} for name, value in thresholds.items()]
    if fixed:
        text = {"field": "threshold", "type": "nominal"}
        layers += [
            layer(fixed, "rule", {"x": x}, color="var(--ink)", strokeDash=[2, 3]),
            layer(fixed, "text", {"x": x, "text": text}, align="left", dx=4, y=7, color="var(--ink)"),
        ]
    return {"width": "container", "height": 240, "layer": layers}


@public
def difficulty_by_percentile(
    percentiles: Any, mean_scores: Any, shares: Mapping[str, Any] | None = None, *, caption: str = ""
) -> Chart:
    """Plot the mean score over the percentile of difficulty, and shares such as "same class" beside it.

    Args:
        percentiles: (b,) middle of each bin, from 0 (easiest) to 100 (hardest).
        mean_scores: (b,) mean score of the candidates in a bin.
        shares: {name: (b,) from 0 to 1}, at most four, such as "same class" or "suspected"; NaN for an empty bin.
        caption: What the percentiles are taken within.

    Examples:
        >>> difficulty_by_percentile([25, 75], [0.2, 0.6], {"suspected": [0.0, 0.1]}).table.rows
        ((25.0, 0.2, 0.0), (75.0, 0.6, 0.1))
    """
    bins, scores = score_array("percentiles", percentiles), score_array("mean_scores", mean_scores)
    check_texts(caption=caption)
    check_kind("shares", shares, Mapping | None, "{name: shares}, or None")
    given = dict(shares or {})
    parts = {
        name: _share_array(name, given[key]) for name, key in zip(short_names(map(str, given)), given, strict=True)
    }
    check_lengths(percentiles=len(bins), mean_scores=len(scores))
    for name, part in parts.items():
        if len(part) != len(bins):
            raise_invalid(name, f"of {len(bins)} bins, like `percentiles`", len(part))
    if not len(bins) or len(parts) > _SHARES:
        got = f"{len(bins)} bins and {len(parts)} shares"
        raise_invalid("percentiles", f"at least one bin, with at most {_SHARES} shares", got)
    scale = {"scale": {"domain": [0, 100]}, "axis": {"values": [0, 25, 50, 75, 100]}}
    x = axis("percentile", title="percentile of difficulty", **scale)
    points = bins.tolist()
    means = [{"percentile": p, "score": s} for p, s in zip(points, scores.tolist(), strict=True)]
    y = axis("score", title="mean score", scale={"zero": False})
    ink = {"point": {"color": "var(--ink)"}, "color": "var(--ink)", "tooltip": True}
    panels: list[Spec] = [{"title": "Mean score", **layer(means, "line", {"x": x, "y": y}, **ink)}]
    if parts:
        panels.append(_shares_panel(parts, points, x))
    columns = (np.round(bins, 2), scores, *parts.values())
    rows = tuple(zip(*(column.tolist() for column in columns), strict=True))
    low, high = int(np.argmin(bins)), int(np.argmax(bins))
    words = f"The mean score goes from {scores[low]:.4g} for the easiest to {scores[high]:.4g} for the hardest."
    words += "".join(
        f" The share {name} goes from {part[low]:.1%} to {part[high]:.1%}."
        for name, part in parts.items()
        if np.isfinite(part[[low, high]]).all()
    )
    size = {"width": 700 if len(panels) == 1 else 310, "height": 200}
    spec = {"hconcat": [{**panel, **size} for panel in panels], "spacing": 60, "resolve": _APART}
    table = Table("Difficulty", ("percentile", "mean score", *parts), rows, "The same as numbers; shares from 0 to 1.")
    return Chart("Difficulty by percentile", spec, words, table, caption)


def _shares_panel(parts: Mapping[str, Any], points: list[float], x: Spec) -> Spec:
    """Return the panel with a curve for each share."""
    values = [
        {"percentile": point, "share": value, "of": name}
        for name, part in parts.items()
        for point, value in zip(points, part.tolist(), strict=True)
        if np.isfinite(value)
    ]
    series = named_series("of", list(parts), _SHARE_STYLES, columns=2, limit=250)
    encoding = {"x": x, "y": axis("share", title="share", axis={"format": "~%"}), **series}
    return {"title": "Shares", **layer(values, "line", encoding, strokeWidth=2, tooltip=True)}


@public
def effectiveness(estimate: Estimate, *, caption: str = "", k: int | None = None) -> Chart:
    """Plot the mean effectiveness v over k, with the best k, the range within 1 % of it, and the k in use.

    Args:
        estimate: The result of `quantity.estimate`.
        caption: Where the AUCs come from.
        k: The k in use, shown beside the best.

    Examples:
        >>> from naysay.quantity import estimate
        >>> effectiveness(estimate(0.75, [0.52, 0.61, 0.66], k_max=100)).title
        'How many negatives'
    """
    check_kind("estimate", estimate, Estimate, "an Estimate, of quantity.estimate")
    check_texts(caption=caption)
    curve, (low, high) = estimate.curve.tolist(), estimate.flat
    k_max = len(curve)
    used = [k] if k is not None and check_whole("k", k, 0) and k <= k_max else []
    values = [{"k": place, "v": curve[place - 1]} for place in shown_k(k_max, estimate.k, low, high, *used)]
    marks: list[Spec] = [{"k": estimate.k, "what": f"best, {estimate.k}"}]
    marks += [{"k": place, "what": f"in use, {place}"} for place in used if place != estimate.k]
    x, ink = k_axis(k_max), {"color": "var(--ink)"}
    y = axis("v", scale={"zero": False})
    layers = [
        layer([{"k": low, "to": high}], "rect", {"x": x, "x2": {"field": "to"}}, color="var(--accent)", opacity=0.12),
        layer(values, "line", {"x": x, "y": y}, strokeWidth=2, color="var(--kept)", tooltip=True),
        layer(marks, "rule", {"x": x}, **ink, strokeDash=[4, 3]),
    ]
    for turn, mark in enumerate(marks):
        side = {"align": "left", "dx": 5} if mark["k"] ** 2 <= k_max else {"align": "right", "dx": -5}  # where it fits
        label = {"x": x, "text": {"field": "what", "type": "nominal"}}
        layers.append(layer([mark], "text", label, y=7 + 15 * turn, **ink, **side))
    named = {1: "one", low: "lower end of the range", high: "upper end of the range", k_max: "the largest tried"}
    named |= dict.fromkeys(used, "in use") | {estimate.k: "best"}
    rows = tuple((place, curve[place - 1], named[place]) for place in sorted(named))
    table = Table("Effectiveness", ("k", "v", ""), rows, "Training effectiveness v at some k.")
    words = (
        f"v is largest at k = {estimate.k}, where it is {max(curve):.4g}; from k = {low} to {high} it is within 1 % of "
        f"that, and at k = 1 it is {curve[0]:.4g}."
    )
    spec = {"width": "container", "height": 220, "layer": layers}
    return Chart("How many negatives", spec, words, table, " ".join((caption or words, *estimate.notes)))


def _share_array(name: str, values: Any) -> Any:
    """Return (b,) shares from 0 to 1, or NaN."""
    array = as_array(name, to_numpy(values))
    good = array.ndim == 1 and array.dtype.kind in "iuf"
    if not good or not ((array >= 0) & (array <= 1) | np.isnan(array)).all():
        raise_invalid(name, "(b,) shares from 0 to 1, or NaN", f"shape {array.shape} with other values")
    return array.astype(np.float64)


def short_names(names: Iterable[str], max_length: int = 60) -> list[str]:
    """Return names for the legend of a chart, which are in every row of its data: cut, and all different."""
    short: list[str] = []
    for name in names:
        cut = name if len(name) <= max_length else f"{name[:max_length]}…"
        tries = chain([cut], (f"{cut} ({turn})" for turn in count(2)))
        short.append(next(one for one in tries if one not in short))
    return short


def named_series(field: str, names: list[str], styles: Sequence[str], *, columns: int, limit: int) -> Spec:
    """Return the encodings of a nominal field as colour and dash, with one legend."""
    legend = {"title": None, "orient": "bottom", "columns": columns, "symbolSize": 300, "labelLimit": limit}
    used = styles[: len(names)]
    ranges = {"color": [f"var(--{style})" for style in used], "strokeDash": [_STYLES[style] for style in used]}
    return {
        channel: {"field": field, "type": "nominal", "scale": {"domain": names, "range": values}, "legend": legend}
        for channel, values in ranges.items()
    }
