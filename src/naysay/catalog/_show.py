"""The catalogue in a terminal: all names by question, the methods that fit, or one in full."""

from __future__ import annotations

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from naysay._commands import MethodsOptions
from naysay._console import SafeConsole
from naysay._options import option_names
from naysay.catalog._filter import matching
from naysay.catalog._method import Method
from naysay.catalog._table import QUESTIONS, find, methods
from naysay.checks import raise_invalid, with_option_names


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


def print_methods(console: Console | None = None) -> None:
    """Print the names of all methods, by the question that they answer."""
    out = console or SafeConsole()
    for question, words in QUESTIONS.items():
        out.print(Text(f"{words} ({question})", style="bold"))
        names = "; ".join(name for method in methods(question) for name in method.names)
        out.print(Text(f"{names}\n"))
    out.print("One in full: naysay methods NAME")


def print_matching(rows: tuple[Method, ...], console: Console | None = None) -> None:
    """Print some methods, with what they need and what a step costs."""
    out = console or SafeConsole()
    table = Table(title="naysay methods", title_justify="left", header_style="bold", expand=False)
    table.add_column("name", no_wrap=True)
    for heading in ("data", "needs", "step", "draws"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row.name, ", ".join(row.data), ", ".join(row.needs) or "none", row.step, row.note or row.summary)
    out.print(table)
    of = len(methods("where")) + len(methods("which"))
    out.print(f"{len(rows)} of {of} methods. One in full: naysay methods NAME")


def print_method(name: str, console: Console | None = None) -> None:
    """Print all methods of a name: what each is, its paper, what it leaves out, and its parts as a program."""
    out = console or SafeConsole()
    for place, method in enumerate(find(name)):
        if place:
            out.print()
        out.print(Text(f"{method.name} ({method.question})", style="bold"))
        grid = Table.grid(padding=(0, 2))
        for label, value in _facts(method):
            if value:
                grid.add_row(Text(label, style="dim"), Text(value))
        out.print(grid)
        if method.program:
            _print_program(method.program, out)


def _facts(method: Method) -> list[tuple[str, str]]:
    """(label, value) of everything but the program; a value may be empty."""
    return [
        ("", method.summary),
        ("here", method.note),
        ("formula", method.formula),
        ("paper", method.cited),
        ("leaves out", method.leaves_out),
        ("like", method.like),
        ("also", ", ".join(method.also)),
        ("data", ", ".join(method.data)),
        ("needs", (", ".join(method.needs) or "none") if method.step else ""),
        ("step", f"{method.step}, against dynamic" if method.step else ""),
        ("cost", method.cost),
        ("see", method.see),
        ("script", method.example),
    ]


def _print_program(code: str, out: Console) -> None:
    out.print(Text("\nparts", style="dim"))
    if out.is_terminal:
        out.print(Syntax(code, "python", background_color="default"))
    else:
        out.print(Text(code), soft_wrap=True)
