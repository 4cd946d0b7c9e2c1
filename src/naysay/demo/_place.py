"""Where the demonstration puts its files: a folder of its own, and never among other people's things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from naysay.checks import raise_invalid
from naysay.files import write_whole

RESULTS, REPORT = "results.json", "report.html"
_MARK = {"made_by": "naysay demo"}


def check_place(folder: Path) -> Path:
    """The folder, refused unless it is new, empty, or that of an earlier demonstration; nothing is made yet."""
    try:
        exists, above = folder.exists(), folder.parent.is_dir()
        there = {path.name for path in folder.iterdir()} if exists else set()
    except OSError as error:
        raise_invalid("out", "a folder that can be made", f"{str(folder)!r} ({error.strerror})")
    if not above:
        raise_invalid("out", "in an existing folder", repr(str(folder)))
    if there and not (there <= {RESULTS, REPORT} and _is_ours(folder / RESULTS)):
        advice = "Pass another with --out."
        raise_invalid("out", "a new folder, or that of an earlier demo", repr(str(folder)), advice)
    return folder


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """Write the numbers of a run, under the mark by which the folder is known again."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise_invalid("out", "a folder that can be made", f"{str(folder)!r} ({error.strerror})")
    text = json.dumps(_MARK | results, indent=1, allow_nan=False)
    write_whole("out", folder / RESULTS, f"{text}\n".encode())


def _is_ours(path: Path) -> bool:
    """Whether a file of results has our mark."""
    try:
        return bool(json.loads(path.read_bytes()).get("made_by") == _MARK["made_by"])
    except (OSError, ValueError, AttributeError):
        return False
