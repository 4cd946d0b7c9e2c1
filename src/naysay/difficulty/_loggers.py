"""Where a monitor writes: TensorBoard, Weights & Biases, Lightning's loggers, a JSON lines file, or a function.

They are known by their methods; none of these packages is imported.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from naysay.checks import raise_invalid, shown
from naysay.difficulty._step_measures import Histograms, Scalars
from naysay.files import as_path, check_target
from naysay.text import first_line, plain

HEADER = {"naysay": "run", "format": 1}
Write = Callable[[int, Scalars, Histograms], None]


def writer(log: Any) -> Write | None:
    """write(step, scalars, histograms) for a logger; None writes nothing."""
    if log is None:
        return None
    if isinstance(log, str | os.PathLike):
        return _lines(as_path("log", log))
    if isinstance(log, type):
        raise_invalid("log", "a logger, not its class", log.__name__)
    if hasattr(log, "add_scalar"):
        return _tensorboard(log)
    if hasattr(log, "log_metrics"):
        return lambda step, scalars, _: log.log_metrics(dict(scalars), step=step)
    if callable(getattr(log, "log", None)):
        return _weights_and_biases(log)
    if callable(log):
        return lambda step, scalars, histograms: log(record(step, scalars, histograms))
    advice = "Pass a path ending in .jsonl, a SummaryWriter, a run of Weights & Biases, or a function."
    raise_invalid("log", "a logger", shown(log), advice)


def record(step: int, scalars: Scalars, histograms: Histograms) -> dict[str, Any]:
    """One step as plain data; NaN and infinity are left out, because JSON has neither."""
    found: dict[str, Any] = {"step": step, "scalars": {name: one for name, one in scalars.items() if isfinite(one)}}
    if histograms:
        shown_ends = {name: {"counts": counts, "ends": ends} for name, (counts, ends) in histograms.items()}
        found["histograms"] = plain(shown_ends)
    return found


def _tensorboard(log: Any) -> Write:
    """add_scalar(name, value, step) and add_histogram(name, values, step) of a SummaryWriter."""

    def write(step: int, scalars: Scalars, histograms: Histograms) -> None:
        for name, value in scalars.items():
            log.add_scalar(name, value, step)
        for name, (counts, ends) in histograms.items():
            middles = np.repeat((ends[:-1] + ends[1:]) / 2, counts)
            log.add_histogram(name, middles, step)

    return write


def _weights_and_biases(log: Any) -> Write:
    """log({name: value}, step=step) of a run; histograms, by names of their own, if the run's package has them."""
    package = sys.modules.get(type(log).__module__.partition(".")[0])
    drawn = getattr(package, "Histogram", None)

    def write(step: int, scalars: Scalars, histograms: Histograms) -> None:
        found: dict[str, Any] = dict(scalars)
        if drawn is not None:  # a name has one kind of value there
            found |= {f"histogram/{name}": drawn(np_histogram=pair) for name, pair in histograms.items()}
        log.log(found, step=step)

    return write


def _lines(path: Path) -> Write:
    """Append to a file: a header line, then a line for each step. A half line of a run that was killed is removed."""
    check_target("log", path)
    if path.suffix.lower() != ".jsonl":
        raise_invalid("log", "a file that ends in .jsonl", repr(str(path)))
    try:
        with path.open("a+b") as file:
            _begin(path, file)
    except OSError as error:
        raise_invalid("log", "a file that can be written", f"{str(path)!r}: {first_line(error)}")

    def write(step: int, scalars: Scalars, histograms: Histograms) -> None:
        line = (json.dumps(record(step, scalars, histograms), allow_nan=False) + "\n").encode()
        with path.open("ab", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            written = file.write(line)
            if written < len(line):  # a full disk takes a part; half a line would damage the next one
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    return write


def _begin(path: Path, file: BinaryIO) -> None:
    """Write the header of a new file; check that of an old one."""
    file.seek(0)
    first = file.readline(1 << 12)
    if not first:
        file.write((json.dumps(HEADER) + "\n").encode())
        return
    try:
        known = first.endswith(b"\n") and json.loads(first) == HEADER
    except ValueError:
        known = False
    if not known:
        raise_invalid("log", "a new file, or one that a Monitor wrote", repr(str(path)))
    file.seek(0)
    whole = end = 0
    for line in file:
        end += len(line)
        whole = end if line.endswith(b"\n") else whole
    file.truncate(whole)
