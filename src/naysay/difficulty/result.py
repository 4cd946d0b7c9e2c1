"""The result of a study, as numbers, text, a file and figures in the manner of Figs. 4 to 6 of Cai et al. (2020)."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, final

from naysay.checks import check_one_of, public, raise_invalid
from naysay.difficulty._study_text import (
    Plain,
    as_text,
    consistency_numbers,
    drift_numbers,
    pair_numbers,
)
from naysay.difficulty.class_pairs import ClassPairs
from naysay.difficulty.consistency import Consistency
from naysay.difficulty.curves import BANDS, Curve, Gap
from naysay.difficulty.drift import Drift
from naysay.files import as_path, check_target, write_whole
from naysay.plots import Spec, as_picture, axis, check_picture, layer, stacked
from naysay.text import json_file, plain, short_repr

PARTS = ("all", "bands", "percentiles", "consistency")
_NUMBERS = ("anchors", "negatives", "pairs", "hard", "hardest", "temperature", "metric")
# Okabe and Ito's colours, distinguishable for colour-blind readers.
_BLUE, _ORANGE, _GREY = "#0072B2", "#E69F00", "#767676"
_MEASURES = {
    "same_class": "share of the anchor's class",
    "depth": "depth of the least common ancestor",
    "score": "mean score",
    "gradient": "share of the gradient",
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The measures of negatives by difficulty, a `Curve` each.

    Attributes:
        score: The mean score.
        below_zero: The share of scores below 0: of cosines, the anti-correlated tail.
        gradient: The share of the InfoNCE gradient, at the study's temperature.
        same_class: The share of negatives of the anchor's own class; None without labels.
        depth: The mean depth of the least common ancestor of the two classes, deeper is more similar; None without a
            hierarchy.

    Example: see `study`.
    """

    score: Curve
    below_zero: Curve
    gradient: Curve
    same_class: Curve | None
    depth: Curve | None

    __repr__ = short_repr


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The difficulty of a model's negatives.

    Attributes:
        anchors: The number of anchors.
        negatives: The number of negatives.
        pairs: The number of pairs, without excluded ones.
        hard: The share of hard negatives, with the hardest.
        hardest: The share of the hardest.
        temperature: The temperature of the gradient.
        metric: The metric of the scores; "given" if a function computed them.
        by_band: A `Profile` of easy, hard (without the hardest) and hardest.
        by_percentile: A `Profile` of intervals of one width, the easiest first.
        gaps: {"same_class": Gap, "depth": Gap}, as far as known: hard, with the hardest, against easy negatives of the
            same anchor.
        consistency: How often each negative is hard, against a shuffled baseline.
        class_pairs: Mean scores by pair of classes, or None.
        drift: Against the other checkpoint, or None.
        names: The names of the classes, or None.

    Example: see `study`.
    """

    anchors: int
    negatives: int
    pairs: int
    hard: float
    hardest: float
    temperature: float
    metric: str
    by_band: Profile
    by_percentile: Profile
    gaps: dict[str, Gap]
    consistency: Consistency
    class_pairs: ClassPairs | None
    drift: Drift | None
    names: tuple[str, ...] | None

    __repr__ = short_repr

    def __str__(self) -> str:
        """Return the bands as a table, and a line for each other result."""
        return as_text(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return all results as plain numbers, NaN as None: what `write` writes. Drift as quantiles over anchors."""
        pairs, moved = self.class_pairs, self.drift
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "by_band": {"names": list(BANDS), **plain(self.by_band)},
            "by_percentile": plain(self.by_percentile),
            "gaps": plain(self.gaps),
            "consistency": consistency_numbers(self.consistency),
            "class_pairs": None if pairs is None else pair_numbers(pairs, self.names),
            "drift": None if moved is None else drift_numbers(moved),
        }

    def write(self, path: str | PathLike[str]) -> None:
        """Write all numbers as JSON (`as_dict`), atomically; NaN is null.

        Args:
            path: A file that ends in .json.
        """
        target = as_path("path", path)
        if target.suffix.lower() != ".json":
            raise_invalid("path", "a file that ends in .json", repr(str(target)))
        check_target("path", target)
        write_whole("path", target, json_file(self.as_dict()))

    def plot(self, path: str | PathLike[str], part: str = "all") -> None:
        """Draw Figures 4, 5 and 6 of Cai et al. (2020) for this study, by vl-convert.

        Args:
            path: A file that ends in .svg or .png.
            part: "bands" (their Fig. 4), "percentiles" (Fig. 5), "consistency" (Fig. 6) or "all".

        Raises:
            NaysayError: If the part is unknown, or the file cannot be written or ends otherwise.
            MissingExtraError: If vl-convert is not installed.
        """
        target = as_path("path", path)
        check_one_of("part", part, PARTS)
        check_picture("path", target)
        check_target("path", target)
        picture = as_picture(figure(self.as_dict(), part), target.suffix.lower())
        write_whole("path", target, picture)


def figure(found: Plain, part: str) -> Spec:
    """Return the panels of one part, or of all, from a study's numbers. Names of classes do not appear."""
    rows = {"bands": _bands(found), "percentiles": _percentiles(found), "consistency": _consistency(found)}
    return stacked(list(rows.values()) if part == "all" else [rows[part]], spacing=40)


def _row(title: str, subtitle: str, panels: list[Spec]) -> Spec:
    heading = {"text": title, "subtitle": subtitle, "fontSize": 17, "fontWeight": "bold", "offset": 12}
    return {"title": heading, "hconcat": panels, "spacing": 40, "resolve": {"scale": {"color": "independent"}}}


def _points(curve: Plain, name: str, places: list[Any]) -> list[Spec]:
    """The means that are known, each with two standard errors on either side."""
    return [
        {name: place, "mean": mean, "low": mean - 2 * (error or 0.0), "high": mean + 2 * (error or 0.0)}
        for place, mean, error in zip(places, curve["mean"], curve["error"], strict=True)
        if mean is not None
    ]


def _bands(found: Plain) -> Spec:
    """Fig. 4: easy, hard and hardest negatives, a panel for each measure."""
    bands = found["by_band"]
    wanted = ("same_class", "depth", "gradient") if bands["same_class"] else ("score", "gradient")
    x = {"field": "band", "type": "nominal", "sort": bands["names"], "title": None, "axis": {"labelAngle": 0}}
    rule = {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {"x": x, "y": axis("low"), "y2": {"field": "high"}},
    }
    panels = []
    for name in wanted:
        if bands[name] is not None:
            values = _points(bands[name], "band", bands["names"])
            y = axis("mean", title=_MEASURES[name])
            bar = {"mark": {"type": "bar", "color": _BLUE, "width": 44}, "encoding": {"x": x, "y": y}}
            panels.append({"width": 220, "height": 230, "data": {"values": values}, "layer": [bar, rule]})
    shares = f"hard: the hardest {100 * found['hard']:g} %, without the very hardest {100 * found['hardest']:g} %"
    return _row("Negatives by band", f"{shares}; lines: two standard errors", panels)


def _percentiles(found: Plain) -> Spec:
    """Fig. 5: the same by percentile, the easiest on the left."""
    bins = found["by_percentile"]
    panels = [_line(bins[name], name) for name in ("same_class", "depth", "score") if bins[name] is not None]
    return _row("Negatives by percentile", "100 % is the hardest; shaded: two standard errors over anchors", panels)


def _line(curve: Plain, name: str) -> Spec:
    values = _points(curve, "place", [(low + high) / 2 for low, high in zip(curve["low"], curve["high"], strict=True)])
    ticks = {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
    x = axis("place", title="percentile of the negative", scale={"domain": [0, 1]}, axis=ticks)
    y: Spec = {"title": _MEASURES[name], "scale": {"zero": name != "depth"}}
    area = {"x": x, "y": axis("low", **y), "y2": {"field": "high"}}
    point = {"size": 18, "color": _BLUE}
    layers: list[Spec] = [
        {"mark": {"type": "area", "color": _BLUE, "opacity": 0.25}, "encoding": area},
        {
            "mark": {"type": "line", "color": _BLUE, "strokeWidth": 2, "point": point},
            "encoding": {"x": x, "y": axis("mean", **y)},
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
    title = "share of anchors for which a negative is hard"
    scale = {"domain": list(kinds), "range": [_BLUE, _ORANGE]}
    encoding = {
        "x": axis("from", bin={"binned": True}, axis={"format": "~%", "tickCount": 8}, title=title),
        "x2": {"field": "to"},
        "y": axis("share", title="share of negatives", stack=None),
        "color": {"field": "negatives", "type": "nominal", "title": None, "scale": scale},
    }
    bars = layer(values, "bar", encoding, binSpacing=0, opacity=0.6)
    return _row("How often a negative is hard", spread, [{"width": 620, "height": 260, **bars}])
