"""Keys: 16 bytes that stand for a string, so that millions of ids or texts are matched without being held."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.jobs._files import whole_file

Keys = NDArray[np.uint64]
Ids = NDArray[np.int64]
_BLOCK = 1 << 16  # keys that are read at a time
_HELD = 1 << 20  # keys that are compared at a time, some 60 bytes each


def keys_of(strings: list[str]) -> Keys:
    """(n, 2) the 128 bits of BLAKE2b of each string: two different ones are never the same, for all that is known."""
    digests = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in strings]
    return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)


def write_keys(path: Path, blocks: Iterable[list[str]]) -> None:
    """The keys of strings as a file, 16 bytes each: they are gone over several times, and hashed once."""
    with whole_file(path) as stream:
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
    passes, found = -(-path.stat().st_size // (16 * _HELD)), None
    for turn in range(passes):
        again = _first_repeat(path, passes, turn, None if found is None else found[1])
        if again is not None and (found is None or again[1] < found[1]):
            found = again
    return found


def _first_repeat(path: Path, passes: int, turn: int, last: int | None) -> tuple[int, int] | None:
    """The same of the keys of one pass; what stands after the row `last` need not be looked at."""
    parts: list[tuple[Keys, Ids]] = []
    start, held, most = 0, 0, 2 * _HELD
    for block in read_keys(path):
        here = np.flatnonzero(block[:, 0] % np.uint64(passes) == turn)
        parts.append((block[here], start + here))
        start, held = start + len(block), held + len(here)
        if last is not None and start > last:
            break
        if held > most:  # keys that differ fall evenly, so one of these is here many times
            found = _repeat(parts)
            if found is not None:
                return found
            most = 2 * held
    return _repeat(parts)


def _repeat(parts: list[tuple[Keys, Ids]]) -> tuple[int, int] | None:
    """The same of keys in memory, and the ascending rows that they stand in."""
    keys, rows = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: equal keys stay in the order of their rows
    ordered = keys[order]
    late = 1 + np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    if not len(late):
        return None
    place = late[np.argmin(order[late])]  # no repeat is earlier, so what stands before it is where its key stood first
    return int(rows[order[place - 1]]), int(rows[order[place]])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """Which strings of a list are the same.

    Args:
        first: (m,) where each distinct one stands first, ascending: they are numbered in this order.
        which: (n,) the number of each.
        keys: (m, 2).
    """

    first: Ids
    which: Ids
    keys: Keys


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
        # Of two wanted keys with the same first half, one would not be found: that is a refusal, no wrong answer.
        at = np.minimum(np.searchsorted(ordered[:, 0], keys[:, 0]), len(ordered) - 1)
        hits = np.flatnonzero((ordered[at] == keys).all(axis=1))
        which, first = np.unique(order[at[hits]], return_index=True)
        new = found[which] < 0
        found[which[new]] = start + hits[first[new]]
        start += len(keys)
    return found
