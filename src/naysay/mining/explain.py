"""Why an anchor has the negatives it has: every candidate with its fate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

_SHOWN = 12  # dropped candidates that are printed


class Outcome(NamedTuple):
    """A candidate and what became of it: `by` is the rule that kept it, or the reason for which it was dropped."""

    id: int
    rank: int
    score: float
    suspicion: float
    source: str
    kept: bool
    by: str


@final
@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of one anchor. print() shows it.

    Args:
        negatives: What was kept, in the order of `Mined.ids`.
        candidates: What was found and not kept, by score.
        positive_score: The lowest score of its known positives, NaN without one.
        threshold: From which score on candidates were suspected, NaN where the rule is not one of scores.
        dropped: {reason: count}, what the search left out included.
        wanted: K of this anchor.
        rule: That of the whole job.
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
        """A table: kept first, then what was not."""
        known = {"positive": self.positive_score, "threshold": self.threshold}
        told = [f"{name} {value:.4f}" for name, value in known.items() if not np.isnan(value)]
        lines = [
            f"anchor {self.anchor}: {len(self.negatives)} of {self.wanted} negatives"
            + "".join(f", {one}" for one in told)
        ]
        lines += [self.rule, f"{'id':>10} {'rank':>6} {'score':>9} {'suspicion':>9}  {'source':<10} fate"]
        for fate in (*self.negatives, *self.candidates[:_SHOWN]):
            word = "kept" if fate.kept else "dropped"
            rank = str(fate.rank) if fate.rank else "-"
            numbers = f"{fate.id:>10} {rank:>6} {fate.score:>9.4f} {fate.suspicion:>9.2f}"
            lines.append(f"{numbers}  {fate.source:<10} {word}: {fate.by}")
        if len(self.candidates) > _SHOWN:
            lines.append(f"and {len(self.candidates) - _SHOWN} more")
        if self.dropped:
            lines.append("left out: " + ", ".join(f"{reason} {count}" for reason, count in self.dropped.items()))
        return "\n".join(lines)
