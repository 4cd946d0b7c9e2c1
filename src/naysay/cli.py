"""The command line: one function per command, each calling one library function.

An error is printed as one sentence, never a traceback, and the exit code is 2.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from naysay.errors import MissingExtraError, NaysayError


class _Commands(TyperGroup):
    """The commands. `mine` gets its options when it runs: they are declared in naysay.mining, which is slow to load."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, _mine_command() if name == "mine" else command, rest


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
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
    from naysay.catalog._show import print_method, print_methods

    print_method(name) if name else print_methods()


@app.command()
def demo(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A quarter of the library and a fifth of the steps.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the split and of the training.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.html and results.json. Default: ./naysay-demo.")
    ] = None,
) -> None:
    """Train on Python's own library with four kinds of negatives, compare them, and write a report."""
    from naysay.checks import with_option_names
    from naysay.demo import run

    with with_option_names("demo", {"seed": "--seed", "out": "--out"}):
        run(quick=quick, seed=seed, out=out)


@app.command()
def howmany(
    *,
    train_auc: Annotated[
        float | None, typer.Option(help="Training AUC at convergence, from a run with one uniform negative.")
    ] = None,
    val_auc: Annotated[
        str, typer.Option(help="Validation AUCs of that run: a .csv, .json or .npy file, or 0.52,0.61,0.66.")
    ] = "",
    column: Annotated[str, typer.Option(help="Which column of the .csv file, if none is named auc or val_auc.")] = "",
    separation: Annotated[
        list[float] | None, typer.Option(help="Instead of AUCs: a separation, on a simulated run. Can be repeated.")
    ] = None,
    weight: Annotated[float, typer.Option(help="Weight of good and bad samples against easy ones.")] = 0.9,
    k_max: Annotated[int, typer.Option(help="The largest k to consider.")] = 1000,
    plot: Annotated[Path | None, typer.Option(help="Draw the paper's figures to this .svg or .png file.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all results to this file.")] = None,
) -> None:
    """Estimate how many negatives per positive make the most of noisy labels, from the AUCs of a run."""
    from naysay.quantity._command import howmany as run

    run(
        train_auc=train_auc,
        val_auc=val_auc,
        column=column,
        separations=separation or (),
        weight=weight,
        k_max=k_max,
        plot=plot,
        json=json,
    )


@app.command()
def thresholds(
    scores: Annotated[Path, typer.Argument(help="Scores of negatives, higher is closer: an .npy or .parquet file.")],
    *,
    column: Annotated[str, typer.Option(help="Which column of the .parquet file, if none is named score.")] = "",
    positives: Annotated[
        int, typer.Option("--positives", "--n-positives", help="Number of known positives; they count among all pairs.")
    ] = 0,
    false_share: Annotated[float, typer.Option(help="Share of all pairs to treat as false negatives.")] = 0.001,
    hard_share: Annotated[float, typer.Option(help="Share of all pairs to treat as hard negatives.")] = 0.05,
    low_grid: Annotated[str, typer.Option(help="Low values to choose among: 0.12,0.121 or first:last:step.")] = "",
    high_grid: Annotated[str, typer.Option(help="High values to choose among, in the same form.")] = "",
    start_low: Annotated[
        float, typer.Option(help="The low threshold at which the table of high values is counted.")
    ] = 0.0,
    scope: Annotated[str, typer.Option(help="all: one pair of thresholds; anchor: one for each row.")] = "all",
    plot: Annotated[Path | None, typer.Option(help="Draw the scores in their bands to this .svg or .png file.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all results to this file.")] = None,
) -> None:
    """Choose the thresholds of hard and of likely false negatives, by their shares of all pairs."""
    from naysay.detectors._thresholds_command import thresholds as run

    run(
        scores,
        column=column,
        positives=positives,
        false_share=false_share,
        hard_share=hard_share,
        low_grid=low_grid,
        high_grid=high_grid,
        start_low=start_low,
        scope=scope,
        plot=plot,
        json=json,
    )


@app.command()
def mine() -> None:
    """Mine hard negatives for pairs of texts or ids, and write a training file. Can be stopped and resumed."""


def _mine_command() -> Any:
    """The command `mine` with its options, as `JobOptions` and `MiningOptions` declare them."""
    from naysay.jobs.command import STOPPED, mine_files
    from naysay.jobs.options import JobOptions
    from naysay.mining.options import MiningOptions

    def run(**given: Any) -> None:
        try:
            mine_files(**given)
        except KeyboardInterrupt:
            typer.echo(f"naysay: mine: {STOPPED}", err=True)
            raise typer.Exit(130) from None

    parameters = [*_parameters(JobOptions, "Files and the job"), *_parameters(MiningOptions, "Mining")]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command("mine", help=mine.__doc__)(run)
    return typer.main.get_command(alone)


def _parameters(declaration: Any, panel: str) -> Iterator[inspect.Parameter]:
    """The fields of a dataclass as typer reads them."""
    from naysay.mining.options import command_fields, flag_of

    hints = get_type_hints(declaration)
    for one in command_fields(declaration):
        flags, read, written = one.metadata["flags"] or (flag_of(one),), one.metadata["read"], one.metadata["written"]
        hint: Any = str | None if read is not None or hints[one.name] is Any else hints[one.name]
        default = inspect.Parameter.empty if one.default is MISSING else one.default if written is None else written
        if flags[0].startswith("-"):
            shown: Any = typer.Option(*flags, help=one.metadata["help"], rich_help_panel=panel)
        else:
            shown = typer.Argument(help=one.metadata["help"])
        yield inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, shown]
        )


@app.command()
def audit(
    negatives: Annotated[Path, typer.Argument(help="A training file: .parquet, .jsonl, .json or .hf, in any format.")],
    *,
    format: Annotated[str, typer.Option(help="triplet, n-tuple, ids, ...; found by the columns if left out.")] = "",
    query_vectors: Annotated[
        Path | None, typer.Option(help="Vectors of the anchors: .npy, .safetensors or .parquet.")
    ] = None,
    corpus_vectors: Annotated[
        Path | None, typer.Option(help="Vectors of the documents: .npy, .safetensors or .parquet.")
    ] = None,
    query_ids: Annotated[
        Path | None, typer.Option(help="Ids of the rows of --query-vectors: .txt, one a line, or a table.")
    ] = None,
    corpus_ids: Annotated[Path | None, typer.Option(help="Ids of the rows of --corpus-vectors.")] = None,
    model: Annotated[str, typer.Option(help="Folder of an encoder, in place of vectors.")] = "",
    query_prompt: Annotated[str, typer.Option(help="Prompt that --model puts before each anchor.")] = "",
    corpus_prompt: Annotated[str, typer.Option(help="Prompt that --model puts before each document.")] = "",
    encoded: Annotated[Path | None, typer.Option(help="Folder in which --model keeps its vectors.")] = None,
    metric: Annotated[str, typer.Option(help="Score of a pair: cosine, dot or l2.")] = "cosine",
    temperature: Annotated[float, typer.Option(help="Temperature of InfoNCE, at which gradients are measured.")] = 0.05,
    alpha: Annotated[float, typer.Option(help="Share of unlabelled positives that the threshold may miss.")] = 0.05,
    fail_above: Annotated[
        str | None, typer.Option(help="Exit with 1 if the estimated false-negative rate is above: 2%, or 0.02.")
    ] = None,
    top: Annotated[int, typer.Option(help="Number of the worst rows to show.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write all results to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the results as one .html file.")] = None,
) -> None:
    """Measure how good the negatives of a training set are: false, too easy, duplicates, k, and what to do."""
    from naysay.auditing.command import audit_command as run

    passes = run(
        negatives,
        format=format,
        query_vectors=query_vectors,
        corpus_vectors=corpus_vectors,
        query_ids=query_ids,
        corpus_ids=corpus_ids,
        model=model,
        query_prompt=query_prompt,
        corpus_prompt=corpus_prompt,
        encoded=encoded,
        metric=metric,
        temperature=temperature,
        alpha=alpha,
        fail_above=fail_above,
        top=top,
        seed=seed,
        json=json,
        report=report,
    )
    if not passes:
        raise typer.Exit(1)


def main() -> None:
    """Run a command, and print errors as one sentence; also those of the system, such as a full disk for the output."""
    try:
        app()
    except (NaysayError, MissingExtraError, OSError) as error:
        try:
            sys.stdout.flush()
        except OSError:  # else Python tries again at its end, and prints a traceback
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        typer.echo(f"naysay: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
