"""The command `naysay thresholds`: read scores, choose, print, and write what was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from naysay.checks import refuse
from naysay.detectors.scores.inputs import open_scores
from naysay.detectors.scores.sketch import ScoreSketch
from naysay.detectors.showing.figure import figure
from naysay.detectors.showing.grid_option import read_grid
from naysay.detectors.showing.show import as_json, print_thresholds
from naysay.detectors.thresholds import Thresholds, choose_thresholds
from naysay.errors import NaysayError
from naysay.quantity.outputs import check_apart, check_target, write_whole
from naysay.quantity.picture import as_picture, check_picture

_OWNER = "thresholds"
_OPTIONS = {
    "n_positives": "--positives",
    "false_share": "--false-share",
    "hard_share": "--hard-share",
    "start_low": "--start-low",
    "grid": "--low-grid",
    "column": "--column",
    "scope": "--scope",
}
# Parameters in a refusal: in backticks, or such that they cannot be taken for a word. What is quoted is the user's.
_NAMES = re.compile(r"""'[^']*'|"[^"]*"|`\w+`|\w+_\w+""")


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
    """Choose thresholds for a file of scores; print, write, return. The file is read in blocks, a few times over."""
    out = console or Console()
    for parameter, path in (("--plot", plot), ("--json", json)):
        if path is not None:
            check_target(_OWNER, parameter, path)
    check_apart(_OWNER, {"--plot": plot, "--json": json}, {"scores": scores})
    if plot is not None:
        check_picture(_OWNER, "--plot", plot)
    if bool(low_grid) != bool(high_grid):
        given, missing = ("--low-grid", "--high-grid") if low_grid else ("--high-grid", "--low-grid")
        refuse(_OWNER, missing, f"given together with {given}", "nothing")
    grid = None
    if low_grid:
        grid = (read_grid(_OWNER, "--low-grid", low_grid), read_grid(_OWNER, "--high-grid", high_grid))
    passes = 2 if low_grid or scope == "anchor" else 3  # the last of them for the drawing
    bar = (TextColumn("reading scores"), BarColumn(), TimeRemainingColumn())
    errors = Console(stderr=True)
    with Progress(*bar, console=errors, transient=True, disable=not errors.is_terminal) as progress, _as_typed():
        task = progress.add_task("", total=None)
        blocks = open_scores(_OWNER, scores, column or None, lambda rows: progress.advance(task, rows))
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
        for block in blocks.flat(_OWNER):
            sketch.add(block)
    name = str(scores)
    print_thresholds(name, found, sketch, out)
    if json is not None:
        write_whole(_OWNER, "--json", json, as_json(name, found))
    if plot is not None:
        write_whole(_OWNER, "--plot", plot, as_picture(_OWNER, figure(name, found, sketch), plot.suffix.lower()))
    return found


@contextmanager
def _as_typed() -> Iterator[None]:
    """Refusals of the library in the words of the command line: `--positives` for `n_positives`."""

    def option(found: re.Match[str]) -> str:
        name = found[0].strip("`")
        return found[0].replace(name, _OPTIONS.get(name, name))

    try:
        yield
    except NaysayError as refusal:
        sentence = re.sub("^choose_thresholds: ", f"{_OWNER}: ", _NAMES.sub(option, str(refusal)))
        raise NaysayError(sentence) from refusal
