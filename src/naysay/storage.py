"""Folders of plain arrays: .npy files and a JSON header. No pickle; written whole or not at all; mappable."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import refuse

_FORMAT = 1
_HEADER = "header.json"


def save_folder(
    owner: str, path: str | Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write `arrays` and `header` to the folder `path`, by way of a sibling that is then renamed."""
    target = Path(path)
    if target.exists() and not _is_ours(target):
        refuse(owner, "path", "new, or a folder that naysay wrote", repr(str(target)))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        refuse(owner, "path", "below folders only", f"{str(target)!r}, which is below a file")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    old = draft.with_name(draft.name + ".old")
    try:
        draft.mkdir()
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        whole = {"kind": kind, "format": _FORMAT, "arrays": sorted(arrays), **header}
        (draft / _HEADER).write_text(json.dumps(whole, indent=1) + "\n")
        if target.exists():
            os.replace(target, old)  # a folder cannot be replaced in one step
        try:
            os.replace(draft, target)
        except BaseException:
            if old.exists():
                os.replace(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    """Whether a folder has a header of ours: only such a folder may be written over."""
    try:
        return bool({"kind", "format", "arrays"} <= json.loads((folder / _HEADER).read_text()).keys())
    except (OSError, ValueError, AttributeError):
        return False


def load_folder(
    owner: str, path: str | Path, kind: str, *, mmap: bool, numbers: Sequence[str] = (), needed: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a folder that `save_folder` wrote.

    numbers   entries of the header that must be whole numbers
    needed    arrays that must be there
    """
    folder = Path(path)
    if not (folder / _HEADER).is_file():
        refuse(owner, "path", "a folder that naysay wrote", repr(str(folder)))
    try:
        header: dict[str, Any] = json.loads((folder / _HEADER).read_text())
        found = (header["kind"], header["format"])
        names = list(header["arrays"])
        sound = {*needed} <= {*names} and all(type(header[name]) is int and header[name] >= 0 for name in numbers)
    except (OSError, ValueError, KeyError, TypeError):
        refuse(owner, "path", "a folder with a sound header", repr(str(folder / _HEADER)))
    if found != (kind, _FORMAT):
        refuse(owner, "path", f"{kind} of format {_FORMAT}", f"{found[0]} of format {found[1]}")
    if not sound:
        refuse(owner, "path", "a folder with a sound header", repr(str(folder / _HEADER)))
    arrays: dict[str, NDArray[Any]] = {}
    for name in names:
        file = folder / f"{name}.npy"
        try:
            arrays[name] = _read(file, mmap=mmap)
        except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            refuse(owner, "path", "a complete folder", f"{file.name}: {reason}")
    return header, arrays


def _read(file: Path, *, mmap: bool) -> NDArray[Any]:
    if mmap:
        return np.lib.format.open_memmap(file, mode="r")
    with file.open("rb") as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array
