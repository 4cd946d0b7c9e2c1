"""Thresholds as quantiles: those that leave a given number of negatives at or above them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from naysay.checks import raise_invalid
from naysay.detectors._score_cuts import Cut, cuts
from naysay.detectors._score_inputs import open_scores
from naysay.detectors._threshold_rows import NAMED, Choice, budget, check_differ, counted, note_of_ties
from naysay.detectors.score_sketch import ScoreSketch


def choose_by_quantiles(
    scores: Any, column: str | None, positives: int, false: Fraction, hard: Fraction, start: float
) -> tuple[Choice, float]:
    """The choice, and its rank error: 0 where the scores could be read twice, or fit into the sketch."""
    sketch, blocks = _sketched(scores, column)
    if not sketch.n:
        raise_invalid("scores", "at least one score", "none")
    check_differ(sketch.n, sketch.smallest, sketch.largest)
    pairs = sketch.n + positives
    allowed = [budget(share, pairs) for share in (false, false + hard)]
    if allowed[1] > sketch.n:
        most = f"{sketch.n / pairs:.4g}: negatives are {sketch.n} of {pairs} pairs"
        raise_invalid("false_share + hard_share", f"at most {most}", f"{float(false + hard):g}")
    (high, low), at_start = cuts(sketch, allowed, blocks, start)
    error = 0.0 if blocks is not None else sketch.rank_error
    by_high = counted([high.value], at_start, high.at_least, sketch.n, positives)
    by_low = counted([low.value], low.at_least, high.at_least, sketch.n, positives)
    notes = _notes(dict(zip(("high", "low"), zip((high, low), allowed, strict=True), strict=True)), pairs, error)
    return Choice(low.value, high.value, by_high, by_low, tuple(notes)), error


def _sketched(scores: Any, column: str | None) -> tuple[ScoreSketch, Any]:
    """A sketch of the scores, and a second pass over them where there can be one."""
    if isinstance(scores, ScoreSketch):
        if column is not None:
            raise_invalid("column", "left out, unless scores is a .parquet file", repr(column))
        return scores, None
    blocks, sketch = open_scores(scores, column), ScoreSketch()
    for block in blocks.flat():
        sketch.add(block)
    return sketch, blocks.flat() if blocks.again else None


def _notes(found: dict[str, tuple[Cut, int]], pairs: int, error: float) -> list[str]:
    """What makes the choice less sure, a sentence each."""
    notes = []
    if error:
        notes.append(
            f"Thresholds and counts are of a sketch: a count may be wrong by {error:.2g} of the scores. "
            "A grid is counted exactly, and so are arrays and files."
        )
    for name, (cut, allowed) in found.items():
        if not allowed:
            notes.append(f"The share is less than one of {pairs} pairs, so no negative is {NAMED[name]}.")
        elif not error and cut.at_least < 0.9 * allowed:
            notes.append(note_of_ties("", name, cut.at_least, allowed))
    return notes
