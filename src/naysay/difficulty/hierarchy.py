"""The similarity of two classes in a tree of classes: the depth of their least common ancestor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_range, public, raise_invalid, whole_numbers


@public
def common_depth(hierarchy: Any, first: Any, second: Any) -> NDArray[np.int64]:
    """Return the depth of the least common ancestor of each class in `first` and each in `second`.

    Deeper is more similar: the ancestor of two equal classes is the class itself, that of unrelated ones the root. The
    captions of Figs. 4b and 5b in Cai et al. (2020) have it the other way round; their text agrees with this.

    Cost: O(a b depth) for different classes.

    Args:
        hierarchy: (nodes,) the parent of each class and of each group of classes; -1 for the one root, of depth 0.
        first: (a,) classes.
        second: (b,) classes.

    Returns:
        (a, b) int64.

    Examples:
        >>> tree = [4, 4, 5, 5, 6, 6, -1]              # classes 0 and 1 are one group, 2 and 3 the other
        >>> common_depth(tree, [0, 2], [0, 1, 3]).tolist()
        [[2, 1, 0], [0, 0, 1]]
    """
    one, two = (whole_numbers(name, to_numpy(given)) for name, given in (("first", first), ("second", second)))
    parents = read_hierarchy(hierarchy)
    check_in_tree("first", one, parents)
    check_in_tree("second", two, parents)
    return depths_of(parents, one, two)


def read_hierarchy(hierarchy: Any) -> NDArray[np.int64]:
    """Return the parent of each class and of each group of classes, -1 for the root; one tree."""
    parents = whole_numbers("hierarchy", to_numpy(hierarchy)).astype(np.int64)
    size = len(parents)
    if not size:
        raise_invalid("hierarchy", "the parent of each class", "nothing")
    check_range("hierarchy", parents, size, "classes and groups", least=-1)
    roots = np.flatnonzero(parents < 0)
    if len(roots) > 1:
        advice = "Give them a common parent."
        raise_invalid("hierarchy", "one tree, with one root (-1)", f"roots {roots[:2].tolist()} ({len(roots)})", advice)
    above = np.where(parents < 0, np.arange(size), parents)
    for _ in range(size.bit_length()):  # doubles the distance: all reach the root, or are in a cycle
        above = above[above]
    lost = ~np.isin(above, roots)
    if lost.any():
        raise_invalid("hierarchy", "without a cycle", f"a cycle above class {np.flatnonzero(lost)[0]}")
    return parents


def check_in_tree(parameter: str, labels: NDArray[Any], parents: NDArray[np.int64]) -> None:
    """Raise if a class is not in the tree."""
    check_range(parameter, labels, len(parents), "classes and groups in `hierarchy`")


def depths_of(parents: NDArray[np.int64], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """`common_depth` in a checked tree."""
    one, two = paths_of(parents, first), paths_of(parents, second)
    levels = min(one.shape[1], two.shape[1])
    depths = np.full((len(first), len(second)), -1, np.int64)
    for level in range(levels):
        both = (one[:, level, None] == two[None, :, level]) & (one[:, level, None] >= 0)
        depths += both  # paths never meet again, so this counts the levels that they share
    return depths


def paths_of(parents: NDArray[np.int64], classes: NDArray[Any]) -> NDArray[np.int64]:
    """(n, levels) the nodes from the root down to each class, then -1."""
    steps = [classes.astype(np.int64)]
    while len(classes) and (steps[-1] >= 0).any():
        above = parents[np.maximum(steps[-1], 0)]
        steps.append(np.where(steps[-1] >= 0, above, -1))
    upwards = np.stack(steps, axis=1)  # the class first, its ancestors after it, then -1
    lengths = (upwards >= 0).sum(axis=1)
    places = lengths[:, None] - 1 - np.arange(upwards.shape[1])
    turned = np.take_along_axis(upwards, np.maximum(places, 0), axis=1)
    return np.where(places >= 0, turned, -1)
