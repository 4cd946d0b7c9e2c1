"""Parts: what some anchors of a job got, each in a file of its own that proves itself whole."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.errors import NaysayError
from naysay.jobs._files import whole_file

_NAME = re.compile(r"part-(\d{12})-(\d{12})")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Anchors from start to stop.

    Args:
        arrays: By name.
        totals: Numbers of the part that are added up.
    """

    start: int
    stop: int
    arrays: Mapping[str, NDArray[Any]]
    totals: Mapping[str, Any]


def write_part(folder: Path, part: Part) -> None:
    """One file: the SHA-256 of the rest, a header in JSON, and the bytes of the arrays."""
    kept = {name: np.ascontiguousarray(array) for name, array in part.arrays.items()}
    shapes = {name: [array.dtype.str, list(array.shape)] for name, array in kept.items()}
    header = json.dumps({"start": part.start, "stop": part.stop, "arrays": shapes, "totals": dict(part.totals)})
    line = header.encode() + b"\n"
    proof = hashlib.sha256(line)
    for array in kept.values():
        proof.update(array.data)
    with whole_file(folder / f"part-{part.start:012d}-{part.stop:012d}") as stream:
        stream.write(proof.hexdigest().encode() + b"\n" + line)
        for array in kept.values():
            stream.write(array.data)


def read_part(path: Path) -> Part | None:
    """What `write_part` wrote; None if a byte of it is missing or other: then it is mined again."""
    data = path.read_bytes()
    proof, _, rest = data.partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != proof:
        return None
    line, _, run = rest.partition(b"\n")
    header = json.loads(line)
    arrays, place = {}, 0
    for name, (kind, shape) in header["arrays"].items():
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(run, np.dtype(kind), count, place).reshape(shape)
        place += arrays[name].nbytes
    return Part(header["start"], header["stop"], arrays, header["totals"])


def finished(folder: Path) -> list[tuple[int, int, Path]]:
    """(start, stop, file) of the parts that are there, in order; one that is damaged is removed."""
    found = []
    for path in sorted(folder.glob("part-*")):
        named = _NAME.fullmatch(path.name)
        if named is None or read_part(path) is None:
            path.unlink()
        else:
            found.append((int(named[1]), int(named[2]), path))
    return found


def gaps(done: list[tuple[int, int, Path]], n: int, size: int) -> list[tuple[int, int]]:
    """(start, stop) of what is missing to n anchors, at most `size` of them at a time."""
    edges = [0, *(edge for start, stop, _ in done for edge in (start, stop)), n]
    return [
        (start, min(start + size, last))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        for start in range(first, last, size)
    ]


def parts(folder: Path) -> Iterator[Part]:
    """All parts in order, one in memory at a time."""
    for path in sorted(folder.glob("part-*")):
        part = read_part(path)
        if part is None:
            message = f"{path.name!r} was damaged while the job ran. Run again with --resume: it is mined again."
            raise NaysayError(message)
        yield part
