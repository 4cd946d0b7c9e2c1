"""How hard the candidates are: their scores, and shares of whatever is known of them, over the percentile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_lengths, public, raise_invalid
from naysay.report._plain_text import short_names
from naysay.report.contents import Chart, Table
from naysay.report.scores import score_array

_APART = {"scale": {"color": "independent", "strokeDash": "independent"}, "legend": {"color": "independent"}}
_LOOKS = (("first", [3, 2]), ("kept", [8, 3]), ("second", [9, 3, 2, 3]), ("third", [1, 3]))


@public
def difficulty_by_percentile(
    percentiles: Any, mean_scores: Any, shares: Mapping[str, Any] | None = None, *, caption: str = ""
) -> Chart:
    """The mean score over the percentile of difficulty, and shares such as "same class" beside it.

    Args:
        percentiles: (b,) middle of each bin, from 0 (easiest) to 100 (hardest).
        mean_scores: (b,) of the candidates in a bin.
        shares: {name: (b,) from 0 to 1}, at most four: of the same class, suspected, kept; NaN where a bin is
            empty.
        caption: What the percentile is taken within.
    """
    bins, scores = score_array("percentiles", percentiles), score_array("mean_scores", mean_scores)
    names = short_names(map(str, shares or {}))
    parts = {name: _share(name, part) for name, part in zip(names, (shares or {}).values(), strict=True)}
    check_lengths(percentiles=len(bins), mean_scores=len(scores))
    for name, part in parts.items():
        if len(part) != len(bins):
            raise_invalid(name, f"of {len(bins)} bins, like percentiles", len(part))
    if not len(bins) or len(parts) > len(_LOOKS):
        got = f"{len(bins)} bins and {len(parts)} shares"
        raise_invalid("percentiles", f"at least one bin, with at most {len(_LOOKS)} shares", got)
    x = {
        "field": "percentile",
        "type": "quantitative",
        "title": "percentile of difficulty",
        "scale": {"domain": [0, 100]},
        "axis": {"values": [0, 25, 50, 75, 100]},
    }
    places = bins.tolist()
    panels: list[dict[str, Any]] = [
        {
            "title": "Mean score",
            "data": {"values": [{"percentile": p, "score": s} for p, s in zip(places, scores.tolist(), strict=True)]},
            "mark": {"type": "line", "point": {"color": "var(--ink)"}, "color": "var(--ink)", "tooltip": True},
            "encoding": {
                "x": x,
                "y": {"field": "score", "type": "quantitative", "title": "mean score", "scale": {"zero": False}},
            },
        }
    ]
    if parts:
        panels.append(_panel(parts, places, x))
    rows = tuple(
        zip((round(p, 2) for p in places), scores.tolist(), *(p.tolist() for p in parts.values()), strict=True)
    )
    low, high = int(np.argmin(bins)), int(np.argmax(bins))
    told = f"The mean score rises from {scores[low]:.4g} among the easiest to {scores[high]:.4g} among the hardest."
    told += "".join(
        f" The share {name} goes from {part[low]:.1%} to {part[high]:.1%}."
        for name, part in parts.items()
        if np.isfinite(part[[low, high]]).all()
    )
    sized = {"width": 700 if len(panels) == 1 else 310, "height": 200}
    spec = {"hconcat": [{**panel, **sized} for panel in panels], "spacing": 60, "resolve": _APART}
    table = Table("Difficulty", ("percentile", "mean score", *parts), rows, "The same as numbers; shares from 0 to 1.")
    return Chart("Difficulty by percentile", spec, told, table, caption)


def percentile_bins(
    scores: NDArray[np.float32], filled: NDArray[np.bool_], flags: Mapping[str, NDArray[np.bool_]], bins: int = 20
) -> tuple[Any, Any, dict[str, Any]]:
    """(percentiles, mean scores, {name: share flagged}) of candidates (n, m), each within its own anchor's.

    The hardest of an anchor's c candidates is at 100 (1 - 1 / 2c), the easiest at 100 / 2c; equal scores go by their
    order. Bins without candidates are left out. A sort of each row.
    """
    order = np.argsort(np.where(filled, -scores, np.inf), axis=1, kind="stable")
    held = np.take_along_axis(filled, order, axis=1)
    count = np.maximum(np.count_nonzero(filled, axis=1), 1)[:, None]
    share = 1 - (np.arange(scores.shape[1]) + 0.5) / count
    place = np.clip((share * bins).astype(np.int64), 0, bins - 1)[held]
    sizes = np.bincount(place, minlength=bins)
    there = sizes > 0

    def mean(values: NDArray[Any]) -> Any:
        sums = np.bincount(place, np.take_along_axis(values, order, axis=1)[held], minlength=bins)
        return sums[there] / sizes[there]

    middles = (np.flatnonzero(there) + 0.5) * 100 / bins
    return middles, mean(np.where(filled, scores, 0)), {name: mean(flag) for name, flag in flags.items()}


def _panel(parts: dict[str, Any], places: list[float], x: dict[str, Any]) -> dict[str, Any]:
    """The shares, a line each."""
    values = [
        {"percentile": place, "share": value, "of": name}
        for name, part in parts.items()
        for place, value in zip(places, part.tolist(), strict=True)
        if np.isfinite(value)
    ]
    looks, names = _LOOKS[: len(parts)], list(parts)
    legend = {"title": None, "orient": "bottom", "columns": 2, "symbolSize": 300, "labelLimit": 250}
    colour = {"domain": names, "range": [f"var(--{name})" for name, _ in looks]}
    return {
        "title": "Shares",
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2, "tooltip": True},
        "encoding": {
            "x": x,
            "y": {"field": "share", "type": "quantitative", "title": "share", "axis": {"format": "~%"}},
            "color": {"field": "of", "type": "nominal", "scale": colour, "legend": legend},
            "strokeDash": {
                "field": "of",
                "type": "nominal",
                "scale": {"domain": names, "range": [dash for _, dash in looks]},
                "legend": legend,
            },
        },
    }


def _share(name: str, values: Any) -> Any:
    """(b,) from 0 to 1, or NaN."""
    array = as_array(name, to_numpy(values)).astype(np.float64)
    if array.ndim != 1 or not ((array >= 0) & (array <= 1) | np.isnan(array)).all():
        raise_invalid(name, "(b,) shares from 0 to 1, or NaN", f"shape {array.shape} with other values")
    return array
