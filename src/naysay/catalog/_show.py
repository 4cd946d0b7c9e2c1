"""The catalogue in a terminal: a table of all rows, or one row in full."""

from __future__ import annotations

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from naysay._commands import MethodsOptions
from naysay._console import SafeConsole
from naysay._options import option_names
from naysay.catalog._filter import matching
from naysay.catalog._names import find_other, others
from naysay.catalog._table import Alias, Detector, Loss, Method, detectors, find, losses, methods
from naysay.checks import raise_invalid, with_option_names

_TITLES = {
    "runs": "Other parts of the package",
    "partial": "Partly here",
    "not a sampler": "Not samplers",
    "not here": "Not here",
}


def print_methods(console: Console | None = None) -> None:
    """Print all rows: name, other names, and summary."""
    out = console or SafeConsole()
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
    for status in ("runs", "partial", "not a sampler", "not here"):
        names = ", ".join(name for other in others() if other.status == status for name in other.names)
        out.print(Text(f"{_TITLES[status]}: {names}"))
    out.print("One in full: naysay methods NAME")


@with_option_names("methods", option_names(MethodsOptions))
def show(options: MethodsOptions) -> None:
    """Print what `naysay methods` asks for."""
    if options.name:
        for one in ("data", "needs", "cost"):
            if getattr(options, one):
                raise_invalid(one, "left out with a name", repr(getattr(options, one)))
        print_method(options.name)
    elif options.data or options.needs or options.cost:
        print_matching(matching(options.data, options.needs, options.cost))
    else:
        print_methods()


def print_matching(rows: tuple[Method, ...], console: Console | None = None) -> None:
    """Print some methods, with what they need and what a step costs."""
    out = console or SafeConsole()
    table = Table(title="naysay methods", title_justify="left", header_style="bold", expand=False)
    table.add_column("name", no_wrap=True)
    for heading in ("data", "needs", "step", "draws"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row.name, ", ".join(row.data), ", ".join(row.needs) or "none", row.step, row.summary)
    out.print(table)
    out.print(f"{len(rows)} of {len(methods())} methods. One in full: naysay methods NAME")


def print_method(name: str, console: Console | None = None) -> None:
    """Print one row: paper, formula, parts, cost, and a program that runs as it is."""
    out = console or SafeConsole()
    other = find_other(name)
    if other is not None:
        out.print(Text(f"{other.name}: {other.status}", style="bold"))
        grid = Table.grid(padding=(0, 2))
        arm, nearest = other.parts.startswith("naysay compare"), other.status.startswith("not")
        parts = "compare" if arm else "nearest" if nearest else "parts"
        for label, value in (("", other.note), (parts, other.parts), ("paper", other.cited)):
            if value:
                grid.add_row(Text(label, style="dim"), Text(value))
        out.print(grid)
        _print_example(other.example, out)
        return
    row, alias = find(name)
    out.print(Text(row.name if alias is None else f"{alias.name}, a name for {row.name}", style="bold"))
    grid = Table.grid(padding=(0, 2))
    for label, value in _facts(row, alias):
        grid.add_row(Text(label, style="dim"), Text(value))
    out.print(grid)
    _print_example(row.example if alias is None else alias.example, out)


def _print_example(code: str, out: Console) -> None:
    """Print a program, if there is one."""
    if not code:
        return
    out.print(Text("\nexample", style="dim"))
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
        facts += [("data", ", ".join(row.data)), ("needs", ", ".join(row.needs) or "none")]
        facts += [("step", f"{row.step}, against dynamic")]
    elif isinstance(row, Loss):
        over = "a positive and its slots of negatives" if row.over == "slots" else "the vectors of a batch"
        facts += [("over", over), ("formula", row.formula)]
    else:
        facts += [("kind", row.kind), ("suspicion", row.formula), ("parts", row.parts)]
    facts += [("paper", row.cited if alias is None else alias.cited), ("cost", row.cost)]
    if alias is None and len(row.names) > 1:
        facts.append(("also", ", ".join(row.names[1:])))
    return facts
