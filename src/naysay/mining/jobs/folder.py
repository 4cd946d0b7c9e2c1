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

from naysay.checks import refuse, shown
from naysay.errors import NaysayError
from naysay.mining.jobs.files import DRAFT, read_json, write_json

FORMAT = 1
_WHAT, _BEGUN, _LOCK = "job.json", "begun", "lock"


def folder_of(output: Path) -> Path:
    """Where the job of an output is, unless another place is named: a hidden folder beside it."""
    return output.with_name(f".{output.name}.naysay-job")


def digest(owner: str, option: str, path: Path) -> dict[str, Any]:
    """What a file holds: its bytes, and their SHA-256, read in a stream."""
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            return {"bytes": stream.tell(), "sha256": found}
    except OSError as error:
        refuse(owner, option, "a file that can be read", f"{shown(str(path))} ({error.strerror})")


def check_unfinished(owner: str, path: Path, *, resume: bool, fresh: bool) -> None:
    """Refuse a folder that is none of a job, and one of an unfinished job that nobody said what to do about."""
    if not path.exists():
        if not path.parent.is_dir():
            refuse(owner, "--job", "in an existing folder", repr(str(path)))
        return
    if not path.is_dir() or (not (path / _WHAT).is_file() and not _is_empty(path)):
        refuse(owner, "--job", "a new folder, or one of a job", repr(str(path)))
    if (path / _WHAT).is_file() and not resume and not fresh:
        advice = "Go on with it by --resume, or start anew with --fresh."
        refuse(owner, "--output", "one without an unfinished job", f"the job in {str(path)!r}", advice)


@contextmanager
def opened(owner: str, path: Path, job: Mapping[str, Any], *, fresh: bool) -> Iterator[Path]:
    """The folder of a job, new or to be gone on with. It is removed at the end, and stays if anything fails.

    job     all that decides the result: arguments, contents of files, versions. A folder of another job is refused
    fresh   whether what is there is thrown away

    A job that is refused before it has `begun` leaves no folder. One process at a time: another one is refused.
    """
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        refuse(owner, "--job", "a folder that can be made", f"{shown(str(path))} ({error.strerror})")
    with _alone(owner, path):
        _gone(path)
        if fresh:
            _clear(path)
        for draft in path.rglob(f"{DRAFT}*"):  # of a process that was killed
            draft.unlink(missing_ok=True)
        there = read_json(path / _WHAT)
        if there is None:
            write_json(owner, path / _WHAT, dict(job))
        else:
            _same(owner, there, json.loads(json.dumps(job)))
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


def _clear(path: Path) -> None:
    """Remove all but the lock, and last what says that this is a job."""
    for file in path.iterdir():
        if file.is_dir():
            shutil.rmtree(file)
        elif file.name not in (_LOCK, _WHAT):
            file.unlink()
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


def _same(owner: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with another job, and say what is other."""
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
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
    refuse(owner, "--resume", "given for the same job", f"{said}{more}", advice)


@contextmanager
def _alone(owner: str, path: Path) -> Iterator[None]:
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
            message = f"{owner}: another process is working on the job in {str(path)!r}. Wait for it, or stop it."
            raise NaysayError(message) from None
        yield
