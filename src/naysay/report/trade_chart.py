"""The chart of a trade: estimated false share over mean score, with a labelled point for each rule."""

from __future__ import annotations

from math import isfinite

from naysay.checks import check_kind, public
from naysay.plots import Spec, axis, layer
from naysay.report.contents import Cell, Chart, Table
from naysay.report.trade import Trade, TradePoint, false_text
from naysay.text import number, percent

_HEIGHT, _NARROW = 320, 250  # of the plot in pixels; its width on a small phone, where labels are closest
_LETTER, _LINE = 7.0, 16.0  # of a label
_COLUMNS = ("set", "target", "dropped", "negatives", "empty", "false, estimated", "95 % CI", "mean score")


@public
def trade_chart(trade: Trade) -> Chart:
    """Plot the estimated false share over the mean score: a curve of targets with its 95 % CI, and each rule.

    The page's slider moves a point along the curve.

    Args:
        trade: The trade.

    Examples:
        >>> points = [TradePoint("cut", 9, 80, 0, share, share, share, 0.5, target=share) for share in (0.02, 0.05)]
        >>> trade_chart(Trade(tuple(points), points[1])).title
        'The trade: false negatives against hardness'
    """
    check_kind("trade", trade, Trade, "a Trade")
    marked = [point for point in (*trade.rules, trade.chosen) if isfinite(point.mean_score)]
    rows = tuple(_row(point) for point in (*trade.rules, trade.chosen, *trade.curve))
    words = "; ".join(f"{point.name}: {false_text(point)} at mean score {number(point.mean_score)}" for point in marked)
    caption = (
        "Up is worse: more of the negatives are estimated to be false, with 95 % CI. Right is harder: a higher mean "
        "score. The curve is what judge='auto' takes as its target moves."
    )
    table = Table("The trade", _COLUMNS, rows, "Each rule, and each target of judge='auto'.", mark=(len(trade.rules),))
    title = "The trade: false negatives against hardness"
    return Chart(title, _spec(trade, marked), f"Estimated false share over mean score. {words}.", table, caption)


def _row(point: TradePoint) -> tuple[Cell, ...]:
    share = f"{percent(point.low, '')} to {percent(point.high, '')}"
    target = percent(point.target) if isfinite(point.target) else ""
    counts = point.dropped, point.negatives, point.empty
    return (point.name, target, *counts, percent(point.false_share), share, point.mean_score)


def _spec(trade: Trade, marked: list[TradePoint]) -> Spec:
    curve = [point for point in trade.curve if isfinite(point.mean_score)]
    values: list[Spec] = [
        {"score": p.mean_score, "share": p.false_share, "low": p.low, "high": p.high, "target": p.target, "place": n}
        for n, p in enumerate(trade.curve)
        if isfinite(p.mean_score)
    ]
    scores = [point.mean_score for point in (*curve, *marked)] or [0.0, 1.0]
    edge = 0.06 * max(max(scores) - min(scores), 1e-6)
    ends = min(scores) - edge, max(scores) + edge
    top = 1.08 * max((point.high for point in (*curve, *marked)), default=1.0) or 1.0
    x = axis("score", title="hardness: mean score", scale={"domain": list(ends), "nice": False}, axis={"tickCount": 6})
    y = axis("share", title="estimated false share", scale={"domain": [0, top]}, axis={"format": "~%", "tickCount": 6})
    low, high = {**y, "field": "low"}, {"field": "high"}
    layers = [
        layer(values, "area", {"x": x, "y": low, "y2": high}, color="var(--kept)", opacity=0.15),
        layer(values, "line", {"x": x, "y": y, "order": axis("target")}, color="var(--kept)", strokeWidth=2),
    ]
    ring = [point for point in trade.curve[trade.start : trade.start + 1] if isfinite(point.mean_score)]
    for turn, (point, (align, dx, dy)) in enumerate(zip(marked, _placed(marked, ring, ends, top), strict=True)):
        chosen = point is trade.chosen
        colour = "var(--accent)" if chosen else "var(--ink)"
        here: list[Spec] = [
            {"score": point.mean_score, "share": point.false_share, "low": point.low, "high": point.high}
        ]
        shape = {"shape": ("circle", "square", "triangle-up", "diamond")[turn % 4], "size": 110 if chosen else 80}
        text = {"value": point.name}
        place = {"align": align, "dx": dx, "dy": dy, "baseline": "middle", "fontWeight": "bold" if chosen else "normal"}
        layers += [
            layer(here, "rule", {"x": x, "y": low, "y2": high}, color=colour, opacity=0.6),
            layer(here, "point", {"x": x, "y": y}, filled=True, opacity=1, color=colour, tooltip=True, **shape),
            layer(here, "text", {"x": x, "y": y, "text": text}, stroke="var(--paper)", strokeWidth=4, **place),
            layer(here, "text", {"x": x, "y": y, "text": text}, color=colour, **place),
        ]
    moving: Spec = layer(values, "point", {"x": x, "y": y}, size=260, color="var(--accent)", strokeWidth=2.5)
    layers.append({**moving, "transform": [{"filter": "datum.place === place"}]})
    params = [{"name": "place", "value": trade.start}]
    return {"width": "container", "height": _HEIGHT, "layer": layers, "params": params}


def _placed(
    points: list[TradePoint], ring: list[TradePoint], ends: tuple[float, float], top: float
) -> list[tuple[str, int, int]]:
    """(align, dx, dy) of each label: the first place where it covers no other label or point, on a narrow plot.

    `ring` is the point of the curve that the slider is at. On a wider plot, points and labels are only further apart.
    """
    span, found = ends[1] - ends[0], []
    at, ring_at = (
        [(_NARROW * (p.mean_score - ends[0]) / span, _HEIGHT * (1 - p.false_share / top)) for p in each]
        for each in (points, ring)
    )
    marks = [(x - 6, y - 6, x + 6, y + 6) for x, y in at] + [(x - 10, y - 10, x + 10, y + 10) for x, y in ring_at]
    labels = list[tuple[float, ...]]()
    for (x, y), point in zip(at, points, strict=True):
        width, tries = _LETTER * len(point.name), []
        for dy in sorted(range(-96, 97, 8), key=abs):
            for align, dx, left in (("left", 10, x + 10), ("right", -10, x - 10 - width)):
                box = left, y + dy - _LINE / 2, left + width, y + dy + _LINE / 2
                outside = box[0] < 0 or box[2] > _NARROW or box[1] < 0 or box[3] > _HEIGHT
                covered = [sum(_overlap(box, other) for other in others) for others in (labels, marks)]
                tries.append(((outside, *covered), (align, dx, dy), box))
        _, place, box = min(tries, key=lambda one: one[0])
        labels.append(box)
        found.append(place)
    return found


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The area that two boxes (left, top, right, bottom) share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, high)
