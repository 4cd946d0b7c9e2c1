"""The command `naysay thresholds`: read scores, choose thresholds, print and write them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, DecimalException

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from naysay._commands import ThresholdOptions
from naysay._console import SafeConsole, progress_on
from naysay._options import option_names
from naysay.checks import raise_invalid, shown, with_option_names
from naysay.detectors._scores import open_scores
from naysay.detectors._thresholds_show import as_json, figure, print_thresholds
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import Thresholds, choose_thresholds
from naysay.places import check_apart, check_target, write_whole
from naysay.plots import as_picture, check_picture

_MAX_VALUES = 100_000
_RULE = "numbers separated by commas, or first:last:step"


@with_option_names("thresholds", option_names(ThresholdOptions))
def thresholds(options: ThresholdOptions, *, console: Console | None = None) -> Thresholds:
    """Choose thresholds for a file of scores, print them, write --json and --plot, and return them.

    The file is read in blocks, two or three times.
    """
    out, plot, json = console or SafeConsole(), options.plot, options.json
    for parameter, path in (("plot", plot), ("json", json)):
        if path is not None:
            check_target(parameter, path)
    check_apart({"plot": plot, "json": json}, {"scores": options.scores})
    if plot is not None:
        check_picture("plot", plot)
    low, high = options.low_grid, options.high_grid
    if bool(low) != bool(high):
        given, missing = ("--low-grid", "--high-grid") if low else ("--high-grid", "--low-grid")
        raise_invalid(missing, f"given together with {given}", "nothing")
    grid = (read_grid("--low-grid", low), read_grid("--high-grid", high)) if low else None
    passes = 2 if grid is not None or options.scope == "anchor" else 3  # the last of them for the drawing
    columns = (TextColumn("reading scores"), BarColumn(), TimeRemainingColumn())
    errors = SafeConsole(stderr=True, quiet=out.quiet)
    with progress_on(errors, columns) as progress:
        task = progress.add_task("reading scores", total=None)
        blocks = open_scores(options.scores, options.column or None)
        blocks = replace(blocks, on_rows=lambda rows: progress.advance(task, rows))
        progress.update(task, total=passes * (blocks.rows or 0))
        found = choose_thresholds(
            blocks,
            n_positives=options.positives,
            false_share=options.false_share,
            hard_share=options.hard_share,
            grid=grid,
            start_low=options.start_low,
            scope=options.scope,
        )
        sketch = ScoreSketch()
        for block in blocks.flat():
            sketch.add(block)
    name = str(options.scores)
    print_thresholds(name, found, sketch, out)
    if json is not None:
        write_whole("json", json, as_json(name, found))
    if plot is not None:
        write_whole("plot", plot, as_picture(figure(name, found, sketch), plot.suffix.lower()))
    return found


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
            raise_invalid(option, _RULE, shown(text))
        if not is_range:
            return [float(number) for number in numbers]
        first, last, step = numbers
        if step <= 0 or last < first:
            raise_invalid(option, "a range that rises by a step above 0", shown(text))
        steps = (last - first) / step
    except DecimalException:  # not a number, or an exponent out of range
        raise_invalid(option, _RULE, shown(text))
    if steps >= _MAX_VALUES:
        raise_invalid(option, f"a range of at most {_MAX_VALUES} values", shown(text))
    return [float(first + place * step) for place in range(int(steps) + 1)]
