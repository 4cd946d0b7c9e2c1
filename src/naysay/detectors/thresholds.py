"""Two thresholds by shares: above which score a negative is likely false, and above which it is hard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, final

import numpy as np

from naysay.arrays import Floats
from naysay.checks import as_floats, check_all, check_number, check_one_of, check_whole, public, raise_invalid, shown
from naysay.detectors._choose import choose_by_anchor, choose_by_quantiles, choose_from_grid
from naysay.detectors._scores import open_scores
from naysay.detectors._threshold_tables import KINDS, Rows, as_text
from naysay.detectors.score_sketch import ScoreSketch


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Thresholds:
    """The thresholds that `choose_thresholds` chose, and the counts behind them. print() shows both tables.

    Args:
        low: A negative is hard if low <= score < high, and easy below `low`. With scope "anchor" (n_anchors,).
        high: A negative is false if score >= high. With scope "anchor" (n_anchors,).
        table: "high": a row for each high value, counted at low = start_low; "low": a row for each low value, at
            the chosen high. With scope "anchor" a row for each anchor. The rows are a structured NumPy array with the
            fields value, positive, false, hard, easy, false_share, hard_share and easy_share:
            `table["high"]["false"]` is a column.
        n_negatives: The number of scores.
        n_positives: The number of known positives, of all anchors.
        false_share: As given.
        hard_share: As given.
        start_low: As given.
        scope: As given.
        rank_error: 0.0 if all is exact. Otherwise thresholds and counts come from one pass over a stream, and every
            count may be wrong by this share of the scores.
        notes: A sentence for each thing that makes the choice less certain.
    """

    low: Any
    high: Any
    table: Mapping[str, Rows]
    n_negatives: int
    n_positives: int
    false_share: float
    hard_share: float
    start_low: float
    scope: str
    rank_error: float
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return as_text(self.low, self.high, self.table, start_low=self.start_low, scope=self.scope)


@public
def choose_thresholds(
    scores: Any,
    *,
    n_positives: Any = 0,
    false_share: float = 0.001,
    hard_share: float = 0.05,
    grid: Any = None,
    start_low: float = 0.0,
    column: str | None = None,
    scope: str = "all",
) -> Thresholds:
    """Choose `high` and `low` so that given shares of all pairs are false and hard negatives.

    With all = negatives + n_positives:

        grid      high = the smallest value with  #{score >= high} <= false_share all
                  low  = the largest value with   #{low <= score < high} >= hard_share all
        no grid   high leaves floor(false_share all) negatives at or above it,
                  low leaves  floor((false_share + hard_share) all)

    Without a grid, equal scores at a threshold all stay below it, so fewer negatives are left, and a note says so. If
    more than the share are equal at the top, `high` is the next float above them and no negative is false. A threshold
    is compared in the precision of the scores, as NumPy and torch compare an array with a number.

    Files are read in blocks. Counts of a grid are exact, also of a stream. Without a grid an array or a file is read
    twice and the result is exact; a stream is read once into a `ScoreSketch`: see `rank_error`.

    The shares are a guess about the data. Use `Calibrated` instead where scores of known positives are available.

    Cost: a sort of each block of scores; memory does not grow with an array or a file.

    Args:
        scores: Scores of the negatives, higher is closer: an array (n,) or (anchors, n) of NumPy or torch, a list or
            anything else that NumPy can read (Arrow, a column of a data frame, a range); the name of an .npy or
            .parquet file; a ScoreSketch; or a stream, any iterable of such arrays.
        n_positives: The number of known positives, which count among all pairs. With scope "anchor" one number for
            every anchor, or (n_anchors,).
        false_share: The share of all pairs that may score at or above `high`.
        hard_share: The share of all pairs that should score from `low` up to `high`.
        grid: (low values, high values) to choose from.
        start_low: The `low` at which the table of high values is counted.
        column: The column of a .parquet file. By default the one named score, or the only column of numbers.
        scope: "all" for one pair of thresholds; "anchor" for one pair for each row of (anchors, n), by its own scores.

    Raises:
        NaysayError: If all scores are equal, or no value of the grid fits the shares.

    Examples:
        >>> chosen = choose_thresholds([0.1, 0.2, 0.3, 0.9], false_share=0.25, hard_share=0.25)
        >>> chosen.low, chosen.high, chosen.table["low"]["hard"].tolist()
        (0.3, 0.9, [1])
    """
    start = check_number("start_low", start_low)
    false, hard = _share("false_share", false_share), _share("hard_share", hard_share)
    if false + hard > 1:
        raise_invalid("hard_share", f"at most {float(1 - false):g}, what `false_share` leaves", float(hard))
    check_one_of("scope", scope, ("all", "anchor"))
    values = None if grid is None else _grid(grid)
    if values is not None and scope == "anchor":
        raise_invalid("grid", "left out with scope 'anchor'", "a grid", "Anchors get quantiles of their scores.")
    if isinstance(scores, ScoreSketch) and (values is not None or scope == "anchor"):
        rule = "an array, a file or a stream, for a grid or scope 'anchor'"
        raise_invalid("scores", rule, "a ScoreSketch", "A sketch serves quantiles of all scores.")
    if scope == "anchor":
        choice = choose_by_anchor(open_scores(scores, column), n_positives, false, hard, start)
    else:
        positives = check_whole("n_positives", n_positives, 0)
        if values is not None:
            choice = choose_from_grid(open_scores(scores, column), values, positives, false, hard, start)
        else:
            choice = choose_by_quantiles(scores, column, positives, false, hard, start)
    rows = choice.by_low if scope == "anchor" else choice.by_low[:1]
    return Thresholds(
        low=choice.low,
        high=choice.high,
        table=MappingProxyType({"high": choice.by_high, "low": choice.by_low}),
        n_negatives=sum(int(rows[kind].sum()) for kind in KINDS[1:]),
        n_positives=int(rows["positive"].sum()),
        false_share=float(false),
        hard_share=float(hard),
        start_low=start,
        scope=scope,
        rank_error=choice.rank_error,
        notes=choice.notes,
    )


def _share(parameter: str, value: Any) -> Fraction:
    """A share as it is written: 0.1 is one tenth."""
    return Fraction(repr(check_number(parameter, value, at_least=0, at_most=1)))


def _grid(grid: Any) -> tuple[Floats, Floats]:
    """Low and high values, in their order."""
    rule = "(low values, high values)"
    if not isinstance(grid, list | tuple | np.ndarray) or len(grid) != 2:
        raise_invalid("grid", rule, shown(grid))
    low, high = (np.atleast_1d(as_floats("grid", side)) for side in grid)
    for side in (low, high):
        if side.ndim != 1 or not side.size:
            raise_invalid("grid", f"{rule}, each (n,) with n of at least 1", f"shape {side.shape}")
        check_all("grid", side, np.isfinite(side), "finite")
    return low, high
