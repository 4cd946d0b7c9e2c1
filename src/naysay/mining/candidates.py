"""Candidates: what may become negatives, with scores, ranks, and the reason for which each was dropped; and `join`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    check_all,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.types import Negatives

Mask = NDArray[np.bool_]
EXCLUDED = ("positive", "anchor", "ignored", "duplicate")  # reasons for which a candidate can never be a negative
_MAX_NAMES = 127  # what an int8 can number
_PER_SLOT = {"scores": np.float32, "rank": np.int32, "source": np.int8, "suspicion": np.float32, "why": np.int8}


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What a search found for each anchor. Frozen: a stage returns a changed copy.

    **A dropped candidate keeps its slot**, with the reason, so that it can be explained, and judged again without a
    search. `kept` is the mask of the candidates that are left. Only these can be dropped, so each candidate has one
    reason, and for every anchor (`outside` not counted)

        candidates = kept + the sum of `dropped` over reasons

    Cost: 27 bytes a slot.

    Args:
        ids: (n, m) int64; -1 where empty.
        scores: (n, m) float32, higher is closer; -inf where empty.
        rank: (n, m) int32, from 1: the place in the list it came from, before anything was dropped; 0 where empty.
        source: (n, m) int8: which of `source_names` it came from; -1 where empty.
        source_names: The sources.
        suspicion: (n, m) float32 from 0 to 1; 0 until it is judged.
        why: (n, m) int8: 0 if it is left, else 1 + the index in `reasons` of the reason for which it was dropped.
        kept_by: (n, m) int8: which of `kept_names` took it as a negative, -1 none.
        positive_scores: (n,) float32: the lowest score of the anchor's known positives, NaN without one.
        reasons: The reasons for which candidates were dropped.
        kept_names: The rules that took negatives.
        outside: {reason: (n,) counts} of what the search itself left out and would have listed.

    Examples:
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7]]), scores=np.array([[0.9, 0.5, 0.1]], np.float32))
        >>> left = Candidates.of(found).drop(np.array([[True, False, False]]), "too near")
        >>> left.kept.tolist(), {reason: counts.tolist() for reason, counts in left.dropped.items()}
        ([[False, True, True]], {'too near': [1]})
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    rank: NDArray[np.int32]
    source: NDArray[np.int8]
    source_names: tuple[str, ...]
    suspicion: NDArray[np.float32]
    why: NDArray[np.int8]
    kept_by: NDArray[np.int8]
    positive_scores: NDArray[np.float32]
    reasons: tuple[str, ...] = ()
    kept_names: tuple[str, ...] = ()
    outside: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Any, name: str = "search") -> Candidates:
        """Make candidates of what a search found.

        Args:
            found: A `Found`, or another object with ids (n, m), -1 where empty, and scores (n, m), by rank.
            name: The name of the source.
        """
        for part in ("ids", "scores"):
            if not hasattr(found, part):
                raise_invalid("found", "a Found, with ids and scores", type(found).__name__)
        ids = whole_numbers("ids", to_numpy(found.ids), "(n, m)").astype(np.int64)
        scores = as_array("scores", to_numpy(found.scores))
        if scores.shape != ids.shape or scores.dtype.kind != "f":
            raise_invalid("scores", f"numbers of shape {ids.shape}, like ids", f"{scores.shape} {scores.dtype}")
        if ids.size and ids.min() < -1:
            raise_invalid("ids", "at least -1", first_bad(ids.min(axis=1), ids.min(axis=1) < -1))
        filled = ids >= 0
        bad = (filled & ~np.isfinite(scores)).any(axis=1)
        if bad.any():
            raise_invalid("scores", "finite where there is an id", first_bad(scores, bad))
        return cls(
            ids=ids,
            scores=np.where(filled, scores, -np.inf).astype(np.float32),
            rank=np.where(filled, np.arange(1, ids.shape[1] + 1), 0).astype(np.int32),
            source=np.where(filled, 0, -1).astype(np.int8),
            source_names=(name,),
            suspicion=np.zeros(ids.shape, np.float32),
            why=np.zeros(ids.shape, np.int8),
            kept_by=np.full(ids.shape, -1, np.int8),
            positive_scores=np.full(len(ids), np.nan, np.float32),
        )

    def __post_init__(self) -> None:
        """Raise if arrays have different shapes."""
        shapes = {name: getattr(self, name).shape for name in (*_PER_SLOT, "kept_by")}
        for name, shape in shapes.items():
            if shape != self.ids.shape:
                raise_invalid(name, f"of shape {self.ids.shape}, like ids", f"shape {shape}")
        if self.positive_scores.shape != self.ids.shape[:1]:
            rule = f"of shape ({len(self.ids)},)"
            raise_invalid("positive_scores", rule, f"shape {self.positive_scores.shape}")
        object.__setattr__(self, "outside", MappingProxyType(dict(self.outside)))

    def __len__(self) -> int:
        """The number of anchors."""
        return len(self.ids)

    @property
    def filled(self) -> Mask:
        """(n, m): slots that hold a candidate, dropped or not."""
        return np.asarray(self.ids >= 0)

    @property
    def kept(self) -> Mask:
        """(n, m): candidates that are left."""
        return np.asarray(self.filled & (self.why == 0))

    @property
    def dropped(self) -> dict[str, NDArray[np.int64]]:
        """{reason: (n,) how many of each anchor}, with what the search left out; only reasons that occurred."""
        counts = {reason: given.copy() for reason, given in self.outside.items()}
        for place, reason in enumerate(self.reasons, 1):
            found = np.count_nonzero(self.why == place, axis=1)
            counts[reason] = counts[reason] + found if reason in counts else found
        return {reason: found for reason, found in counts.items() if found.any()}

    def take(self, rows: NDArray[np.int64]) -> Candidates:
        """Return the candidates of some anchors."""
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("ids", *_PER_SLOT, "kept_by")}
        outside = {reason: counts[rows] for reason, counts in self.outside.items()}
        return replace(self, **parts, positive_scores=self.positive_scores[rows], outside=outside)

    def drop(self, mask: Mask, reason: str) -> Candidates:
        """Return the same without the candidates of `mask` that are left, counted under `reason`."""
        self._check_mask(mask)
        lost = mask & self.kept
        if not lost.any():
            return self
        reasons, place = _named(self.reasons, reason)
        return replace(self, why=np.where(lost, np.int8(place + 1), self.why), reasons=reasons)

    def restored(self, mask: Mask) -> Candidates:
        """Return the same with the dropped candidates of `mask` back."""
        self._check_mask(mask)
        return replace(self, why=np.where(mask, np.int8(0), self.why))

    def marked(self, mask: Mask, name: str) -> Candidates:
        """Return the same with the candidates of `mask` that are left marked as negatives by the rule `name`."""
        self._check_mask(mask)
        names, place = _named(self.kept_names, name)
        return replace(self, kept_by=np.where(mask & self.kept, np.int8(place), self.kept_by), kept_names=names)

    def dropped_for(self, reasons: Any) -> Mask:
        """(n, m): candidates that were dropped for one of these reasons."""
        wanted = [place for place, reason in enumerate(self.reasons, 1) if reason in reasons]
        return np.isin(self.why, wanted) & self.filled

    def negatives(self) -> Negatives:
        """Return what is left, as a detector reads it: -1 and score 0 in every other slot."""
        kept = self.kept
        return Negatives(np.where(kept, self.ids, -1), scores=np.where(kept, self.scores, np.float32(0)))

    def _check_mask(self, mask: Any) -> None:
        if getattr(mask, "shape", None) != self.ids.shape or mask.dtype != np.bool_:
            got = f"{getattr(mask, 'shape', type(mask).__name__)} {getattr(mask, 'dtype', '')}".rstrip()
            raise_invalid("mask", f"of shape {self.ids.shape} bool, like the candidates", got)


def _named(names: tuple[str, ...], name: str) -> tuple[tuple[str, ...], int]:
    """The names with `name` among them, and its place."""
    if name not in names:
        if len(names) == _MAX_NAMES:
            raise_invalid("name", f"one of at most {_MAX_NAMES}", f"{name!r} as another")
        names = (*names, name)
    return names, names.index(name)


def check_candidates(candidates: object, parameter: str = "candidates") -> None:
    """Raise unless this is a Candidates."""
    if not isinstance(candidates, Candidates):
        advice = "Write Candidates.of(found)."
        raise_invalid(parameter, "a Candidates", type(candidates).__name__, advice)


def listed(candidates: Candidates) -> Mask:
    """(n, m): all that was found but for known pairs and duplicates, whether it is left or not."""
    return candidates.filled & ~candidates.dropped_for(("repeated", *EXCLUDED))


def canonical_order(candidates: Candidates, mask: Mask) -> NDArray[np.int64]:
    """(n, m) the slots of each row by score descending, id ascending; those outside of `mask` last. A sort a row."""
    by_id = np.argsort(candidates.ids, axis=1, kind="stable")
    falling = np.where(mask, -candidates.scores, np.float32(np.inf))
    return np.take_along_axis(by_id, np.argsort(np.take_along_axis(falling, by_id, 1), axis=1, kind="stable"), 1)


def read_counts(k: Any, rows: int, *, auto: bool = False) -> NDArray[np.int64]:
    """(rows,) from one number for all, or one for each; `auto`: whether the caller takes "auto", too."""
    rule = f"a whole number, or one for each of the {rows} anchors" + ", or 'auto'" * auto
    given = as_array("k", to_numpy(k))
    if given.ndim == 0:
        if given.dtype.kind not in "iu":
            raise_invalid("k", rule, shown(k))
        return np.full(rows, check_whole("k", given.item(), 0, MOST_ROWS))
    counts = whole_numbers("k", given).astype(np.int64)
    if len(counts) != rows:
        raise_invalid("k", f"one number, or one for each of the {rows} anchors", f"{len(counts)} numbers")
    check_all("k", counts, counts >= 0, "at least 0")
    check_all("k", counts, counts <= MOST_ROWS, f"at most {MOST_ROWS:,}")
    return counts


@public
def join(*parts: Candidates) -> Candidates:
    """Join the candidates of several sources, (n, sum of m); repeats of an id are dropped as "repeated".

    Each source keeps its ranks. Join before anything is dropped: a dropped id could come back through another source.
    Scores should be of one kind, so that they can be compared: `mine` scores all candidates by the vectors. A
    positive's score is that of the first part that has one. Cost: a sort of each row.

    Args:
        *parts: Candidates of the same anchors, with different source names.

    Returns:
        All candidates. Of a repeated id, the first is kept.

    Examples:
        >>> from types import SimpleNamespace
        >>> one = Candidates.of(SimpleNamespace(ids=np.array([[4, 2]]), scores=np.array([[0.9, 0.5]])), "dense")
        >>> other = Candidates.of(SimpleNamespace(ids=np.array([[2, 7]]), scores=np.array([[0.5, 0.4]])), "words")
        >>> joined = join(one, other)
        >>> joined.ids[joined.kept].tolist(), joined.dropped["repeated"].tolist()
        ([4, 2, 7], [1])
    """
    if not parts:
        raise_invalid("parts", "at least one Candidates", "none")
    for part in parts:
        check_candidates(part, "parts")
        if len(part) != len(parts[0]):
            raise_invalid("parts", f"of {len(parts[0])} anchors, like the first", len(part))
        if (part.why != 0).any() or (part.kept_by >= 0).any():
            raise_invalid("parts", "as they were found", "one with dropped candidates", "Join first, then drop.")
    names = tuple(name for part in parts for name in part.source_names)
    if len(set(names)) < len(names) or len(names) > _MAX_NAMES:
        raise_invalid("parts", f"at most {_MAX_NAMES} sources with different names", ", ".join(map(repr, names)))
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
    """(n, m): ids that occur earlier in their row."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    again = np.zeros(ids.shape, np.bool_)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return again
