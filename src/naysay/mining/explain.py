"""The data of a result, and the outcome of every candidate of an anchor, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import public
from naysay.detectors.rate import RateEstimate
from naysay.mining.candidates import Candidates, canonical_order
from naysay.positives import Positives

_PRINTED = 12  # dropped candidates that are printed


@dataclass(frozen=True, slots=True, eq=False)
class MinedArrays:
    """The data of a `Mined`, which is what a report reads."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    rank: NDArray[np.int32]
    suspicion: NDArray[np.float32]
    source: NDArray[np.int8]
    kept_by: NDArray[np.int8]
    source_names: tuple[str, ...]
    kept_names: tuple[str, ...]
    positive_scores: NDArray[np.float32]
    thresholds: NDArray[np.float64]
    counts: NDArray[np.int64]
    rule: str
    judge: Any
    suspicion_threshold: float
    candidates: Candidates
    known: Positives
    known_scores: NDArray[np.float32] | None
    depth: int
    metric: str
    notes: tuple[str, ...]

    @property
    def false_share(self) -> RateEstimate | None:
        """The estimated share of false negatives, which `Mined` computes; None where it cannot be told."""
        return None

    @property
    def dropped(self) -> dict[str, NDArray[np.int64]]:
        """{reason: (n,) how many of each anchor}; "not selected" are good candidates that were not needed."""
        return self.candidates.dropped

    @property
    def short(self) -> int:
        """How many anchors have fewer than k negatives, as in the summary of a job."""
        return int(np.count_nonzero(self.missing))

    @property
    def missing(self) -> NDArray[np.int64]:
        """(n,) how many negatives each anchor lacks to its k."""
        return np.asarray(self.counts - np.count_nonzero(self.ids >= 0, axis=1))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(n, k): slots that hold a negative."""
        return self.ids >= 0


def slots_of(candidates: Candidates, width: int) -> dict[str, Any]:
    """(n, k) arrays of the negatives, in order: the selected, then the relaxed, then the random ones."""
    kept = candidates.kept & (candidates.kept_by >= 0)
    order = canonical_order(candidates, kept)
    late = [place for place, name in enumerate(candidates.kept_names) if name in ("relaxed", "random")]
    turn = np.where(np.isin(candidates.kept_by, late), candidates.kept_by, -1)
    turn = np.where(kept, turn, len(candidates.kept_names))
    order = np.take_along_axis(order, np.argsort(np.take_along_axis(turn, order, 1), axis=1, kind="stable"), 1)
    order = order[:, :width]
    filled = np.take_along_axis(kept, order, axis=1)
    empty = {"ids": -1, "scores": -np.inf, "rank": 0, "suspicion": 0, "source": -1, "kept_by": -1}
    slots: dict[str, Any] = {}
    for name, none in empty.items():
        values = getattr(candidates, name)
        wide = np.full((len(candidates), width), none, values.dtype)
        wide[:, : order.shape[1]] = np.where(filled, np.take_along_axis(values, order, axis=1), values.dtype.type(none))
        slots[name] = wide
    return slots | {"source_names": candidates.source_names, "kept_names": candidates.kept_names}


@public
class Outcome(NamedTuple):
    """A candidate and what became of it.

    Attributes:
        id: Its corpus row.
        rank: Its rank in the list of its source, 0 for a random item.
        score: Its score.
        suspicion: The judge's suspicion.
        source: Where it was found.
        kept: Whether it is a negative.
        by: The rule that kept it, or the reason for which it was dropped.

    Examples:
        >>> Outcome(id=7, rank=1, score=0.9, suspicion=0.8, source="search", kept=False, by="suspicious").by
        'suspicious'
    """

    id: int
    rank: int
    score: float
    suspicion: float
    source: str
    kept: bool
    by: str


@final
@public
@dataclass(frozen=True, slots=True)
class Explanation:
    """Every candidate of one anchor and its outcome, as `Mined.explain` returns it. print() shows a table.

    Args:
        anchor: Which anchor.
        negatives: What was kept, in the order of `Mined.ids`.
        candidates: What was found and dropped, by score.
        positive_score: The lowest score of its known positives, NaN without one.
        threshold: The score at or above which candidates are suspected, NaN if the judge does not go by scores.
        dropped: {reason: count}, what the search left out included.
        wanted: k of this anchor.
        rule: The judge, in a sentence.

    Examples:
        >>> outcome = Outcome(id=7, rank=1, score=0.9, suspicion=0.1, source="search", kept=True, by="top")
        >>> print(Explanation(0, (outcome,), (), 0.95, 0.92, {"positive": 1}, 1, "Suspected from 0.92."))
        anchor 0: 1 of 1 negatives, positive 0.9500, threshold 0.9200
        Suspected from 0.92.
                id   rank     score suspicion  source     outcome
                 7      1    0.9000      0.10  search     kept: top
        left out: positive 1
    """

    anchor: int
    negatives: tuple[Outcome, ...]
    candidates: tuple[Outcome, ...]
    positive_score: float
    threshold: float
    dropped: Mapping[str, int]
    wanted: int
    rule: str

    def __str__(self) -> str:
        """A table: kept first, then dropped."""
        scores = {"positive": self.positive_score, "threshold": self.threshold}
        known = "".join(f", {name} {value:.4f}" for name, value in scores.items() if not np.isnan(value))
        lines = [f"anchor {self.anchor}: {len(self.negatives)} of {self.wanted} negatives{known}"]
        lines += [self.rule, f"{'id':>10} {'rank':>6} {'score':>9} {'suspicion':>9}  {'source':<10} outcome"]
        for one in (*self.negatives, *self.candidates[:_PRINTED]):
            numbers = f"{one.id:>10} {str(one.rank) if one.rank else '-':>6} {one.score:>9.4f} {one.suspicion:>9.2f}"
            lines.append(f"{numbers}  {one.source:<10} {'kept' if one.kept else 'dropped'}: {one.by}")
        if len(self.candidates) > _PRINTED:
            lines.append(f"and {len(self.candidates) - _PRINTED} more")
        if self.dropped:
            lines.append("left out: " + ", ".join(f"{reason} {count}" for reason, count in self.dropped.items()))
        return "\n".join(lines)


def explained(mined: MinedArrays, row: int, candidates: Candidates | None = None) -> Explanation:
    """Every candidate of an anchor, and why it became a negative or did not; `candidates` are those of this anchor."""
    found, own = (mined.candidates, row) if candidates is None else (candidates, 0)
    dropped = np.flatnonzero((found.ids[own] >= 0) & (found.why[own] != 0))
    order = dropped[np.lexsort((found.ids[own, dropped], -found.scores[own, dropped]))].tolist()

    def outcome(arrays: MinedArrays | Candidates, slot: int, by: str, *, kept: bool) -> Outcome:
        place = own if arrays is found else row, slot
        name = mined.source_names[arrays.source[place]]
        numbers = float(arrays.scores[place]), float(arrays.suspicion[place])
        return Outcome(int(arrays.ids[place]), int(arrays.rank[place]), *numbers, name, kept, by)

    kept_by = enumerate(mined.kept_by[row].tolist())
    return Explanation(
        anchor=row,
        negatives=tuple(outcome(mined, slot, mined.kept_names[by], kept=True) for slot, by in kept_by if by >= 0),
        candidates=tuple(outcome(found, slot, found.reasons[found.why[own, slot] - 1], kept=False) for slot in order),
        positive_score=float(mined.positive_scores[row]),
        threshold=float(mined.thresholds[row]),
        dropped={reason: int(counts[own]) for reason, counts in found.dropped.items() if counts[own]},
        wanted=int(mined.counts[row]),
        rule=mined.rule,
    )
