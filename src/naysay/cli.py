"""The command line: one function per command, each calling one library function.

An error is printed as one sentence, never a traceback; `main` lists the exit codes.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from naysay._commands import AuditOptions, CompareCommandOptions, HowmanyOptions, MethodsOptions, ThresholdOptions
from naysay._options import command_fields, flag_of, from_command, reader_of
from naysay.errors import MissingExtraError, NaysayError
from naysay.text import printable

_Options = TypeVar("_Options")
_UsageError: Any = typer.BadParameter.__base__  # which typer exports only by its children


class _Commands(TyperGroup):
    """The commands. `mine` gets its options when it runs: they are declared in naysay.mining, which is slow to load."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, _mine_command() if name == "mine" else command, rest


app = typer.Typer(
    cls=_Commands,
    pretty_exceptions_enable=False,
    help="The negatives that contrastive and embedding models learn from.",
)


def _parameters(declaration: Any, panel: str | None = None) -> Iterator[inspect.Parameter]:
    """The fields of a dataclass as typer reads them."""
    hints = get_type_hints(declaration)
    for one in command_fields(declaration):
        flags, written = one.metadata["flags"] or (flag_of(one),), one.metadata["written"]
        read = reader_of(one, hints[one.name])
        hint: Any = str | None if read is not None or hints[one.name] is Any else hints[one.name]
        default = inspect.Parameter.empty if one.default is MISSING else one.default if written is None else written
        if flags[0].startswith("-"):
            shown: Any = typer.Option(*flags, help=one.metadata["help"], rich_help_panel=panel)
        else:
            shown = typer.Argument(help=one.metadata["help"])
        yield inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, shown]
        )


def _show_parameters(run: Any, *parameters: inspect.Parameter) -> None:
    """Give a function of any keywords the signature that typer reads."""
    run.__signature__ = inspect.Signature(parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}


def _takes(declaration: type[_Options]) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Make a function of a dataclass a command whose options are its fields."""

    def decorate(function: Callable[[_Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(**given: Any) -> None:
            from naysay.checks import with_option_names  # slow to load

            with with_option_names(function.__name__, {}):
                options = from_command(declaration, given)
            function(options)

        _show_parameters(run, *_parameters(declaration))
        return run

    return decorate


@app.callback(invoke_without_command=True)
def about(
    ctx: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """The negatives that contrastive and embedding models learn from."""
    if version:
        from naysay import __version__

        typer.echo(f"naysay {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(2)


@app.command()
@_takes(MethodsOptions)
def methods(options: MethodsOptions) -> None:
    """List all methods by question, or those that fit; or show one: paper, what it leaves out, and parts that run."""
    from naysay.catalog._show import show

    show(options)


@app.command()
def demo(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A quarter of the library.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the questions and of the encoder.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.html and results.json. Default: ./naysay-demo.")
    ] = None,
) -> None:
    """Mine negatives on Python's own library in four ways, compare them with the truth, and write a report."""
    from naysay.checks import with_option_names
    from naysay.demo import run

    with with_option_names("demo", {"seed": "--seed", "out": "--out"}):
        run(quick=quick, seed=seed, out=out)


@app.command()
@_takes(HowmanyOptions)
def howmany(options: HowmanyOptions) -> None:
    """Estimate the best number of negatives per positive from the AUCs of a run."""
    from naysay.quantity._command import howmany as run

    run(options)


@app.command()
@_takes(ThresholdOptions)
def thresholds(options: ThresholdOptions) -> None:
    """Choose the thresholds of hard and of likely false negatives, by their shares of all pairs."""
    from naysay.detectors._thresholds_command import thresholds as run

    run(options)


@app.command()
@_takes(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Measure how good the negatives of a training set are: false, too easy, duplicates, k, and what to do."""
    from naysay.audits.command import audit_command

    if not audit_command(options):
        raise typer.Exit(1)


@app.command()
@_takes(CompareCommandOptions)
def compare(options: CompareCommandOptions) -> None:
    """Train a small model with each kind of negatives, and say which to use on this data. Can be resumed."""
    from naysay.lab.command import STOPPED, compare_command

    try:
        compare_command(options)
    except KeyboardInterrupt:
        typer.echo(f"naysay: compare: {STOPPED}", err=True)
        raise typer.Exit(130) from None


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="The .jsonl log of a training run, of naysay.difficulty.Monitor.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The .html file to write. Default: beside the log.")
    ] = None,
    title: Annotated[str, typer.Option(help="The title of the page.")] = "",
) -> None:
    """Draw the log of a training run as one HTML page: hardness, false negatives, gradient, repeats."""
    from naysay.checks import with_option_names
    from naysay.report import report_run

    with with_option_names("report", {"path": "RUN", "output": "--output", "title": "--title"}):
        page = report_run(run, output, title=title)
    typer.echo(printable(f"Wrote {page}."))


@app.command()
def mine() -> None:
    """Mine hard negatives for pairs of texts or ids, and write a training file. Can be stopped and resumed."""


@functools.cache
def _mine_command() -> Any:
    """The command `mine` with its options, as `JobOptions` and `MiningOptions` declare them."""
    from naysay.jobs.command import STOPPED, mine_files
    from naysay.jobs.options import JobOptions
    from naysay.mining.options import MiningOptions

    def run(*, print_config: bool = False, **given: Any) -> None:  # config files are printed before
        try:
            mine_files(**given)
        except KeyboardInterrupt:
            typer.echo(f"naysay: mine: {STOPPED}", err=True)
            raise typer.Exit(130) from None

    _show_parameters(
        run,
        *_parameters(JobOptions, "Files and the job"),
        *_parameters(MiningOptions, "Mining"),
        inspect.Parameter(_PRINT_CONFIG, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_PrintConfig),
    )
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command("mine", cls=_WithConfigFile, help=mine.__doc__)(run)
    return typer.main.get_command(alone)


_PRINT_CONFIG, _NOT_GIVEN = "print_config", "not given"
_PrintConfig = Annotated[bool, typer.Option("--print-config", help="Print all options as a .toml file, and stop.")]


class _WithConfigFile(TyperCommand):
    """The command `mine`: a .toml file in place of the pairs holds defaults of all options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from naysay.checks import with_option_names
        from naysay.jobs.config import SUFFIX, config_text, read_config

        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        file = given.get("pairs")
        if isinstance(file, str) and file.lower().endswith(SUFFIX):
            with with_option_names("mine", {"pairs": "PAIRS"}):
                ctx.default_map = read_config(Path(file))
            args = [*args]
            args.remove(file)
        if given.get(_PRINT_CONFIG):
            ctx.default_map = {"pairs": _NOT_GIVEN, "output": _NOT_GIVEN, **(ctx.default_map or {})}
            super().parse_args(ctx, args)
            typer.echo(
                config_text({name: value for name, value in ctx.params.items() if value != _NOT_GIVEN}), nl=False
            )
            raise typer.Exit
        return super().parse_args(ctx, args)


_command = functools.cache(functools.partial(typer.main.get_command, app))


def main(arguments: list[str] | None = None) -> None:
    """Run a command, and print each error as one sentence, also errors of the system such as a full disk.

    The exit code is 2 after an error, 130 after Ctrl-C, and 141 if the program that reads the output has ended. Code 1
    means that a gate failed. Names that the terminal cannot show are escaped.

    Args:
        arguments: The words of the command line; those of this process by default.
    """
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            sys.exit(_command()(arguments, standalone_mode=False) or 0)
        finally:
            if sys.stdout is not None:  # it is None if the shell closed it
                sys.stdout.flush()
    except BaseException as error:
        causes = {type(cause) for cause in _causes(error)}
        if sys.stdout is sys.__stdout__ and causes & {OSError, BrokenPipeError}:  # else Python flushes again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if BrokenPipeError in causes:
            sys.exit(141)
        if KeyboardInterrupt in causes:
            sys.exit(130)
        if not isinstance(error, (NaysayError, MissingExtraError, OSError, MemoryError, _UsageError)):
            raise
        typer.echo(f"naysay: {_sentence(error)}", err=True)
        sys.exit(2)


def _sentence(error: BaseException) -> str:
    """What to print of an error: control characters are escaped, and an error of the system names its file."""
    if isinstance(error, _UsageError):
        is_of_command = error.ctx is not None and error.ctx.parent is not None
        message = error.format_message().replace("argument(s)", "arguments")
        end = "" if message.endswith((".", "?")) else "."
        return printable(f"{f'{error.ctx.info_name}: ' if is_of_command else ''}{message}{end}")
    if not isinstance(error, OSError):
        return printable(str(error))
    from naysay.files import disk_reason, shown_path

    if isinstance(error.filename, str | bytes):
        what = f"{shown_path(os.fsdecode(error.filename))} cannot be read or written"
    else:
        what = "the output cannot be written"
    return printable(f"{what} ({disk_reason(error)}).")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and the errors that were being handled when it was raised."""
    while error is not None:
        yield error
        error = error.__context__


if __name__ == "__main__":
    main()
