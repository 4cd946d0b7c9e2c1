"""Files whose name carries a checksum of their bytes: whole, cut off and damaged ones can be told apart.

    STEM.DIGEST.npy      DIGEST: 32 hexadecimal digits, BLAKE2b of the file

A draft is written beside, brought to the disk, and renamed: one step, for the bytes and for what they should be.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 22


def sound(folder: Path, stem: str) -> Path | None:
    """The file of this stem whose bytes are what its name says, or None; one that is damaged is deleted."""
    for path in sorted(folder.glob(f"{stem}.*.npy")):
        if path.name == f"{stem}.{digest_of(path)}.npy":
            return path
        path.unlink()
    return None


def digest_of(path: Path) -> str:
    """The checksum of a file, read in chunks."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def vector_file(
    target: Path, stem: str, shape: tuple[int, int], drafts: Path, *, durable: bool = True
) -> Iterator[tuple[BinaryIO, list[Path]]]:
    """A stream that takes the rows of an .npy of float32; what is put in the list is the file, once it is whole.

    Args:
        target: The folder of the file.
        drafts: That of the draft, on the same disk.
        durable: Whether it has to outlive a loss of power.
    """
    draft = drafts / f".{stem}.{secrets.token_hex(8)}"
    made: list[Path] = []
    try:
        with draft.open("wb") as stream:
            header: dict[str, Any] = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, header)
            yield stream, made
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        path = target / f"{stem}.{digest_of(draft)}.npy"
        os.replace(draft, path)
        made.append(path)
    finally:
        draft.unlink(missing_ok=True)


def write_rows(folder: Path, stem: str, rows: NDArray[np.float32]) -> Path:
    """One array as such a file."""
    with vector_file(folder, stem, (rows.shape[0], rows.shape[1]), folder) as (stream, made):
        stream.write(rows.astype("<f4", copy=False).tobytes())
    return made[0]
