"""What stops a job: inputs that change, another process, other options, and a disk that is full or fails."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, final

from filelock import FileLock, Timeout

from naysay.checks import raise_invalid, shown
from naysay.errors import NaysayError
from naysay.files import FULL, digest_of, disk_reason
from naysay.places import shards

# With "raise" a finished part has no anchor that is short, so any other value gives the same part; and --short is only
# about writing.
_FREE_FROM_RAISE = ("--on-short", "--short")


@final
class Inputs:
    """Files that a job reads, which must have the same content until it is done.

    Size, times and inode are compared. If one differs, the whole content is: a copy with the same content is the same.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Path, list[tuple[int, ...]], str]] = {}

    def watch(self, option: str, path: Path) -> dict[str, Any]:
        """Return the size and the SHA-256 of a file, or of the files of a table, and compare it from now on."""
        try:
            identity = _identity(path)
            digest = _digest(path)
        except OSError as error:
            raise_invalid(option, "a file that can be read", f"{shown(str(path))} ({error.strerror})")
        self._known[option] = path, identity, digest
        return {"bytes": sum(size for size, *_ in identity), "sha256": digest}

    def check(self) -> None:
        """Raise if a file has another content than when it was first seen."""
        for option, (path, before, digest) in self._known.items():
            now: list[tuple[int, ...]] = []
            is_same = False
            with suppress(OSError):
                now = _identity(path)
                is_same = now == before or _digest(path) == digest
            if not is_same:
                advice = "Put it back and run again with --resume, or start again with --fresh."
                raise_invalid(option, "the same file until the job is done", f"a change of {str(path)!r}", advice)
            self._known[option] = path, now, digest


def _identity(path: Path) -> list[tuple[int, ...]]:
    """What changes when a file, or one of a table, is written or replaced; its size comes first."""
    found = [part.stat() for part in shards(path)]
    return [(one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino, one.st_dev) for one in found]


def _digest(path: Path) -> str:
    """The SHA-256 of a file; of several, that of theirs."""
    digests = [digest_of(part) for part in shards(path)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock of a path, which ends with the process; raise `busy` if another process has it.

    Lock files are empty and stay in the folder for temporary files, so that none is left beside the path.
    """
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
    user = os.getuid() if hasattr(os, "getuid") else ""
    lock = FileLock(Path(tempfile.gettempdir()) / f"naysay-{user}-{name}.lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise NaysayError(busy) from None
    except OSError as error:
        message = f"no lock can be made in {tempfile.gettempdir()!r} ({disk_reason(error)}). Set TMPDIR."
        raise NaysayError(message) from None
    try:
        yield
    finally:
        lock.release()


class KeptJobError(NaysayError):
    """An error after which the job is kept and can be resumed: a full disk, an upload or a worker that failed."""


@contextmanager
def disk_errors(path: Path, needed: Callable[[], int] | None = None) -> Iterator[None]:
    """Raise errors of the disk as one sentence; for a full disk with the bytes needed. The job is kept."""
    try:
        yield
    except KeptJobError:
        raise
    except (OSError, NaysayError) as error:
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError) and cause.errno in FULL:
            size = f", for {path.name!r}" if needed is None else f": {path.name!r} takes {needed():,} bytes"
            advice = "Nothing is lost: free some space, and run again with --resume."
            message = f"the disk of {str(path.parent)!r} is full{size}. {advice}"
        elif isinstance(error, OSError):
            advice = "Nothing is lost: repair the disk, and run again with --resume."
            message = f"{str(path)!r} cannot be written ({disk_reason(error)}). {advice}"
        else:
            raise
        raise KeptJobError(message) from error


def changed_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The options that changed and decide what is in the folder of a job."""
    different = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [name for name in different if not (name in _FREE_FROM_RAISE and before.get(name) == "raise")]


def check_same_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise if a job is not the one in the folder, with what changed."""
    changed = changed_options(before, now)
    if changed:
        _raise_changed(changed, before, now)


def _raise_changed(changed: list[str], before: Mapping[str, Any], now: Mapping[str, Any]) -> NoReturn:
    name = changed[0]
    one, other = before.get(name), now.get(name)
    is_file = isinstance(one, dict) and isinstance(other, dict) and "bytes" in one and "bytes" in other
    if is_file:
        got = f"another content of {name} ({before[name]['bytes']:,} bytes before, {now[name]['bytes']:,} now)"
    else:
        got = f"another {name} ({shown(one)} before, {shown(other)} now)"
    if len(changed) > 1:
        got += f", and {len(changed) - 1} more: {', '.join(changed[1:])}"
    raise_invalid("--resume", "given for the same job", got, "Undo the change, or start again with --fresh.")
