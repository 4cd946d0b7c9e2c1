"""Join: candidates of several sources as one list for each anchor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import public, raise_invalid
from naysay.mining.candidates import Candidates, check_candidates

_MOST = 127  # sources that an int8 can tell apart


@public
def join(*parts: Candidates) -> Candidates:
    """All candidates side by side, (n, sum of m); an id that an earlier part holds too is dropped as "repeated".

    Ranks stay those of each source. Join before anything is dropped: a part that has dropped some is refused, because
    its copy of an id could come back through another. Scores should be of one kind, so that they can be compared:
    `mine` scores what other sources bring by the vectors. A positive's score is that of the first part that knows it.
    Cost: a sort of each row.

    Args:
        parts: Of the same anchors, with different source names: a search, another encoder's, words (BM25), ...
    """
    if not parts:
        raise_invalid("parts", "at least one Candidates", "none")
    for part in parts:
        check_candidates(part)
        if len(part) != len(parts[0]):
            raise_invalid("parts", f"of {len(parts[0])} anchors, like the first", len(part))
        if (part.why != 0).any() or (part.kept_by >= 0).any():
            raise_invalid("parts", "as they were found", "one with dropped candidates", "Join first, then drop.")
    names = tuple(name for part in parts for name in part.source_names)
    if len(set(names)) < len(names) or len(names) > _MOST:
        raise_invalid("parts", f"at most {_MOST} sources with different names", ", ".join(map(repr, names)))
    if len(parts) == 1:
        return parts[0]
    sources, before = [], 0
    for part in parts:
        sources.append(np.where(part.filled, part.source + np.int8(before), np.int8(-1)).astype(np.int8))
        before += len(part.source_names)
    positive, outside = parts[0].positive_scores, dict(parts[0].outside)
    for part in parts[1:]:
        positive = np.where(np.isnan(positive), part.positive_scores, positive)
        outside |= {reason: outside.get(reason, 0) + counts for reason, counts in part.outside.items()}
    whole: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=1)
        for name in ("ids", "scores", "rank", "suspicion", "why", "kept_by")
    }
    joined = replace(
        parts[0],
        **whole,
        source=np.concatenate(sources, axis=1),
        source_names=names,
        positive_scores=positive,
        outside=outside,
    )
    return joined.drop(_repeated(joined.ids), "repeated")


def _repeated(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n, m): ids that stand further left in their row, too."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    again = np.zeros(ids.shape, np.bool_)
    same = np.zeros(ids.shape, np.bool_)
    same[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    np.put_along_axis(again, order, same, axis=1)
    return again
