"""read_wordnet: a tree of classes for `naysay.difficulty`, from WordNet's own files. WordNet itself is not shipped."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from naysay.difficulty import common_depth

SYNSET = re.compile(r"n\d{8}")
OFFSET = re.compile(r"\d{8}")


@dataclass(frozen=True)
class ClassTree:
    """Classes and the groups above them, as one tree."""

    hierarchy: NDArray[np.int64]  # (nodes,) the parent of each node, -1 for the root; for `common_depth`
    synsets: tuple[str, ...]  # (nodes,) the id of each node: the classes as they were given, then what is above them


def read_wordnet(path: str | Path, synsets: Sequence[str], *, nearest_to_root: bool = False) -> ClassTree:
    """Read what is above some synsets, up to the root, in WordNet's nouns.

    Args:
        path: WordNet's `data.noun`, or a text of two columns, parent and child, such as the `is_a` list of ImageNet.
        synsets: Ids such as "n01440764": n and eight digits. Class i of the tree is synsets[i].
        nearest_to_root: Of several hypernyms, take the one nearest to the root; by default the first in the file.

    Raises:
        ValueError: If a line or an id is unknown, an id comes twice, or the result is not one tree.
    """
    hypernyms = read_hypernyms(Path(path))
    names = list(synsets)
    unknown = [name for name in names if name not in hypernyms]
    if unknown:
        message = f"{unknown[0]!r} is not in {path} ({len(unknown)} such synsets)"
        raise ValueError(message)
    if len(set(names)) < len(names):
        message = "a synset comes twice"
        raise ValueError(message)
    depth = depths(hypernyms) if nearest_to_root else {}
    node_of = {name: node for node, name in enumerate(names)}
    parents = []
    for name in names:  # grows while it is read: first the classes, then what is above them
        higher = min(hypernyms[name], key=lambda one: depth.get(one, 0), default=None)
        if higher is None:
            parents.append(-1)
            continue
        if higher not in node_of:
            node_of[higher] = len(names)
            names.append(higher)
        parents.append(node_of[higher])
    hierarchy = np.array(parents, np.int64)
    common_depth(hierarchy, [0], [0])  # raises if this is not one tree
    return ClassTree(hierarchy, tuple(names))


def read_hypernyms(path: Path) -> dict[str, list[str]]:
    """{synset: what is directly above it, in the order of the file}."""
    above: dict[str, list[str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        is_licence = line.startswith("  ")  # at the top of data.noun
        if is_licence or not line.strip():
            continue
        links = list(links_of(line))
        if not links:
            message = f"line {number} of {path} is neither of data.noun nor a parent and a child: {line[:40]!r}"
            raise ValueError(message)
        for higher, lower in links:
            above.setdefault(lower, [])
            if higher is not None:
                above.setdefault(higher, [])
                above[lower].append(higher)
    return above


def links_of(line: str) -> Iterator[tuple[str | None, str]]:
    """(hypernym, synset) of a line; (None, synset) first for a line of data.noun, which may have no hypernym."""
    fields = line.partition("|")[0].split()
    if len(fields) == 2 and all(SYNSET.fullmatch(field) for field in fields):
        yield fields[0], fields[1]
    elif len(fields) > 4 and OFFSET.fullmatch(fields[0]) and fields[2] == "n":
        synset = f"n{fields[0]}"
        yield None, synset
        words = int(fields[3], 16)
        pointers = fields[4 + 2 * words :]  # their number, then symbol, offset, kind and source of each
        for symbol, offset, kind in zip(pointers[1::4], pointers[2::4], pointers[3::4], strict=False):
            if symbol in ("@", "@i") and kind == "n":
                yield f"n{offset}", synset


def depths(hypernyms: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """{synset: the fewest steps to a root}."""
    below: dict[str, list[str]] = {}
    for lower, parents in hypernyms.items():
        for higher in parents:
            below.setdefault(higher, []).append(lower)
    depth = {name: 0 for name, parents in hypernyms.items() if not parents}
    queue = deque(depth)
    while queue:
        name = queue.popleft()
        for lower in below.get(name, ()):
            if lower not in depth:
                depth[lower] = depth[name] + 1
                queue.append(lower)
    return depth
