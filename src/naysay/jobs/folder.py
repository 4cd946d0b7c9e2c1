"""The folder of a job: its record, its files with their checksums, and what stops a job so that it can go on.

`job.json` makes a folder that of a job. It holds everything that decides the result, and the checksum of each file
that the job wrote. A file takes its name when it is whole. Files that no job makes are never removed or replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, final
from zipfile import BadZipFile

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.errors import NaysayError
from naysay.files import FULL, digest_of, disk_reason, read_array, sync
from naysay.places import shards
from naysay.text import counted

Arrays = Mapping[str, NDArray[Any]]
FORMAT = 6  # of the folder; a job of another format is not continued
RECORD = "job.json"
PART = "part-"
VECTORS = "encoded"  # folder of the vectors that a model made: they outlive a change of options
INDEX = "index"
OUTPUTS = "outputs"  # folder in which files are made that are uploaded
COPY = "-copy"  # ending of a folder in which an input of a store is copied
_REMADE = ("ids.npy", "scores.npy")  # results that each run puts together again
# What a job makes in its folder, beside drafts. Anything else is a user's.
_NAMES = (
    r"(job\.json|part-\d{12}-\d{12}\.npz|(known|background|fit|review)\.npz|(query|corpus)\.arrow"
    r"|(ids|scores|bm25|known_scores)\.npy|encoded|index|outputs|[a-z-]+-copy)"
)
_OWN = re.compile(_NAMES)
_DRAFT = re.compile(rf"\.{_NAMES}\.[0-9a-f]{{16}}(\.old)?")  # what a process that was killed leaves
# With "raise" a finished part has no anchor that is short, so any other value gives the same part; and --short is only
# about writing.
_FREE_FROM_RAISE = ("--on-short", "--short")


class KeptJobError(NaysayError):
    """An error after which the job is kept and can be resumed: a full disk, an upload or a worker that failed."""


@final
class JobFolder:
    """An open folder; one process at a time has it.

    Attributes:
        path: The folder.
        inputs: The files that the job reads. No file of the job is finished after one of them changed.
        files: {name: SHA-256} of the files that the job wrote.
        steps: {name: what it found} of the steps that are done.
    """

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.path = path
        self.inputs = Inputs()
        self.id: str = record["id"]
        self.files: dict[str, str] = record["files"]
        self.steps: dict[str, Any] = record["steps"]
        self._options: dict[str, Any] | None = record["options"]
        self._owns_folder: bool = record["owns_folder"]  # whether the folder itself goes with the job

    # ---- what decides the result ------------------------------------------------------------------------------------

    def begin(self, options: Mapping[str, Any]) -> None:
        """Record everything that decides the result; raise if the folder holds a job with other options."""
        now = json.loads(json.dumps(options))
        if self._options is not None:
            _check_same_options(self._options, now)
        self._options = now
        self._save()

    def finish(self, step: str, found: Any) -> None:
        """Record that a step is done."""
        self.inputs.check()
        self.steps[step] = found
        self._save()

    @property
    def is_unfinished(self) -> bool:
        """Whether a job began here, and did not end."""
        return self._options is not None

    def _save(self) -> None:
        record = {
            "naysay": "mine",
            "format": FORMAT,
            "id": self.id,
            "owns_folder": self._owns_folder,
            "options": self._options,
            "files": self.files,
            "steps": self.steps,
        }
        text = json.dumps({**record, "checksum": _checksum(record)})
        with self._draft(RECORD) as (_, stream):
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())

    # ---- files ------------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a stream to a file. Its bytes are on the disk, and in the record, before its name appears."""
        with self._draft(name) as (draft, stream):
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            self.inputs.check()
            self.files[name] = digest_of(draft)
            self._save()

    @contextmanager
    def _draft(self, name: str) -> Iterator[tuple[Path, BinaryIO]]:
        """A stream to a draft, which takes its name at the end."""
        draft = self.path / f".{name}.{self.id}"
        n_bytes = 0
        with disk_errors(self.path / name, lambda: n_bytes):
            try:
                with draft.open("wb", buffering=1 << 20) as stream:
                    try:
                        yield draft, stream
                    finally:
                        with suppress(OSError, ValueError):
                            n_bytes = stream.tell()
                os.replace(draft, self.path / name)
                sync(self.path)
            finally:
                draft.unlink(missing_ok=True)

    @contextmanager
    def array_stream(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[BinaryIO]:
        """Open an .npy file whose rows are written in order.

        On a full disk NumPy's own writer loses the number of the error, and a mapped file ends the process.
        """
        with self.writing(name) as stream:
            header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, header)
            yield stream

    def array(self, name: str, make: Callable[[], NDArray[Any]] | None = None, *, mmap: bool = True) -> NDArray[Any]:
        """Map or read an .npy file, which is made first if it is not there."""
        if make is not None and name not in self.files:
            made = make()
            with self.array_stream(name, made.shape, made.dtype) as stream:
                stream.write(np.ascontiguousarray(made).reshape(-1).view(np.uint8).data)
        return read_array(self.path / name, mmap=mmap)

    def write_arrays(self, name: str, arrays: Arrays) -> None:
        """Write several arrays to one .npz file."""
        packed = BytesIO()  # which raises no errors of a disk
        np.savez(packed, allow_pickle=False, **arrays)
        with self.writing(name) as stream:
            stream.write(packed.getbuffer())

    def arrays(self, name: str, make: Callable[[], Arrays] | None = None) -> dict[str, NDArray[Any]]:
        """Read an .npz file, which is made first if it is not there."""
        if make is not None and name not in self.files:
            self.write_arrays(name, make())
        try:
            with np.load(self.path / name, allow_pickle=False) as stored:
                return dict(stored)
        except (OSError, ValueError, BadZipFile):
            raise_damaged(name)

    @property
    def parts(self) -> list[str]:
        """The names of the parts that are done, in order."""
        return sorted(name for name in self.files if name.startswith(PART))

    # ---- opening and ending -----------------------------------------------------------------------------------------

    def check_own(self) -> None:
        """Raise if the folder holds anything that the job did not make."""
        for file in sorted(self.path.iterdir()):
            if not _is_own(file):
                _raise_in_the_way(self.path, file.name)

    def check_files(self) -> None:
        """Forget files that are gone or damaged, so that they are made again; remove drafts."""
        for name, digest in list(self.files.items()):
            file = self.path / name
            if name in _REMADE or not file.is_file() or digest_of(file) != digest:
                file.unlink(missing_ok=True)
                del self.files[name]
        for file in self.path.iterdir():
            if _DRAFT.fullmatch(file.name):
                _remove(file)

    def clear(self, *, keep_vectors: bool = True) -> None:
        """Remove what the job made and forget its options; the vectors of a model may stay."""
        for file in self.path.iterdir():
            is_kept = file.name == RECORD or (keep_vectors and file.name == VECTORS)
            if _is_own(file) and not is_kept:
                _remove(file)
        self.files = {}
        self.steps = {}
        self._options = None

    def remove(self) -> None:
        """Remove all that the job made. Files of others stay, and the folder with them."""
        if self._options is not None:
            self._options = None  # after a kill from here on, the next job removes what is left
            self._save()
        self.clear(keep_vectors=False)
        (self.path / RECORD).unlink(missing_ok=True)
        if self._owns_folder:
            with suppress(OSError):  # something that is not the job's is in it
                self.path.rmdir()


def _is_own(file: Path) -> bool:
    return bool(_OWN.fullmatch(file.name) or _DRAFT.fullmatch(file.name))


def _remove(file: Path) -> None:
    shutil.rmtree(file) if file.is_dir() else file.unlink()


@contextmanager
def opened(path: Path, *, resume: bool, fresh: bool) -> Iterator[JobFolder]:
    """Open the folder of a job: a new one, one to `resume`, or one to begin afresh, which keeps the vectors of a model.

    It is removed when the job is done, and kept if the job is stopped, or raises an error after some work was done.
    """
    busy = f"another process is working on the job in {str(path)!r}. Wait for it, or stop it."
    with locked(path, busy):
        folder = _open(path)
        folder.check_own()
        was_unfinished = folder.is_unfinished
        if fresh or not was_unfinished:
            folder.clear()
        elif not resume:
            done = counted(len(folder.parts), "part")
            got = f"the job in {str(path)!r}, of which {done} {'is' if len(folder.parts) == 1 else 'are'} done"
            advice = "Run the same command with --resume to continue it, or with --fresh to start over."
            raise_invalid("--output", "one without an unfinished job", got, advice)
        folder.check_files()
        try:
            yield folder
        except (KeptJobError, OSError):
            raise
        except Exception:
            if not was_unfinished and not folder.parts and not (path / VECTORS).exists():
                folder.remove()
            raise
        folder.remove()


def _open(path: Path) -> JobFolder:
    """Make the folder, or read its record; raise if it is neither empty nor a job's."""
    try:
        is_new = not path.exists()
        if is_new:
            if not path.parent.is_dir():
                raise_invalid("--job", "in an existing folder", repr(str(path)))
            path.mkdir()
        elif not path.is_dir():
            raise_invalid("--job", "a new folder, or one of a job", f"the file {str(path)!r}")
        record = _read_record(path)
        if record is None:
            for file in sorted(path.iterdir()):
                if not file.name.startswith(f".{RECORD}."):
                    _raise_in_the_way(path, file.name)
    except OSError as error:
        raise_invalid("--job", "a folder that can be made", f"{shown(str(path))} ({error.strerror})")
    if record is None:
        owns_folder = is_new or path.name.endswith(".naysay-job")  # a process was killed before it wrote its record
        record = {"id": secrets.token_hex(8), "owns_folder": owns_folder, "options": None, "files": {}, "steps": {}}
    return JobFolder(path, record)


def _read_record(path: Path) -> dict[str, Any] | None:
    """Return the record of a job, None if there is none; raise if it is damaged, or another's file."""
    file = path / RECORD
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_bytes())
        is_sound = isinstance(record, dict) and record.pop("checksum", None) == _checksum(record)
    except (OSError, ValueError, RecursionError):
        is_sound = False
    if not is_sound or (record.get("naysay"), record.get("format")) != ("mine", FORMAT):
        got = f"{str(path)!r}, whose {RECORD} is damaged, or not of this version"
        raise_invalid("--job", "a new folder, or one of a job", got, "Move that folder away, and run again.")
    return dict(record)


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def raise_damaged(name: str) -> NoReturn:
    """Raise the error for a file of a job that is not as it was written."""
    message = f"{name!r} in the folder of the job is damaged. Run again with --resume: it is made again."
    raise KeptJobError(message)


def _raise_in_the_way(folder: Path, name: str) -> NoReturn:
    advice = "Move it away, or pass another --job."
    raise_invalid("--job", "a new folder, or one of a job", f"{str(folder)!r}, which holds {name!r}", advice)


# ---- what stops a job -----------------------------------------------------------------------------------------------


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


def _check_same_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise if a job is not the one in the folder, with what changed."""
    changed = [
        name
        for name in {**before, **now}
        if before.get(name) != now.get(name) and not (name in _FREE_FROM_RAISE and before.get(name) == "raise")
    ]
    if not changed:
        return
    name = changed[0]
    one, other = before.get(name), now.get(name)
    if isinstance(one, dict) and isinstance(other, dict) and "bytes" in one and "bytes" in other:
        got = f"another content of {name} ({one['bytes']:,} bytes before, {other['bytes']:,} now)"
    else:
        got = f"another {name} ({shown(one)} before, {shown(other)} now)"
    if len(changed) > 1:
        got += f", and {len(changed) - 1} more: {', '.join(changed[1:])}"
    raise_invalid("--resume", "given for the same job", got, "Undo the change, or start again with --fresh.")
