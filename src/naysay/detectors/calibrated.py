"""Calibrated: a threshold from the scores of labelled positives, with a bound on the unlabelled ones that it misses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.arrays import Floats, for_checkpoints, to_numpy
from naysay.checks import (
    check_all,
    check_bool,
    check_generator,
    check_lengths,
    check_number,
    check_range,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.detectors._suspicion import (
    as_suspicion,
    check_scored,
    finite_scores,
    one_of_each,
    query_anchors,
    slot_scores,
)
from naysay.text import described
from naysay.types import Array, Negatives, Query, check_query

_STATE = {
    "scores": Entry(("positives",)),
    "mean": Entry(("anchors",)),
    "deviation": Entry(("anchors",)),
}


@public
def one_per_anchor(anchors: Any, *, rng: np.random.Generator, share: float = 1.0) -> NDArray[np.int64]:
    """Choose one labelled positive of each anchor at random, to hold out of training: their positions (m,), ascending.

    An encoder scores its training pairs higher than others. So positives that set a threshold must be held out of
    training, or the threshold is too high. An anchor with one positive may lose it to the held-out part.

    Args:
        anchors: (n,) the anchor of each labelled positive.
        rng: The generator of the choice.
        share: The share of anchors to choose from, at random; at least one anchor.

    Examples:
        >>> anchors = np.array([4, 4, 4, 7, 9, 9])
        >>> held_out = one_per_anchor(anchors, rng=np.random.default_rng(0))
        >>> anchors[held_out].tolist(), len(np.delete(anchors, held_out))
        ([4, 7, 9], 3)
    """
    ids = whole_numbers("anchors", to_numpy(anchors))
    check_generator(rng)
    part = check_number("share", share, above=0, at_most=1)
    if len(ids) == 0:
        raise_invalid("anchors", "at least one", "none")
    chosen = one_of_each(ids, rng)
    if part < 1:
        chosen = rng.permutation(chosen)[: max(1, round(part * len(chosen)))]
    return np.sort(chosen)


@final
@public
class Calibrated:
    """Suspect what scores like a positive: at or above the r-th smallest score of n labelled positives.

    `fit` sets the threshold `high`, with r = floor(alpha (n + 1)). **At most r / (n + 1) <= alpha of unlabelled
    positives are expected to score below it**, for any encoder: if all n + 1 scores are exchangeable, no more than r of
    them can be below the r-th smallest of the others, and each is equally likely to be the unlabelled one. With fewer
    than 1 / alpha - 1 positives (19 at 0.05) r is 0, and `fit` raises.

    The bound is the mean over calibration sets; the share missed by one of them is Beta(r, n + 1 - r) distributed
    (`bound_at`). It assumes that the labelled positives were held out of training (`one_per_anchor`), that each comes
    from another anchor, and that which pairs are labelled does not depend on their score.

    Suspicion of a score s with c(s) = #{positives <= s} is c / (2 r) below the threshold, and from it on
    0.5 + 0.5 (c - r) / (n + 1 - r). `threshold_at` finds the thresholds of other alphas in the same suspicion.

    Vovk, Gammerman and Shafer. Algorithmic Learning in a Random World. 2005: conformal prediction, here of positives.

    Args:
        alpha: The largest expected share of unlabelled positives that are missed, and kept as negatives.
        standardise: Whether scores are compared by anchor, for encoders whose level of scores differs between anchors:
            z = (s - mean) / deviation over the anchor's random candidates. The bound is the same.

    Examples:
        >>> found = Calibrated(alpha=0.1).fit(np.arange(30) / 30)
        >>> found.rank, found.high, round(found.bound, 4)
        (3, 0.06666666666666667, 0.0968)
    """

    def __init__(self, alpha: float = 0.05, *, standardise: bool = False) -> None:
        self.alpha = check_number("alpha", alpha, above=0, below=1)
        self.standardise = check_bool("standardise", standardise)
        self._fit: _Fit | None = None

    def fit(
        self,
        positive_scores: Any,
        anchors: Any = None,
        *,
        background: Any = None,
        rng: np.random.Generator | None = None,
    ) -> Calibrated:
        """Set the threshold by labelled positives, and return self.

        Args:
            positive_scores: (n,) scores of labelled pairs, held out of training.
            anchors: (n,) the anchor of each pair, all different by default. Of several, one is drawn by `rng`.
            background: (n_anchors, m) scores of random candidates, for standardise=True: a row for each anchor, by id,
                that will be judged.
            rng: Required if anchors repeat.
        """
        scores = finite_scores("positive_scores", positive_scores)
        table = self._read_background(background)
        extra = "rng" if rng is not None else "background" if table is not None else ""
        if anchors is None and extra:
            raise_invalid("anchors", f"given along with `{extra}`", None, "Pass whose positives they are.")
        if anchors is not None:
            ids = whole_numbers("anchors", to_numpy(anchors)).astype(np.int64)
            check_lengths(anchors=len(ids), positive_scores=len(scores))
            if rng is None and (n_anchors := len(np.unique(ids))) < len(ids):
                advice = "Positives of one anchor are not independent: pass `rng` to take one of each at random."
                raise_invalid("anchors", "different", f"{len(ids)} positives of {n_anchors} anchors", advice)
            if table is not None:
                scores = table.standardised(scores, ids)
            if rng is not None:
                scores = scores[one_per_anchor(ids, rng=rng)]
        self._fit = self._checked("positive_scores", scores, table)
        return self

    @property
    def n(self) -> int:
        """The number of positives that set the threshold, 0 before `fit`."""
        return 0 if self._fit is None else self._fit.n

    @property
    def rank(self) -> int:
        """The rank r = floor(alpha (n + 1)) of the threshold among the positives: the r-th smallest score."""
        return self._fitted().rank

    @property
    def high(self) -> float:
        """The threshold: scores at or above it are suspected. With standardise=True, in deviations above the mean."""
        return self._fitted().high

    @property
    def bound(self) -> float:
        """The largest expected share of unlabelled positives that are missed: r / (n + 1), never above alpha."""
        fit = self._fitted()
        return fit.rank / (fit.n + 1)

    def bound_at(self, confidence: float = 0.95) -> float:
        """The share of missed positives that this calibration stays below with `confidence`: a quantile of the Beta."""
        from scipy.special import betaincinv

        fit, level = self._fitted(), check_number("confidence", confidence, above=0, below=1)
        return float(betaincinv(fit.rank, fit.n + 1 - fit.rank, level))

    def threshold_at(self, alpha: float) -> float:
        """The suspicion from which to flag in place of 0.5, for the bound of another alpha with the same positives."""
        fit, other = self._fitted(), check_number("alpha", alpha, above=0, below=1)
        rank = rank_of(other, fit.n)
        if rank == 0:
            raise_invalid("alpha", f"at least {least_alpha(fit.n)} with {fit.n} positives", other)
        return float(fit.suspicion(np.array(rank)))

    def threshold(self, query: Query) -> Floats:
        """(B,) the lowest raw score that is suspected in each row: mean + deviation * high if standardised."""
        check_query(query)
        fit = self._fitted()
        if fit.background is None:
            return np.full(len(query), fit.high)
        mean, deviation = fit.background.of(query_anchors(query))
        return mean + deviation * fit.high

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K): at least 0.5 from the threshold on, by the rank that a score would have among the positives."""
        check_scored(query, negatives)
        return as_suspicion(self.unchecked_suspicion(query, negatives), negatives)

    def unchecked_suspicion(self, query: Query, negatives: Negatives) -> Floats:
        """`suspicion` without checks, for a query and negatives that naysay made."""
        fit, scores = self._fitted(), slot_scores(negatives)
        if fit.background is not None:
            scores = fit.background.standardised(scores, query_anchors(query))
        return fit.suspicion(np.searchsorted(fit.scores, scores, side="right"))

    def describe(self) -> str:
        """The threshold and its bound in a sentence."""
        fit = self._fitted()
        unit = " deviations above the anchor's mean" if fit.background is not None else ""
        ending = "th" if fit.rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(fit.rank % 10, "th")
        return (
            f"Threshold {fit.high:.4g}{unit} ({fit.rank:,}{ending} lowest of {fit.n:,} labelled positives): expected "
            f"miss rate at most {100 * self.bound:.2f} % per anchor, if unlabelled positives score like labelled ones."
        )

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The ascending scores of the positives and the background, empty without. Settings are not in it."""
        none = np.zeros(0)
        if self._fit is None:
            return dict.fromkeys(_STATE, none)
        mean, deviation = self._fit.background or (none, none)
        return {"scores": self._fit.scores.copy(), "mean": mean.copy(), "deviation": deviation.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if it does not fit."""
        scores, mean, deviation = read_state(state, _STATE).values()
        if not len(scores):
            self._fit = None
            return
        if bool(len(mean)) != self.standardise:
            raise_invalid("mean", f"of a Calibrated with standardise={self.standardise}", f"{len(mean)} anchors")
        self._fit = self._checked("scores", scores, _Background(mean, deviation) if self.standardise else None)

    def _read_background(self, given: Any) -> _Background | None:
        """The background of (n_anchors, m) scores. It must be given if and only if scores are standardised."""
        if (given is None) == self.standardise:
            rule = "given for standardise=True" if self.standardise else "left out without standardise=True"
            raise_invalid("background", rule, None if given is None else type(given).__name__)
        if given is None:
            return None
        scores = finite_scores("background", given, 2)
        if scores.shape[1] < 2:
            raise_invalid("background", "at least 2 scores for each anchor", scores.shape[1], "Score some hundred.")
        is_flat = scores.max(axis=1) == scores.min(axis=1)  # whose deviation may be a rounding error
        check_all("background", is_flat, ~is_flat, "of more than one score for each anchor")
        return _Background(scores.mean(axis=1), scores.std(axis=1, ddof=1))

    def _checked(self, parameter: str, scores: Floats, background: _Background | None) -> _Fit:
        """The fit. Raises if there are too few positives for alpha, or if all their scores are equal."""
        n, rank = len(scores), rank_of(self.alpha, len(scores))
        if rank == 0:
            rule = f"at least {least_positives(self.alpha)} of different anchors to hold alpha = {self.alpha:g}"
            raise_invalid(parameter, rule, n, f"Label more, or take an alpha of at least {least_alpha(n)}.")
        if scores.min() == scores.max():
            raise_invalid(parameter, "of more than one value", f"{n} times {scores[0]:g}", "Is the encoder trained?")
        ordered = np.sort(scores)
        return _Fit(ordered, float(ordered[rank - 1]), rank, background)

    def _fitted(self) -> _Fit:
        if self._fit is None:
            raise_invalid("positive_scores", "fitted first", "none", "Call fit(positive_scores).")
        return self._fit

    def __repr__(self) -> str:
        fit = self._fit
        return described(self, "not fitted" if fit is None else f"high={fit.high:.4g}, n={fit.n:,}")


class _Fit(NamedTuple):
    """The result of `fit`. It is replaced as a whole, so that other threads never see parts of two fits."""

    scores: Floats  # of the positives, ascending, in the units of `high`
    high: float
    rank: int
    background: _Background | None

    @property
    def n(self) -> int:
        return len(self.scores)

    def suspicion(self, count: NDArray[np.int64]) -> Floats:
        """Suspicion by how many positives score at or below."""
        rank, above = self.rank, self.n + 1 - self.rank
        return np.where(count < rank, 0.5 * count / rank, 0.5 + 0.5 * (count - rank) / above)


def rank_of(alpha: float, n: int) -> int:
    """floor(alpha (n + 1)), alpha being the decimal number that was written: 0.29 * 100 is 29, not 28.999..."""
    return math.floor(Fraction(str(alpha)) * (n + 1))


def least_positives(alpha: float) -> int:
    """The smallest n for which the bound can be alpha: ceil(1 / alpha) - 1."""
    return math.ceil(1 / Fraction(str(alpha))) - 1


def least_alpha(n: int) -> float:
    """The smallest alpha that n positives can have as a bound, 1 / (n + 1), rounded up to six places."""
    return math.ceil(Fraction(1_000_000, n + 1)) / 1_000_000


class _Background(NamedTuple):
    """The level of each anchor's scores, by its id: mean and deviation (n_anchors,) over random candidates."""

    mean: Floats
    deviation: Floats

    def standardised(self, scores: Floats, anchors: NDArray[np.int64]) -> Floats:
        """(s - mean) / deviation of each score, for anchors (B,) and scores (B,) or (B, K)."""
        mean, deviation = self.of(anchors)
        shape = (len(anchors),) + (1,) * (scores.ndim - 1)
        return np.asarray((scores - mean.reshape(shape)) / deviation.reshape(shape))

    def of(self, anchors: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and deviation of these anchors, (B,) each. An anchor without a background is an error."""
        check_range("anchors", anchors, len(self.mean), "anchors with a background")
        return self.mean[anchors], self.deviation[anchors]
