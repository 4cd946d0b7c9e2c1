"""Thresholds on a terminal and as JSON: the choice, both tables, what they mean, the scores, and the next line."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from naysay.detectors._histogram import column_of, draw, histogram
from naysay.detectors._threshold_rows import chosen
from naysay.detectors._thresholds_figure import in_words, middle
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import Thresholds
from naysay.quantity._terminal import BLOCK, PLAIN

_GUESS = (
    "The shares are a guess about the data: how many negatives are false is not in their scores. Where scores of known "
    "positives are at hand, they say more."
)


def print_thresholds(name: str, found: Thresholds, sketch: ScoreSketch, console: Console) -> None:
    """All that the command says; `name` says where the scores come from."""
    marks = BLOCK if console.encoding.startswith("utf") else PLAIN
    safe = name.encode(console.encoding, "replace").decode(console.encoding)  # a file name may hold what it cannot show
    low, high = middle(found)
    low_text, high_text = in_words(found)
    kind = " at the median anchor" if found.scope == "anchor" else ""
    console.print(Text(f"low = {low_text}, high = {high_text}{kind}", style="bold"), Text(f"for {safe}"))
    console.print()
    for line in str(found).splitlines():
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(Text(meaning(found)))
    console.print()
    console.print(Text("Scores, with bars as high as the logarithm of the count:"))
    columns = max(console.width, 40) - len(str(sketch.n)) - 4
    shown = histogram(sketch, columns)
    for line in draw(shown, (low, high), marks=marks):
        bars = Text(line, no_wrap=True, overflow="ignore")
        if marks.side in line:  # not the axis
            start = line.index(marks.side) + 1
            for cut, style in ((low, "yellow"), (high, "red")):
                if cut <= sketch.largest:
                    bars.stylize(style, start + column_of(shown, cut))
        console.print(bars, crop=False)
    console.print(Text(f"{marks.best} low = {low_text}   {marks.best} high = {high_text}"))
    console.print()
    for note in (*found.notes, _GUESS):
        console.print(Text(f"Note: {note}"))
    console.print()
    console.print(Text("Next:"))
    given = f"{low!r}, {high!r}" if found.scope == "all" else "low, high"
    console.print(Text(f"  bands = naysay.detectors.Bands({given})"), soft_wrap=True)


def meaning(found: Thresholds) -> str:
    """What the two thresholds do to the scores, in a sentence for each band."""
    own = found.scope == "anchor"
    low, high = ("its anchor's low", "its anchor's high") if own else in_words(found)
    pairs = found.n_negatives + found.n_positives
    false, hard, easy = chosen(found.table["low"], found.low)
    first = f"{false} ({100 * false / pairs:.3g} %) score at or above {high}: likely false negatives, to be left out or"
    second = f"{hard} ({100 * hard / pairs:.3g} %) score from {low} {'up to there' if false else 'on'}: hard negatives."
    return " ".join(
        [
            f"Of {pairs} pairs,",
            f"{first} looked at." if false else "none reaches high, so none is a likely false negative.",
            second if hard else "None is a hard negative.",
            f"The other {easy} negatives are easy." if false or hard else f"All {easy} negatives are easy.",
        ]
    )


def as_json(name: str, found: Thresholds) -> bytes:
    """All that was found, as JSON; infinity, which JSON does not have, as a string."""
    whole = {
        "scores": name,
        "scope": found.scope,
        "low": _plain(found.low),
        "high": _plain(found.high),
        "n_negatives": found.n_negatives,
        "n_positives": found.n_positives,
        "false_share": found.false_share,
        "hard_share": found.hard_share,
        "start_low": _plain(found.start_low),
        "rank_error": found.rank_error,
        "notes": list(found.notes),
        "table": {
            side: [dict(zip(rows.dtype.names or (), map(_plain, row), strict=True)) for row in rows.tolist()]
            for side, rows in found.table.items()
        },
    }
    return (json.dumps(whole, indent=1, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value.tolist()]
    return value if isfinite(value) else str(value)
