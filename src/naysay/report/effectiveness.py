"""How many negatives: training effectiveness over k, with the best k."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.checks import public, raise_invalid
from naysay.quantity._figures import shown_k
from naysay.quantity.estimate import Estimate
from naysay.report.contents import Chart, Table


@public
def effectiveness(estimate: Estimate, *, caption: str = "", k: int | None = None) -> Chart:
    """Plot the mean effectiveness v over k, with the best k, the range within 1 % of it, and the k in use.

    Args:
        estimate: The result of `quantity.estimate`.
        caption: Where the AUCs come from.
        k: The k in use, shown beside the best.

    Returns:
        The chart, with a table of v at some k.

    Examples:
        >>> from naysay.quantity import estimate
        >>> effectiveness(estimate(0.75, [0.52, 0.61, 0.66], k_max=100)).title
        'How many negatives'
    """
    if not isinstance(estimate, Estimate):
        raise_invalid("estimate", "an Estimate, of quantity.estimate", type(estimate).__name__)
    k_max, (low, high) = len(estimate.curve), estimate.flat
    used = [k] if k is not None and 1 <= k <= k_max else []
    places = shown_k(k_max, estimate.k, low, high, *used)
    values = [{"k": place, "v": float(estimate.curve[place - 1])} for place in places]
    marks: list[dict[str, Any]] = [{"k": estimate.k, "what": f"best, {estimate.k}"}]
    marks += [{"k": place, "what": f"in use, {place}"} for place in used if place != estimate.k]
    ticks = [10**power for power in range(8) if 10**power <= k_max]
    x = {
        "field": "k",
        "type": "quantitative",
        "title": "k, negatives per positive",
        "scale": {"type": "log", "domain": [1, max(k_max, 2)], "nice": False},
        "axis": {"values": ticks, "format": "~s"},
    }
    spec = {
        "width": 700,
        "height": 220,
        "layer": [
            {
                "data": {"values": [{"k": low, "to": high}]},
                "mark": {"type": "rect", "color": "var(--accent)", "opacity": 0.12},
                "encoding": {"x": x, "x2": {"field": "to"}},
            },
            {
                "data": {"values": values},
                "mark": {"type": "line", "strokeWidth": 2, "color": "var(--kept)", "tooltip": True},
                "encoding": {"x": x, "y": {"field": "v", "type": "quantitative", "scale": {"zero": False}}},
            },
            {
                "data": {"values": marks},
                "mark": {"type": "rule", "color": "var(--ink)", "strokeDash": [4, 3]},
                "encoding": {"x": x},
            },
            *(
                {
                    "data": {"values": [mark]},
                    "mark": {"type": "text", "y": 7 + 15 * turn, "color": "var(--ink)", **_beside(mark["k"], k_max)},
                    "encoding": {"x": x, "text": {"field": "what", "type": "nominal"}},
                }
                for turn, mark in enumerate(marks)
            ),
        ],
    }
    named = {1: "one", low: "lower end of the range", high: "upper end of the range", k_max: "the largest tried"}
    named |= dict.fromkeys(used, "in use") | {estimate.k: "best"}
    rows = tuple((place, float(estimate.curve[place - 1]), named[place]) for place in sorted(named))
    table = Table("Effectiveness", ("k", "v", ""), rows, "Training effectiveness v at some k.")
    best = float(np.max(estimate.curve))
    words = (
        f"v is largest at k = {estimate.k}, where it is {best:.4g}; from k = {low} to {high} it is within 1 % of that, "
        f"and at k = 1 it is {float(estimate.curve[0]):.4g}."
    )
    return Chart("How many negatives", spec, words, table, " ".join((caption or words, *estimate.notes)))


def _beside(k: int, k_max: int) -> dict[str, Any]:
    """Return the side of a mark on which its label fits."""
    return {"align": "left", "dx": 5} if k * k <= k_max else {"align": "right", "dx": -5}
