"""The folder of a comparison: its settings and every finished run, one process at a time.

Each file is written at once and whole. A file that is missing is made again; one that cannot be read is an error that
names it.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from naysay.checks import raise_invalid
from naysay.files import as_path, check_target, is_draft, raise_unwritable, write_whole
from naysay.lab.arms import Arm
from naysay.lab.result import Point, RunResult
from naysay.text import json_file, plain

SETTINGS, RESULTS, REPORT, RUNS = "comparison.json", "results.json", "compare.html", "runs"
_LOCK = "lock"
_MADE_BY, _FORMAT = "naysay compare", 4
_USUAL = {"device": "cpu"}  # what is recorded only where it is another

_Content = TypeVar("_Content")
Rate = tuple[float, dict[str, float]]  # the learning rate, and the validation measure of all that were tried


@contextmanager
def opened_folder(out: str | Path | None) -> Iterator[Folder]:
    """Open the folder of a comparison, new or of an earlier call; without a path nothing is kept.

    No other process can open it until the end. A folder that was made here is removed if nothing was written to it.
    """
    if out is None:
        yield Folder(None)
        return
    path = as_path("out", out)
    is_new = not path.exists()
    if is_new:
        _make(path)
    else:
        _check_ours(path)
    try:
        with _locked(path):
            yield Folder(path)
    finally:
        if is_new:
            with suppress(OSError):  # there is work in it
                path.rmdir()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which ends with the process, and remove its file at the end."""
    lock = FileLock(folder / _LOCK, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        advice = "Wait for it, or stop it."
        raise_invalid("out", "a folder that no other process compares in", repr(str(folder)), advice)
    except OSError as error:
        raise_unwritable("out", folder / _LOCK, error)
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / _LOCK).unlink()
        lock.release()


def _make(path: Path) -> None:
    if not path.parent.is_dir():
        raise_invalid("out", "in an existing folder", repr(str(path)))
    try:
        path.mkdir()
    except OSError as error:
        raise_unwritable("out", path, error)


def _check_ours(path: Path) -> None:
    """Raise if this is neither an empty folder nor that of an earlier comparison."""
    if not path.is_dir():
        raise_invalid("out", "a folder", repr(str(path)))
    names = {name for name in os.listdir(path) if name != _LOCK and not is_draft(Path(name))}
    others = sorted(names - {SETTINGS, RESULTS, REPORT, RUNS})
    if names and (SETTINGS not in names or others):
        why = f"has {others[0]!r}" if others else f"has no {SETTINGS}"
        raise_invalid("out", "a new folder, or that of an earlier comparison", f"{str(path)!r}, which {why}")


class Folder:
    """What is kept between two calls. Without a path nothing is."""

    def __init__(self, path: Path | None) -> None:
        """Read the settings of an earlier call; nothing is written yet."""
        self.path = path
        self.record: dict[str, Any] | None = None
        if path is not None:
            check_target("out", path / SETTINGS)
            self.record = _read(path / SETTINGS, _checked_record)

    def settled_steps(self, budget: float) -> int | None:
        """The steps that an earlier call found for the same budget."""
        if self.record is None or self.record["budget"] != budget:
            return None
        steps: int = self.record["settings"]["steps"]
        return steps

    def begin(self, settings: dict[str, Any], budget: float | None) -> None:
        """Write the settings, or raise if the runs that are kept have others."""
        if self.path is None:
            return
        if self.record is None:
            self.record = {"made_by": _MADE_BY, "format": _FORMAT, "budget": budget, "settings": plain(settings)}
            self.write(SETTINGS, json_file(self.record))
        kept = _USUAL | self.record["settings"]
        for name, value in (_USUAL | plain(settings)).items():
            if kept.get(name) != value:
                rule = f"the folder of a comparison with {name} {value}"
                raise_invalid("out", rule, f"one with {kept.get(name)}", "Pass another folder.")
        try:
            (self.path / RUNS).mkdir(exist_ok=True)
        except OSError as error:
            raise_unwritable("out", self.path / RUNS, error)

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the folder, whole."""
        if self.path is not None:
            write_whole("out", self.path / name, data)

    def rate(self, arm: Arm) -> Rate | None:
        """The learning rate of an arm, if it was chosen."""
        return None if self.path is None else _read(self.path / _name(arm, "lr"), _rate)

    def keep_rate(self, arm: Arm, rate: Rate) -> None:
        """Keep the learning rate of an arm."""
        self.write(_name(arm, "lr"), json_file({"arm": arm.name, "lr": rate[0], "tried": rate[1]}))

    def run(self, arm: Arm, seed: int) -> RunResult | None:
        """A finished run."""
        return None if self.path is None else _read(self.path / _name(arm, f"seed{seed}"), _run_result)

    def keep_run(self, arm: Arm, run: RunResult) -> None:
        """Keep a finished run."""
        self.write(_name(arm, f"seed{run.seed}"), json_file({"arm": arm.name, **asdict(run)}))


def _name(arm: Arm, what: str) -> str:
    """A file name that is readable, and different for different arms."""
    stem = re.sub(r"[^a-z0-9]+", "-", arm.name.casefold()).strip("-")[:60]
    checksum = zlib.crc32(repr((arm.name, arm.k, arm.code)).encode())
    return f"{RUNS}/{stem}-{checksum:08x}.{what}.json"


def _read(path: Path, make: Callable[[Any], _Content]) -> _Content | None:
    """What `make` makes of the content of a JSON file; None if there is none."""
    try:
        return make(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        got = f"{str(path)!r}, which is damaged, was edited, or is of another version"
        advice = "Pass another folder, or delete this one." if path.name == SETTINGS else "Delete it, and run again."
        raise_invalid("out", "a folder whose files are as they were written", got, advice)


def _checked_record(content: Any) -> dict[str, Any]:
    if (content["made_by"], content["format"]) != (_MADE_BY, _FORMAT) or type(content["settings"]["steps"]) is not int:
        raise ValueError
    return dict(content)


def _rate(content: Any) -> Rate:
    return float(content["lr"]), _numbers(content["tried"])


def _run_result(content: Any) -> RunResult:
    points = tuple(Point(**_numbers(point)) for point in content["points"])
    return RunResult(content["seed"], points, _numbers(content["test"]))


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a JSON object, in which null is NaN."""
    return {name: nan if value is None else value + 0 for name, value in values.items()}
