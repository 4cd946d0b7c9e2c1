"""The command line: one function per command, each calling one library function.

A refusal is printed as one sentence, never a traceback, and the exit code is 2.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from naysay.errors import MissingExtraError, NaysayError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="The negatives that contrastive and embedding models learn from.",
)


@app.callback(invoke_without_command=True)
def about(*, version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """The negatives that contrastive and embedding models learn from."""
    if version:
        from naysay import __version__

        typer.echo(f"naysay {__version__}")
        raise typer.Exit


@app.command()
def methods(name: Annotated[str, typer.Argument(help="A method or one of its names; all without it.")] = "") -> None:
    """List the catalogue, or show one method: paper, formula, parts, cost and an example."""
    from naysay.catalog.show import print_method, print_methods

    print_method(name) if name else print_methods()


@app.command()
def demo(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller world, in a few seconds.")] = False,
    seed: Annotated[int, typer.Option(help="Another seed, another world.")] = 0,
) -> None:
    """Draw negatives on a generated world, check them, and print speed and the false-negative rate."""
    from naysay.demo import run

    run(quick=quick, seed=seed)


def main() -> None:
    """Run a command; print a refusal as its sentence."""
    try:
        app()
    except (NaysayError, MissingExtraError) as refusal:
        typer.echo(f"naysay: {refusal}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
