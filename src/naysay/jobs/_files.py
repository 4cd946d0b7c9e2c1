"""Files of a job: each appears whole or not at all, and is on the disk when it appears."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from naysay.errors import NaysayError
from naysay.files import draft_of

_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}(\.old|\.arrow)?")


class DiskError(NaysayError):
    """A file of a job, or its output, cannot be written. The job is kept, and can be resumed."""


@contextmanager
def disk_errors(path: Path, needed: Callable[[], int] | None = None) -> Iterator[None]:
    """Raise errors of the disk as one sentence; for a full disk with the bytes needed. The job is kept."""
    try:
        yield
    except DiskError:
        raise
    except (OSError, NaysayError) as error:
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            message = (
                f"the disk of {str(path.parent)!r} is full"
                + (f": {path.name!r} takes {needed():,} bytes. " if needed is not None else f", for {path.name!r}. ")
                + "Nothing is lost: free some space, and run again with --resume."
            )
        elif isinstance(error, OSError):
            message = (
                f"{str(path)!r} cannot be written ({error.strerror}). Nothing is lost: repair the disk, and run "
                "again with --resume."
            )
        else:
            raise
        raise DiskError(message) from error


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a stream to a draft of `path`, which takes its place once all bytes are on the disk."""
    written = 0
    with disk_errors(path, lambda: written), draft_of(path) as draft, draft.open("wb", buffering=1 << 20) as stream:
        try:
            yield stream
            written = stream.tell()
            stream.flush()
            os.fsync(stream.fileno())
        except OSError:
            with suppress(OSError):
                written = max(written, stream.tell())
            raise
    sync(path.parent)


def is_draft(path: Path) -> bool:
    """Whether a file is what a process that was killed left of one that it was writing."""
    return _DRAFT.fullmatch(path.name) is not None


def clear_drafts(path: Path) -> None:
    """Remove the drafts of a file or folder, beside it."""
    for draft in path.parent.iterdir():
        if is_draft(draft) and draft.name.startswith(f".{path.name}."):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Bring the bytes of a file, or the names in a folder, to the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_file(path: Path) -> None:
    """Bring a file and its name to the disk."""
    if path.is_file():
        sync(path)
    sync(path.parent)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an .npy file through a stream: NumPy's own writer does not report a full disk."""
    rows = np.ascontiguousarray(array)
    with whole_file(path) as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(rows))
        stream.write(rows.reshape(-1).view(np.uint8).data)


def read_array(path: Path) -> NDArray[Any]:
    """Read what `write_array` wrote."""
    try:
        with path.open("rb") as stream:
            array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError):
        raise_damaged(path)
    return array


def raise_damaged(path: Path) -> NoReturn:
    """Raise the error for a file of a job that is not as it was written."""
    message = f"{path.name!r} in the folder of the job is damaged. Start again with --fresh."
    raise NaysayError(message)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document."""
    with whole_file(path) as stream:
        stream.write((json.dumps(value, indent=1) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote; None if there is no such file."""
    return json.loads(path.read_bytes()) if path.is_file() else None
