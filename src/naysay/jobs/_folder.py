"""The folder of a job: its record, its lock, what changed if it is another job, and how its files are written."""

from __future__ import annotations

import errno
import importlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.errors import NaysayError
from naysay.files import digest_of, durable_stream, is_draft, read_array

FORMAT = 1
VECTORS = "encoded"  # a folder in it, with the vectors of a model
_RECORD, _BEGUN, _SHORT, _LOCK = "job.json", "begun", "short", "lock"
# Options that may be "raise": a finished part has no anchor that is short, so another value gives the same part.
_MAY_CHANGE = ("--on-short", "--short")


def folder_of(output: Path) -> Path:
    """The default folder of a job: a hidden one beside its output."""
    return output.with_name(f".{output.name}.naysay-job")


def digest(option: str, path: Path) -> dict[str, Any]:
    """The size of a file and its SHA-256, read in a stream."""
    try:
        return {"bytes": path.stat().st_size, "sha256": digest_of(path)}
    except OSError as error:
        raise_invalid(option, "a file that can be read", f"{shown(str(path))} ({error.strerror})")


def check_unfinished(path: Path, *, resume: bool, fresh: bool) -> None:
    """Raise if the folder is not a job's, or holds an unfinished job and neither resume nor fresh is given."""
    if not path.exists():
        if not path.parent.is_dir():
            raise_invalid("--job", "in an existing folder", repr(str(path)))
        return
    if not path.is_dir() or (not (path / _RECORD).is_file() and not _is_empty(path)):
        raise_invalid("--job", "a new folder, or one of a job", repr(str(path)))
    if (path / _RECORD).is_file() and not (resume or fresh or (path / _SHORT).is_file()):
        advice = "Continue it with --resume, or start again with --fresh."
        raise_invalid("--output", "one without an unfinished job", f"the job in {str(path)!r}", advice)


@contextmanager
def opened(path: Path, job: Mapping[str, Any], *, resume: bool, fresh: bool) -> Iterator[Path]:
    """Open the folder of a job, new or to be continued. It is removed at the end, and kept if anything fails.

    An error before the job has `begun` leaves no folder. A job that was `stopped_short`, because anchors are short,
    needs no --resume: it is continued if only --on-short or --short changed, and else replaced, all but the vectors of
    a model. One process at a time can open it.

    Args:
        path: The folder.
        job: All that decides the result: options, contents of files, versions.
        resume: Whether the folder must be of this job.
        fresh: Whether its content is thrown away.
    """
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise_invalid("--job", "a folder that can be made", f"{shown(str(path))} ({error.strerror})")
    with _alone(path):
        _gone(path)
        now = json.loads(json.dumps(job))
        if fresh:
            _clear(path)
        elif not resume and (path / _SHORT).is_file() and _changed(read_json(path / _RECORD) or {}, now):
            _clear(path, *((VECTORS, _BEGUN) if (path / VECTORS).is_dir() else ()))
        for draft in [file for file in path.rglob(".*") if file.is_file() and is_draft(file)]:
            draft.unlink(missing_ok=True)
        there = read_json(path / _RECORD)
        if there is not None:
            _same(there, now)
        if there != now:
            write_json(path / _RECORD, now)
        (path / _SHORT).unlink(missing_ok=True)
        try:
            yield path
        except NaysayError:
            if there is None and not (path / _BEGUN).is_file():
                _remove(path)
            raise
        _remove(path)


def begun(path: Path) -> None:
    """Mark that there is work in the folder, which an error must not throw away."""
    (path / _BEGUN).touch()


def stopped_short(path: Path) -> None:
    """Mark that the job ended because anchors are short: the next run needs no --resume."""
    (path / _SHORT).touch()


def _clear(path: Path, *kept: str) -> None:
    """Remove all but the lock and what is kept; the record last."""
    for file in path.iterdir():
        if file.name in (_LOCK, _RECORD, *kept):
            continue
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    (path / _RECORD).unlink(missing_ok=True)


def _remove(path: Path) -> None:
    """Remove the folder, under another name first: a kill may come while it is removed file by file."""
    done = _gone(path)
    os.replace(path, done)
    shutil.rmtree(done)


def _gone(path: Path) -> Path:
    """The name under which a folder is removed; what a kill left there is removed first."""
    done = path.with_name(f"{path.name}.done")
    if done.is_dir():
        shutil.rmtree(done)
    return done


def _is_empty(path: Path) -> bool:
    """Whether a folder holds nothing but what a process left that was killed before it wrote the record."""
    return all(file.name == _LOCK or is_draft(file) for file in path.iterdir())


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The options that changed and decide what is in the folder."""
    different = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [name for name in different if not (name in _MAY_CHANGE and before.get(name) == "raise")]


def _same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise if this is another job, with what changed."""
    changed = _changed(before, now)
    if not changed:
        return
    name = changed[0]
    one, other = before.get(name), now.get(name)
    if isinstance(one, dict) and isinstance(other, dict):  # the contents of a file
        got = f"another content of {name} ({one['bytes']:,} bytes before, {other['bytes']:,} now)"
    else:
        got = f"another {name} ({shown(one)} before, {shown(other)} now)"
    more = f", and {len(changed) - 1} more: {', '.join(changed[1:])}" if len(changed) > 1 else ""
    advice = "Undo the change, or start again with --fresh."
    raise_invalid("--resume", "given for the same job", f"{got}{more}", advice)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the folder's lock, which is released when the process ends."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:  # Windows has none
        yield
        return
    with (path / _LOCK).open("wb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"another process is working on the job in {str(path)!r}. Wait for it, or stop it."
            raise NaysayError(message) from None
        yield


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
def job_file(path: Path) -> Iterator[BinaryIO]:
    """Open a `durable_stream` to a file of a job; a full disk is an error with the bytes that were written."""
    written = 0
    with disk_errors(path, lambda: written), durable_stream(path) as stream:
        try:
            yield stream
        finally:
            with suppress(OSError):
                written = stream.tell()


@contextmanager
def array_file(path: Path, shape: tuple[int, ...], kind: np.dtype[Any]) -> Iterator[BinaryIO]:
    """Open an .npy file whose bytes are written in order.

    On a full disk, NumPy's own writer reports nothing, and a mapped file ends the process.
    """
    with job_file(path) as stream:
        header = {"descr": kind.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        yield stream


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array to an .npy file."""
    rows = np.ascontiguousarray(array)
    with array_file(path, rows.shape, rows.dtype) as stream:
        stream.write(rows.reshape(-1).view(np.uint8).data)


def stored_array(path: Path) -> NDArray[Any]:
    """Read what `write_array` wrote."""
    try:
        return read_array(path)
    except (ValueError, EOFError):
        raise_damaged(path)


def raise_damaged(path: Path) -> NoReturn:
    """Raise the error for a file of a job that is not as it was written."""
    message = f"{path.name!r} in the folder of the job is damaged. Start again with --fresh."
    raise NaysayError(message)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document."""
    with job_file(path) as stream:
        stream.write((json.dumps(value, indent=1) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote; None if there is no such file."""
    return json.loads(path.read_bytes()) if path.is_file() else None
