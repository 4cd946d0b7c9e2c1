"""The folder of a job: its record, and its files with their checksums.

`job.json` makes a folder that of a job. It holds everything that decides the result, and the checksum of each file
that the job wrote. Nothing else in the folder is ever removed or replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.errors import NaysayError
from naysay.files import digest_of, is_draft, read_array, sync
from naysay.jobs.guards import Inputs, KeptJobError, check_same_options, disk_errors, locked
from naysay.text import counted

FORMAT = 5  # of the folder; a job of another format is not continued
RECORD = "job.json"
PART = "part-"
VECTORS = "encoded"  # folder of the vectors that a model made: they outlive a change of options
INDEX = "index"
_NUMBERED = re.compile(r"[a-z-]+-\d{6}(\.\w+)*")  # what copies of inputs and outputs are called
_REMADE = ("ids.npy", "scores.npy")  # results that each run puts together again


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
        self._folders: list[str] = record["folders"]
        self._owns_folder: bool = record["owns_folder"]  # whether the folder itself goes with the job

    # ---- what decides the result ------------------------------------------------------------------------------------

    def begin(self, options: Mapping[str, Any]) -> None:
        """Record everything that decides the result; raise if the folder holds a job with other options."""
        now = json.loads(json.dumps(options))
        if self._options is not None:
            check_same_options(self._options, now)
        self._options = now
        self._save()

    def finish(self, step: str, found: Any) -> None:
        """Record that a step is done."""
        self.inputs.check()
        self.steps[step] = found
        self._save()

    # ---- files ------------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a stream to a file. Its bytes are on the disk, and in the record, before its name appears."""
        if name not in self.files and (self.path / name).exists():
            raise_in_the_way(self.path, name)
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

    def write_array(self, name: str, array: NDArray[Any]) -> None:
        """Write an .npy file, which `array` can map."""
        with self.array_stream(name, array.shape, array.dtype) as stream:
            stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    @contextmanager
    def array_stream(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[BinaryIO]:
        """Open an .npy file whose rows are written in order.

        On a full disk NumPy's own writer loses the number of the error, and a mapped file ends the process.
        """
        with self.writing(name) as stream:
            header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, header)
            yield stream

    def array(self, name: str, *, mmap: bool = True) -> NDArray[Any]:
        """Map or read what `write_array` wrote."""
        return read_array(self.path / name, mmap=mmap)

    def write_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write several arrays to one .npz file."""
        packed = BytesIO()  # which raises no errors of a disk
        np.savez(packed, allow_pickle=False, **arrays)
        with self.writing(name) as stream:
            stream.write(packed.getbuffer())

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """Read what `write_arrays` wrote; raise if it is damaged."""
        data = (self.path / name).read_bytes() if (self.path / name).is_file() else b""
        if hashlib.sha256(data).hexdigest() != self.files[name]:
            raise_damaged(name)
        with np.load(BytesIO(data), allow_pickle=False) as stored:
            return dict(stored)

    @property
    def parts(self) -> list[str]:
        """The names of the parts that are done, in order."""
        return sorted(name for name in self.files if name.startswith(PART))

    def claim(self, name: str) -> Path:
        """Return a folder in this one that others fill."""
        if name not in self._folders:
            if (self.path / name).exists():
                raise_in_the_way(self.path, name)
            self._folders = sorted([*self._folders, name])
            self._save()
        return self.path / name

    def record_folder(self, name: str) -> None:
        """Record the files of a claimed folder with their checksums."""
        for file in sorted((self.path / name).iterdir()):
            self.files[f"{name}/{file.name}"] = digest_of(file)
        self._save()

    def _save(self) -> None:
        record = {
            "naysay": "mine",
            "format": FORMAT,
            "id": self.id,
            "owns_folder": self._owns_folder,
            "options": self._options,
            "folders": self._folders,
            "files": self.files,
            "steps": self.steps,
        }
        text = json.dumps({**record, "checksum": _checksum(record)})
        with self._draft(RECORD) as (_, stream):
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())

    # ---- opening and ending -----------------------------------------------------------------------------------------

    @property
    def is_unfinished(self) -> bool:
        """Whether a job began here, and did not end."""
        return self._options is not None

    def check_own(self) -> None:
        """Raise if the folder holds anything that the job did not make."""
        for file in sorted(self.path.iterdir()):
            if not (self._is_draft(file) or file.name in (RECORD, *self.files, *self._folders)):
                raise_in_the_way(self.path, file.name)

    def _is_draft(self, file: Path) -> bool:
        """Whether a process that was killed left a file: of this job, of its first record, or of a claimed folder."""
        if file.name.startswith(".") and file.name.endswith(f".{self.id}"):
            return True
        return is_draft(file) and file.name[1:].rpartition(".")[0] in (RECORD, *self._folders)

    def check_files(self) -> None:
        """Verify all files against the record.

        A file that is not there was not finished, and is made again; `read_tables` raises if one of its files is gone.
        A damaged part is mined again. Any other damaged file raises an error.
        """
        for name, digest in list(self.files.items()):
            file = self.path / name
            is_whole = file.is_file() and name not in _REMADE and digest_of(file) == digest
            if is_whole:
                continue
            if file.is_file() and name not in _REMADE and not name.startswith(PART):
                raise_damaged(name)
            file.unlink(missing_ok=True)
            del self.files[name]
        for file in self.path.iterdir():
            if self._is_draft(file):
                shutil.rmtree(file) if file.is_dir() else file.unlink()

    def clear(self, *, keep_vectors: bool = True) -> None:
        """Remove what the job made and forget its options; the vectors of a model may stay."""
        kept = [VECTORS] if keep_vectors else []
        for name in list(self.files):
            if name.split("/")[0] not in kept:
                (self.path / name).unlink(missing_ok=True)
                del self.files[name]
        for name in [name for name in self._folders if name not in kept]:
            _remove_unfinished(self.path / name)
            with suppress(OSError):  # it was never made, or holds something that is not the job's
                (self.path / name).rmdir()
            self._folders.remove(name)
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


def _remove_unfinished(folder: Path) -> None:
    """Remove drafts, and copies and outputs that were not finished, by their names."""
    for file in folder.iterdir() if folder.is_dir() else ():
        if is_draft(file) or _NUMBERED.fullmatch(file.name):
            file.unlink()


@contextmanager
def opened(path: Path, *, resume: bool, fresh: bool) -> Iterator[JobFolder]:
    """Open the folder of a job, new or to be continued. It is removed when the job is done.

    It is kept if the job is stopped, or raises an error after some work was done.

    Args:
        path: The folder.
        resume: Continue an unfinished job.
        fresh: Throw an unfinished job away, but for the vectors of a model.
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
            if not was_unfinished and not folder.parts and VECTORS not in folder._folders:
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
                    raise_in_the_way(path, file.name)
    except OSError as error:
        raise_invalid("--job", "a folder that can be made", f"{shown(str(path))} ({error.strerror})")
    if record is not None:
        return JobFolder(path, record)
    owns_folder = is_new or path.name.endswith(".naysay-job")  # a process was killed before it wrote its record
    new = {
        "id": secrets.token_hex(8),
        "owns_folder": owns_folder,
        "options": None,
        "folders": [],
        "files": {},
        "steps": {},
    }
    return JobFolder(path, new)


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
    advice = "Run again with --resume: it is mined again." if name.startswith(PART) else "Start again with --fresh."
    message = f"{name!r} in the folder of the job is damaged. {advice}"
    raise NaysayError(message)


def raise_in_the_way(folder: Path, name: str) -> NoReturn:
    """Raise the error for a file that no job made, where a job needs its place."""
    advice = "Move it away, or pass another --job."
    raise_invalid("--job", "a new folder, or one of a job", f"{str(folder)!r}, which holds {name!r}", advice)
