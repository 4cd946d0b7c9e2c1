"""The command line: one function per command, each calling one library function.

A refusal is printed as one sentence, never a traceback, and the exit code is 2.
"""

from __future__ import annotations

import sys
from pathlib import Path
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
    weight: Annotated[float, typer.Option(help="Of good and bad samples against easy ones.")] = 0.9,
    k_max: Annotated[int, typer.Option(help="The largest k to look at.")] = 1000,
    plot: Annotated[Path | None, typer.Option(help="Draw the paper's figures to this .svg or .png file.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all that was found to this file.")] = None,
) -> None:
    """Estimate how many negatives per positive make the most of noisy labels, from the AUCs of a run."""
    from naysay.quantity.howmany import howmany as run

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
        int, typer.Option("--positives", "--n-positives", help="Known positives; they count among all pairs.")
    ] = 0,
    false_share: Annotated[float, typer.Option(help="Of all pairs, that may be false negatives.")] = 0.001,
    hard_share: Annotated[float, typer.Option(help="Of all pairs, that should be hard negatives.")] = 0.05,
    low_grid: Annotated[str, typer.Option(help="Low values to choose among: 0.12,0.121 or first:last:step.")] = "",
    high_grid: Annotated[str, typer.Option(help="High values to choose among, written alike.")] = "",
    start_low: Annotated[float, typer.Option(help="The low at which the table of high values is counted.")] = 0.0,
    scope: Annotated[
        str, typer.Option(help="all: one pair of thresholds; anchor: one for each row of (anchors, n).")
    ] = "all",
    plot: Annotated[Path | None, typer.Option(help="Draw the scores in their bands to this .svg or .png file.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all that was found to this file.")] = None,
) -> None:
    """Choose the scores from which on negatives are hard, and likely false, by their shares of all pairs."""
    from naysay.detectors.threshold_command import thresholds as run

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


def main() -> None:
    """Run a command; print a refusal as its sentence."""
    try:
        app()
    except (NaysayError, MissingExtraError) as refusal:
        typer.echo(f"naysay: {refusal}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
