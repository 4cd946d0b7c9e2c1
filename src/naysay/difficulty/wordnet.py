"""read_wordnet: a hierarchy of classes for `common_depth` and `study`, from WordNet's own files."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, public, raise_invalid
from naysay.difficulty.measures import read_hierarchy

_ID = re.compile(r"n\d{8}")
_PARENTS = ("first", "shortest")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassTree:
    """Classes and the groups above them, as one tree.

    Attributes:
        hierarchy: (nodes,) the parent of each node, -1 for the root; for `common_depth`.
        synsets: (nodes,) the id of each node: the classes in the order in which they were given, then what is above.
    """

    hierarchy: NDArray[np.int64]
    synsets: tuple[str, ...]


@public
def read_wordnet(path: str | Path, synsets: Sequence[str], *, parent: str = "first") -> ClassTree:
    r"""Read what is above some synsets, up to the root, in WordNet's nouns.

    The file is WordNet's `data.noun`, or a text of two columns, parent and child, such as the `is_a` list of ImageNet.
    Class i of the result is synsets[i]. Some synsets have several hypernyms, so the graph is no tree: `parent` chooses.
    WordNet itself is not shipped.

    Args:
        path: The file.
        synsets: Ids such as "n01440764": n and eight digits.
        parent: "first": the hypernym that the file names first. "shortest": the one nearest to the root.

    Returns:
        The tree.

    Raises:
        NaysayError: If an id is unknown or comes twice, if a path does not end at one root, or for a cycle.

    Examples:
        >>> import tempfile, naysay as ns
        >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        ...     _ = file.write("n00000001 n00000002\nn00000002 n00000003\nn00000002 n00000004\n")
        ...     file.flush()
        ...     tree = read_wordnet(file.name, ["n00000003", "n00000004"])
        >>> tree.hierarchy.tolist(), ns.difficulty.common_depth(tree.hierarchy, [0], [1]).tolist()
        ([2, 2, 3, -1], [[1]])
    """
    check_one_of("parent", parent, _PARENTS)
    above = _hypernyms(Path(path))
    chosen = {child: parents[0] for child, parents in above.items() if parents}
    if parent == "shortest":
        depth = _depths(above)
        chosen = {
            child: min(parents, key=lambda one: depth.get(one, len(above)))
            for child, parents in above.items()
            if parents
        }
    names = list(synsets)
    unknown = [name for name in names if name not in above]
    if unknown:
        raise_invalid("synsets", "ids of the file", f"{unknown[0]!r} ({len(unknown)} such)")
    place = {name: node for node, name in enumerate(names)}
    if len(place) < len(names):
        raise_invalid("synsets", "different ids", next(name for node, name in enumerate(names) if place[name] != node))
    for name in names:  # grows while it is read: what is above what is above
        higher = chosen.get(name)
        if higher is not None and higher not in place:
            place[higher] = len(names)
            names.append(higher)
    parents = np.array([place[chosen[name]] if name in chosen else -1 for name in names], np.int64)
    return ClassTree(read_hierarchy(parents), tuple(names))


def _hypernyms(path: Path) -> dict[str, list[str]]:
    """{synset: what is directly above it, in the order of the file}."""
    above: dict[str, list[str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("  "):  # the licence, at the top of data.noun
            continue
        pairs = list(_pairs(line))
        if not pairs:
            got = f"line {number}, {line[:40]!r}"
            raise_invalid("path", "WordNet's data.noun, or lines of a parent and a child (n and 8 digits each)", got)
        for higher, lower in pairs:
            kept = above.setdefault(lower, [])
            if higher:
                above.setdefault(higher, [])
                kept.append(higher)
    return above


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    """(hypernym, synset) of a line; a synset of data.noun without a hypernym has ""."""
    fields = line.partition("|")[0].split()
    if len(fields) == 2 and all(_ID.fullmatch(field) for field in fields):
        yield fields[0], fields[1]
    elif len(fields) > 4 and re.fullmatch(r"\d{8}", fields[0]) and fields[2] == "n":
        pointers = fields[4 + 2 * int(fields[3], 16) :]  # after the words, of which there are so many in hexadecimal
        yield "", f"n{fields[0]}"
        for symbol, offset, kind in zip(pointers[1::4], pointers[2::4], pointers[3::4], strict=False):
            if symbol in ("@", "@i") and kind == "n":
                yield f"n{offset}", f"n{fields[0]}"


def _depths(above: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """{synset: the fewest steps to a root}."""
    below: dict[str, list[str]] = {}
    for lower, parents in above.items():
        for higher in parents:
            below.setdefault(higher, []).append(lower)
    depth = {name: 0 for name, parents in above.items() if not parents}
    queue = deque(depth)
    while queue:
        name = queue.popleft()
        for lower in below.get(name, ()):
            if lower not in depth:
                depth[lower] = depth[name] + 1
                queue.append(lower)
    return depth
