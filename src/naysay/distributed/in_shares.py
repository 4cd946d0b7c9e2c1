"""in_shares: each process scores a share of the rows, and all get all scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay._processes import check_same, exchange, rank_and_size
from naysay._slots import Score, check_score
from naysay.checks import public
from naysay.distributed._rows import joined, like, sent
from naysay.types import Array


@public
def in_shares(score: Score, group: Any = None) -> Score:
    """Make a score function that scores each row in one process and gathers the scores.

    For samplers inside `WholeBatch`, which call it with the same rows in all processes: each scores an equal share of
    them. A matrix product may round differently for another number of rows, so that scores may differ from those of one
    process in the last bits, and candidates with equal scores may change places.

    Args:
        score: score(anchors (B,), ids (B, n)) -> (B, n), whose rows do not depend on each other.
        group: As in `WholeBatch`.

    Returns:
        A function with the same arguments and results, without gradients.

    Raises:
        NaysayError: In all processes, if they call it with different numbers of rows.

    Examples:
        >>> import numpy as np
        >>> score = in_shares(lambda anchors, ids: ids * 0.5)    # one process
        >>> score(np.array([0]), np.array([[1, 2]]))
        array([[0.5, 1. ]])
    """
    check_score(score)

    def shared(anchors: Array, ids: Array) -> Array:
        rank, size = rank_and_size(group)
        if size == 1:
            return score(anchors, ids)
        start, stop = (len(ids) * end // size for end in (rank, rank + 1))
        everyone = exchange(lambda: _share(score, anchors, ids, start, stop), group)
        check_same("ids", "of one shape", [one["shape"] for one in everyone], "Use it inside WholeBatch.")
        return like(joined("scores", everyone), ids)

    return shared


def _share(score: Score, anchors: Array, ids: Array, start: int, stop: int) -> dict[str, Any]:
    """The scores of some rows, and the shape of all."""
    shape = tuple(ids.shape)
    if start == stop:
        return {"shape": shape, "scores": np.empty((0, *shape[1:2]))}
    return {"shape": shape, "scores": sent("score", score(anchors[start:stop], ids[start:stop]))}
