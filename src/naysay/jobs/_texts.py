"""Texts on disk, gathered by row, and keys: 16 bytes for a string, so that millions of them are matched in memory."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from naysay.jobs._guards import raise_damaged

Ids = NDArray[np.int64]
Keys = NDArray[np.uint64]
_TEXTS = 4096  # texts that are read at a time
_RUN = 1 << 22  # bytes of texts that are read at a time
_BLOCK = 1 << 16  # keys that are read at a time
_IN_MEMORY = 1 << 20  # keys that are compared at a time, some 60 bytes each
_HOW = ("utf-8", "surrogatepass")  # a lone surrogate is what a byte of broken UTF-8 becomes: it passes through


@final
class Texts:
    """The texts of two files that `write_texts` wrote: one run of bytes, and where each text starts.

    `nbytes` is the size of the texts. `texts[row]` and `texts.gather(rows)` read by position; the file is not mapped.
    """

    def __init__(self, path: Path) -> None:
        """Open PATH.bytes and PATH.starts."""
        run, starts = (path.with_name(path.name + suffix) for suffix in (".bytes", ".starts"))
        self.nbytes, self._size = run.stat().st_size, starts.stat().st_size // 8 - 1
        self._bytes, self._starts = run.open("rb"), starts.open("rb")
        for stream in (self._bytes, self._starts):
            weakref.finalize(self, stream.close)
        last = _read(self._starts, 8 * self._size, 8) if self._size >= 0 else b""
        if last != np.int64(self.nbytes).tobytes():
            raise_damaged(run.name)

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
        for first in range(0, self._size, _TEXTS):
            count = min(_TEXTS, self._size - first)
            ends = np.frombuffer(_read(self._starts, 8 * first, 8 * (count + 1)), np.int64)
            while len(ends) > 1:  # long texts come in smaller blocks, of one text at least
                part = ends[: max(2, int(np.searchsorted(ends, ends[0] + _RUN, side="right")))]
                run = _read(self._bytes, int(part[0]), int(part[-1] - part[0]))
                yield [run[start:stop].decode(*_HOW) for start, stop in pairwise((part - part[0]).tolist())]
                ends = ends[len(part) - 1 :]


def write_texts(run: BinaryIO, starts: BinaryIO, blocks: Iterable[list[str]]) -> int:
    """Write texts to both files, a block at a time; return the first row that is not valid UTF-8, or -1."""
    broken, rows, last = -1, 0, 0
    starts.write(np.zeros(1, np.int64).tobytes())
    for block in blocks:
        coded = [text.encode(*_HOW) for text in block]
        ends = last + np.cumsum(np.fromiter(map(len, coded), np.int64, len(coded)))
        joined = b"".join(coded)
        run.write(joined)
        starts.write(ends.tobytes())
        if broken < 0 and not _is_utf8(joined):
            broken = rows + next(place for place, part in enumerate(coded) if not _is_utf8(part))
        rows, last = rows + len(block), int(ends[-1]) if len(ends) else last
    return broken


def _read(stream: BinaryIO, start: int, size: int) -> bytes:
    """Bytes of a file by position."""
    stream.seek(start)
    return stream.read(size)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def keys_of(strings: list[str]) -> Keys:
    """(n, 2) the 128 bits of BLAKE2b of each string: no two different strings are known to share them."""
    digests = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in strings]
    return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)


def write_keys(stream: BinaryIO, blocks: Iterable[list[str]]) -> None:
    """Write the keys of strings, 16 bytes each, so that they are hashed once and read several times."""
    for block in blocks:
        stream.write(keys_of(block).tobytes())


def read_keys(path: Path) -> Iterator[Keys]:
    """What `write_keys` wrote, a block at a time."""
    with path.open("rb") as stream:
        while data := stream.read(16 * _BLOCK):
            yield np.frombuffer(data, np.uint64).reshape(-1, 2)


def first_repeat(path: Path) -> tuple[int, int] | None:
    """The first row of a file of keys whose key stood before, as (where it stood first, that row); None if all differ.

    A pass for each 2^20 keys, over those with one remainder: memory is that of one pass, whatever the file holds.
    """
    passes, found = -(-path.stat().st_size // (16 * _IN_MEMORY)), None
    for turn in range(passes):
        again = _first_repeat(path, passes, turn, None if found is None else found[1])
        if again is not None and (found is None or again[1] < found[1]):
            found = again
    return found


def _first_repeat(path: Path, passes: int, turn: int, last: int | None) -> tuple[int, int] | None:
    """The same of the keys of one pass; rows after `last` are not read."""
    parts: list[tuple[Keys, Ids]] = []
    start, count, limit = 0, 0, 2 * _IN_MEMORY
    for block in read_keys(path):
        here = np.flatnonzero(block[:, 0] % np.uint64(passes) == turn)
        parts.append((block[here], start + here))
        start, count = start + len(block), count + len(here)
        if last is not None and start > last:
            break
        if count > limit:  # keys that differ fall evenly, so one of these is here many times
            found = _repeat(parts)
            if found is not None:
                return found
            limit = 2 * count
    return _repeat(parts)


def _repeat(parts: list[tuple[Keys, Ids]]) -> tuple[int, int] | None:
    """The same of keys in memory, and their rows, ascending."""
    keys, rows = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: equal keys stay in the order of their rows
    ordered = keys[order]
    late = 1 + np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    if not len(late):
        return None
    place = late[np.argmin(order[late])]  # the earliest repeat; the entry before it is the first row of its key
    return int(rows[order[place - 1]]), int(rows[order[place]])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """Which strings of a list are the same."""

    first: Ids  # (m,) the first row of each distinct one, ascending: they are numbered in this order
    which: Ids  # (n,) the number of each
    keys: Keys  # (m, 2)


def distinct(keys: Keys) -> Distinct:
    """Number keys in the order of their first appearance. A sort."""
    order = np.lexsort((np.arange(len(keys)), keys[:, 1], keys[:, 0]))
    ordered = keys[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.cumsum(new) - 1
    heads = order[new]  # the first of each group, because the sort goes by place last
    rank = np.empty(len(heads), np.int64)
    rank[np.argsort(heads, kind="stable")] = np.arange(len(heads))
    which = np.empty(len(keys), np.int64)
    which[order] = rank[group]
    first = np.sort(heads)
    return Distinct(first, which, keys[first])


def places_of(wanted: Keys, blocks: Iterable[Keys]) -> Ids:
    """(m,) the first row of each wanted key, which are distinct, among the keys of blocks; -1 where it is in none."""
    order = np.argsort(wanted[:, 0], kind="stable")
    ordered = wanted[order]
    found, start = np.full(len(wanted), -1, np.int64), 0
    for keys in blocks if len(wanted) else ():
        # Of two wanted keys with the same first half, one would not be found: an error, not a wrong result.
        at = np.minimum(np.searchsorted(ordered[:, 0], keys[:, 0]), len(ordered) - 1)
        hits = np.flatnonzero((ordered[at] == keys).all(axis=1))
        which, first = np.unique(order[at[hits]], return_index=True)
        new = found[which] < 0
        found[which[new]] = start + hits[first[new]]
        start += len(keys)
    return found
