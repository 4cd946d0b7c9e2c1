"""The command `naysay howmany`: read a run or simulate some, estimate k, print, and write JSON and figures."""

from __future__ import annotations

import csv
import json as json_module
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

from naysay._commands import HowmanyOptions
from naysay._console import SafeConsole
from naysay._options import option_names
from naysay.checks import as_floats, check_number, check_one_of, raise_invalid, shown, shown_names, with_option_names
from naysay.files import check_target, read_array, write_whole
from naysay.places import check_apart
from naysay.plots import as_picture, check_picture
from naysay.quantity._figures import figure
from naysay.quantity.effectiveness import Floats, auc, simulated
from naysay.quantity.estimate import Estimate, estimate
from naysay.tables import reading
from naysay.text import json_file

_NAMES = ("val_auc", "auc")  # in this order, where a file has both
_ENTRIES = ("k", "at_edge", "flat", "carried_by_easy", "weight", "separation", "reached", "notes", "curve")


@with_option_names("howmany", option_names(HowmanyOptions))
def howmany(options: HowmanyOptions, *, console: Console | None = None) -> list[Estimate]:
    """Estimate k for one run from its AUCs, or for each separation on a simulated run; print, write and return."""
    out, plot, json = console or SafeConsole(), options.plot, options.json
    for parameter, path in (("plot", plot), ("json", json)):
        if path is not None:
            check_target(parameter, path)
    check_apart({"plot": plot, "json": json}, {"val_auc": Path(options.val_auc) if options.val_auc else None})
    if plot is not None:
        check_picture("plot", plot)
    if not options.separation:
        runs = dict([_measured(options)])
    elif options.train_auc is None and not options.val_auc and not options.column:
        for mu in options.separation:
            check_number("separation", mu, above=0, finite=True)
        runs = {
            f"a simulated run at separation {mu:g}": estimate(
                auc(mu), auc(simulated(mu)), weight=options.weight, k_max=options.k_max
            )
            for mu in options.separation
        }
    else:
        raise_invalid("separation", "left out where AUCs are given", "both", "Give a run or separations.")
    if json is not None:  # before printing, which a closed pipe ends
        entries = [{"run": run, **{name: getattr(found, name) for name in _ENTRIES}} for run, found in runs.items()]
        write_whole("json", json, json_file(entries, non_finite=str))  # JSON has no infinity
    if plot is not None:
        write_whole("plot", plot, as_picture(figure(runs), plot.suffix.lower()))
    for place, (run, found) in enumerate(runs.items()):
        if place:
            out.rule(characters="-")
        print_estimate(run, found, out)
    return list(runs.values())


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


# ---- What is printed -------------------------------------------------------------------------------------------------


def print_estimate(run: str, found: Estimate, console: Console) -> None:
    """Print the result on one line, what to do on the next, then the reason, the range and the notes."""
    safe = run.encode(console.encoding, "replace").decode(console.encoding)
    result = Text.assemble((f"k = {found.k}", "bold"), f" negatives per positive, for {safe}")
    console.print(result, soft_wrap=True)
    console.print(Text(_advice(found)), soft_wrap=True)
    points = f"{len(found.reached)} validation point{'s' if len(found.reached) > 1 else ''}"
    low, high = found.flat
    flat = f"v is within 1 % of its best from k = {low} to {high}"
    notes = [f"Note: {note}" for note in found.notes]
    for paragraph in (_reason(found), f"{flat} (weight {found.weight:g}, the mean of {points}).", *notes):
        console.print()
        console.print(Text(paragraph))


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


# ---- The curve of AUCs -----------------------------------------------------------------------------------------------


def read_curve(text: str, column: str = "") -> Floats:
    """Return the AUCs of `text`: numbers separated by commas, or a .json, .npy or CSV file.

    `column` is that of a CSV file with several; by default val_auc or auc. Without a header the columns are called 1, 2
    and so on.
    """
    path, numbers = Path(text), text.split(",")
    is_csv = not _is_number(numbers[0]) and path.suffix.lower() not in (".json", ".npy")
    if column and not is_csv:
        raise_invalid("column", "left out, unless `val_auc` is a CSV file", shown(column))
    if _is_number(numbers[0]):
        return _as_numbers(enumerate(numbers, 1), "place")
    if not os.path.isfile(text):
        raise_invalid("val_auc", "an existing file, or numbers separated by commas", shown(text))
    with reading("val_auc", path, "a file of AUCs"):
        if is_csv:
            return _as_numbers(_csv_column(path, column), "line")
        if path.suffix.lower() == ".npy":
            return as_floats("val_auc", read_array(path))
        return as_floats("val_auc", json_module.loads(path.read_text(encoding="utf-8-sig")))


def _csv_column(path: Path, column: str) -> list[tuple[int, str]]:
    """(line, cell) of one column of a CSV file, with or without a header."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    rows = [(line, cells) for line, cells in rows if any(cells)]
    if not rows:
        raise_invalid("val_auc", "a file with at least one AUC", f"{shown(str(path))}, which is empty")
    first = rows[0][1]
    has_header = not all(map(_is_number, first))
    names = first if has_header else [str(place) for place in range(1, len(first) + 1)]
    chosen = _place_of(names, column)
    return [(line, cells[chosen] if chosen < len(cells) else "") for line, cells in rows[has_header:]]


def _place_of(names: list[str], wanted: str) -> int:
    """The place of the column to read."""
    if wanted:
        check_one_of("column", wanted, names)
        if names.count(wanted) > 1:
            raise_invalid("column", "the name of exactly one column", f"{wanted!r}, {names.count(wanted)} times")
        return names.index(wanted)
    if len(names) == 1:
        return 0
    lower = [name.lower() for name in names]
    usual = [lower.index(name) for name in _NAMES if lower.count(name) == 1]
    if not usual:
        got = f"columns {shown_names(names)}"
        raise_invalid("val_auc", "one column, or one that is named auc or val_auc", got, "Choose one with `column`.")
    return usual[0]


def _as_numbers(cells: Iterable[tuple[int, str]], what: str) -> Floats:
    """The numbers of (place, text); raise with the first text that is none."""
    numbers = []
    for place, cell in cells:
        if not _is_number(cell):
            raise_invalid("val_auc", "numbers between 0 and 1", f"{shown(cell)} at {what} {place}")
        numbers.append(float(cell))
    return np.array(numbers, np.float64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
