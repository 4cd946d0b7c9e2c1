"""The log of a `difficulty.Monitor`, read and checked line by line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np

from naysay.checks import is_number, public, raise_invalid
from naysay.difficulty.monitor import HEADER
from naysay.files import as_path, check_file, raise_unreadable
from naysay.text import short_repr

LARGEST = 1e200  # of a number in a log: sums over all steps of a run stay finite


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingRun:
    """What a log holds, by step.

    Attributes:
        steps: (n,) int64, ascending.
        scalars: {name: (n,) float64}, NaN where a step has no such measure.
        histograms: {name: [(step, counts, ends)]}.
        notes: Sentences about the file.
    """

    steps: Any
    scalars: dict[str, Any]
    histograms: dict[str, list[tuple[int, Any, Any]]]
    notes: tuple[str, ...] = ()

    __repr__ = short_repr


@public
def read_run(path: str | Path) -> TrainingRun:
    """Read the .jsonl file of a `difficulty.Monitor`.

    Of a step that is there twice, because a run was resumed, the later line counts. A half line at the end, of a run
    that was killed, is left out, and a note says so.

    Args:
        path: The file.

    Raises:
        NaysayError: If the file is missing, is another kind of file, or is damaged.

    Examples:
        >>> import tempfile
        >>> import numpy as np
        >>> import naysay as ns
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     monitor = ns.difficulty.Monitor(f"{folder}/run.jsonl")
        ...     negatives = ns.Negatives(np.array([[4, 2]]), scores=np.array([[0.5, 0.25]]))
        ...     _ = monitor.observe(ns.Query([0], step=7), negatives)
        ...     read_run(f"{folder}/run.jsonl").steps.tolist()
        [7]
    """
    file = as_path("path", path)
    check_file("path", file)
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise_unreadable("path", "a file that can be read", file, error)
    rest = lines.pop()
    found: dict[int, dict[str, Any]] = {}
    if not lines or _parsed(file, lines[0], 1) != HEADER:
        rule, advice = "a log of difficulty.Monitor", "Monitor(log='run.jsonl') writes one."
        raise_invalid("path", rule, repr(str(file)), advice)
    for place, line in enumerate(lines[1:], 2):
        one = _checked(file, _parsed(file, line, place), place)
        found.pop(one["step"], None)
        found[one["step"]] = one
    if not found:
        raise_invalid("path", "a log with at least one step", repr(str(file)))
    ordered = [found[step] for step in sorted(found)]
    names = dict.fromkeys(name for one in ordered for name in one["scalars"])
    nan = float("nan")
    scalars = {name: np.array([one["scalars"].get(name, nan) for one in ordered], np.float64) for name in names}
    histograms: dict[str, list[tuple[int, Any, Any]]] = {}
    for one in ordered:
        for name, drawn in one.get("histograms", {}).items():
            parts = (np.array(drawn["counts"], np.int64), np.array(drawn["ends"], np.float64))
            histograms.setdefault(name, []).append((one["step"], *parts))
    notes = ("The last line was not complete, and is left out.",) if rest else ()
    return TrainingRun(np.array(sorted(found), np.int64), scalars, histograms, notes)


def _damaged(file: Path, place: int, what: str) -> NoReturn:
    raise_invalid("path", "an undamaged log", f"{what} in line {place} of {str(file)!r}")


def _parsed(file: Path, line: bytes, place: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        if place == 1:
            return None
        _damaged(file, place, "no JSON")


def _checked(file: Path, one: Any, place: int) -> dict[str, Any]:
    """One line, or an error if it is not what a monitor writes."""
    if not isinstance(one, dict) or not isinstance(one.get("scalars"), dict):
        _damaged(file, place, "no step")
    if isinstance(one.get("step"), bool) or not isinstance(one.get("step"), int) or not 0 <= one["step"] < 1 << 63:
        _damaged(file, place, "no step number")
    if not all(map(_is_measure, one["scalars"].values())):
        _damaged(file, place, f"a measure that is no number between -{LARGEST:g} and {LARGEST:g}")
    histograms = one.get("histograms", {})
    if not isinstance(histograms, dict) or not all(map(_is_histogram, histograms.values())):
        _damaged(file, place, "no histogram")
    return one


def _is_measure(value: Any) -> bool:
    """Whether it is a number that can be added up over a run. A whole number may have any number of digits."""
    return is_number(value) and -LARGEST <= value <= LARGEST


def _is_histogram(drawn: Any) -> bool:
    """Whether it has n whole counts and n + 1 rising ends."""
    if not isinstance(drawn, dict) or not all(isinstance(drawn.get(name), list) for name in ("counts", "ends")):
        return False
    counts, ends = drawn["counts"], drawn["ends"]
    numbers = all(map(_is_measure, (*counts, *ends)))
    whole = numbers and all(isinstance(value, int) and 0 <= value < 1 << 53 for value in counts)
    return whole and len(ends) == len(counts) + 1 > 1 and bool((np.diff(ends) >= 0).all())
