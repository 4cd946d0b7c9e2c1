"""The command `naysay howmany`: read a run or simulate some, estimate k, print, and write JSON and figures."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from naysay._commands import HowmanyOptions
from naysay._options import option_names
from naysay.checks import check_number, raise_invalid, with_option_names
from naysay.files import check_apart, check_target, write_whole
from naysay.plots import BLOCK, PLAIN, as_picture, check_picture, terminal_curve
from naysay.quantity._curve_file import read_curve
from naysay.quantity._figures import figure
from naysay.quantity.estimate import Estimate, estimate
from naysay.quantity.separation import auc
from naysay.quantity.simulated import simulated


@with_option_names("howmany", option_names(HowmanyOptions))
def howmany(options: HowmanyOptions, *, console: Console | None = None) -> list[Estimate]:
    """Estimate k for one run from its AUCs, or for each separation on a simulated run; print, write and return."""
    out, plot, json = console or Console(), options.plot, options.json
    for parameter, path in (("plot", plot), ("json", json)):
        if path is not None:
            check_target(parameter, path)
    check_apart({"plot": plot, "json": json}, {"val_auc": Path(options.val_auc) if options.val_auc else None})
    if plot is not None:
        check_picture("plot", plot)
    if not options.separation:
        runs = [_measured(options)]
    elif options.train_auc is None and not options.val_auc and not options.column:
        runs = [_simulated(mu, options.weight, options.k_max) for mu in options.separation]
    else:
        raise_invalid("separation", "left out where AUCs are given", "both", "Give a run or separations.")
    for place, (name, found) in enumerate(runs):
        if place:
            out.rule(characters="-")
        print_estimate(name, found, out)
    if json is not None:
        write_whole("json", json, as_json(runs))
    if plot is not None:
        write_whole("plot", plot, as_picture(figure(runs), plot.suffix.lower()))
    return [found for _, found in runs]


def _measured(options: HowmanyOptions) -> tuple[str, Estimate]:
    """The name and the estimate of a run given by its AUCs."""
    advice = "Or give `separation` for a simulated run."
    train_auc, val_auc = options.train_auc, options.val_auc
    if train_auc is None:
        raise_invalid("train_auc", "given", "nothing", advice)
    if not val_auc:
        raise_invalid("val_auc", "given", "nothing", advice)
    curve = read_curve(val_auc, options.column)
    found = estimate(train_auc, curve, weight=options.weight, k_max=options.k_max)
    short = val_auc if len(val_auc) <= 60 else f"{val_auc[:57]}..."
    return f"training AUC {train_auc:g} and validation AUC {short}", found


def _simulated(mu: float, weight: float, k_max: int) -> tuple[str, Estimate]:
    """The name and the estimate of the run that the paper simulates for a separation."""
    check_number("separation", mu, above=0, finite=True)
    found = estimate(auc(mu), auc(simulated(mu)), weight=weight, k_max=k_max)
    return f"a simulated run at separation {mu:g}", found


def print_estimate(name: str, found: Estimate, console: Console) -> None:
    """Print the result on one line, what to do on the next, then the reason, the curve and the notes."""
    marks = BLOCK if console.encoding.startswith("utf") else PLAIN
    safe = name.encode(console.encoding, "replace").decode(console.encoding)
    result = Text.assemble((f"k = {found.k}", "bold"), f" negatives per positive, for {safe}")
    console.print(result, soft_wrap=True)
    console.print(Text(_advice(found)), soft_wrap=True)
    console.print()
    console.print(Text(_reason(found)))
    console.print()
    points = f"{len(found.reached)} validation point{'s' if len(found.reached) > 1 else ''}"
    console.print(Text(f"v over k, weight {found.weight:g}, the mean of {points}:"))
    for line in terminal_curve(found.curve, found.k, found.flat, console.width - 1, marks=marks):
        console.print(Text(line, no_wrap=True, overflow="ignore", end=""), crop=False)
    low, high = found.flat
    console.print(Text(f"{marks.best} best k = {found.k}   {marks.flat} within 1 % of it: k = {low} to {high}"))
    for note in found.notes:
        console.print()
        console.print(Text(f"Note: {note}"))


def _advice(found: Estimate) -> str:
    """What to do, in one sentence."""
    schedule = f"naysay.quantity.adaptive(peak={found.k}, steps=STEPS)"
    low, high = found.flat
    if found.carried_by_easy:
        return "Improve the labels, or use the cheapest k: with these labels k hardly matters."
    if found.at_edge and found.separation == float("inf"):
        return "Use as many negatives as you can afford: the labels have no noise."
    if found.at_edge:
        return f"Raise --k-max above {found.k}: the best k may be larger."
    if low == high:
        return f"Use k = {found.k}, or a schedule: k_at = {schedule}"
    return f"Use any k from {low} to {high}, or a schedule: k_at = {schedule}"


def _reason(found: Estimate) -> str:
    """Why this k: v there and at 1, and what more negatives do to it."""
    best, one, many = found.curve[found.k - 1], found.curve[0], 1 - found.weight
    labels = f"The labels have a training AUC of {auc(found.separation):.4g} (separation {found.separation:.3g})"
    at_best = f"v is largest at k = {found.k}: {best:.4g}, against {one:.4g} at k = 1"
    if found.separation == float("inf"):
        return f"{labels} and no noise, so every negative helps: {at_best}."
    return (
        f"{labels}. Fewer negatives teach less, more make the labels unreliable: {at_best}, "
        f"and {many:.4g} (1 - weight) in the limit of many."
    )


def as_json(runs: Sequence[tuple[str, Estimate]]) -> bytes:
    """All results as a JSON list, one entry for each run; infinity, which JSON does not have, as a string."""
    entries = [
        {
            "run": name,
            "k": found.k,
            "at_edge": found.at_edge,
            "flat": list(found.flat),
            "carried_by_easy": found.carried_by_easy,
            "weight": found.weight,
            "separation": _finite(found.separation),
            "reached": [_finite(value) for value in found.reached.tolist()],
            "notes": list(found.notes),
            "curve": found.curve.tolist(),
        }
        for name, found in runs
    ]
    return (json_module.dumps(entries, indent=1, allow_nan=False) + "\n").encode()


def _finite(value: float) -> Any:
    return value if abs(value) < float("inf") else str(value)
