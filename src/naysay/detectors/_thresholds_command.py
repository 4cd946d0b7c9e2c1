"""The command `naysay thresholds`: read scores, choose thresholds, print them, write JSON and a figure."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, DecimalException

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from naysay._commands import ThresholdOptions
from naysay._console import SafeConsole, progress_on
from naysay._options import option_names
from naysay.arrays import Floats
from naysay.checks import raise_invalid, shown, with_option_names
from naysay.detectors._scores import open_scores
from naysay.detectors.bands import NAMES
from naysay.detectors.thresholds import ScoreCounts, Thresholds, choose_thresholds, count_scores, shown_number
from naysay.places import check_apart, check_target, write_whole
from naysay.plots import Spec, as_picture, axis, check_picture, layer, stacked
from naysay.text import json_file

_MAX_VALUES = 100_000  # of a grid
_GRID_RULE = "numbers separated by commas, or first:last:step"
_BINS = 120  # of the histogram in the figure
_COLOURS = ["#999999", "#0072B2", "#D55E00"]  # Okabe and Ito's, which colour-blind readers can tell apart
_BAND = {"field": "band", "type": "nominal", "scale": {"domain": [*NAMES], "range": _COLOURS}}
_GUESS = (
    "The shares are a guess about the data: scores alone do not show how many negatives are false. Where scores of "
    "known positives are available, use naysay.detectors.Calibrated instead."
)


@with_option_names("thresholds", option_names(ThresholdOptions))
def thresholds(options: ThresholdOptions, *, console: Console | None = None) -> Thresholds:
    """Choose thresholds for a file of scores, print them, write --json and --plot, and return them."""
    out, plot, json = console or SafeConsole(), options.plot, options.json
    for parameter, path in (("plot", plot), ("json", json)):
        if path is not None:
            check_target(parameter, path)
    check_apart({"plot": plot, "json": json}, {"scores": options.scores})
    if plot is not None:
        check_picture("plot", plot)
    grid = _read_grids(options.low_grid, options.high_grid)
    n_passes = (2 if grid is None else 1) + (2 if plot is not None else 0)
    columns = (TextColumn("reading scores"), BarColumn(), TimeRemainingColumn())
    with progress_on(SafeConsole(stderr=True, quiet=out.quiet), columns) as progress:
        blocks = open_scores(options.scores, options.column or None)
        task = progress.add_task("reading scores", total=n_passes * blocks.rows)
        blocks = replace(blocks, on_rows=lambda rows: progress.advance(task, rows))
        found = choose_thresholds(
            blocks,
            n_positives=options.positives,
            false_share=options.false_share,
            hard_share=options.hard_share,
            grid=grid,
            start_low=options.start_low,
        )
        if plot is not None:
            ends = count_scores(blocks, np.zeros(0))
            edges = np.linspace(ends.smallest, ends.largest, _BINS + 1)
            drawn = figure(str(options.scores), found, edges, count_scores(blocks, edges))
    print_thresholds(str(options.scores), found, out)
    if json is not None:
        write_whole("json", json, as_json(str(options.scores), found))
    if plot is not None:
        write_whole("plot", plot, as_picture(drawn, plot.suffix.lower()))
    return found


def _read_grids(low: str, high: str) -> tuple[list[float], list[float]] | None:
    """Both grids, or neither."""
    if bool(low) != bool(high):
        given, missing = ("--low-grid", "--high-grid") if low else ("--high-grid", "--low-grid")
        raise_invalid(missing, f"given together with {given}", "nothing")
    return (read_grid("--low-grid", low), read_grid("--high-grid", high)) if low else None


def read_grid(option: str, text: str) -> list[float]:
    """The values of a grid option. A range includes its last value; its steps are decimal, so 0.121 below is exact.

    Examples:
        >>> read_grid("--low-grid", "0.12:0.123:0.001")
        [0.12, 0.121, 0.122, 0.123]
    """
    is_range = ":" in text
    try:
        numbers = [Decimal(part.strip()) for part in text.split(":" if is_range else ",")]
        if not all(number.is_finite() for number in numbers) or (is_range and len(numbers) != 3):
            raise_invalid(option, _GRID_RULE, shown(text))
        if not is_range:
            return [float(number) for number in numbers]
        first, last, step = numbers
        if step <= 0 or last < first:
            raise_invalid(option, "a range that rises by a step above 0", shown(text))
        steps = (last - first) / step
    except DecimalException:  # not a number, or an exponent out of range
        raise_invalid(option, _GRID_RULE, shown(text))
    if steps >= _MAX_VALUES:
        raise_invalid(option, f"a range of at most {_MAX_VALUES} values", shown(text))
    return [float(first + place * step) for place in range(int(steps) + 1)]


def print_thresholds(name: str, found: Thresholds, console: Console) -> None:
    """Print the thresholds of the scores called `name`, how to use them, both tables and what they mean."""
    safe_name = name.encode(console.encoding, "replace").decode(console.encoding)  # what the terminal can show
    low, high = _in_words(found)
    console.print(Text(f"low = {low}, high = {high}", style="bold"), Text(f"for {safe_name}"), soft_wrap=True)
    bands = f"naysay.detectors.Bands({found.low!r}, {found.high!r})"
    use = f"Use: {bands}, or naysay mine --judge bands:{found.low!r},{found.high!r}"
    for line in (use, "", *str(found).splitlines(), ""):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"{meaning(found)}\n"))
    for note in (*found.notes, _GUESS):
        console.print(Text(f"Note: {note}"))


def meaning(found: Thresholds) -> str:
    """How many pairs are in each band, a sentence each."""
    low, high = _in_words(found)
    pairs = found.n_negatives + found.n_positives
    false, hard, easy = found.counts.values()
    first, second = "none reaches high, so none is a likely false negative.", "None is a hard negative."
    if false:
        share = f"{false} ({100 * false / pairs:.3g} %)"
        first = f"{share} score at or above {high}: likely false negatives, to drop or to check."
    if hard:
        share = f"{hard} ({100 * hard / pairs:.3g} %)"
        second = f"{share} score from {low} {'up to there' if false else 'on'}: hard negatives."
    rest = f"The other {easy} negatives are easy." if false or hard else f"All {easy} negatives are easy."
    return f"Of {pairs} pairs, {first} {second} {rest}"


def _in_words(found: Thresholds) -> tuple[str, str]:
    """Low and high as text."""
    counts = found.counts
    return shown_number(found.low, counts["false"] + counts["hard"]), shown_number(found.high, counts["false"])


def as_json(name: str, found: Thresholds) -> bytes:
    """The thresholds and tables as JSON; infinity, which JSON does not have, as a string."""
    tables = {
        side: [dict(zip(rows.dtype.names or (), row, strict=True)) for row in rows.tolist()]
        for side, rows in found.table.items()
    }
    names = ("low", "high", "n_negatives", "n_positives", "false_share", "hard_share", "start_low", "notes")
    values = {key: getattr(found, key) for key in names}
    return json_file({"scores": name, **values, "table": tables}, non_finite=str)


def figure(name: str, found: Thresholds, edges: Floats, counts: ScoreCounts) -> Spec:
    """A Vega-Lite figure: the scores in their bands, and the share of pairs above any score.

    A name that is not UTF-8 gets question marks.
    """
    low, high = _in_words(found)
    title = {
        "text": f"low = {low}, high = {high}",
        "subtitle": name.encode("utf-8", "replace").decode(),
        "fontSize": 17,
        "anchor": "start",
        "offset": 12,
        "limit": 980,
    }
    domain = {"domain": [counts.smallest, counts.largest], "nice": False, "zero": False}
    x = {"title": "score", "scale": domain}
    panels = [_histogram(found, edges, counts, x), _shares(found, edges, counts, x)]
    return stacked([{"title": title, "hconcat": panels}], 60)


def _histogram(found: Thresholds, edges: Floats, counts: ScoreCounts, x: Spec) -> Spec:
    """Bars over the score, coloured by band."""
    in_bins = -np.diff(counts.at_least)
    in_bins[-1] += counts.at_least[-1]  # the last bin includes its upper edge
    ends = edges.tolist()
    values = []
    for start, stop, count in zip(ends[:-1], ends[1:], in_bins.tolist(), strict=True):
        middle = (start + stop) / 2
        band = NAMES[int(middle >= found.low) + int(middle >= found.high)]
        values.append({"from": start, "to": stop, "pairs": count, "band": band})
    ticks = {"values": [0, *(10**power for power in range(13))], "format": ","}
    encoding = {
        "x": axis("from", bin={"binned": True}, **x),
        "x2": {"field": "to"},
        "y": axis("pairs", title="negatives, on a log scale", scale={"type": "symlog"}, axis=ticks),
        "color": _BAND,
    }
    bars = layer(values, "bar", encoding, binSpacing=0, clip=True)
    return {"title": "Scores of the negatives", "width": 420, "height": 260, "layer": [bars, _rules(found)]}


def _shares(found: Thresholds, edges: Floats, counts: ScoreCounts, x: Spec) -> Spec:
    """The share of pairs at or above a score, with the two given shares as rules."""
    pairs = found.n_negatives + found.n_positives
    values = [
        {"score": score, "share": count / pairs}
        for score, count in zip(edges.tolist(), counts.at_least.tolist(), strict=True)
        if count
    ]
    ticks = {"values": [10.0**-power for power in range(13)], "format": "~%"}
    y = axis("share", title="share of all pairs", scale={"type": "log"}, axis=ticks)
    line = layer(values, "line", {"x": axis("score", **x), "y": y}, strokeWidth=2, color="#000000", clip=True)
    shares = (found.false_share, round(found.false_share + found.hard_share, 12))
    given = [{"share": share} for share in shares if share > 0]
    budgets = layer(given, "rule", {"y": axis("share")}, strokeDash=[5, 4], color="#767676")
    title = {"text": "Pairs at or above a score", "subtitle": "dashed: the given shares, false and false + hard"}
    return {"title": title, "width": 380, "height": 260, "layer": [line, budgets, _rules(found)]}


def _rules(found: Thresholds) -> Spec:
    """Both thresholds as vertical lines."""
    thresholds = zip((found.low, found.high), NAMES[1:], strict=True)
    values = [{"score": value, "band": band} for value, band in thresholds if np.isfinite(value)]
    return layer(values, "rule", {"x": axis("score"), "color": _BAND}, strokeWidth=1.5, clip=True)
