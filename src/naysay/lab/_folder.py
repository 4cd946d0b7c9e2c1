"""The folder of a comparison: its settings and every finished run, in files that are checked; one process at a time.

Each file is written at once and whole, with the SHA-256 of its content. A file that is missing is made again. A file
that was edited, damaged, or copied from another comparison raises an error that names it: no result is taken from it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import Any, NoReturn

from filelock import FileLock, Timeout

from naysay.checks import is_number, raise_invalid
from naysay.files import as_path, check_target, is_draft, raise_unwritable, write_whole
from naysay.lab.arms import Arm
from naysay.lab.result import Point, RunResult
from naysay.text import json_file, plain

SETTINGS, RESULTS, REPORT, RUNS = "comparison.json", "results.json", "compare.html", "runs"
_LOCK = "lock"
_MADE_BY, _FORMAT = "naysay compare", 3
_USUAL = {"device": "cpu"}  # what is recorded only where it is another
_SEAL = "sha256"


@contextmanager
def opened_folder(out: str | Path | None) -> Iterator[Folder]:
    """Open the folder of a comparison, new or of an earlier call; without a path nothing is kept.

    No other process can open it until the end. A folder that was made here is removed if nothing was written to it.
    """
    if out is None:
        yield Folder(None)
        return
    path = as_path("out", out)
    is_new = _make(path)
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
        got = f"{str(folder)!r}"
        raise_invalid("out", "a folder that no other process compares in", got, "Wait for it, or stop it.")
    except OSError as error:
        raise_unwritable("out", folder / _LOCK, error)
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / _LOCK).unlink()
        lock.release()


def _make(path: Path) -> bool:
    """Make the folder; return whether it is new. Raise if something else is in the way."""
    if not path.exists():
        if not path.parent.is_dir():
            raise_invalid("out", "in an existing folder", repr(str(path)))
        try:
            path.mkdir()
        except OSError as error:
            raise_unwritable("out", path, error)
        return True
    if not path.is_dir():
        raise_invalid("out", "a folder", repr(str(path)))
    names = {name for name in os.listdir(path) if name != _LOCK and not is_draft(Path(name))}
    others = sorted(names - {SETTINGS, RESULTS, REPORT, RUNS})
    if names and (SETTINGS not in names or others):
        why = f"has {others[0]!r}" if others else f"has no {SETTINGS}"
        raise_invalid("out", "a new folder, or that of an earlier comparison", f"{str(path)!r}, which {why}")
    return False


class Folder:
    """What is kept between two calls. Without a path nothing is."""

    def __init__(self, path: Path | None) -> None:
        """Read the settings of an earlier call; nothing is written yet."""
        self.path = path
        self.kept: dict[str, Any] = {}
        if path is None:
            return
        check_target("out", path / SETTINGS)
        kept = _unsealed(path / SETTINGS)
        if kept is not None:
            sound = isinstance(kept.get("settings"), dict) and type(kept["settings"].get("steps")) is int
            if (kept.get("made_by"), kept.get("format")) != (_MADE_BY, _FORMAT) or not sound:
                _raise_damaged(path / SETTINGS)
            self.kept = kept

    def settled_steps(self, budget: float) -> int | None:
        """The steps that an earlier call found for the same budget."""
        return self.kept["settings"]["steps"] if self.kept and self.kept.get("budget") == budget else None

    def begin(self, settings: dict[str, Any], budget: float | None) -> None:
        """Write the settings, or raise if the runs that are kept have others."""
        if self.path is None:
            return
        if self.kept:
            before = _USUAL | self.kept["settings"]
            for name, value in (_USUAL | plain(settings)).items():
                if before.get(name) != value:
                    rule = f"the folder of a comparison with {name} {value}"
                    raise_invalid("out", rule, f"one with {before.get(name)}", "Pass another folder.")
        else:
            self.kept = {"made_by": _MADE_BY, "format": _FORMAT, "budget": budget, "settings": plain(settings)}
            self.write(SETTINGS, _sealed(self.kept))
        try:
            (self.path / RUNS).mkdir(exist_ok=True)
        except OSError as error:
            raise_unwritable("out", self.path / RUNS, error)

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the folder, whole."""
        if self.path is not None:
            write_whole("out", self.path / name, data)

    def kept_lr(self, arm: Arm) -> tuple[float, dict[str, float]] | None:
        """The learning rate that was chosen, with all that were tried."""
        kept = self._load(arm, "lr")
        if kept is None:
            return None
        if not is_number(kept.get("lr")) or not _are_numbers(kept.get("tried")):
            _raise_damaged(self._file(arm, "lr"))
        return kept["lr"], kept["tried"]

    def keep_lr(self, arm: Arm, lr: float, tried: dict[str, float]) -> None:
        """Keep the learning rate of an arm."""
        self._keep(arm, "lr", {"lr": lr, "tried": tried})

    def kept_run(self, arm: Arm, seed: int) -> RunResult | None:
        """A finished run."""
        kept = self._load(arm, f"seed{seed}")
        if kept is None:
            return None
        points: Any = kept.get("points")
        sound = (
            kept.get("seed") == seed
            and isinstance(points, list)
            and len(points) > 0
            and all(_are_numbers(point) and [*point] == [*Point.__slots__] for point in points)
            and _are_numbers(kept.get("test"))
        )
        if not sound:
            _raise_damaged(self._file(arm, f"seed{seed}"))
        made = tuple(Point(**_numbers(point)) for point in points)
        return RunResult(seed, made, _numbers(kept["test"]), _number(kept.get("peak_bytes")))

    def keep_run(self, arm: Arm, run: RunResult) -> None:
        """Keep a finished run."""
        self._keep(arm, f"seed{run.seed}", asdict(run))

    def _owner(self, arm: Arm) -> dict[str, Any]:
        """What a file of an arm must say: of which comparison and arm it is."""
        return {"comparison": _digest(self.kept["settings"]), "arm": arm.name, "k": arm.k, "code": arm.code}

    def _load(self, arm: Arm, what: str) -> dict[str, Any] | None:
        """What was kept of an arm; None if there is nothing."""
        if self.path is None:
            return None
        file = self._file(arm, what)
        kept = _unsealed(file)
        if kept is not None and any(kept.get(name) != value for name, value in self._owner(arm).items()):
            got = f"{str(file)!r}, which is of another comparison, or of an arm with another composition"
            raise_invalid("out", "a folder with the runs of this comparison", got, "Delete that file, and run again.")
        return kept

    def _keep(self, arm: Arm, what: str, values: dict[str, Any]) -> None:
        if self.path is not None:
            write_whole("out", self._file(arm, what), _sealed({**self._owner(arm), **values}))

    def _file(self, arm: Arm, what: str) -> Path:
        """A name that is readable, and different for different arms."""
        stem = re.sub(r"[^a-z0-9]+", "-", arm.name.casefold()).strip("-")[:60]
        return (self.path or Path()) / RUNS / f"{stem}-{zlib.crc32(arm.name.encode()):08x}.{what}.json"


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain(values), sort_keys=True).encode()).hexdigest()


def _sealed(values: Mapping[str, Any]) -> bytes:
    """A JSON file with the checksum of its content."""
    return json_file({**values, _SEAL: _digest(values)})


def _unsealed(path: Path) -> dict[str, Any] | None:
    """The content of a file that `_sealed` made; None if there is none. Raise if it is not as it was written."""
    try:
        content = json.loads(path.read_bytes())
        sound = isinstance(content, dict) and content.pop(_SEAL, None) == _digest(content)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        sound = False
    if not sound:
        _raise_damaged(path)
    return dict(content)


def _raise_damaged(path: Path) -> NoReturn:
    got = f"{str(path)!r}, which is damaged, was edited, or is of another version"
    whole = path.name == SETTINGS
    advice = "Pass another folder, or delete this one." if whole else "Delete that file, and run again."
    raise_invalid("out", "a folder whose files are as they were written", got, advice)


def _are_numbers(values: Any) -> bool:
    """Whether this is a JSON object of numbers, in which null is NaN."""
    return isinstance(values, dict) and all(value is None or is_number(value) for value in values.values())


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a JSON object."""
    return {name: _number(value) for name, value in values.items()}


def _number(value: Any) -> Any:
    """A number of a JSON file, in which null is NaN."""
    return nan if value is None else value
