"""Files on this machine: where they may be written, atomic writes, checksums, and folders of arrays.

A file or folder is written to a draft beside its target, which then takes its place: it appears whole or not at all.
NumPy is imported where arrays are read or written, so that the command line starts without it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from naysay.errors import raise_invalid
from naysay.text import first_line, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER = "header.json"
_FORMAT = 1  # of folders of arrays
_BUFFER = 1 << 20  # bytes
_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}(\.old|\.arrow)?")
# What the errors of a disk mean, where the system's own words do not say it.
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is larger than the system allows",
}
FULL = (errno.ENOSPC, errno.EDQUOT)
_PATH_LENGTH = 400  # characters of a path in a message


# ---- Errors ----------------------------------------------------------------------------------------------------------


def shown_path(path: str | Path) -> str:
    """A path in quotes for a message. Of a very long one the beginning is left out: its end is the name of the file."""
    text = repr(str(path))
    return text if len(text) <= _PATH_LENGTH else f"'...{text[3 - _PATH_LENGTH :]}"


def disk_reason(error: OSError) -> str:
    """Why the system could not write, in words: "the disk is full"."""
    if error.errno in _REASONS:
        return _REASONS[error.errno]
    return error.strerror or first_line(error)


def raise_unwritable(parameter: str, path: Path, error: OSError) -> NoReturn:
    """Raise the error for a file that the system could not write: which one, why, and what to do."""
    advice = "Free some space, and run again." if error.errno in FULL else ""
    raise_invalid(parameter, "a file that can be written", f"{shown_path(path)} ({disk_reason(error)})", advice)


def raise_unreadable(parameter: str, rule: str, path: Path, error: BaseException) -> NoReturn:
    """Raise the error for a file that cannot be read, with the first line of the reader's error."""
    raise_invalid(parameter, rule, f"{str(path)!r} ({first_line(error)})")


# ---- Checks before work starts ---------------------------------------------------------------------------------------


def as_path(parameter: str, path: object) -> Path:
    """Return a path as `Path`; raise if it is not one, or has a null byte, which no file has."""
    if not isinstance(path, str | os.PathLike) or not isinstance(name := os.fspath(path), str):
        raise_invalid(parameter, "a path", shown(path))
    if "\0" in name:
        raise_invalid(parameter, "a path without null bytes", shown_path(name))
    return Path(path)


def check_target(parameter: str, path: Path) -> None:
    """Raise unless a file can be written at `path`. Folders, devices and missing folders are invalid."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG
    except OSError as error:  # a name that is too long for any file, or links in a loop
        raise_unwritable(parameter, path, error)
    if stat.S_ISDIR(mode):
        raise_invalid(parameter, "a file", f"the folder {str(path)!r}")
    if not stat.S_ISREG(mode):  # a draft would replace /dev/null
        raise_invalid(parameter, "a file", f"{str(path)!r}, a device or a pipe")
    if not path.parent.is_dir():
        raise_invalid(parameter, "in an existing folder", repr(str(path)))
    draft = _draft(path)
    try:  # permissions are not enough: a file system may be full, read-only, or without new files, like /proc
        with suppress(FileNotFoundError):
            draft.stat()  # the name may be too long
        if not _makes_files_without_name(path.parent):
            draft.touch(exist_ok=False)
            draft.unlink()
    except OSError as error:
        raise_unwritable(parameter, path, error)


def _makes_files_without_name(folder: Path) -> bool:
    """Whether the system could make a file without a name, of which a kill leaves nothing."""
    with suppress(OSError, AttributeError):
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
        return True
    return False


def check_source(parameter: str, path: Path) -> None:
    """Raise if `path` is a device, a pipe, a loop of links or not readable. Folders and missing files are accepted."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        if not isinstance(error, OSError) or error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return
        raise_invalid(parameter, "a file that can be read", f"{shown_path(path)} ({error.strerror})")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise_invalid(parameter, "a file", f"{str(path)!r}, a device or a pipe", "Copy it to a file first.")


def check_file(parameter: str, path: Path, advice: str = "") -> None:
    """Raise unless `path` is a file that exists and can be read."""
    check_source(parameter, path)
    if not os.path.isfile(path):
        raise_invalid(parameter, "an existing file", repr(str(path)), advice)


# ---- Atomic writes ---------------------------------------------------------------------------------------------------


def _draft(path: Path) -> Path:
    """Return a new name beside a file."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


def is_draft(path: Path) -> bool:
    """Whether a name is that of a draft, which a process that was killed leaves."""
    return _DRAFT.fullmatch(path.name) is not None


@contextmanager
def draft_of(path: Path, parameter: str | None = None) -> Iterator[Path]:
    """Give a new name beside `path`; the file or folder made there takes the place of `path` at the end.

    If anything fails, `path` stays as it was and the draft is removed. Errors of the disk are raised as errors of
    `parameter`; None raises them as they are.
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
    except OSError as error:
        if parameter is None:
            raise
        raise_unwritable(parameter, path, error)
    finally:
        with suppress(OSError):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)


def write_whole(parameter: str, path: Path, data: bytes) -> None:
    """Write `data` to `path`. All bytes are on the disk before the name appears, then the name is, too."""
    with draft_of(path, parameter) as draft, draft.open("wb", buffering=_BUFFER) as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    sync(path.parent)


def sync(path: Path) -> None:
    """Bring the bytes of a file, or the names in a folder, to the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- Checksums -------------------------------------------------------------------------------------------------------


def digest_of(path: Path, kind: str = "sha256") -> str:
    """Return the checksum of a file, read in chunks, in digits: 64 of "sha256" or 32 of "blake2b"."""
    made: Any = "sha256" if kind == "sha256" else lambda: hashlib.blake2b(digest_size=16)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, made).hexdigest()


@contextmanager
def checksummed_stream(
    folder: Path, stem: str, suffix: str, *, drafts: Path | None = None
) -> Iterator[tuple[BinaryIO, list[Path]]]:
    """Open a stream to a file STEM.DIGEST.SUFFIX, whose name holds the checksum of its bytes.

    The list is empty until the file is complete; then it holds its path. The draft is in `drafts`, on the same disk, or
    else in `folder`. The bytes are on the disk before the name appears.
    """
    draft = _draft((folder if drafts is None else drafts) / stem)
    made: list[Path] = []
    try:
        with draft.open("wb") as stream:
            yield stream, made
            stream.flush()
            os.fsync(stream.fileno())
        path = folder / f"{stem}.{digest_of(draft, 'blake2b')}{suffix}"
        os.replace(draft, path)
        made.append(path)
    finally:
        draft.unlink(missing_ok=True)


def find_checksummed(folder: Path, stem: str, suffix: str) -> Path | None:
    """Return the file of `checksummed_stream` whose bytes fit its name, or None; delete damaged ones."""
    for path in sorted(folder.glob(f"{stem}.{'[0-9a-f]' * 32}{suffix}")):
        if path.name == f"{stem}.{digest_of(path, 'blake2b')}{suffix}":
            return path
        path.unlink()
    return None


# ---- Folders of arrays -----------------------------------------------------------------------------------------------


def read_header(folder: Path, entries: Collection[str]) -> dict[str, Any] | None:
    """Return the header of a folder that naysay wrote, or None if there is none with these entries."""
    try:
        header = json.loads((folder / HEADER).read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) and header.keys() >= {*entries} else None


def check_replaceable(folder: Path, entries: Collection[str], own: Collection[str] = ()) -> None:
    """Raise if the folder exists and naysay did not write it, or if it holds other files than its arrays and `own`."""
    if not folder.exists():
        return
    header = read_header(folder, entries)
    if header is None:
        raise_invalid("path", "new, or a folder that naysay wrote", repr(str(folder)))
    names = {HEADER, *own, *(f"{name}.npy" for name in header.get("arrays", ()))}
    for other in sorted({*os.listdir(folder)} - names):
        raise_invalid("path", "a folder that holds only what naysay wrote", f"{other!r} in {str(folder)!r}", "Move it.")


def save_folder(path: str | Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` and `header` to the folder `path`, by way of a draft beside it."""
    import numpy as np

    target = as_path("path", path)
    check_replaceable(target, ("kind", "format", "arrays"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise_invalid("path", "below folders only", f"{str(target)!r}, which is below a file")
    except OSError as error:
        raise_unwritable("path", target, error)
    with draft_of(target, "path") as draft:
        draft.mkdir()
        for name, array in arrays.items():
            with (draft / f"{name}.npy").open("wb", buffering=_BUFFER) as stream:
                # To a file object, NumPy would report a full disk without the number of the error.
                np.lib.format.write_array(SimpleNamespace(write=stream.write), array, allow_pickle=False)
        whole = {"kind": kind, "format": _FORMAT, "arrays": sorted(arrays), **header}
        (draft / HEADER).write_text(json.dumps(whole, indent=1) + "\n")


def load_folder(
    path: str | Path, kind: str, *, mmap: bool, numbers: Sequence[str] = (), needed: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a folder that `save_folder` wrote.

    Entries of the header called `numbers` must be whole numbers, and the arrays called `needed` must be there.
    """
    folder = as_path("path", path)
    if not (folder / HEADER).is_file():
        raise_invalid("path", "a folder that naysay wrote", repr(str(folder)))
    header = read_header(folder, ("kind", "format", "arrays", *numbers))
    if header is not None and (header["kind"], header["format"]) != (kind, _FORMAT):
        raise_invalid("path", f"{kind} of format {_FORMAT}", f"{header['kind']} of format {header['format']}")
    sound = (
        header is not None
        and isinstance(header["arrays"], list)
        and all(isinstance(name, str) for name in header["arrays"])
        and all(type(header[name]) is int and header[name] >= 0 for name in numbers)
        and {*needed} <= {*header["arrays"]}
    )
    if header is None or not sound:
        raise_invalid("path", "a folder with a sound header", repr(str(folder / HEADER)))
    arrays: dict[str, NDArray[Any]] = {}
    for name in header["arrays"]:
        file = folder / f"{name}.npy"
        try:
            arrays[name] = read_array(file, mmap=mmap)
        except Exception as error:  # of many kinds: NumPy parses a damaged header with Python's own tokeniser
            raise_invalid("path", "a complete folder", f"{file.name}: {first_line(error)}")
    return header, arrays


def read_array(file: Path, *, mmap: bool = False) -> NDArray[Any]:
    """Read or map an .npy file. A damaged one raises errors of many kinds."""
    import numpy as np

    if mmap:
        return np.lib.format.open_memmap(file, mode="r")
    with file.open("rb") as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def stamped(path: str | Path) -> tuple[str, tuple[Any, ...]]:
    """The absolute path of a folder, and its files with what changes if one is replaced; none if it is gone."""
    folder = os.path.abspath(path)
    try:
        with os.scandir(folder) as files:
            found = [(file.name, file.stat()) for file in files]
    except OSError:
        return folder, ()
    return folder, tuple(sorted((name, at.st_ino, at.st_size, at.st_mtime_ns) for name, at in found))
