"""The command `naysay thresholds`: read scores, choose thresholds, print and write them."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from naysay.checks import public, raise_invalid, shown, with_option_names
from naysay.detectors._score_inputs import open_scores
from naysay.detectors._thresholds_figure import figure
from naysay.detectors._thresholds_show import as_json, print_thresholds
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.thresholds import Thresholds, choose_thresholds
from naysay.files import check_apart, check_target, write_whole
from naysay.plots import as_picture, check_picture

_MAX_VALUES = 100_000
_RULE = "numbers separated by commas, or first:last:step"
_OPTIONS = {
    "n_positives": "--positives",
    "false_share": "--false-share",
    "hard_share": "--hard-share",
    "start_low": "--start-low",
    "grid": "--low-grid",
    "column": "--column",
    "scope": "--scope",
}


@public
def thresholds(
    scores: Path,
    *,
    column: str = "",
    positives: int = 0,
    false_share: float = 0.001,
    hard_share: float = 0.05,
    low_grid: str = "",
    high_grid: str = "",
    start_low: float = 0.0,
    scope: str = "all",
    plot: Path | None = None,
    json: Path | None = None,
    console: Console | None = None,
) -> Thresholds:
    """Choose thresholds for a file of scores, print them, write --json and --plot, and return them.

    The file is read in blocks, two or three times.
    """
    out = console or Console()
    for parameter, path in (("--plot", plot), ("--json", json)):
        if path is not None:
            check_target(parameter, path)
    check_apart({"--plot": plot, "--json": json}, {"scores": scores})
    if plot is not None:
        check_picture("--plot", plot)
    if bool(low_grid) != bool(high_grid):
        given, missing = ("--low-grid", "--high-grid") if low_grid else ("--high-grid", "--low-grid")
        raise_invalid(missing, f"given together with {given}", "nothing")
    grid = None
    if low_grid:
        grid = (read_grid("--low-grid", low_grid), read_grid("--high-grid", high_grid))
    passes = 2 if low_grid or scope == "anchor" else 3  # the last of them for the drawing
    columns = (TextColumn("reading scores"), BarColumn(), TimeRemainingColumn())
    errors = Console(stderr=True)
    with (
        Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress,
        with_option_names("thresholds", _OPTIONS),
    ):
        task = progress.add_task("", total=None)
        blocks = open_scores(scores, column or None, lambda rows: progress.advance(task, rows))
        progress.update(task, total=passes * (blocks.rows or 0))
        found = choose_thresholds(
            blocks,
            n_positives=positives,
            false_share=false_share,
            hard_share=hard_share,
            grid=grid,
            start_low=start_low,
            scope=scope,
        )
        sketch = ScoreSketch()
        for block in blocks.flat():
            sketch.add(block)
    name = str(scores)
    print_thresholds(name, found, sketch, out)
    if json is not None:
        write_whole("--json", json, as_json(name, found))
    if plot is not None:
        write_whole("--plot", plot, as_picture(figure(name, found, sketch), plot.suffix.lower()))
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
    except InvalidOperation:
        raise_invalid(option, _RULE, shown(text))
    if not all(number.is_finite() for number in numbers) or (is_range and len(numbers) != 3):
        raise_invalid(option, _RULE, shown(text))
    if not is_range:
        return [float(number) for number in numbers]
    first, last, step = numbers
    if step <= 0 or last < first:
        raise_invalid(option, "a range that rises by a step above 0", shown(text))
    if (last - first) / step >= _MAX_VALUES:
        raise_invalid(option, f"a range of at most {_MAX_VALUES} values", shown(text))
    return [float(first + place * step) for place in range(int((last - first) / step) + 1)]
