"""Which candidates a report shows, and what it says of each."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_lengths, raise_invalid
from naysay.mining._known import pairs_of
from naysay.mining.candidates import Candidates
from naysay.mining.explain import MinedArrays
from naysay.mining.select import NOT_SELECTED
from naysay.positives import POSITIVE
from naysay.report.contents import Example, Examples

_EACH = 30  # examples of a kind
Ids = NDArray[np.int64]


@final
class Labels:
    """What stands for a row on the page: its text, its id, both, or its number."""

    def __init__(self, side: str, texts: Any, ids: Any, n: int) -> None:
        """Refuse what has another length, or cannot be asked for a row."""
        for name, given in ((f"{side}_texts", texts), (f"{side}_ids", ids)):
            if given is None:
                continue
            if not (hasattr(given, "__getitem__") and hasattr(given, "__len__")):
                raise_invalid(name, "a sequence, or None", type(given).__name__)
            check_lengths(**{name: len(given), "rows": n})
        self.texts, self.ids = texts, ids

    def __getitem__(self, row: int) -> str:
        """The label of a row; nothing for -1."""
        if row < 0:
            return ""
        name = f"row {row}" if self.ids is None else str(self.ids[row])
        if self.texts is None:
            return name
        text = str(self.texts[row])
        return text if self.ids is None else f"{name}: {text}"


def examples_of(
    mined: MinedArrays, part: Candidates, rows: Ids, queries: Labels, corpus: Labels, rng: np.random.Generator
) -> tuple[Examples, ...]:
    """The hardest negatives, the most suspect candidates, and some of what was dropped for each reason.

    Args:
        part: The candidates of `rows`.
        rows: (r,) which anchors.
    """
    taken = part.kept & (part.kept_by >= 0)
    by_score = np.where(taken, part.scores, -np.inf)
    asked = part.filled & (part.suspicion > 0)
    shelves = [
        (
            "The hardest negatives",
            "hardest",
            _one_each(by_score, taken),
            "Kept, with the highest scores; one of an anchor.",
        ),
        (
            "The most suspect candidates",
            "suspect",
            _one_each(np.where(asked, part.suspicion, -np.inf), asked),
            "With the highest suspicion, whatever became of them; one of an anchor.",
        ),
        ("Dropped candidates", "dropped", _dropped(part, rng), "Drawn by chance, as many of each reason as of others."),
    ]
    return tuple(
        Examples(
            title, kind, tuple(_example(mined, part, rows, queries, corpus, row, slot) for row, slot in places), note
        )
        for title, kind, places, note in shelves
        if places
    )


def _one_each(values: NDArray[Any], mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(row, slot) of the highest value of each row, the highest rows first."""
    if not values.size:
        return []
    slot = values.argmax(axis=1)
    there = np.flatnonzero(mask.any(axis=1))
    best = values[there, slot[there]]
    chosen = there[np.argsort(-best, kind="stable")[:_EACH]]
    return list(zip(chosen.tolist(), slot[chosen].tolist(), strict=True))


def _dropped(part: Candidates, rng: np.random.Generator) -> list[tuple[int, int]]:
    """(row, slot) of some candidates of each reason but "not selected", which says nothing against them."""
    reasons = [place for place, name in enumerate(part.reasons, 1) if name != NOT_SELECTED]
    found = []
    for place in reasons:
        slots = np.flatnonzero((part.why == place) & part.filled)
        found.append(rng.permutation(slots)[: max(1, _EACH // len(reasons))])
    places = np.concatenate([np.empty(0, np.int64), *found])
    row, slot = np.divmod(places, max(1, part.ids.shape[1]))
    return list(zip(row.tolist(), slot.tolist(), strict=True))


def _example(
    mined: MinedArrays, part: Candidates, rows: Ids, queries: Labels, corpus: Labels, row: int, slot: int
) -> Example:
    """One candidate with its texts and its fate."""
    anchor = int(rows[row])
    kept = bool(part.why[row, slot] == 0) and part.kept_by[row, slot] >= 0
    by = part.kept_names[part.kept_by[row, slot]] if kept else part.reasons[part.why[row, slot] - 1]
    score, rank = float(part.scores[row, slot]), int(part.rank[row, slot])
    line, lowest = float(mined.thresholds[anchor]), float(part.positive_scores[row])
    told = [f"Found by {part.source_names[part.source[row, slot]]} at rank {rank}." if rank else "Drawn by chance."]
    if np.isfinite(line):
        told.append(f"The line of its anchor is at {line:.4f}, the candidate at {score:.4f}.")
    if np.isfinite(lowest):
        told.append(f"The lowest of the anchor's positives scores {lowest:.4f}.")
    return Example(
        anchor=queries[anchor],
        positive=corpus[_positive(mined, anchor)],
        candidate=corpus[int(part.ids[row, slot])],
        score=score,
        suspicion=float(part.suspicion[row, slot]),
        rank=rank,
        outcome=f"{'kept' if kept else 'dropped'}: {by}",
        explanation=" ".join(told),
    )


def _positive(mined: MinedArrays, anchor: int) -> int:
    """The known positive of an anchor with the lowest score, or the first where they were not scored; -1 none."""
    start, stop = int(mined.known.indptr[anchor]), int(mined.known.indptr[anchor + 1])
    items = np.asarray(mined.known.indices[start:stop])
    own = np.ones(len(items), np.bool_)
    if mined.known.relation is not None:
        own = np.asarray(mined.known.relation[start:stop] == POSITIVE)
    if not own.any():
        return -1
    if mined.known_scores is None:
        return int(items[own][0])
    return int(items[own][np.argmin(mined.known_scores[start:stop][own])])


def one_positive_each(mined: MinedArrays, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n,) the score of one known positive of each anchor, chosen by chance; NaN without one.

    Where positives were scored by pairs, as after `rescore`, the one that was is taken.
    """
    n = len(mined.ids)
    if mined.known_scores is None:
        return np.asarray(mined.positive_scores, np.float32)
    found = np.full(n, np.nan, np.float32)
    anchors, _ = pairs_of(mined.known, POSITIVE)
    if not len(anchors):
        return found
    scores = positive_scores(mined)
    order = rng.permutation(len(anchors))
    owners, first = np.unique(anchors[order], return_index=True)
    found[owners] = scores[order[first]]
    return found


def positive_scores(mined: MinedArrays) -> NDArray[np.float32]:
    """(p,) the scores of all known positives, or of one of each anchor where only these are known."""
    if mined.known_scores is None:
        some = np.asarray(mined.positive_scores, np.float32)
        return some[~np.isnan(some)]
    relation = mined.known.relation
    scores = np.asarray(mined.known_scores, np.float32)
    return scores if relation is None else scores[relation == POSITIVE]
