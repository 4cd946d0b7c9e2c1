"""Files that the command writes: refused before work starts, and written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from naysay.checks import refuse, shown
from naysay.quantity.estimate import Estimate


def check_target(owner: str, parameter: str, path: Path) -> None:
    """Refuse a file that cannot be written: a folder, a device, or where no draft can be made; none is left."""
    try:
        is_folder, has_folder = path.is_dir(), path.parent.is_dir()
        is_other = path.exists() and not path.is_file()
    except OSError as error:  # a name that is too long for any file
        _unwritable(owner, parameter, path, error)
    if is_folder:
        refuse(owner, parameter, "a file", f"the folder {str(path)!r}")
    if is_other:  # a draft would take the place of /dev/null
        refuse(owner, parameter, "a file", f"{str(path)!r}, a device or a pipe")
    if not has_folder:
        refuse(owner, parameter, "in an existing folder", repr(str(path)))
    draft = _draft(path)
    try:  # rights do not tell: a file system may be full, read-only, or take none, like /proc
        draft.touch(exist_ok=False)
        draft.unlink()
    except OSError as error:
        _unwritable(owner, parameter, path, error)


def check_page(owner: str, parameter: str, path: Path) -> None:
    """Refuse a place for a page that no browser would open as one."""
    check_target(owner, parameter, path)
    if path.suffix.lower() not in (".html", ".htm"):
        refuse(owner, parameter, "a file that ends in .html", repr(str(path)))


def check_apart(owner: str, written: Mapping[str, Path | None], read: Mapping[str, Path | None]) -> None:
    """Refuse to write over what is read, or over what else is written; both are {parameter: file, or None}."""
    seen = {path.resolve(): name for name, path in read.items() if path is not None}
    for name, path in written.items():
        if path is None:
            continue
        other = seen.setdefault(path.resolve(), name)
        if other != name:
            refuse(owner, name, f"another file than {other}", repr(str(path)))


def write_whole(owner: str, parameter: str, path: Path, data: bytes) -> None:
    """Write `data` to a draft beside `path`, which then takes its place."""
    draft = _draft(path)
    try:
        draft.write_bytes(data)
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        _unwritable(owner, parameter, path, error)


def _draft(path: Path) -> Path:
    """A new name beside a file."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


def _unwritable(owner: str, parameter: str, path: Path, error: OSError) -> NoReturn:
    refuse(owner, parameter, "a file that can be written", f"{shown(str(path))} ({error.strerror})")


def as_json(runs: Sequence[tuple[str, Estimate]]) -> bytes:
    """All that was found, as JSON: a list with an entry for each run; inf, which JSON does not have, as a string."""
    found = [
        {
            "run": name,
            "k": estimate.k,
            "at_edge": estimate.at_edge,
            "flat": list(estimate.flat),
            "carried_by_easy": estimate.carried_by_easy,
            "weight": estimate.weight,
            "separation": _finite(estimate.separation),
            "reached": [_finite(value) for value in estimate.reached.tolist()],
            "notes": list(estimate.notes),
            "curve": estimate.curve.tolist(),
        }
        for name, estimate in runs
    ]
    return (json.dumps(found, indent=1, allow_nan=False) + "\n").encode()


def _finite(value: float) -> Any:
    return value if abs(value) < float("inf") else str(value)
