"""The command `naysay compare`: compare, show how much time is left, print the table, and say where the report is."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from naysay._commands import CompareCommandOptions, CompareOptions
from naysay._console import SafeConsole
from naysay._options import option_names
from naysay.checks import with_option_names
from naysay.lab._folder import REPORT
from naysay.lab.comparison import compare
from naysay.lab.result import Comparison
from naysay.text import duration

_TITLE = "Test measures, mean ± half of the 95 % CI; best first"
_WIDE = 150  # columns of a terminal that shows the whole table; others show six columns, the report shows all
_SILENT_SECONDS = 30.0  # after which a line is printed where there is no terminal, also within a part of the work
_TELLING = 0.005  # the share of the work after which its speed is told; the first steps are slow
_HEADING = 10  # letters of a line of a heading
STOPPED = "stopped. Finished runs are kept in the folder; the same command continues."


@with_option_names("compare", option_names(CompareCommandOptions))
def compare_command(options: CompareCommandOptions, *, console: Console | None = None) -> Comparison:
    """Compare, and print the table and the recommendation; the folder is ./naysay-compare if none is given."""
    out = console or SafeConsole()
    given = {one.name: getattr(options, one.name) for one in fields(CompareOptions)}
    given["out"] = Path("naysay-compare") if options.out is None else options.out
    with _Progress(SafeConsole(stderr=True)) as progress:
        result = compare(options.data, on_progress=progress.update, **given)
    print_comparison(result, out)
    out.print(Text(f"Report: {given['out'] / REPORT}"), soft_wrap=True)
    return result


class _Progress:
    """A line with the time left on a terminal; elsewhere a line for each new part of the work."""

    def __init__(self, console: Console) -> None:
        self.console, self.status = console, console.status("reading", spinner="line")
        self.began: float | None = None
        self.last, self.printed = "", 0.0

    def __enter__(self) -> _Progress:
        if self.console.is_terminal:
            self.status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.status.stop()

    def update(self, what: str, share: float) -> None:
        """So much of the work is done."""
        now = time.perf_counter()
        if self.began is None or share == 0 or what.endswith(": kept"):  # what was kept says nothing of the speed
            self.began, self.share = now, share
        fresh = share - self.share
        left = f", {duration((now - self.began) * (1 - share) / fresh)} left" if fresh > _TELLING else ""
        done = f", {100 * share:.0f} %{left}"
        if self.console.is_terminal:
            self.status.update(what + done)
        elif what != self.last or now - self.printed > _SILENT_SECONDS:
            self.console.print(Text(what + done), soft_wrap=True)
            self.printed = now
        self.last = what


def print_comparison(result: Comparison, console: Console) -> None:
    """Print what was compared, the table, and the recommendation."""
    console.print(Text(str(result.settings["data"])))
    for note in result.notes:
        console.print(Text(f"Note: {note}"))
    narrow = console.width < _WIDE
    rows = result.table()
    headings = [*rows[0]]
    if narrow:
        headings = [*headings[:4], "ms per step", "still rising"]
    table = Table(title=_TITLE, title_justify="left", box=None if narrow else box.HEAVY_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(
            "\n".join(wrap(heading, _HEADING, break_long_words=False)),
            justify="left" if heading == "negatives" else "right",
            no_wrap=True,
        )
    for row in rows:
        table.add_row(*(Text(row[heading]) for heading in headings))
    console.print(table)
    console.print(Text(result.recommendation, style="bold"))
