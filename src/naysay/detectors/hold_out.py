"""Which labelled positives to set aside, one of an anchor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_generator, check_number, public, raise_invalid, whole_numbers


@public
def one_per_anchor(anchors: Any, *, rng: np.random.Generator, share: float = 1.0) -> NDArray[np.int64]:
    """Places (m,), ascending, of one positive for each anchor, chosen at random: what to keep out of training.

    An encoder scores the pairs that it was trained on higher than others. So those that set a threshold must be held
    out of training, or the line comes out too high and the promise does not hold. Every positive of an anchor is as
    likely as its others to be the one. An anchor with one positive may lose it to the held-out part.

    Cost: a sort, O(n log n).

    Args:
        anchors: (n,) the anchor of each labelled positive.
        share: Of how many anchors; these are chosen at random too. At least one is.

    Example:
        >>> anchors = np.array([4, 4, 4, 7, 9, 9])
        >>> held_out = one_per_anchor(anchors, rng=np.random.default_rng(0))
        >>> anchors[held_out].tolist(), len(np.delete(anchors, held_out))
        ([4, 7, 9], 3)
    """
    ids = whole_numbers("anchors", to_numpy(anchors))
    check_generator(rng)
    part = check_number("share", share)
    if not 0 < part <= 1:
        raise_invalid("share", "above 0 and at most 1", part)
    if len(ids) == 0:
        raise_invalid("anchors", "at least one", "none")
    order = rng.permutation(len(ids))
    _, first = np.unique(ids[order], return_index=True)
    chosen = order[first]
    if part < 1:
        chosen = rng.permutation(chosen)[: max(1, round(part * len(chosen)))]
    return np.sort(chosen)
