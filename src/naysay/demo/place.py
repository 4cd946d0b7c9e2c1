"""Where the demonstration puts its files: a folder of its own, and never among other people's things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from naysay.checks import refuse
from naysay.quantity.outputs import write_whole

RESULTS, REPORT = "results.json", "report.html"
_MARK = {"made_by": "naysay demo"}


def check_place(owner: str, folder: Path) -> Path:
    """The folder, refused unless it is new, empty, or that of an earlier demonstration; nothing is made yet."""
    try:
        exists, above = folder.exists(), folder.parent.is_dir()
        there = {path.name for path in folder.iterdir()} if exists else set()
    except OSError as error:
        refuse(owner, "out", "a folder that can be made", f"{str(folder)!r} ({error.strerror})")
    if not above:
        refuse(owner, "out", "in an existing folder", repr(str(folder)))
    if there and not (there <= {RESULTS, REPORT} and _is_ours(folder / RESULTS)):
        advice = "Pass another with --out."
        refuse(owner, "out", "a new folder, or that of an earlier demo", repr(str(folder)), advice)
    return folder


def write_results(owner: str, folder: Path, results: dict[str, Any]) -> None:
    """Write the numbers of a run, under the mark by which the folder is known again."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        refuse(owner, "out", "a folder that can be made", f"{str(folder)!r} ({error.strerror})")
    text = json.dumps(_MARK | results, indent=1, allow_nan=False)
    write_whole(owner, "out", folder / RESULTS, f"{text}\n".encode())


def _is_ours(path: Path) -> bool:
    """Whether a file of results has our mark."""
    try:
        return bool(json.loads(path.read_bytes()).get("made_by") == _MARK["made_by"])
    except (OSError, ValueError, AttributeError):
        return False
