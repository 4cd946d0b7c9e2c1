"""The command `naysay howmany`: read a run or simulate some, estimate, print, and write what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from naysay.checks import public, raise_invalid
from naysay.files import check_apart, check_target, write_whole
from naysay.plots import as_picture, check_picture
from naysay.quantity._curve_file import read_curve
from naysay.quantity._figures import figure
from naysay.quantity._json import as_json
from naysay.quantity._show import print_estimate
from naysay.quantity.estimate import Estimate, estimate
from naysay.quantity.separation import auc
from naysay.quantity.simulated import simulated


@public
def howmany(
    *,
    train_auc: float | None = None,
    val_auc: str = "",
    column: str = "",
    separations: Sequence[float] = (),
    weight: float = 0.9,
    k_max: int = 1000,
    plot: Path | None = None,
    json: Path | None = None,
    console: Console | None = None,
) -> list[Estimate]:
    """Estimate k for one run by its AUCs, or for each of the separations on a simulated run; print, write, return."""
    out = console or Console()
    for parameter, path in (("--plot", plot), ("--json", json)):
        if path is not None:
            check_target(parameter, path)
    check_apart({"--plot": plot, "--json": json}, {"--val-auc": Path(val_auc) if val_auc else None})
    if plot is not None:
        check_picture("--plot", plot)
    if not separations:
        runs = [_measured(train_auc, val_auc, column, weight, k_max)]
    elif train_auc is None and not val_auc and not column:
        runs = [_simulated(mu, weight, k_max) for mu in separations]
    else:
        raise_invalid("--separation", "left out where AUCs are given", "both", "Give a run or separations.")
    for place, (name, found) in enumerate(runs):
        if place:
            out.rule(characters="-")
        print_estimate(name, found, out)
    if json is not None:
        write_whole("--json", json, as_json(runs))
    if plot is not None:
        write_whole("--plot", plot, as_picture(figure(runs), plot.suffix.lower()))
    return [found for _, found in runs]


def _measured(train_auc: float | None, val_auc: str, column: str, weight: float, k_max: int) -> tuple[str, Estimate]:
    """The run that AUCs describe, and what to call it."""
    advice = "Or give --separation for a simulated run."
    if train_auc is None:
        raise_invalid("--train-auc", "given", "nothing", advice)
    if not val_auc:
        raise_invalid("--val-auc", "given", "nothing", advice)
    found = estimate(train_auc, read_curve(val_auc, column), weight=weight, k_max=k_max)
    short = val_auc if len(val_auc) <= 60 else f"{val_auc[:57]}..."
    return f"training AUC {train_auc:g} and validation AUC {short}", found


def _simulated(mu: float, weight: float, k_max: int) -> tuple[str, Estimate]:
    """The run that the paper simulates for a separation, and what to call it."""
    if not 0 < mu < float("inf"):
        raise_invalid("--separation", "above 0 and finite", mu)
    found = estimate(auc(mu), auc(simulated(mu)), weight=weight, k_max=k_max)
    return f"a simulated run at separation {mu:g}", found
