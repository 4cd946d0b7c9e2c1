"""The command `naysay howmany`: read a run or simulate some, estimate k, print, and write JSON and figures."""

from __future__ import annotations

import csv
import json as json_module
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from naysay._commands import HowmanyOptions
from naysay._console import SafeConsole
from naysay._options import option_names
from naysay.checks import check_number, check_one_of, is_number, raise_invalid, shown, shown_names, with_option_names
from naysay.files import check_target, read_array, write_whole
from naysay.places import check_apart
from naysay.plots import as_picture, check_picture
from naysay.quantity._figures import figure
from naysay.quantity.effectiveness import Floats, auc, simulated
from naysay.quantity.estimate import Estimate, estimate
from naysay.text import first_line, json_file

_NAMES = ("val_auc", "auc")  # in this order, where a file has both
_ENTRIES = ("k", "at_edge", "flat", "carried_by_easy", "weight", "separation", "reached", "notes", "curve")
_KINDS = {".json": "JSON", ".npy": "NumPy"}  # all others are CSV


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
        runs = [_measured(options)]
    elif options.train_auc is None and not options.val_auc and not options.column:
        runs = [_simulated(mu, options.weight, options.k_max) for mu in options.separation]
    else:
        raise_invalid("separation", "left out where AUCs are given", "both", "Give a run or separations.")
    if json is not None:  # before printing, which a closed pipe ends
        write_whole("json", json, as_json(runs))
    if plot is not None:
        write_whole("plot", plot, as_picture(figure(runs), plot.suffix.lower()))
    for place, (name, found) in enumerate(runs):
        if place:
            out.rule(characters="-")
        print_estimate(name, found, out)
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
    """Print the result on one line, what to do on the next, then the reason, the range and the notes."""
    safe = name.encode(console.encoding, "replace").decode(console.encoding)
    result = Text.assemble((f"k = {found.k}", "bold"), f" negatives per positive, for {safe}")
    console.print(result, soft_wrap=True)
    console.print(Text(_advice(found)), soft_wrap=True)
    console.print()
    console.print(Text(_reason(found)))
    console.print()
    points = f"{len(found.reached)} validation point{'s' if len(found.reached) > 1 else ''}"
    low, high = found.flat
    flat = f"v is within 1 % of its best from k = {low} to {high}"
    console.print(Text(f"{flat} (weight {found.weight:g}, the mean of {points})."))
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
    entries = [{"run": run, **{name: getattr(found, name) for name in _ENTRIES}} for run, found in runs]
    return json_file(entries, non_finite=str)


def read_curve(text: str, column: str = "") -> Floats:
    """Return the (T,) AUCs of `text`: numbers separated by commas, or the name of a file.

    A file that ends in .json holds a list of numbers, one that ends in .npy an array (T,); any other is CSV.

    Args:
        text: The numbers, or the path.
        column: The column of a CSV file with several; by default val_auc or auc. Without a header the columns are
            called 1, 2 and so on.

    Examples:
        >>> read_curve("0.52, 0.61,0.66").tolist()
        [0.52, 0.61, 0.66]
    """
    are_numbers, kind = _number(text.split(",")[0]) is not None, Path(text).suffix.lower()
    if not are_numbers and not os.path.isfile(text):
        raise_invalid("val_auc", "an existing file, or numbers separated by commas", shown(text))
    if column and (are_numbers or kind in _KINDS):
        raise_invalid("column", "left out, unless `val_auc` is a CSV file", shown(column))
    if are_numbers:
        return _checked(list(enumerate(text.split(","), 1)), "place")
    found = _loaded(text, kind)
    if kind not in _KINDS:
        return _checked(_in_column(text, found, column), "line")
    if kind == ".npy":
        if found.ndim != 1 or found.dtype.kind not in "iuf" or not found.size:
            raise_invalid("val_auc", "an array (T,) of at least one number", f"shape {found.shape} of {found.dtype}")
        found = found.tolist()
    if not isinstance(found, list) or not found:
        raise_invalid("val_auc", "a JSON list of at least one AUC", shown(found))
    if not all(map(is_number, found)):
        raise_invalid("val_auc", "a JSON list of numbers", shown(found))
    return _checked([(place, repr(value)) for place, value in enumerate(found, 1)], "place")


def _loaded(path: str, kind: str) -> Any:
    """The value of a JSON file, the array of a NumPy file, or (line, cells) of each line of a CSV file."""
    try:
        if kind == ".npy":
            return read_array(Path(path))
        if kind == ".json":
            return json_module.loads(Path(path).read_text(encoding="utf-8-sig"))
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
        return [(line, cells) for line, cells in rows if any(cells)]
    except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
        raise_invalid("val_auc", f"a readable {_KINDS.get(kind, 'CSV')} file", f"{shown(path)} ({first_line(error)})")


def _in_column(path: str, rows: list[tuple[int, list[str]]], column: str) -> list[tuple[int, str]]:
    """(line, cell) of one column of a CSV file."""
    if not rows:
        raise_invalid("val_auc", "a file with at least one AUC", f"{shown(path)}, which is empty")
    first = rows[0][1]
    has_header = any(_number(cell) is None for cell in first)
    names = first if has_header else [str(place) for place in range(1, len(first) + 1)]
    chosen = _place_of(names, column)
    values = [(line, cells[chosen] if chosen < len(cells) else "") for line, cells in rows[has_header:]]
    if not values:
        raise_invalid("val_auc", "a file with at least one AUC", f"{shown(path)}, which has a header only")
    return values


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


def _checked(values: Sequence[tuple[int, str]], what: str) -> Floats:
    """Return the values as floats, or raise with the first that is not an AUC and how many there are."""
    floats = [_number(value) for _, value in values]
    bad = [row for row, value in enumerate(floats) if value is None or not 0 <= value <= 1]
    if bad:
        place, value = values[bad[0]]
        raise_invalid(
            "val_auc",
            "numbers between 0 and 1",
            f"{shown(value)} at {what} {place} ({len(bad)} such {what}{'s'[: len(bad) > 1]})",
        )
    return np.array(floats, np.float64)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
