"""Thresholds on a terminal, as JSON and as a figure: the choice, how to use it, and a histogram of the scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from naysay.arrays import Floats
from naysay.detectors._threshold_tables import chosen, number
from naysay.detectors.bands import NAMES
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import Thresholds
from naysay.plots import BLOCK, PLAIN, Marks, Spec, axis, layer, stacked
from naysay.text import json_file

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_HALVES = "    ####" + "#"  # ASCII has no part of a bar: from half a cell on it is a whole one
_BINS, _POINTS = 120, 240  # of the figure
_COLOURS = ["#999999", "#0072B2", "#D55E00"]  # Okabe and Ito's, which colour-blind readers can tell apart
_BAND = {"field": "band", "type": "nominal", "scale": {"domain": [*NAMES], "range": _COLOURS}}
_GUESS = (
    "The shares are a guess about the data: scores alone do not show how many negatives are false. Where scores of "
    "known positives are available, use naysay.detectors.Calibrated instead."
)


def print_thresholds(name: str, found: Thresholds, sketch: ScoreSketch, console: Console) -> None:
    """Print all that the command reports about the scores called `name`."""
    marks = BLOCK if console.encoding.startswith("utf") else PLAIN
    safe = name.encode(console.encoding, "replace").decode(console.encoding)  # what the terminal can show
    (low, high), (low_text, high_text) = middle(found), in_words(found)
    kind = " at the median anchor" if found.scope == "anchor" else ""
    heading = Text(f"low = {low_text}, high = {high_text}{kind}", style="bold")
    console.print(heading, Text(f"for {safe}"), soft_wrap=True)
    use = "naysay.detectors.Bands(low, high) with the two arrays that --json writes"
    if found.scope == "all":
        use = f"naysay.detectors.Bands({low!r}, {high!r}), or naysay mine --judge bands:{low!r},{high!r}"
    for line in (f"Use: {use}", "", *str(found).splitlines(), ""):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"{meaning(found)}\n\nScores, with bars as high as the logarithm of the count:"))
    shown = histogram(sketch, max(console.width, 40) - len(str(sketch.n)) - 4)
    for line in draw(shown, (low, high), marks=marks):
        bars = Text(line, no_wrap=True, overflow="ignore")
        if marks.side in line:  # not the axis
            start = line.index(marks.side) + 1
            for cut, style in ((low, "yellow"), (high, "red")):
                if cut <= sketch.largest:
                    bars.stylize(style, start + column_of(shown, cut))
        console.print(bars, crop=False)
    console.print(Text(f"{marks.best} low = {low_text}   {marks.best} high = {high_text}\n"))
    for note in (*found.notes, _GUESS):
        console.print(Text(f"Note: {note}"))


def meaning(found: Thresholds) -> str:
    """How many pairs are in each band, a sentence each."""
    low, high = in_words(found) if found.scope == "all" else ("its anchor's low", "its anchor's high")
    pairs = found.n_negatives + found.n_positives
    false, hard, easy = chosen(found.table["low"], found.low)
    first, second = "none reaches high, so none is a likely false negative.", "None is a hard negative."
    if false:
        share = f"{false} ({100 * false / pairs:.3g} %)"
        first = f"{share} score at or above {high}: likely false negatives, to drop or to check."
    if hard:
        share = f"{hard} ({100 * hard / pairs:.3g} %)"
        second = f"{share} score from {low} {'up to there' if false else 'on'}: hard negatives."
    rest = f"The other {easy} negatives are easy." if false or hard else f"All {easy} negatives are easy."
    return f"Of {pairs} pairs, {first} {second} {rest}"


def as_json(name: str, found: Thresholds) -> bytes:
    """The thresholds and tables as JSON; infinity, which JSON does not have, as a string."""
    tables = {
        side: [dict(zip(rows.dtype.names or (), row, strict=True)) for row in rows.tolist()]
        for side, rows in found.table.items()
    }
    names = ("scope", "low", "high", "n_negatives", "n_positives", "false_share", "hard_share", "start_low")
    values = {key: getattr(found, key) for key in (*names, "rank_error", "notes")}
    return json_file({"scores": name, **values, "table": tables}, non_finite=str)


def middle(found: Thresholds) -> tuple[float, float]:
    """The low and high to draw: the medians where each anchor has its own."""
    return float(np.median(found.low)), float(np.median(found.high))


def in_words(found: Thresholds) -> tuple[str, str]:
    """The low and high to draw, as text."""
    (low, high), (false, hard, _) = middle(found), chosen(found.table["low"], found.low)
    return number(low, false + hard), number(high, false)


class Histogram(NamedTuple):
    """Scores in bins of equal width: edges (b + 1,) that rise, and counts (b,)."""

    edges: Floats
    counts: NDArray[np.int64]


def histogram(sketch: ScoreSketch, bins: int) -> Histogram:
    """All scores of the sketch in `bins` bins, as exactly as it counts; the last bin includes its upper edge."""
    low, high = sketch.smallest, sketch.largest
    if low == high:
        low, high = low - max(abs(low), 1) / 2, high + max(abs(high), 1) / 2
    edges = np.linspace(low, high, bins + 1)
    at_least = sketch.at_least(edges)
    at_least[0], at_least[-1] = sketch.n, 0
    return Histogram(edges, -np.diff(at_least))


def column_of(shown: Histogram, value: float) -> int:
    """The bin of a value, or the nearest bin if it is outside."""
    return int(np.clip(np.searchsorted(shown.edges, value, side="right") - 1, 0, len(shown.counts) - 1))


def draw(shown: Histogram, cuts: tuple[float, ...], *, height: int = 9, marks: Marks = BLOCK) -> list[str]:
    """Rows of text: bars as high as the logarithm of the counts, a column at each cut, the axis, its ends and marks."""
    parts, smallest = (_HALVES, 4) if marks is PLAIN else (_EIGHTHS, 1)
    tall = np.log1p(shown.counts) / np.log1p(max(shown.counts.max(), 1)) * 8 * height
    eighths = np.where(shown.counts > 0, np.maximum(np.round(tall), smallest), 0).astype(int)
    places = [column_of(shown, cut) for cut in cuts]
    label, width = f"{shown.counts.max()}", len(shown.counts)
    margin = " " * (len(label) + 1)
    lines = []
    for row in range(height - 1, -1, -1):
        cells = [parts[eighth] for eighth in np.clip(eighths - 8 * row, 0, 8).tolist()]
        for place in places:
            cells[place] = marks.side if cells[place] == " " else cells[place]
        head = f"{label} " if row == height - 1 else margin
        lines.append(f"{head}{marks.side}{''.join(cells)}".rstrip())
    left, right = number(float(shown.edges[0])), number(float(shown.edges[-1]))
    below = "".join(marks.best if column in places else " " for column in range(width))
    return [
        *lines,
        f"{margin}{marks.corner}{marks.floor * width}",
        f"{margin} {left}{right:>{width - len(left)}}",
        f"{margin} {below}".rstrip(),
    ]


def figure(name: str, found: Thresholds, sketch: ScoreSketch) -> Spec:
    """A Vega-Lite figure: the scores in their bands, and the share of pairs above any score.

    Thresholds of anchors are shown by their median. A name that is not UTF-8 gets question marks.
    """
    cuts, (low, high) = middle(found), in_words(found)
    heading = f"low = {low}, high = {high}" + ", the median anchor's" * (found.scope == "anchor")
    name = name.encode("utf-8", "replace").decode()
    title = {"text": heading, "subtitle": name, "fontSize": 17, "anchor": "start", "offset": 12, "limit": 980}
    domain = {"domain": histogram(sketch, 1).edges.tolist(), "nice": False, "zero": False}
    x = {"title": "score", "scale": domain}
    return stacked([{"title": title, "hconcat": [_scores(sketch, cuts, x), _shares(found, sketch, cuts, x)]}], 60)


def _scores(sketch: ScoreSketch, cuts: tuple[float, float], x: Spec) -> Spec:
    """Bars over the score, coloured by band."""
    shown = histogram(sketch, _BINS)
    ends = shown.edges.tolist()
    values = [
        {"from": start, "to": stop, "pairs": count, "band": NAMES[sum((start + stop) / 2 >= cut for cut in cuts)]}
        for start, stop, count in zip(ends[:-1], ends[1:], shown.counts.tolist(), strict=True)
    ]
    ticks = {"values": [0, *(10**power for power in range(13))], "format": ","}
    encoding = {
        "x": axis("from", bin={"binned": True}, **x),
        "x2": {"field": "to"},
        "y": axis("pairs", title="negatives, on a log scale", scale={"type": "symlog"}, axis=ticks),
        "color": _BAND,
    }
    bars = layer(values, "bar", encoding, binSpacing=0, clip=True)
    return {"title": "Scores of the negatives", "width": 420, "height": 260, "layer": [bars, _rules(cuts)]}


def _shares(found: Thresholds, sketch: ScoreSketch, cuts: tuple[float, float], x: Spec) -> Spec:
    """The share of pairs at or above a score, with the two given shares as rules."""
    pairs = found.n_negatives + found.n_positives
    places = np.linspace(sketch.smallest, sketch.largest, _POINTS)
    values = [
        {"score": score, "share": count / pairs}
        for score, count in zip(places.tolist(), sketch.at_least(places).tolist(), strict=True)
        if count
    ]
    ticks = {"values": [10.0**-power for power in range(13)], "format": "~%"}
    y = axis("share", title="share of all pairs", scale={"type": "log"}, axis=ticks)
    line = layer(values, "line", {"x": axis("score", **x), "y": y}, strokeWidth=2, color="#000000", clip=True)
    shares = (found.false_share, round(found.false_share + found.hard_share, 12))
    given = [{"share": share} for share in shares if share > 0]
    budgets = layer(given, "rule", {"y": axis("share")}, strokeDash=[5, 4], color="#767676")
    title = {"text": "Pairs at or above a score", "subtitle": "dashed: the given shares, false and false + hard"}
    return {"title": title, "width": 380, "height": 260, "layer": [line, budgets, _rules(cuts)]}


def _rules(cuts: tuple[float, float]) -> Spec:
    values = [{"score": cut, "band": band} for cut, band in zip(cuts, NAMES[1:], strict=True) if np.isfinite(cut)]
    return layer(values, "rule", {"x": axis("score"), "color": _BAND}, strokeWidth=1.5, clip=True)
