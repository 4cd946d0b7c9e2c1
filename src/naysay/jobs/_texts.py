"""Texts on disk: one run of bytes and the place where each text begins, gathered by row. Nothing is held in memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from naysay.jobs._files import damaged, whole_file

Ids = NDArray[np.int64]
_BLOCK = 4096  # texts that are read at a time
_HOW = ("utf-8", "surrogatepass")  # a lone surrogate is what a byte of broken UTF-8 becomes: it passes through


@final
class Texts:
    """The texts of a file that `write_texts` wrote, by row.

    nbytes   their size on disk

    `texts[row]` and `texts.gather(rows)` read by position, so that pages of the file are not mapped.
    """

    def __init__(self, path: Path) -> None:
        """Open both files."""
        run, starts = _files(path)
        self.nbytes, self._size = run.stat().st_size, starts.stat().st_size // 8 - 1
        self._bytes, self._starts = run.open("rb"), starts.open("rb")
        for stream in (self._bytes, self._starts):
            weakref.finalize(self, stream.close)
        last = _read(self._starts, 8 * self._size, 8) if self._size >= 0 else b""
        if last != np.int64(self.nbytes).tobytes():
            damaged(run)

    def __len__(self) -> int:
        """How many there are."""
        return self._size

    def __getitem__(self, row: int) -> str:
        """One of them."""
        if not -self._size <= row < self._size:
            raise IndexError(row)
        return self.gather(np.array([row % self._size]))[0]

    def gather(self, rows: Ids) -> list[str]:
        """The texts of rows, each read once."""
        wanted, places = np.unique(rows, return_inverse=True)
        ends = [np.frombuffer(_read(self._starts, 8 * row, 16), np.int64).tolist() for row in wanted.tolist()]
        found = [_read(self._bytes, start, stop - start).decode(*_HOW) for start, stop in ends]
        return list(map(found.__getitem__, places.tolist()))

    def blocks(self) -> Iterator[list[str]]:
        """All of them in order, some at a time."""
        for first in range(0, self._size, _BLOCK):
            count = min(_BLOCK, self._size - first)
            ends = np.frombuffer(_read(self._starts, 8 * first, 8 * (count + 1)), np.int64)
            run = _read(self._bytes, int(ends[0]), int(ends[-1] - ends[0]))
            edges = (ends - ends[0]).tolist()
            yield [run[start:stop].decode(*_HOW) for start, stop in pairwise(edges)]


def write_texts(path: Path, blocks: Iterable[list[str]]) -> int:
    """Write texts, a block at a time; the row of the first that UTF-8 cannot hold comes back, -1 if there is none."""
    broken, rows, last = -1, 0, 0
    run, starts = _files(path)
    with whole_file(starts) as places, whole_file(run) as stream:
        places.write(np.zeros(1, np.int64).tobytes())
        for block in blocks:
            coded = [text.encode(*_HOW) for text in block]
            ends = last + np.cumsum(np.fromiter(map(len, coded), np.int64, len(coded)))
            joined = b"".join(coded)
            stream.write(joined)
            places.write(ends.tobytes())
            if broken < 0 and not _is_utf8(joined):
                broken = rows + next(place for place, part in enumerate(coded) if not _is_utf8(part))
            rows, last = rows + len(block), int(ends[-1]) if len(ends) else last
    return broken


def _read(stream: BinaryIO, start: int, size: int) -> bytes:
    """Bytes of a file by position."""
    stream.seek(start)
    return stream.read(size)


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.bytes"), path.with_name(f"{path.name}.starts")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
