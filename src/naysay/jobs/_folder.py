"""The folder of a job: what the job is, that nobody else works on it, and what changed if it is not the same."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from naysay.checks import raise_invalid, shown
from naysay.errors import NaysayError
from naysay.jobs._files import DRAFT, read_json, write_json

FORMAT = 1
VECTORS = "encoded"  # a folder in it, with the vectors of a model
_WHAT, _BEGUN, _REFUSED, _LOCK = "job.json", "begun", "refused", "lock"
# Options that say "raise": a part that is done has no anchor that is short, and so is the same by any other of them.
_MAY_RELENT = ("--on-short", "--short")


def folder_of(output: Path) -> Path:
    """Where the job of an output is, unless another place is named: a hidden folder beside it."""
    return output.with_name(f".{output.name}.naysay-job")


def digest(option: str, path: Path) -> dict[str, Any]:
    """What a file holds: its bytes, and their SHA-256, read in a stream."""
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            return {"bytes": stream.tell(), "sha256": found}
    except OSError as error:
        raise_invalid(option, "a file that can be read", f"{shown(str(path))} ({error.strerror})")


def check_unfinished(path: Path, *, resume: bool, fresh: bool) -> None:
    """Refuse a folder that is none of a job, and one of an unfinished job that nobody said what to do about."""
    if not path.exists():
        if not path.parent.is_dir():
            raise_invalid("--job", "in an existing folder", repr(str(path)))
        return
    if not path.is_dir() or (not (path / _WHAT).is_file() and not _is_empty(path)):
        raise_invalid("--job", "a new folder, or one of a job", repr(str(path)))
    if (path / _WHAT).is_file() and not (resume or fresh or (path / _REFUSED).is_file()):
        advice = "Go on with it by --resume, or start anew with --fresh."
        raise_invalid("--output", "one without an unfinished job", f"the job in {str(path)!r}", advice)


@contextmanager
def opened(path: Path, job: Mapping[str, Any], *, resume: bool, fresh: bool) -> Iterator[Path]:
    """The folder of a job, new or to be gone on with. It is removed at the end, and stays if anything fails.

    A job that is refused before it has `begun` leaves no folder. One that was `refused` because anchors are short
    stands in nobody's way: it is gone on with if that is all that is asked otherwise now, and else makes room for this
    one, all but the vectors of a model. One process at a time: another one is refused.

    Args:
        job: All that decides the result: arguments, contents of files, versions. A folder of another job is
            refused.
        resume: Whether what is there must be this job, and whether it is thrown away.
        fresh: Whether what is there must be this job, and whether it is thrown away.
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
        elif not resume and (path / _REFUSED).is_file() and _changed(read_json(path / _WHAT) or {}, now):
            _clear(path, *((VECTORS, _BEGUN) if (path / VECTORS).is_dir() else ()))
        for draft in path.rglob(f"{DRAFT}*"):  # of a process that was killed
            draft.unlink(missing_ok=True)
        there = read_json(path / _WHAT)
        if there is not None:
            _same(there, now)
        if there != now:
            write_json(path / _WHAT, now)
        (path / _REFUSED).unlink(missing_ok=True)
        try:
            yield path
        except NaysayError:
            if there is None and not (path / _BEGUN).is_file():
                _remove(path)
            raise
        _remove(path)


def begun(path: Path) -> None:
    """Say that there is work in the folder that a refusal must not throw away."""
    (path / _BEGUN).touch()


def refused(path: Path) -> None:
    """Say that the job asks for what cannot be: the next run need not say what is to become of it."""
    (path / _REFUSED).touch()


def _clear(path: Path, *kept: str) -> None:
    """Remove all but the lock and what is kept, and last what says that this is a job."""
    for file in path.iterdir():
        if file.name in (_LOCK, _WHAT, *kept):
            continue
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    (path / _WHAT).unlink(missing_ok=True)


def _remove(path: Path) -> None:
    """Remove the folder: under another name, because a folder goes file by file, and a kill may come in between."""
    done = _gone(path)
    os.replace(path, done)
    shutil.rmtree(done)


def _gone(path: Path) -> Path:
    """Where a folder is removed; what a kill left there goes first."""
    done = path.with_name(f"{path.name}.done")
    if done.is_dir():
        shutil.rmtree(done)
    return done


def _is_empty(path: Path) -> bool:
    """Whether a folder holds nothing but what a process leaves that was killed before it wrote what the job is."""
    return all(file.name == _LOCK or file.name.startswith(DRAFT) for file in path.iterdir())


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is other than it was, and decides what is in the folder."""
    other = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [name for name in other if not (name in _MAY_RELENT and before.get(name) == "raise")]


def _same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with another job, and say what is other."""
    changed = _changed(before, now)
    if not changed:
        return
    name = changed[0]
    one, other = before.get(name), now.get(name)
    if isinstance(one, dict) and isinstance(other, dict):  # the contents of a file
        said = f"another content of {name} ({one['bytes']:,} bytes before, {other['bytes']:,} now)"
    else:
        said = f"another {name} ({shown(one)} before, {shown(other)} now)"
    more = f", and {len(changed) - 1} more: {', '.join(changed[1:])}" if len(changed) > 1 else ""
    advice = "Put back what changed, or start anew with --fresh."
    raise_invalid("--resume", "given for the same job", f"{said}{more}", advice)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the folder's lock, which ends with the process, however that ends."""
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
