"""Scoring a few rows at a time, where the vectors of all candidates at once need too much memory."""

from __future__ import annotations

from naysay._slots import Score, check_score
from naysay.arrays import module_of
from naysay.checks import check_whole, public
from naysay.types import Array


@public
def in_blocks(score: Score, candidates: int = 1 << 13) -> Score:
    """Make a score function that scores about `candidates` candidates at a time.

    A model that looks up d numbers for each candidate needs B n d of them: 67 MB for 4,096 rows of 64 candidates with
    d = 64, allocated at every step. In blocks it is candidates * d numbers, which fit in a CPU's cache. Do not use it
    where one call is expensive in itself, as for a graph network that first passes all its messages.

    Args:
        score: score(anchors (B,), ids (B, n)) -> (B, n), whose rows do not depend on each other.
        candidates: How many to score at once, in whole rows and at least one row.

    Returns:
        A function with the same arguments and results.

    Examples:
        >>> import numpy as np
        >>> table = np.arange(12.0).reshape(3, 4)
        >>> score = in_blocks(lambda anchors, ids: table[anchors[:, None], ids], candidates=4)
        >>> score(np.array([2, 0, 1]), np.array([[0, 1], [2, 3], [0, 0]]))
        array([[8., 9.],
               [2., 3.],
               [4., 4.]])
    """
    check_score(score)
    check_whole("candidates", candidates, 1)

    def in_parts(anchors: Array, ids: Array) -> Array:
        rows = max(1, candidates // max(ids.shape[1], 1))
        if len(ids) <= rows:
            return score(anchors, ids)
        parts = [score(anchors[i : i + rows], ids[i : i + rows]) for i in range(0, len(ids), rows)]
        return module_of(parts[0]).concatenate(parts)

    return in_parts
