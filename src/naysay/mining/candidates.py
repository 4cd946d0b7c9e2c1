"""Candidates: what may become negatives, with scores, ranks, and one reason for each that was dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats32 = NDArray[np.float32]
Mask = NDArray[np.bool_]
SEARCH, RANDOM_SOURCE = "search", "random"


@final
class Reason(StrEnum):
    """Why a candidate was dropped, in the order of the stages. Its number in `Candidates.why` is its place, from 1."""

    REPEATED = "repeated"  # another source has it already
    POSITIVE = "positive"  # a known positive of the anchor
    ANCHOR = "anchor"  # the anchor itself
    IGNORED = "ignored"  # neither positive nor negative
    OWN_TEXT = "own text"  # it has the vector of the anchor
    DUPLICATE = "duplicate"  # it is a copy of a positive or of the anchor
    TOO_NEAR = "too near"  # nearer than the options allow
    TOO_FAR = "too far"  # at a later rank than the options allow
    TOO_EASY = "too easy"  # a lower score than the options allow
    NOT_RESCORED = "not rescored"  # beyond `rescore_budget`
    SUSPICIOUS = "suspicious"  # the judge suspects it
    REVIEWED = "reviewed"  # a reviewer says that it is a positive
    TOO_FREQUENT = "too frequent"  # `max_per_item` anchors with higher scores have it
    NOT_SELECTED = "not selected"  # good, but not among the k that were taken
    SHORT_ANCHOR = "short anchor"  # its anchor has fewer than k, and on_short is "drop"


REASONS = tuple(Reason)
CODES = {reason: np.int8(code) for code, reason in enumerate(REASONS, 1)}
# Reasons for which a candidate can never be a negative: a judge is not shown it.
NEVER = (
    Reason.REPEATED,
    Reason.POSITIVE,
    Reason.ANCHOR,
    Reason.IGNORED,
    Reason.OWN_TEXT,
    Reason.DUPLICATE,
)
SELECTED, RELAXED, RANDOM = range(3)  # numbers in `Candidates.kept_by`
# The arrays of (n, m) slots, and what stands in an empty slot.
SLOTS: dict[str, tuple[Any, float]] = {
    "ids": (np.int64, -1),
    "scores": (np.float32, -np.inf),
    "rank": (np.int32, 0),
    "source": (np.int8, -1),
    "suspicion": (np.float32, 0),
    "why": (np.int8, 0),
    "kept_by": (np.int8, -1),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What a search found for each anchor. Frozen: a stage returns a changed copy.

    A dropped candidate keeps its slot and gets one reason, so that it can be explained. `kept` is the mask of those
    that are left; only these can be dropped. What has no slot is counted in `outside`.

    Args:
        ids: (n, m) int64; -1 where empty.
        scores: (n, m) float32, higher is closer; -inf where empty.
        rank: (n, m) int32: the place in the list it came from, from 1, known pairs not counted; 0 where empty.
        source: (n, m) int8: which of `source_names` it came from; -1 where empty.
        suspicion: (n, m) float32 from 0 to 1; 0 until it is judged.
        why: (n, m) int8: 0 if it is left, else the number of its `Reason`.
        kept_by: (n, m) int8: which of `kept_names` took it as a negative; -1 none.
        positive_scores: (n,) float32: the lowest score of the anchor's known positives, NaN without one.
        source_names: The sources.
        kept_names: The rules that take negatives.
        outside: {reason: (n,) counts} of what was left out and has no slot, such as known pairs.

    Examples:
        >>> found = Candidates.of(np.array([[4, 2, 7]]), np.array([[0.9, 0.5, 0.1]], np.float32))
        >>> left = found.drop(np.array([[True, False, False]]), Reason.DUPLICATE)
        >>> left.kept.tolist(), {str(reason): counts.tolist() for reason, counts in left.dropped.items()}
        ([[False, True, True]], {'duplicate': [1]})
    """

    ids: Ids
    scores: Floats32
    rank: NDArray[np.int32]
    source: NDArray[np.int8]
    suspicion: Floats32
    why: NDArray[np.int8]
    kept_by: NDArray[np.int8]
    positive_scores: Floats32
    source_names: tuple[str, ...] = (SEARCH,)
    kept_names: tuple[str, str, str] = ("top", "relaxed", "random")
    outside: Mapping[Reason, Ids] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        ids: Ids,
        scores: NDArray[Any],
        *,
        name: str = SEARCH,
        rank: Ids | None = None,
        positive_scores: Floats32 | None = None,
    ) -> Candidates:
        """The candidates of a list, best first; by default ranks are the places in it."""
        filled = ids >= 0
        places = np.arange(1, ids.shape[1] + 1) if rank is None else rank
        return cls(
            ids=ids,
            scores=np.where(filled, scores, -np.inf).astype(np.float32),
            rank=np.where(filled, places, 0).astype(np.int32),
            source=np.where(filled, 0, -1).astype(np.int8),
            suspicion=np.zeros(ids.shape, np.float32),
            why=np.zeros(ids.shape, np.int8),
            kept_by=np.full(ids.shape, -1, np.int8),
            positive_scores=np.full(len(ids), np.nan, np.float32) if positive_scores is None else positive_scores,
            source_names=(name,),
        )

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
    def eligible(self) -> Mask:
        """(n, m): all that was found but known pairs and duplicates, whether it is left or not."""
        return self.filled & ~self.dropped_for(*NEVER)

    @property
    def dropped(self) -> dict[Reason, Ids]:
        """{reason: (n,) how many of each anchor}; only reasons that occurred."""
        none = np.zeros(len(self), np.int64)
        counts = {}
        for reason, code in CODES.items():
            count = np.count_nonzero(self.why == code, axis=1) + self.outside.get(reason, none)
            if count.any():
                counts[reason] = count
        return counts

    def dropped_for(self, *reasons: Reason) -> Mask:
        """(n, m): candidates that were dropped for one of these reasons."""
        return np.isin(self.why, [CODES[reason] for reason in reasons])

    def drop(self, mask: Mask, reason: Reason) -> Candidates:
        """Return the same without the candidates of `mask` that are left, counted under `reason`."""
        return replace(self, why=np.where(mask & self.kept, CODES[reason], self.why))

    def restored(self, mask: Mask) -> Candidates:
        """Return the same with the dropped candidates of `mask` back."""
        return replace(self, why=np.where(mask, np.int8(0), self.why))

    def marked(self, mask: Mask, kept_by: int) -> Candidates:
        """Return the same with the candidates of `mask` that are left marked as negatives."""
        return replace(self, kept_by=np.where(mask & self.kept, np.int8(kept_by), self.kept_by))

    def take(self, rows: Ids) -> Candidates:
        """Return the candidates of some anchors."""
        slots = self.slots(lambda values: values[rows])
        outside = {reason: counts[rows] for reason, counts in self.outside.items()}
        return replace(self, **slots, positive_scores=self.positive_scores[rows], outside=outside)

    def slots(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> dict[str, Any]:
        """{name: a changed copy} of the arrays of slots."""
        return {name: change(getattr(self, name)) for name in SLOTS}

    def widened(self, width: int) -> Candidates:
        """Return the same with empty slots added at the end, up to `width` of them."""
        more = width - self.ids.shape[1]
        if more <= 0:
            return self
        slots: dict[str, Any] = {
            name: np.pad(getattr(self, name), ((0, 0), (0, more)), constant_values=empty)
            for name, (_, empty) in SLOTS.items()
        }
        return replace(self, **slots)

    def narrowed(self, width: int) -> Candidates:
        """Return the same in at most `width` slots: those that are left first, then those that were dropped.

        Slots stay in their order. What loses its slot is counted in `outside`; it counts as not selected if it was
        left.
        """
        if self.ids.shape[1] <= width:
            return self
        turn = np.where(self.kept, 0, np.where(self.filled, 1, 2))
        first = np.argsort(turn, axis=1, kind="stable")[:, :width]
        stays = np.zeros(self.ids.shape, np.bool_)
        np.put_along_axis(stays, first, values=True, axis=1)
        gone = replace(self.drop(~stays, Reason.NOT_SELECTED), ids=np.where(stays, -1, self.ids))
        outside = dict(self.outside)
        for reason, code in CODES.items():
            lost = np.count_nonzero(gone.filled & (gone.why == code), axis=1)
            if lost.any():
                outside[reason] = outside.get(reason, 0) + lost
        places = np.sort(first, axis=1)
        slots = self.slots(lambda values: np.take_along_axis(values, places, axis=1))
        return replace(self, **slots, outside=outside)

    def with_rows(self, rows: Ids, others: Candidates) -> Candidates:
        """Return the same with some rows replaced."""
        chosen = np.arange(len(self))
        chosen[rows] = len(self) + np.arange(len(others))
        return Candidates.stacked([self, others]).take(chosen)

    @staticmethod
    def stacked(parts: Sequence[Candidates]) -> Candidates:
        """The candidates of several blocks of anchors, as one."""
        if len(parts) == 1:
            return parts[0]
        width = max(part.ids.shape[1] for part in parts)
        wide = [part.widened(width) for part in parts]
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in wide]) for name in (*SLOTS, "positive_scores")
        }
        outside = {
            reason: np.concatenate([part.outside.get(reason, np.zeros(len(part), np.int64)) for part in wide])
            for reason in {reason: None for part in wide for reason in part.outside}
        }
        return replace(parts[0], **arrays, outside=outside)

    @staticmethod
    def joined(parts: Sequence[Candidates]) -> Candidates:
        """The candidates of several sources for the same anchors, side by side; later repeats of an id are dropped."""
        first = parts[0]
        if len(parts) == 1:
            return first
        slots: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=1) for name in SLOTS if name != "source"
        }
        sources = [np.where(part.filled, number, -1) for number, part in enumerate(parts)]
        slots["source"] = np.concatenate(sources, axis=1).astype(np.int8)
        names = tuple(name for part in parts for name in part.source_names)
        whole = replace(first, **slots, source_names=names)
        return whole.drop(_repeated(whole.ids), Reason.REPEATED)


def _repeated(ids: Ids) -> Mask:
    """(n, m): ids that occur earlier in their row."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    again = np.zeros(ids.shape, np.bool_)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return again


def canonical_order(candidates: Candidates, mask: Mask) -> Ids:
    """(n, m) the slots of each row by score descending, id ascending; those outside of `mask` last."""
    by_id = np.argsort(candidates.ids, axis=1, kind="stable")
    falling = np.where(mask, -candidates.scores, np.float32(np.inf))
    by_score = np.argsort(np.take_along_axis(falling, by_id, 1), axis=1, kind="stable")
    return np.take_along_axis(by_id, by_score, 1)
