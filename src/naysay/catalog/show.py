"""The catalogue on a terminal: a table of all rows, or one row in full."""

from __future__ import annotations

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from naysay.catalog import find, methods


def print_methods(console: Console | None = None) -> None:
    """All rows: name, other names, and what it draws."""
    table = Table(title="naysay methods", title_justify="left", header_style="bold", expand=False)
    for heading in ("name", "also known as", "draws"):
        table.add_column(heading, no_wrap=heading == "name")
    for method in methods():
        table.add_row(method.name, ", ".join(method.names[1:]), method.summary)
    out = console or Console()
    out.print(table)
    out.print("One in full: naysay methods NAME")


def print_method(name: str, console: Console | None = None) -> None:
    """One row: paper, formula, parts, cost, and an example that runs as it stands."""
    method, alias = find(name)
    out = console or Console()
    title = method.name if alias is None else f"{alias.name}, a name for {method.name}"
    out.print(Text(title, style="bold"))
    lines = [("", method.summary)]
    if alias is not None:
        lines.append(("here", alias.note))
    lines += [
        ("kind", f"{method.kind}, from the {method.pool} pool"),
        ("formula", method.formula),
        ("parts", method.parts),
        ("paper", method.paper if alias is None else alias.paper),
        ("cost", method.cost),
    ]
    if alias is None and len(method.names) > 1:
        lines.append(("also", ", ".join(method.names[1:])))
    grid = Table.grid(padding=(0, 2))
    for label, value in lines:
        grid.add_row(Text(label, style="dim"), Text(value))
    out.print(grid)
    out.print(Text("\nexample", style="dim"))
    code = method.example if alias is None else alias.example
    if out.is_terminal:
        out.print(Syntax(code, "python", background_color="default"))
    else:
        out.print(Text(code), soft_wrap=True)
