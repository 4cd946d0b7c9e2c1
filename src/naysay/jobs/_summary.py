"""The numbers of a job, in one line: how many, how many of them may be false, how hard they are, and what is short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import shown
from naysay.detectors.rate import false_negative_rate
from naysay.detectors.share import Share
from naysay.errors import NaysayError
from naysay.mining.candidates import Candidates
from naysay.mining.exclude import EXCLUDED
from naysay.mining.judge import SUSPICIOUS

LEAST = 20  # positives without which no rate is estimated
Floats = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True)
class MinedFile:
    """What a job wrote.

    Args:
        output: The file, and its rows.
        rows: The file, and its rows.
        anchors: How many; anchors with fewer than k negatives, and by how many in all.
        negatives: How many; anchors with fewer than k negatives, and by how many in all.
        short: How many; anchors with fewer than k negatives, and by how many in all.
        missing: How many; anchors with fewer than k negatives, and by how many in all.
        false_negatives: An estimate with its interval, or a sentence that says why there is none.
        hardness: The mean over all negatives of the share of random pairs that score below it: 0.5 is what random
            negatives have, and 1 what scores above every random pair.
        rule: The judge, in a sentence.
        notes: What else to know.
        dropped: {reason: candidates}.
        recall: Of the nearest that an index finds, None where the search was exact.
    """

    output: Path
    rows: int
    anchors: int
    negatives: int
    short: int
    missing: int
    false_negatives: Share | str
    hardness: float
    rule: str
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    recall: float | None = None

    def __str__(self) -> str:
        """One line."""
        share = self.false_negatives
        if isinstance(share, Share):
            told = f"false negatives {_percent(share.estimate)} (0 to {_percent(share.high)} at {share.confidence:.0%})"
        else:
            told = f"false negatives {share}"
        hard = f"hardness {self.hardness:.3f}" if self.negatives else "no hardness"
        short = f"{self.short:,} anchors short by {self.missing:,}" if self.short else "no anchor short"
        found = "" if self.recall is None else f", recall {self.recall:.3f}"
        return f"{self.anchors:,} anchors, {self.negatives:,} negatives, {told}, {hard}, {short}{found}: {self.output}"


def above(scores: NDArray[np.float32], background: Floats) -> int:
    """How many (negative, random pair) there are in which the negative scores higher; `background` is sorted."""
    return int(np.searchsorted(background, scores, side="left").sum())


def rate_of(
    candidates: Candidates,
    positive: Floats,
    thresholds: NDArray[np.float64],
    counts: NDArray[np.int64],
    depth: int,
    how: str,
) -> Share | str:
    """At most how many of the negatives are false, by `false_negative_rate` on the sampled anchors; or why not.

    Candidates are all that was searched, known ones left out, and the positives are those that the same search would
    have found. Anchors that were searched past their suspects are left out: their list has a gap. With the "top" ones
    selected, a positive would have been kept if it is below the line and not below the last one kept.

    Args:
        candidates: Of these anchors, with their negatives marked.
        positive: (n,) the score of one known positive of each, NaN without one.
        thresholds: (n,) from which score on candidates are suspected, NaN where nobody goes by scores.
        counts: (n,) k of each.
        depth: Of the search.
        how: The selection.
    """
    gap = candidates.outside.get(SUSPICIOUS, np.zeros(len(candidates), np.int64)) > 0
    searched = candidates.filled & (candidates.source == 0) & ~candidates.dropped_for(("repeated", *EXCLUDED))
    last = np.where(candidates.ids[:, depth - 1] >= 0, candidates.scores[:, depth - 1], -np.inf)
    kept = candidates.kept & (candidates.kept_by >= 0) & searched & ~gap[:, None]
    usable = ~gap & ~np.isnan(positive) & (positive >= last)
    if not kept.any():
        return "unknown (no negatives to judge by)"
    if usable.sum() < LEAST:
        return (
            f"unknown (its estimate takes {LEAST} anchors with a known positive within the depth, got {usable.sum()})"
        )
    passed = None
    if how == "top":
        lowest = np.where(kept, candidates.scores, np.inf).min(axis=1)
        full = np.count_nonzero(kept, axis=1) >= np.maximum(counts, 1)
        below = np.isnan(thresholds) | (positive < thresholds)
        passed = (below & ((positive >= lowest) | ~full))[usable]
    scores = np.where(searched, candidates.scores, 0)
    try:
        share = false_negative_rate(
            scores[~gap], positive[usable], kept[~gap], kept_positives=passed, mask=searched[~gap]
        )
    except NaysayError as refusal:  # scores that are all the same
        return f"unknown ({shown(str(refusal))})"
    return "unknown (positives do not score above the candidates by enough to tell)" if share.notes else share


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.01 or share == 0 else f"{100 * share:.2g} %"


def as_numbers(found: MinedFile) -> dict[str, str]:
    """The same as a report shows it."""
    share = found.false_negatives
    rate = share if isinstance(share, str) else f"{_percent(share.estimate)} (0 to {_percent(share.high)})"
    return {
        "anchors": f"{found.anchors:,}",
        "negatives": f"{found.negatives:,}",
        "estimated false negatives": rate,
        "hardness": f"{found.hardness:.3f}",
        "short anchors": f"{found.short:,}",
        "rows written": f"{found.rows:,}",
    }
