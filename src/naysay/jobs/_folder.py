"""The folder of a job: its lock, its record, its files with their checksums, and what may be removed.

`job.json` is the mark of a job: it names the job by a random id, and lists each file that the job made with its
checksum. Nothing else in the folder is ever removed or replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.files import digest_of, is_draft, read_array, sync
from naysay.jobs import _guards as guards
from naysay.text import counted

FORMAT = 4
VECTORS, INDEX = "encoded", "index"  # folders in it, which the encoder and the index fill
_RECORD, _LOCK, PART = "job.json", "lock", "part-"
_TO_REMAKE = ("ids.npy", "scores.npy")  # results that each run puts together again
# What the encoder and the index name their files; a random or a hashed part is in all that can be many.
_INSIDE = re.compile(
    r"header\.json|index\.faiss|\.?(vectors-[0-9a-f]{16,32}|\d{12}|[a-z-]+-\d{6}(\.\w+)*)(\.[0-9a-f]{16,32})*(\.npy|\.parts)?"
)


@final
class JobFolder:
    """A folder that is open: one process at a time has it.

    `inputs` are the files that the job reads: no file of the job is finished after one of them changed. `files` maps
    each file of the job to [bytes, SHA-256], and `done` each finished step to what it found. The state is "new",
    "running", "stopped" (by its options: the next run needs no --resume) or "cleared" (what is left may be removed).
    """

    def __init__(self, path: Path, record: Mapping[str, Any]) -> None:
        self.path, self.inputs, self._began = path, guards.Inputs(), False
        self.id: str = record["job"]
        self.made: bool = record["made"]
        self.state: str = record["state"]
        self.options: dict[str, Any] | None = record["options"]
        self.files: dict[str, list[Any]] = record["files"]
        self.done: dict[str, Any] = record["done"]
        self._claimed: list[str] = record["folders"]

    def finish(self, step: str, found: Any) -> None:
        """Record that a step is done."""
        self.inputs.check()
        self.done[step] = found
        self._save()

    def begin(self, options: Mapping[str, Any], *, resume: bool) -> None:
        """Record all that decides the result; raise if the folder holds a job with other options.

        A job that was `stopped`, because its options were invalid or anchors are short, makes way for another, which
        keeps the vectors of the model.
        """
        now = json.loads(json.dumps(options))
        if self.options is not None and guards.changed_options(self.options, now):
            if resume or self.state != "stopped":
                guards.raise_changed(self.options, now)
            self._clear(VECTORS)
        self.options, self.state, self._began = now, "running", True
        self._save()

    def stop(self) -> None:
        """Record that the job ends by its options: the next run needs no --resume."""
        self.state = "stopped"
        self._save()

    def claim(self, name: str) -> Path:
        """Return a folder in this one that others fill; it is the job's from now on."""
        self._check_free(name, self._claimed)
        self._claimed = sorted({*self._claimed, name})
        self._save()
        return self.path / name

    def keep(self, name: str) -> None:
        """Record the files of a folder that was claimed, with their checksums."""
        for file in sorted((self.path / name).iterdir()):
            self.files[f"{name}/{file.name}"] = [file.stat().st_size, digest_of(file)]
        self._save()

    @contextmanager
    def file(self, name: str) -> Iterator[BinaryIO]:
        """Open a stream to a file. Its bytes are on the disk, and in the record, before its name appears."""
        self._check_free(name, self.files)

        def enter(draft: Path) -> None:
            self.inputs.check()
            self.files[name] = [draft.stat().st_size, digest_of(draft)]
            self._save()

        with self._written(name, enter) as stream:
            yield stream

    @contextmanager
    def _written(self, name: str, before_rename: Callable[[Path], None]) -> Iterator[BinaryIO]:
        path, draft, written = self.path / name, self.path / f".{name}.{self.id}", 0
        with guards.disk_errors(path, lambda: written):
            try:
                with draft.open("wb", buffering=1 << 20) as stream:
                    try:
                        yield stream
                    finally:
                        with suppress(OSError):
                            written = stream.tell()
                    stream.flush()
                    os.fsync(stream.fileno())
                before_rename(draft)
                os.replace(draft, path)
                sync(self.path)
            finally:
                draft.unlink(missing_ok=True)

    @contextmanager
    def array_file(self, name: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> Iterator[BinaryIO]:
        """Open an .npy file whose bytes are written in order.

        On a full disk, NumPy's own writer reports nothing, and a mapped file ends the process.
        """
        with self.file(name) as stream:
            header = {"descr": kind.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, header)
            yield stream

    def write_array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array to an .npy file."""
        rows = np.ascontiguousarray(array)
        with self.array_file(name, rows.shape, rows.dtype) as stream:
            stream.write(rows.reshape(-1).view(np.uint8).data)

    def array(self, name: str, *, mmap: bool = True) -> NDArray[Any]:
        """Read or map what `write_array` wrote."""
        return read_array(self.path / name, mmap=mmap and self.files[name][0] > 0)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raise if they are not those that were written."""
        data = (self.path / name).read_bytes() if (self.path / name).is_file() else b""
        if hashlib.sha256(data).hexdigest() != self.files[name][1]:
            guards.raise_damaged(name)
        return data

    def _save(self) -> None:
        record = {"naysay": "mine", "format": FORMAT, "job": self.id, "made": self.made, "state": self.state}
        record |= {"options": self.options, "files": self.files, "done": self.done, "folders": self._claimed}
        lines = (f'"{name}": {json.dumps(part)}' for name, part in {**record, "checksum": _checksum(record)}.items())
        with self._written(_RECORD, lambda draft: None) as stream:  # json's own indents take ten times as long
            stream.write("{{\n{}\n}}\n".format(",\n".join(lines)).encode())

    def _check_free(self, name: str, own: Collection[str]) -> None:
        """Raise if something that the job did not make has the name of what it makes next."""
        if name not in own and (self.path / name).exists():
            guards.raise_in_the_way(self.path, name)

    def _is_own(self, name: str) -> bool:
        """Whether the job made a file or folder, by its name in this folder."""
        first, *rest = name.split("/")
        if name in self.files or (not rest and (first in (_RECORD, _LOCK) or first.endswith(f".{self.id}"))):
            return True
        name = first.split(".")[1] if is_draft(Path(first)) else first
        return name in self._claimed and all(map(_INSIDE.fullmatch, rest))

    def check_own(self) -> None:
        """Raise if the folder holds anything that the job did not make."""
        for name, _ in self._content():
            if not self._is_own(name):
                guards.raise_in_the_way(self.path, name)

    def _content(self) -> list[tuple[str, Path]]:
        """(name, path) of all that is in the folder, what is in another folder after it."""
        return [(file.relative_to(self.path).as_posix(), file) for file in sorted(self.path.rglob("*"))]

    def check_files(self) -> None:
        """Verify all files against the record. A damaged part is removed, to be mined again; others raise an error."""
        for name, (size, digest) in list(self.files.items()):
            file = self.path / name
            there = file.is_file()
            if there and name not in _TO_REMAKE and file.stat().st_size == size and digest_of(file) == digest:
                continue
            if there and name not in _TO_REMAKE and not name.startswith(PART):
                guards.raise_damaged(name)
            file.unlink(missing_ok=True)
            del self.files[name]
        for file in self.path.glob(f".*.{self.id}"):  # drafts of a process that was killed
            file.unlink()

    def reset(self) -> None:
        """Remove all that the job made, and forget its options."""
        self._clear()
        self.options, self.state = None, "new"

    def _clear(self, *kept: str) -> None:
        """Remove all that the job made, but for its record and the folders to be kept."""
        self.state = "cleared"  # a kill leaves a folder that the next run clears
        if (self.path / _RECORD).is_file():
            self._save()
        for name, file in reversed(self._content()):
            if name in (_RECORD, _LOCK) or name.split("/")[0] in kept or not self._is_own(name):
                continue
            if file.is_dir() and not file.is_symlink():
                with suppress(OSError):  # something that is not the job's is in it
                    file.rmdir()
            else:
                file.unlink()
        self.files, self.done, self._claimed = {}, {}, [name for name in self._claimed if name in kept]

    def end(self, *, failed: bool) -> None:
        """Remove the job once it is done; one that raised an error stays if there is work in it."""
        if failed and (not self._began or any(name.startswith(PART) for name in self.files)):
            return
        if failed and VECTORS in self._claimed:
            self.stop()
            return
        self._clear()
        (self.path / _RECORD).unlink()


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


@contextmanager
def opened(path: Path, *, resume: bool, fresh: bool) -> Iterator[JobFolder]:
    """Open the folder of a job, new or to be continued. It is removed when the job is done.

    It is kept if the job is stopped, or raises an error after some work was done. An unfinished job is continued if
    `resume`, and thrown away if `fresh`.
    """
    made = _make(path)
    busy = f"another process is working on the job in {str(path)!r}. Wait for it, or stop it."
    mark = f"naysay job {secrets.token_hex(8)}{' made' if made else ''}"
    try:
        with guards.locked("--job", path / _LOCK, busy, mark) as (name, made_before):
            new = {"job": name, "made": made_before, "state": "new", "options": None}
            folder = JobFolder(path, _read_record(path) or {**new, "files": {}, "done": {}, "folders": []})
            made = folder.made
            folder.check_own()
            if folder.state == "running" and not (resume or fresh):
                parts = sum(name.startswith(PART) for name in folder.files)
                got = (
                    f"the job in {str(path)!r}, of which {counted(parts, 'part')} {'is' if parts == 1 else 'are'} done"
                )
                advice = "Run the same command with --resume to continue it, or with --fresh to start over."
                raise_invalid("--output", "one without an unfinished job", got, advice)
            if fresh or folder.state == "cleared":
                folder.reset()
            folder.check_files()
            try:
                yield folder
            except (guards.DiskError, OSError):
                raise
            except Exception:
                folder.end(failed=True)
                raise
            folder.end(failed=False)
    finally:
        if made:
            with suppress(OSError):  # there is work in it
                path.rmdir()


def _make(path: Path) -> bool:
    """Make the folder; return whether it is ours to remove, and raise if it is neither empty nor a job's."""
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
                if file.name != _LOCK and not (is_draft(file) and file.name.startswith(f".{_RECORD}.")):
                    guards.raise_in_the_way(path, file.name)
    except OSError as error:
        raise_invalid("--job", "a folder that can be made", f"{shown(str(path))} ({error.strerror})")
    return path.name.endswith(".naysay-job")  # empty: a process was killed at its very end


def _read_record(path: Path) -> dict[str, Any] | None:
    """Return the record of a job, None if there is none; raise if it is damaged, or another's file."""
    file = path / _RECORD
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_bytes())
        good = isinstance(record, dict) and record.pop("checksum", None) == _checksum(record)
    except (OSError, ValueError, RecursionError):
        good = False
    if not good or (record.get("naysay"), record.get("format")) != ("mine", FORMAT):
        got = f"{str(path)!r}, whose {_RECORD} is damaged, or not of this version"
        raise_invalid("--job", "a new folder, or one of a job", got, "Move that folder away, and run again.")
    return dict(record)
