"""Files of a job: each appears whole or not at all, and is on the disk when it appears."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from naysay.errors import NaysayError

DRAFT = ".draft-"
_LOST = "Nothing is lost"


@contextmanager
def room(path: Path, needed: Callable[[], int] | None = None) -> Iterator[None]:
    """Turn a disk that cannot be written to into a sentence, a full one with the bytes needed; the job stays."""
    try:
        yield
    except (OSError, NaysayError) as error:
        if _LOST in str(error):
            raise  # a file inside of this one has said it already
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            message = (
                f"the disk of {str(path.parent)!r} is full"
                + (f": {path.name!r} takes {needed():,} bytes. " if needed is not None else f", for {path.name!r}. ")
                + f"{_LOST}: make room, and run again with --resume."
            )
        elif isinstance(error, OSError):
            message = (
                f"{str(path)!r} cannot be written ({error.strerror}). {_LOST}: see to the disk, and run again "
                "with --resume."
            )
        else:
            raise
        raise NaysayError(message) from error


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A stream to a draft beside `path`, which takes its place once all bytes are on the disk."""
    draft = path.with_name(f"{DRAFT}{secrets.token_hex(8)}")
    written = [0]
    try:
        with room(path, lambda: written[0]), draft.open("wb", buffering=1 << 20) as stream:
            try:
                yield stream
                written[0] = stream.tell()
                stream.flush()
                os.fsync(stream.fileno())
            except OSError:
                with suppress(OSError):
                    written[0] = max(written[0], stream.tell())
                raise
        os.replace(draft, path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def clear_drafts(path: Path) -> None:
    """Remove what a process that was killed left of a file or folder that it was writing, beside it."""
    left = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}(\.old|\.arrow)?")
    for draft in path.parent.iterdir():
        if left.fullmatch(draft.name):
            shutil.rmtree(draft) if draft.is_dir() else draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring the names of a folder to the disk, where the system can; of a file its bytes."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_file(path: Path) -> None:
    """Bring a file that somebody else wrote to the disk, and its name: what it was made of may go then."""
    if path.is_file():
        sync_folder(path)
    sync_folder(path.parent)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """An .npy file. Its bytes go through the stream: NumPy's own way to a file does not say that a disk is full."""
    held = np.ascontiguousarray(array)
    with whole_file(path) as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(held))
        stream.write(held.reshape(-1).view(np.uint8).data)


def read_array(path: Path) -> NDArray[Any]:
    """What `write_array` wrote."""
    try:
        with path.open("rb") as stream:
            array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError):
        damaged(path)
    return array


def damaged(path: Path) -> NoReturn:
    """Refuse a file of a job that is not as it was written: what is mined by it would be wrong."""
    message = f"mine: {path.name!r} in the folder of the job is damaged. Start anew with --fresh."
    raise NaysayError(message)


def write_json(path: Path, value: Any) -> None:
    """A JSON document."""
    with whole_file(path) as stream:
        stream.write((json.dumps(value, indent=1) + "\n").encode())


def read_json(path: Path) -> Any:
    """What `write_json` wrote, or None if there is no such file."""
    return json.loads(path.read_bytes()) if path.is_file() else None
