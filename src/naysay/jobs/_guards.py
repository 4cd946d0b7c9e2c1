"""What stops a job: inputs that change, another process or job, files in the way, a disk that is full or damaged."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, final

from naysay.checks import raise_invalid, shown
from naysay.errors import NaysayError
from naysay.files import FULL, digest_of, disk_reason, shown_path
from naysay.places import shards

# Options that may be "raise": a finished part has no anchor that is short, so another value gives the same part.
_MAY_CHANGE = ("--on-short", "--short")
_MARK = re.compile(r"naysay job ([0-9a-f]{16})( made)?\n")


@final
class Inputs:
    """Files that a job reads, which must have the same content until it is done.

    Size, times and inode are compared. If one differs, the whole content is: a copy with the same content is the same.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Path, tuple[int, ...], str]] = {}

    def watch(self, option: str, path: Path) -> dict[str, Any]:
        """Return the size and the SHA-256 of a file, or of the files of a table, and compare it from now on."""
        try:
            before = _identity(path)
            digest = _digest(path)
        except OSError as error:
            raise_invalid(option, "a file that can be read", f"{shown(str(path))} ({error.strerror})")
        self._known[option] = path, before, digest
        return {"bytes": before[0], "sha256": digest}

    def check(self) -> None:
        """Raise if a file has another content than when it was first seen."""
        for option, (path, before, digest) in self._known.items():
            now: tuple[int, ...] = ()
            with suppress(OSError):
                now = _identity(path)
                if now != before and now[0] == before[0] and _digest(path) == digest:
                    before = now
            if now != before:
                advice = "Put it back and run again with --resume, or start again with --fresh."
                raise_invalid(option, "the same file until the job is done", f"a change of {str(path)!r}", advice)
            self._known[option] = path, now, digest


def _identity(path: Path) -> tuple[int, ...]:
    """What changes when a file, or one of a table, is written or replaced; the size of all comes first."""
    found = [part.stat() for part in shards(path)]
    each = [(one.st_mtime_ns, one.st_ctime_ns, one.st_ino, one.st_dev, one.st_size) for one in found]
    return sum(one.st_size for one in found), *chain.from_iterable(each)


def _digest(path: Path) -> str:
    """The SHA-256 of a file; of several, that of theirs."""
    digests = [digest_of(part) for part in shards(path)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


@contextmanager
def locked(option: str, path: Path, busy: str, mark: str) -> Iterator[tuple[str, bool]]:
    """Hold a lock file, which is removed at the end; the lock itself ends with the process.

    Args:
        option: What to name if the file cannot be written.
        path: The file. What a process left that was killed is taken over; any other content raises an error.
        busy: The error if another process holds it.
        mark: What to write to a new one: "naysay job ID", or "naysay job ID made" for a folder that the job made.

    Yields:
        The id in the file, and whether it says "made".
    """
    with _locked_stream(option, path, busy) as stream:
        try:
            stream.seek(0)
            before = stream.read(100).decode("latin-1")
            if not before:
                stream.write(f"{mark}\n".encode())
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            _raise_unwritable(option, path, error)
        found = _MARK.fullmatch(before or f"{mark}\n")
        if found is None:
            raise_in_the_way(path.parent, path.name)
        try:
            yield found[1], bool(found[2])
        finally:
            with suppress(OSError):
                path.unlink()


@contextmanager
def _locked_stream(option: str, path: Path, busy: str) -> Iterator[FileIO]:
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:  # Windows has none
        fcntl = None
    while True:
        try:
            opened = path.open("a+b", buffering=0)
        except OSError as error:
            _raise_unwritable(option, path, error)
        with opened as stream:
            try:
                if fcntl is not None:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise NaysayError(busy) from None
            if path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                yield stream
                return
            # Its last holder removed it in the meantime: there is another by now, or none.


def _raise_unwritable(option: str, path: Path, error: OSError) -> NoReturn:
    raise_invalid(option, "in a folder that can be written", f"{shown_path(path.parent)} ({disk_reason(error)})")


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
        if isinstance(cause, OSError) and cause.errno in FULL:
            message = (
                f"the disk of {str(path.parent)!r} is full"
                + (f": {path.name!r} takes {needed():,} bytes. " if needed is not None else f", for {path.name!r}. ")
                + "Nothing is lost: free some space, and run again with --resume."
            )
        elif isinstance(error, OSError):
            message = (
                f"{str(path)!r} cannot be written ({disk_reason(error)}). Nothing is lost: repair the disk, and run "
                "again with --resume."
            )
        else:
            raise
        raise DiskError(message) from error


def raise_damaged(name: str) -> NoReturn:
    """Raise the error for a file of a job that is not as it was written."""
    again = name.startswith("part-")
    advice = "Run again with --resume: it is mined again." if again else "Start again with --fresh."
    message = f"{name!r} in the folder of the job is damaged. {advice}"
    raise NaysayError(message)


def raise_in_the_way(folder: Path, name: str) -> NoReturn:
    """Raise the error for a file that no job made, where a job needs its place."""
    advice = "Move it away, or pass another --job."
    raise_invalid("--job", "a new folder, or one of a job", f"{str(folder)!r}, which holds {name!r}", advice)


def changed_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The options that changed and decide what is in the folder of a job."""
    different = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [name for name in different if not (name in _MAY_CHANGE and before.get(name) == "raise")]


def raise_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> NoReturn:
    """Raise the error for a job that is not the one in the folder, with what changed."""
    changed = changed_options(before, now)
    name = changed[0]
    one, other = before.get(name), now.get(name)
    if isinstance(one, dict) and isinstance(other, dict):  # the contents of a file
        got = f"another content of {name} ({one['bytes']:,} bytes before, {other['bytes']:,} now)"
    else:
        got = f"another {name} ({shown(one)} before, {shown(other)} now)"
    more = f", and {len(changed) - 1} more: {', '.join(changed[1:])}" if len(changed) > 1 else ""
    advice = "Undo the change, or start again with --fresh."
    raise_invalid("--resume", "given for the same job", f"{got}{more}", advice)
