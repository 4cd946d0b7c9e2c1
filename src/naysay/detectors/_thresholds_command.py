"""The command `naysay thresholds`: choose thresholds for a file of scores, print them, and write JSON."""

from __future__ import annotations

from decimal import Decimal, DecimalException

from rich.console import Console
from rich.text import Text

from naysay._commands import ThresholdOptions
from naysay._console import SafeConsole
from naysay._options import option_names
from naysay.checks import raise_invalid, shown, with_option_names
from naysay.detectors.thresholds import Thresholds, choose_thresholds, shown_number
from naysay.places import check_apart, check_target, write_whole
from naysay.text import json_file

_MAX_VALUES = 100_000  # of a grid
_GRID_RULE = "numbers separated by commas, or first:last:step"
_GUESS = (
    "The shares are a guess about the data: scores alone do not show how many negatives are false. Where scores of "
    "known positives are available, use naysay.detectors.Calibrated instead."
)


@with_option_names("thresholds", option_names(ThresholdOptions))
def thresholds(options: ThresholdOptions, *, console: Console | None = None) -> Thresholds:
    """Choose thresholds for a file of scores, print them, write --json, and return them."""
    if options.json is not None:
        check_target("json", options.json)
    check_apart({"json": options.json}, {"scores": options.scores})
    chosen = choose_thresholds(
        options.scores,
        n_positives=options.positives,
        false_share=options.false_share,
        hard_share=options.hard_share,
        grid=_read_grids(options.low_grid, options.high_grid),
        start_low=options.start_low,
        column=options.column or None,
    )
    _print(str(options.scores), chosen, console or SafeConsole())
    if options.json is not None:
        write_whole("json", options.json, _as_json(str(options.scores), chosen))
    return chosen


def _read_grids(low: str, high: str) -> tuple[list[float], list[float]] | None:
    """Both grids, or neither."""
    if bool(low) != bool(high):
        given, missing = ("--low-grid", "--high-grid") if low else ("--high-grid", "--low-grid")
        raise_invalid(missing, f"given together with {given}", "nothing")
    return (_read_grid("--low-grid", low), _read_grid("--high-grid", high)) if low else None


def _read_grid(option: str, text: str) -> list[float]:
    """The values of a grid option. A range includes its last value; its steps are decimal, so 0.121 is exact."""
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


def _print(name: str, chosen: Thresholds, console: Console) -> None:
    """Print the thresholds of the scores called `name`, how to use them, both tables and what they mean."""
    safe_name = name.encode(console.encoding, "replace").decode(console.encoding)  # what the terminal can show
    low, high = _in_words(chosen)
    console.print(Text(f"low = {low}, high = {high}", style="bold"), Text(f"for {safe_name}"), soft_wrap=True)
    bands = f"naysay.detectors.Bands({chosen.low!r}, {chosen.high!r})"
    use = f"Use: {bands}, or naysay mine --judge bands:{chosen.low!r},{chosen.high!r}"
    for line in (use, "", *str(chosen).splitlines(), ""):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"{_meaning(chosen)}\n"))
    for note in (*chosen.notes, _GUESS):
        console.print(Text(f"Note: {note}"))


def _meaning(chosen: Thresholds) -> str:
    """How many pairs are in each band, a sentence each."""
    low, high = _in_words(chosen)
    pairs = chosen.n_negatives + chosen.n_positives
    false, hard, easy = chosen.counts.values()
    of_false = "none reaches high, so none is a likely false negative."
    of_hard = "None is a hard negative."
    of_easy = f"All {easy} negatives are easy."
    if false:
        share = f"{false} ({100 * false / pairs:.3g} %)"
        of_false = f"{share} score at or above {high}: likely false negatives, to drop or to check."
    if hard:
        share = f"{hard} ({100 * hard / pairs:.3g} %)"
        of_hard = f"{share} score from {low} {'up to there' if false else 'on'}: hard negatives."
    if false or hard:
        of_easy = f"The other {easy} negatives are easy."
    return f"Of {pairs} pairs, {of_false} {of_hard} {of_easy}"


def _in_words(chosen: Thresholds) -> tuple[str, str]:
    """Low and high as text."""
    counts = chosen.counts
    return shown_number(chosen.low, counts["false"] + counts["hard"]), shown_number(chosen.high, counts["false"])


def _as_json(name: str, chosen: Thresholds) -> bytes:
    """The thresholds and tables as JSON; infinity, which JSON does not have, as a string."""
    tables = {
        side: [dict(zip(rows.dtype.names or (), row, strict=True)) for row in rows.tolist()]
        for side, rows in chosen.table.items()
    }
    names = ("low", "high", "n_negatives", "n_positives", "false_share", "hard_share", "start_low", "notes")
    values = {key: getattr(chosen, key) for key in names}
    return json_file({"scores": name, **values, "table": tables}, non_finite=str)
