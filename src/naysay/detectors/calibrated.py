"""Calibrated: the scores of known positives say where unknown ones live, with a bound on how many get past."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import (
    as_array,
    check_generator,
    check_lengths,
    check_number,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.detectors._background import Background, read_background
from naysay.detectors._score_blocks import first_slot
from naysay.detectors._slots import LINE, as_suspicion, check_asked, slot_scores
from naysay.detectors.hold_out import one_per_anchor
from naysay.detectors.positive_scores import finite_scores
from naysay.quantity._weight import Floats
from naysay.types import Array, Negatives, Query, anchor_ids


@final
@public
class Calibrated:
    """Suspect what scores like a positive: at or above the r-th smallest score of n labelled positives.

    `fit` sets the line `high`, r = floor(alpha (n + 1)). **At most r / (n + 1) <= alpha of unlabelled positives score
    below it**, for any encoder, if they are exchangeable with the labelled ones: in place of a guess about scores, an
    assumption about labels. Let S be the score of an unlabelled positive. If S is below the r-th smallest of the n,
    then at most r of all n + 1 scores are at or below S. No more than r of n + 1 scores can have that rank, whatever
    ties there are, and each of them is equally likely to be S: so the chance is at most r / (n + 1), which it is
    exactly if no two scores are equal. ceil in place of floor is on the wrong side: 2 / 31 = 6.5 % at n = 30.

    Below n = 1 / alpha - 1 positives (19 at 0.05) r is 0 and no line can promise alpha: `fit` refuses.

    The bound is marginal: the mean over calibration sets, over anchors drawn alike, and one positive of each. With
    the one set at hand the share let through is Beta(r, n + 1 - r) distributed; `bound_at` gives its quantiles. It
    assumes that
    - the labelled positives were not trained on, or as much as the unlabelled ones: hold them out (`one_per_anchor`);
    - each comes from another anchor; positives of one anchor say the same thing twice (`anchors`);
    - which pairs are labelled does not depend on their score. Clicked pairs that score higher than unclicked ones
      put the line too high.

    Suspicion of a score s with c(s) = #{positives <= s}: c / (2 r) below the line, and from it on
    0.5 + 0.5 (c - r) / (n + 1 - r). So any other alpha can be had later from the same numbers: `line_at`.

    An encoder whose scores sit at another level for each anchor makes one line a poor one for all. With
    `standardise=True` the line is in deviations above the anchor's mean; the bound is the same.

    Cost: a sort of n scores; O(log n) a slot.

    Vovk, Gammerman and Shafer. Algorithmic Learning in a Random World. 2005: conformal prediction, here of positives.

    Args:
        alpha: How many unlabelled positives may be let through as negatives, as a share.
        standardise: Whether scores are compared by anchor: z = (s - mean) / deviation over the anchor's random
            candidates.

    Example:
        >>> found = Calibrated(alpha=0.1).fit(np.arange(30) / 30)
        >>> found.rank, found.high, round(found.bound, 4)
        (3, 0.06666666666666667, 0.0968)
        >>> found.flag([0.05, 0.07]).tolist()
        [False, True]
    """

    def __init__(self, alpha: float = 0.05, *, standardise: bool = False) -> None:
        """Nothing is fitted yet."""
        self.alpha = _alpha(alpha)
        if not isinstance(standardise, bool | np.bool_):
            raise_invalid("standardise", "True or False", shown(standardise))
        self.standardise = bool(standardise)
        self._scores: Floats = np.zeros(0)  # of the positives, ascending; standardised if asked for
        self._background: Background | None = None

    def fit(
        self,
        positive_scores: Any,
        anchors: Any = None,
        *,
        background: Any = None,
        rng: np.random.Generator | None = None,
    ) -> Calibrated:
        """Set the line by labelled positives, and return self.

        Args:
            positive_scores: (n,) scores of labelled pairs, held out of training.
            anchors: (n,) whose they are. Of an anchor with several, one is taken, at random by `rng`; None: the
                caller says that all are of different anchors.
            background: For standardise=True, a table by anchor id of all anchors that will be asked about:
                (n_anchors, m) scores of random candidates, or a tuple (mean, deviation), (n_anchors,) each.
            rng: Needed if anchors repeat; a refusal leaves it where it was.
        """
        scores = finite_scores("positive_scores", positive_scores)
        table = self._table(background)
        if anchors is None:
            for name, value in (("rng", rng), ("background", table)):
                if value is not None:
                    raise_invalid("anchors", f"given along with {name}", None, "Pass whose positives they are.")
        else:
            ids = whole_numbers("anchors", to_numpy(anchors)).astype(np.int64)
            check_lengths(anchors=len(ids), positive_scores=len(scores))
            if rng is not None:
                check_generator(rng)
            if rng is None and len(np.unique(ids)) < len(ids):
                got = f"{len(ids)} positives of {len(np.unique(ids))} anchors"
                advice = "Positives of one anchor are not independent: pass rng to take one of each at random."
                raise_invalid("anchors", "different", got, advice)
            if table is not None:
                scores = table.standardised(scores, ids)
            if rng is not None:
                chance = deepcopy(rng)
                scores = scores[one_per_anchor(ids, rng=chance)]
        self._check_scores("positive_scores", scores)
        if rng is not None:
            rng.bit_generator.state = chance.bit_generator.state
        self._scores, self._background = np.sort(scores), table
        return self

    @property
    def n(self) -> int:
        """How many positives the line rests on, 0 before `fit`."""
        return len(self._scores)

    @property
    def rank(self) -> int:
        """The r of the docstring, floor(alpha (n + 1)): the line is the r-th smallest score of the positives."""
        return rank_of(self.alpha, self._fitted())

    @property
    def high(self) -> float:
        """The line: what scores at or above it is suspected. With standardise=True, in deviations above the mean."""
        return float(self._scores[rank_of(self.alpha, self._fitted()) - 1])

    @property
    def bound(self) -> float:
        """At most this share of unlabelled positives is let through: r / (n + 1), never above alpha."""
        n = self._fitted()
        return rank_of(self.alpha, n) / (n + 1)

    def bound_at(self, confidence: float = 0.95) -> float:
        """The share let through that this one calibration stays below with `confidence`: a quantile of Beta(r, n+1-r).

        `bound` is the mean over calibrations. With few positives a single one can be well off it; more narrow it.
        """
        from scipy.special import betaincinv

        n, sure = self._fitted(), check_number("confidence", confidence)
        if not 0 < sure < 1:
            raise_invalid("confidence", "above 0 and below 1", sure)
        return float(betaincinv(self.rank, n + 1 - self.rank, sure))

    def line_at(self, alpha: float) -> float:
        """The suspicion from which to flag in place of 0.5, to hold another alpha with the same positives."""
        n, other = self._fitted(), _alpha(alpha)
        rank = rank_of(other, n)
        if rank == 0:
            raise_invalid("alpha", f"at least {least_alpha(n)} with {n} positives", other)
        return float(self._suspicion(np.array(rank)))

    def threshold(self, anchors: Any = None) -> Any:
        """The line in raw scores: one number, or (B,) for these anchors, mean + deviation * high if standardised."""
        self._fitted()
        if anchors is None:
            if self._background is not None:
                raise_invalid("anchors", "given for standardised scores", None, "Each anchor has its own line.")
            return self.high
        ids = whole_numbers("anchors", to_numpy(anchors), "(B,)").astype(np.int64)
        if self._background is None:
            return np.full(len(ids), self.high)
        mean, deviation = self._background.of(ids)
        return mean + deviation * self.high

    def flag(self, scores: Any, anchors: Any = None) -> Array:
        """Whether each score is suspected, in the shape and array type of `scores`; anchors (B,) if standardised."""
        self._fitted()
        values = as_array("scores", to_numpy(scores))
        if values.size and values.dtype.kind not in "iuf":
            raise_invalid("scores", "numbers", f"dtype {values.dtype}")
        values = values.astype(np.float64)
        bad = ~np.isfinite(values)
        if bad.any():
            raise_invalid("scores", "finite", first_slot(values, bad))
        if self._background is not None:
            if anchors is None:
                raise_invalid("anchors", "given for standardised scores", None, "Each anchor has its own line.")
            ids = whole_numbers("anchors", to_numpy(anchors), "(B,)").astype(np.int64)
            if values.ndim == 0 or len(values) != len(ids):
                raise_invalid("scores", f"of {len(ids)} rows, like anchors", f"shape {values.shape}")
            values = self._background.standardised(values, ids)
        found = np.asarray(values >= self.high)
        return to_torch(found, scores.device) if is_torch(scores) else found

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): 0.5 from the line on, by the rank that a score would have among the positives."""
        check_asked(query, negatives)
        self._fitted()
        scores = slot_scores(negatives)
        if self._background is not None:
            anchors = anchor_ids(query)
            if anchors.ndim != 1:
                raise_invalid("query.anchors", "of shape (B,) for standardised scores", f"shape {anchors.shape}")
            scores = self._background.standardised(scores, anchors)
        return as_suspicion(self._suspicion(np.searchsorted(self._scores, scores, side="right")), negatives)

    def describe(self) -> str:
        """The line and what it promises, in a sentence."""
        n = self._fitted()
        unit = " deviations above its anchor's mean" if self._background is not None else ""
        return (
            f"Suspected from {self.high:.4g}{unit} on, number {self.rank} from below of {n:,} labelled positives: on "
            f"average at most {self.bound:.2%} of unlabelled positives are let through, if they are like the labelled."
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """The scores that the line rests on, ascending, and the background; settings are not in it."""
        known = {"scores": self._scores.copy()}
        if self._background is not None:
            known |= {"mean": self._background.mean.copy(), "deviation": self._background.deviation.copy()}
        return known

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; refused, with nothing changed, if it does not fit."""
        if not isinstance(state, Mapping) or "scores" not in state:
            raise_invalid("state", "what Calibrated.state gave", shown(state))
        if np.size(to_numpy(state["scores"])) == 0:
            self._scores, self._background = np.zeros(0), None
            return
        parts = (state.get("mean"), state.get("deviation"))
        table = self._table(None if all(part is None for part in parts) else parts)
        scores = finite_scores("scores", state["scores"])
        self._check_scores("scores", scores)
        self._scores, self._background = np.sort(scores), table

    def _table(self, background: Any) -> Background | None:
        """The background, which is given if and only if scores are standardised."""
        if (background is None) == self.standardise:
            rule = "given for standardise=True" if self.standardise else "left out without standardise=True"
            advice = "" if self.standardise else "Make it Calibrated(alpha, standardise=True) to use it."
            raise_invalid("background", rule, None if background is None else type(background).__name__, advice)
        return None if background is None else read_background(background)

    def _check_scores(self, parameter: str, scores: Floats) -> None:
        """Refuse too few positives for alpha, and scores that tell nothing apart."""
        n = len(scores)
        if rank_of(self.alpha, n) == 0:
            rule = f"at least {least_positives(self.alpha)} of different anchors to hold alpha = {self.alpha:g}"
            raise_invalid(parameter, rule, n, f"Label more, or take an alpha of at least {least_alpha(n)}.")
        if scores.min() == scores.max():
            raise_invalid(parameter, "of more than one value", f"{n} times {scores[0]:g}", "Is the encoder trained?")

    def _fitted(self) -> int:
        """n, refused before `fit`."""
        if self.n == 0:
            raise_invalid("positive_scores", "fitted first", "none", "Call fit(positive_scores).")
        return self.n

    def _suspicion(self, count: NDArray[np.int64]) -> Floats:
        """Suspicion by how many positives score at or below."""
        n, rank = self.n, self.rank
        return np.where(count < rank, LINE * count / rank, LINE + LINE * (count - rank) / (n + 1 - rank))

    def __repr__(self) -> str:
        """The settings, and the line if there is one."""
        line = f", high={self.high:.4g}, n={self.n:,}" if self.n else ""
        return f"Calibrated(alpha={self.alpha:g}, standardise={self.standardise}{line})"


def rank_of(alpha: float, n: int) -> int:
    """floor(alpha (n + 1)), alpha being the decimal that it is written as: 0.29 * 100 is 29, not 28.999..."""
    return math.floor(Fraction(str(alpha)) * (n + 1))


def least_positives(alpha: float) -> int:
    """The smallest n for which alpha can be promised: ceil(1 / alpha) - 1."""
    return math.ceil(1 / Fraction(str(alpha))) - 1


def least_alpha(n: int) -> float:
    """The smallest alpha that n positives can promise, 1 / (n + 1), rounded up to six places."""
    return math.ceil(Fraction(1_000_000, n + 1)) / 1_000_000


def _alpha(alpha: Any) -> float:
    """A share above 0 and below 1."""
    share = check_number("alpha", alpha)
    if not 0 < share < 1:
        raise_invalid("alpha", "above 0 and below 1", share)
    return share
