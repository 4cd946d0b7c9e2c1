"""The catalogue on a terminal: a table of all rows, or one row in full."""

from __future__ import annotations

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from naysay.catalog import Alias, Loss, Method, Suspect, detectors, find, losses, methods


def print_methods(console: Console | None = None) -> None:
    """All rows: name, other names, and what it draws or what is minimised."""
    out = console or Console()
    for title, what, rows in (
        ("naysay methods", "draws", methods()),
        ("naysay losses", "what is minimised", losses()),
        ("naysay detectors", "suspects", detectors()),
    ):
        table = Table(title=title, title_justify="left", header_style="bold", expand=False)
        for heading in ("name", "also known as", what):
            table.add_column(heading, no_wrap=heading == "name")
        for row in rows:
            table.add_row(row.name, ", ".join(row.names[1:]), row.summary)
        out.print(table)
    out.print("One in full: naysay methods NAME")


def print_method(name: str, console: Console | None = None) -> None:
    """One row: paper, formula, parts, cost, and an example that runs as it stands."""
    row, alias = find(name)
    out = console or Console()
    title = row.name if alias is None else f"{alias.name}, a name for {row.name}"
    out.print(Text(title, style="bold"))
    if isinstance(row, Method):
        told = _of_method(row, alias)
    else:
        told = _of_loss(row) if isinstance(row, Loss) else _of_detector(row)
    lines = [("", row.summary), *told]
    if alias is None and len(row.names) > 1:
        lines.append(("also", ", ".join(row.names[1:])))
    grid = Table.grid(padding=(0, 2))
    for label, value in lines:
        grid.add_row(Text(label, style="dim"), Text(value))
    out.print(grid)
    out.print(Text("\nexample", style="dim"))
    code = row.example if alias is None else alias.example
    if out.is_terminal:
        out.print(Syntax(code, "python", background_color="default"))
    else:
        out.print(Text(code), soft_wrap=True)


def _of_method(method: Method, alias: Alias | None) -> list[tuple[str, str]]:
    return [
        *([("here", alias.note)] if alias is not None else []),
        ("kind", f"{method.kind}, from the {method.pool} pool"),
        ("formula", method.formula),
        ("parts", method.parts),
        ("paper", method.paper if alias is None else alias.paper),
        ("cost", method.cost),
    ]


def _of_loss(loss: Loss) -> list[tuple[str, str]]:
    over = "a positive and its slots of negatives" if loss.over == "slots" else "the vectors of a batch"
    return [("over", over), ("formula", loss.formula), ("paper", loss.paper), ("cost", loss.cost)]


def _of_detector(row: Suspect) -> list[tuple[str, str]]:
    return [
        ("kind", row.kind),
        ("suspicion", row.formula),
        ("parts", row.parts),
        ("paper", row.paper),
        ("cost", row.cost),
    ]
