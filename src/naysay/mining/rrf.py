"""rrf: the candidates of several retrievers as one list, by reciprocal ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from naysay.checks import check_number, check_whole, public, raise_invalid, shown
from naysay.search.exact import Found


@public
def rrf(sources: Mapping[str, Found], depth: int, *, constant: float = 60.0) -> Found:
    """Merge what several retrievers found for the same anchors: reciprocal rank fusion.

        score(item) = sum over sources that found it: 1 / (constant + rank), rank from 1

    It needs no comparable scores. Rows are ordered by score (as float32) descending, id ascending. Cormack, Clarke and
    Büttcher (SIGIR 2009). Cost: a sort of each row.

    Args:
        sources: {name: Found}; an item that several found comes back once.
        depth: Candidates to keep of each anchor.
        constant: The larger, the less the first ranks weigh.

    Returns:
        (n, depth) ids and fused scores, -1 and -inf where empty.

    Examples:
        >>> dense = Found(np.array([[4, 7]]), np.array([[0.9, 0.8]], np.float32))
        >>> words = Found(np.array([[7, 5]]), np.array([[11.0, 3.5]], np.float32))
        >>> rrf({"dense": dense, "words": words}, 3).ids.tolist()
        [[7, 4, 5]]
    """
    check_whole("depth", depth, 1)
    check_number("constant", constant, at_least=0)
    lists = _lists(sources)
    ids = np.concatenate([found.ids for found in lists], axis=1)
    places = np.concatenate([np.arange(1, found.ids.shape[1] + 1) for found in lists])
    shares = np.where(ids >= 0, 1.0 / (constant + places), 0.0)
    # The slots of an item are next to each other in the order of ids, those of the first source first: one sum each.
    order = np.argsort(ids, axis=1, kind="stable")
    ids, shares = (np.take_along_axis(part, order, axis=1) for part in (ids, shares))
    starts = np.ones(ids.shape, np.bool_)
    starts[:, 1:] = ids[:, 1:] != ids[:, :-1]
    groups = np.cumsum(starts.ravel()) - 1
    sums = np.bincount(groups, shares.ravel())[groups].reshape(ids.shape)
    scores = np.where(starts & (ids >= 0), sums, -np.inf).astype(np.float32)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    merged = Found.empty(len(ids), depth)
    merged.scores[:, : best.shape[1]] = np.take_along_axis(scores, best, axis=1)
    merged.ids[:, : best.shape[1]] = np.take_along_axis(ids, best, axis=1)
    merged.ids[np.isinf(merged.scores)] = -1
    return merged


def _lists(sources: Any) -> list[Found]:
    """The lists of the sources, which are of the same anchors."""
    if not isinstance(sources, Mapping) or not sources:
        raise_invalid("sources", "{name: Found} of at least one", shown(sources))
    for name, found in sources.items():
        if not isinstance(name, str) or not isinstance(found, Found):
            raise_invalid("sources", "{name: Found}", f"{shown(name)}: {type(found).__name__}")
    sizes = {name: len(found) for name, found in sources.items()}
    if len({*sizes.values()}) > 1:
        raise_invalid("sources", "of the same anchors", ", ".join(f"{name} {size}" for name, size in sizes.items()))
    return list(sources.values())
