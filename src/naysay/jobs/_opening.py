"""Opening the folder of a job: whether it may be used, who works on it, and what becomes of it at the end."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from naysay.checks import raise_invalid, shown
from naysay.files import is_draft
from naysay.jobs._disk import DiskError, locked, raise_in_the_way
from naysay.jobs._folder import FORMAT, LOCK, RECORD, JobFolder, checksum_of


def folder_of(output: Path) -> Path:
    """The default folder of a job: a hidden one beside its output."""
    return output.with_name(f".{output.name}.naysay-job")


@contextmanager
def opened(path: Path, *, resume: bool, fresh: bool) -> Iterator[JobFolder]:
    """Open the folder of a job, new or to be continued. It is removed when the job is done.

    It is kept if the job is stopped, or refused after some work was done.

    Args:
        path: The folder.
        resume: Whether an unfinished job in it is to be continued.
        fresh: Whether an unfinished job in it is to be thrown away.
    """
    made = _make(path)
    busy = f"another process is working on the job in {str(path)!r}. Wait for it, or stop it."
    mark = f"naysay job {secrets.token_hex(8)}{' made' if made else ''}"
    try:
        with locked(path / LOCK, busy, mark) as (name, made_before):
            record = _read_record(path)
            if record is None:
                record = {"naysay": "mine", "format": FORMAT, "job": name, "made": made_before, "state": "new"}
                record |= {"options": None, "files": {}, "done": {}, "folders": []}
            made, folder = record["made"], JobFolder(path, record)
            folder.check_own()
            if record["state"] == "running" and not (resume or fresh):
                advice = "Continue it with --resume, or start again with --fresh."
                raise_invalid("--output", "one without an unfinished job", f"the job in {str(path)!r}", advice)
            if fresh or record["state"] == "cleared":
                folder.reset()
            folder.check_files()
            try:
                yield folder
            except (DiskError, OSError):
                raise
            except Exception:
                folder.end(refused=True)
                raise
            folder.end(refused=False)
    finally:
        if made:
            with suppress(OSError):  # there is work in it
                path.rmdir()


def _make(path: Path) -> bool:
    """Make the folder; return False if it exists, and raise if it is neither empty nor a job's."""
    try:
        if not path.exists():
            if not path.parent.is_dir():
                raise_invalid("--job", "in an existing folder", repr(str(path)))
            path.mkdir()
            return True
        if not path.is_dir():
            raise_invalid("--job", "a new folder, or one of a job", f"the file {str(path)!r}")
        if _read_record(path) is None:
            for file in sorted(path.iterdir()):
                if file.name != LOCK and not (is_draft(file) and file.name.startswith(f".{RECORD}.")):
                    raise_in_the_way(path, file.name)
    except OSError as error:
        raise_invalid("--job", "a folder that can be made", f"{shown(str(path))} ({error.strerror})")
    return False


def _read_record(path: Path) -> dict[str, Any] | None:
    """Return the record of a job, None if there is none; raise if it is damaged, or another's file."""
    file = path / RECORD
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_bytes())
        good = isinstance(record, dict) and record.pop("checksum", None) == checksum_of(record)
    except (OSError, ValueError, RecursionError):
        good = False
    if not good or (record.get("naysay"), record.get("format")) != ("mine", FORMAT):
        got = f"{str(path)!r}, whose {RECORD} is damaged, or not of this version"
        raise_invalid("--job", "a new folder, or one of a job", got, "Move that folder away, and run again.")
    return dict(record)
