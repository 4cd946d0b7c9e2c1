"""How alike two classes are by a tree of classes: the depth of their least common ancestor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import public, whole_numbers
from naysay.difficulty._inputs import check_in_tree, read_hierarchy


@public
def common_depth(hierarchy: Any, first: Any, second: Any) -> NDArray[np.int64]:
    """(a, b) the depth of the least common ancestor of each class in `first` (a,) and each in `second` (b,).

    Deeper is more alike: two of one class meet at that class, strangers at the root. The captions of Figs. 4b and 5b in
    Cai et al. (2020) say the opposite, their text says this. O(a b depth) for different classes.

    Args:
        hierarchy: (nodes,) the parent of each class and of each group of classes; -1 for the one root, of depth 0.

    Example:
        >>> tree = [4, 4, 5, 5, 6, 6, -1]              # classes 0 and 1 are one group, 2 and 3 the other
        >>> common_depth(tree, [0, 2], [0, 1, 3]).tolist()
        [[2, 1, 0], [0, 0, 1]]
    """
    one, two = (whole_numbers(name, to_numpy(given)) for name, given in (("first", first), ("second", second)))
    parents = read_hierarchy(hierarchy)
    check_in_tree("first", one, parents)
    check_in_tree("second", two, parents)
    return depths_of(parents, one, two)


def depths_of(parents: NDArray[np.int64], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """The same for a tree that has been checked."""
    one, two = paths_of(parents, first), paths_of(parents, second)
    levels = min(one.shape[1], two.shape[1])
    found = np.full((len(first), len(second)), -1, np.int64)
    for level in range(levels):
        both = (one[:, level, None] == two[None, :, level]) & (one[:, level, None] >= 0)
        found += both  # paths that part stay apart, so this counts the levels that they share
    return found


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
