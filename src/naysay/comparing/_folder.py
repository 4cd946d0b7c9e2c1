"""The folder of a comparison: its settings, and every finished run, written at once and whole."""

from __future__ import annotations

import json
import os
import re
import zlib
from math import nan
from pathlib import Path
from typing import Any

from naysay.checks import raise_invalid
from naysay.comparing.arms import Arm
from naysay.comparing.result import Point, RunResult
from naysay.files import as_path, check_target, is_draft, write_whole
from naysay.text import json_file

SETTINGS, RESULTS, REPORT, RUNS = "comparison.json", "results.json", "compare.html", "runs"
_MARK = {"made_by": "naysay compare"}
_USUAL = {"device": "cpu"}  # what is recorded only where it is another


class Folder:
    """What is kept between two calls. Without a path nothing is."""

    def __init__(self, out: str | Path | None) -> None:
        """Raise if the folder is of something else; nothing is written yet."""
        self.path = None if out is None else as_path("out", out)
        self.kept: dict[str, Any] = {}
        if self.path is None or not self.path.exists():
            if self.path is not None and not self.path.parent.is_dir():
                raise_invalid("out", "in an existing folder", repr(str(self.path)))
            return
        if not self.path.is_dir():
            raise_invalid("out", "a folder", repr(str(self.path)))
        names = {name for name in os.listdir(self.path) if not is_draft(Path(name))}
        self.kept = _read(self.path / SETTINGS) if names else {}
        if names and (self.kept.get("made_by") != _MARK["made_by"] or names - {SETTINGS, RESULTS, REPORT, RUNS}):
            raise_invalid("out", "a new folder, or that of an earlier comparison", repr(str(self.path)))
        check_target("out", self.path / SETTINGS)

    def settled_steps(self, budget: float) -> int | None:
        """The steps that an earlier call found for the same budget."""
        return self.kept["settings"]["steps"] if self.kept and self.kept.get("budget") == budget else None

    def begin(self, settings: dict[str, Any], budget: float | None) -> None:
        """Write the settings, or raise if the runs that are kept have others."""
        if self.path is None:
            return
        if self.kept:
            kept = _USUAL | self.kept["settings"]
            for name, value in (_USUAL | json.loads(json_file(settings))).items():
                before = kept.get(name)
                if before != value:
                    rule = f"the folder of a comparison with {name} {value}"
                    raise_invalid("out", rule, f"one with {before}", "Pass another folder.")
            return
        (self.path / RUNS).mkdir(parents=True, exist_ok=True)
        self.kept = {**_MARK, "budget": budget, "settings": settings}
        write_whole("out", self.path / SETTINGS, json_file(self.kept))

    def rate(self, arm: Arm) -> tuple[float, dict[str, float]] | None:
        """The learning rate that was chosen, with all that were tried."""
        found = self._load(arm, "rate")
        return (found["rate"], found["tried"]) if found else None

    def keep_rate(self, arm: Arm, rate: float, tried: dict[str, float]) -> None:
        """Keep the learning rate of an arm."""
        self._keep(arm, "rate", {"rate": rate, "tried": tried})

    def run(self, arm: Arm, seed: int) -> RunResult | None:
        """A finished run."""
        found = self._load(arm, f"seed{seed}")
        if not found:
            return None
        points = tuple(Point(**{name: _number(value) for name, value in point.items()}) for point in found["points"])
        return RunResult(found["seed"], points, found["test"], _number(found["peak_bytes"]))

    def keep_run(self, arm: Arm, run: RunResult) -> None:
        """Keep a finished run."""
        points = [{name: getattr(point, name) for name in Point.__slots__} for point in run.points]
        values = {"seed": run.seed, "points": points, "test": run.test, "peak_bytes": run.peak_bytes}
        self._keep(arm, f"seed{run.seed}", values)

    def _load(self, arm: Arm, what: str) -> dict[str, Any]:
        """What was kept of an arm with the same name and composition."""
        found = {} if self.path is None else _read(self._file(arm, what))
        return found if found.get("arm") == arm.name and found.get("code") == arm.code else {}

    def _keep(self, arm: Arm, what: str, values: dict[str, Any]) -> None:
        if self.path is not None:
            write_whole("out", self._file(arm, what), json_file({"arm": arm.name, "code": arm.code, **values}))

    def _file(self, arm: Arm, what: str) -> Path:
        """A name that is readable, and different for different arms."""
        stem = re.sub(r"[^a-z0-9]+", "-", arm.name.casefold()).strip("-")[:60]
        return (self.path or Path()) / RUNS / f"{stem}-{zlib.crc32(arm.name.encode()):08x}.{what}.json"


def _number(value: Any) -> Any:
    """A number of a JSON file, in which null is NaN."""
    return nan if value is None else value


def _read(path: Path) -> dict[str, Any]:
    """An object of a JSON file; empty if there is none or it is damaged."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
