"""The folder of a job: its lock, its record, its files with their checksums, and what may be removed.

`job.json` is the mark of a job: it names the job by a random id, and lists each file that the job made with its
checksum. Nothing else in the folder is ever removed or replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.files import digest_of, is_draft, read_array, sync
from naysay.jobs._disk import Inputs, disk_errors, raise_damaged, raise_in_the_way

FORMAT = 2
VECTORS, INDEX = "encoded", "index"  # folders in it, which the encoder and the index fill
RECORD, LOCK, PART = "job.json", "lock", "part-"
_TO_REMAKE = ("ids.npy", "scores.npy")  # results that each run puts together again
# What the encoder and the index name their files; a random or a hashed part is in all that can be many.
_INSIDE = re.compile(
    r"header\.json|index\.faiss|\.?(vectors-[0-9a-f]{16,32}|\d{12})(\.[0-9a-f]{16,32})*(\.npy|\.parts)?"
)
# Options that may be "raise": a finished part has no anchor that is short, so another value gives the same part.
_MAY_CHANGE = ("--on-short", "--short")


@final
class JobFolder:
    """A folder that is open: one process at a time has it.

    `inputs` are the files that the job reads: no file of the job is finished after one of them changed.

    Args:
        path: The folder.
        record: What `job.json` holds.
    """

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.path, self._record = path, record
        self.id: str = record["job"]
        self.inputs = Inputs()
        self._began = False

    @property
    def files(self) -> dict[str, list[Any]]:
        """{name: [bytes, SHA-256]} of the files that the job made."""
        found: dict[str, list[Any]] = self._record["files"]
        return found

    @property
    def done(self) -> dict[str, Any]:
        """{step: what it found}; `finish` adds one."""
        found: dict[str, Any] = self._record["done"]
        return found

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
        now, before = json.loads(json.dumps(options)), self._record["options"]
        changed = [] if before is None else _changed(before, now)
        if changed and (resume or self._record["state"] != "stopped"):
            _raise_changed(before, now, changed)
        if changed:
            self._clear(VECTORS)
        self._record |= {"options": now, "state": "running"}
        self._began = True
        self._save()

    def stop(self) -> None:
        """Record that the job ends by its options: the next run needs no --resume."""
        self._record["state"] = "stopped"
        self._save()

    def claim(self, name: str) -> Path:
        """Return a folder in this one that others fill; it is the job's from now on."""
        self._check_free(name, [*self._record["folders"]])
        self._record["folders"] = sorted({*self._record["folders"], name})
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
        self._check_free(name, [*self.files])
        path, draft, written = self.path / name, self._draft(name), 0
        with disk_errors(path, lambda: written):
            try:
                with draft.open("wb", buffering=1 << 20) as stream:
                    try:
                        yield stream
                    finally:
                        with suppress(OSError):
                            written = stream.tell()
                    stream.flush()
                    os.fsync(stream.fileno())
                self.inputs.check()
                self.files[name] = [draft.stat().st_size, digest_of(draft)]
                self._save()
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
            raise_damaged(name)
        return data

    def _save(self) -> None:
        path, draft = self.path / RECORD, self._draft(RECORD)
        text = json.dumps({**self._record, "checksum": checksum_of(self._record)}, indent=1) + "\n"
        with disk_errors(path):
            try:
                with draft.open("wb") as stream:
                    stream.write(text.encode())
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(draft, path)
            finally:
                draft.unlink(missing_ok=True)
        sync(self.path)

    def _draft(self, name: str) -> Path:
        return self.path / f".{name}.{self.id}"

    def _check_free(self, name: str, own: list[str]) -> None:
        """Raise if something that the job did not make has the name of what it makes next."""
        if name not in own and (self.path / name).exists():
            raise_in_the_way(self.path, name)

    def _is_own(self, name: str) -> bool:
        """Whether the job made a file or folder, by its name in this folder."""
        first, *rest = name.split("/")
        if name in self.files or (not rest and (first in (RECORD, LOCK) or first.endswith(f".{self.id}"))):
            return True
        claimed = self._record["folders"]
        return (first in claimed or (is_draft(Path(first)) and first.split(".")[1] in claimed)) and all(
            map(_INSIDE.fullmatch, rest)
        )

    def check_own(self) -> None:
        """Raise if the folder holds anything that the job did not make."""
        for file in sorted(self.path.rglob("*")):
            name = file.relative_to(self.path).as_posix()
            if not self._is_own(name):
                raise_in_the_way(self.path, name)

    def check_files(self) -> None:
        """Verify all files against the record. A damaged part is removed, to be mined again; others raise an error."""
        for name, (size, digest) in list(self.files.items()):
            file = self.path / name
            there = file.is_file()
            if there and name not in _TO_REMAKE and file.stat().st_size == size and digest_of(file) == digest:
                continue
            if there and name not in _TO_REMAKE and not name.startswith(PART):
                raise_damaged(name)
            file.unlink(missing_ok=True)
            del self.files[name]
        for file in self.path.glob(f".*.{self.id}"):  # drafts of a process that was killed
            file.unlink()

    def reset(self) -> None:
        """Remove all that the job made, and forget its options."""
        self._clear()
        self._record |= {"options": None, "state": "new"}

    def _clear(self, *kept: str) -> None:
        """Remove all that the job made, but for its record and the folders to be kept."""
        self._record["state"] = "cleared"  # a kill leaves a folder that the next run clears
        if (self.path / RECORD).is_file():
            self._save()
        for file in sorted(self.path.rglob("*"), reverse=True):  # what is in a folder comes before it
            name = file.relative_to(self.path).as_posix()
            if name in (RECORD, LOCK) or name.split("/")[0] in kept or not self._is_own(name):
                continue
            if file.is_dir() and not file.is_symlink():
                with suppress(OSError):  # something that is not the job's is in it
                    file.rmdir()
            else:
                file.unlink()
        folders = [name for name in self._record["folders"] if name in kept]
        self._record |= {"files": {}, "done": {}, "folders": folders}

    def end(self, *, refused: bool) -> None:
        """Remove the job once it is done; one that was refused stays if there is work in it."""
        if refused and not self._began:
            return
        if refused and any(name.startswith(PART) for name in self.files):
            return
        if refused and VECTORS in self._record["folders"]:
            self.stop()
            return
        self._clear()
        (self.path / RECORD).unlink()


def checksum_of(record: Mapping[str, Any]) -> str:
    """The checksum of a record."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The options that changed and decide what is in the folder."""
    different = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [name for name in different if not (name in _MAY_CHANGE and before.get(name) == "raise")]


def _raise_changed(before: Mapping[str, Any], now: Mapping[str, Any], changed: list[str]) -> NoReturn:
    """Raise the error for a job that is not the one in the folder, with what changed."""
    name = changed[0]
    one, other = before.get(name), now.get(name)
    if isinstance(one, dict) and isinstance(other, dict):  # the contents of a file
        got = f"another content of {name} ({one['bytes']:,} bytes before, {other['bytes']:,} now)"
    else:
        got = f"another {name} ({shown(one)} before, {shown(other)} now)"
    more = f", and {len(changed) - 1} more: {', '.join(changed[1:])}" if len(changed) > 1 else ""
    advice = "Undo the change, or start again with --fresh."
    raise_invalid("--resume", "given for the same job", f"{got}{more}", advice)
