"""The catalogue in a terminal: a table of all rows, or one row in full."""

from __future__ import annotations

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from naysay.catalog._table import Alias, Detector, Loss, Method, detectors, find, losses, methods
from naysay.checks import with_option_names


def print_methods(console: Console | None = None) -> None:
    """Print all rows: name, other names, and summary."""
    out = console or Console()
    for title, heading, rows in (
        ("naysay methods", "draws", methods()),
        ("naysay losses", "minimises", losses()),
        ("naysay detectors", "flags", detectors()),
    ):
        table = Table(title=title, title_justify="left", header_style="bold", expand=False)
        table.add_column("name", no_wrap=True)
        table.add_column("also known as")
        table.add_column(heading)
        for row in rows:
            table.add_row(row.name, ", ".join(row.names[1:]), row.summary)
        out.print(table)
    out.print("One in full: naysay methods NAME")


@with_option_names("methods", {})
def print_method(name: str, console: Console | None = None) -> None:
    """Print one row: paper, formula, parts, cost, and a program that runs as it is."""
    row, alias = find(name)
    out = console or Console()
    out.print(Text(row.name if alias is None else f"{alias.name}, a name for {row.name}", style="bold"))
    grid = Table.grid(padding=(0, 2))
    for label, value in _facts(row, alias):
        grid.add_row(Text(label, style="dim"), Text(value))
    out.print(grid)
    out.print(Text("\nexample", style="dim"))
    code = row.example if alias is None else alias.example
    if out.is_terminal:
        out.print(Syntax(code, "python", background_color="default"))
    else:
        out.print(Text(code), soft_wrap=True)


def _facts(row: Method | Loss | Detector, alias: Alias | None) -> list[tuple[str, str]]:
    """(label, value) of everything but the program."""
    facts = [("", row.summary)]
    if alias is not None:
        facts.append(("here", alias.note))
    if isinstance(row, Method):
        parts = row.parts if alias is None else alias.parts or row.parts
        facts += [("kind", f"{row.kind}, from the {row.pool} pool"), ("formula", row.formula), ("parts", parts)]
    elif isinstance(row, Loss):
        over = "a positive and its slots of negatives" if row.over == "slots" else "the vectors of a batch"
        facts += [("over", over), ("formula", row.formula)]
    else:
        facts += [("kind", row.kind), ("suspicion", row.formula), ("parts", row.parts)]
    facts += [("paper", row.paper if alias is None else alias.paper), ("cost", row.cost)]
    if alias is None and len(row.names) > 1:
        facts.append(("also", ", ".join(row.names[1:])))
    return facts
