"""Files: where they may be written, atomic writes, and folders of arrays.

A file or folder is written to a draft beside its target, which then takes its place: it appears whole or not at all.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown

_FORMAT = 1
_HEADER = "header.json"


def check_target(parameter: str, path: Path) -> None:
    """Refuse a file that cannot be written: a folder, a device, or where no draft can be made; none is left."""
    try:
        is_folder, has_folder = path.is_dir(), path.parent.is_dir()
        is_other = path.exists() and not path.is_file()
    except OSError as error:  # a name that is too long for any file
        _unwritable(parameter, path, error)
    if is_folder:
        raise_invalid(parameter, "a file", f"the folder {str(path)!r}")
    if is_other:  # a draft would take the place of /dev/null
        raise_invalid(parameter, "a file", f"{str(path)!r}, a device or a pipe")
    if not has_folder:
        raise_invalid(parameter, "in an existing folder", repr(str(path)))
    draft = _draft(path)
    try:  # rights do not tell: a file system may be full, read-only, or take none, like /proc
        draft.touch(exist_ok=False)
        draft.unlink()
    except OSError as error:
        _unwritable(parameter, path, error)


def check_page(parameter: str, path: Path) -> None:
    """Refuse a place for a page that no browser would open as one."""
    check_target(parameter, path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise_invalid(parameter, "a file that ends in .html", repr(str(path)))


def check_apart(written: Mapping[str, Path | None], read: Mapping[str, Path | None]) -> None:
    """Refuse to write over what is read, or over what else is written; both are {parameter: file, or None}."""
    seen = {path.resolve(): name for name, path in read.items() if path is not None}
    for name, path in written.items():
        if path is None:
            continue
        other = seen.setdefault(path.resolve(), name)
        if other != name:
            raise_invalid(name, f"another file than `{other}`", repr(str(path)))


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Give a new name beside `path`; the file or folder made there takes the place of `path` at the end.

    If anything fails, `path` stays as it was and the draft is removed.
    """
    draft = _draft(path)
    old = draft.with_name(draft.name + ".old")
    try:
        yield draft
        if path.is_dir():
            os.replace(path, old)  # a folder cannot be replaced in one step
        try:
            os.replace(draft, path)
        except BaseException:
            if old.exists():
                os.replace(old, path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        with suppress(OSError):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)


def write_whole(parameter: str, path: Path, data: bytes) -> None:
    """Write `data` to `path`, on the disk before the name appears."""
    try:
        with draft_of(path) as draft, draft.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        _unwritable(parameter, path, error)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type if it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _draft(path: Path) -> Path:
    """A new name beside a file."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


def _unwritable(parameter: str, path: Path, error: OSError) -> NoReturn:
    raise_invalid(parameter, "a file that can be written", f"{shown(str(path))} ({error.strerror})")


def save_folder(path: str | Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` and `header` to the folder `path`, by way of a sibling that is then renamed."""
    target = Path(path)
    if target.exists() and not _is_ours(target):
        raise_invalid("path", "new, or a folder that naysay wrote", repr(str(target)))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise_invalid("path", "below folders only", f"{str(target)!r}, which is below a file")
    with draft_of(target) as draft:
        draft.mkdir()
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        whole = {"kind": kind, "format": _FORMAT, "arrays": sorted(arrays), **header}
        (draft / _HEADER).write_text(json.dumps(whole, indent=1) + "\n")


def _is_ours(folder: Path) -> bool:
    """Whether a folder has a header of ours: only such a folder may be written over."""
    try:
        return bool({"kind", "format", "arrays"} <= json.loads((folder / _HEADER).read_text()).keys())
    except (OSError, ValueError, AttributeError):
        return False


def load_folder(
    path: str | Path, kind: str, *, mmap: bool, numbers: Sequence[str] = (), needed: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a folder that `save_folder` wrote.

    Args:
        numbers: Entries of the header that must be whole numbers.
        needed: Arrays that must be there.
    """
    folder = Path(path)
    if not (folder / _HEADER).is_file():
        raise_invalid("path", "a folder that naysay wrote", repr(str(folder)))
    try:
        header: dict[str, Any] = json.loads((folder / _HEADER).read_text())
        found = (header["kind"], header["format"])
        names = list(header["arrays"])
        sound = {*needed} <= {*names} and all(type(header[name]) is int and header[name] >= 0 for name in numbers)
    except (OSError, ValueError, KeyError, TypeError):
        raise_invalid("path", "a folder with a sound header", repr(str(folder / _HEADER)))
    if found != (kind, _FORMAT):
        raise_invalid("path", f"{kind} of format {_FORMAT}", f"{found[0]} of format {found[1]}")
    if not sound:
        raise_invalid("path", "a folder with a sound header", repr(str(folder / _HEADER)))
    arrays: dict[str, NDArray[Any]] = {}
    for name in names:
        file = folder / f"{name}.npy"
        try:
            arrays[name] = _read(file, mmap=mmap)
        except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
            raise_invalid("path", "a complete folder", f"{file.name}: {first_line(error)}")
    return header, arrays


def _read(file: Path, *, mmap: bool) -> NDArray[Any]:
    if mmap:
        return np.lib.format.open_memmap(file, mode="r")
    with file.open("rb") as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array
