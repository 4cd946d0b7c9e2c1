"""Mixture: a two-component mixture fitted to scores, whose higher component is that of the false negatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from naysay._state import Entry, read_state
from naysay.arrays import Floats, for_checkpoints
from naysay.checks import check_all, check_bool, check_number, check_one_of, check_whole, public, raise_invalid
from naysay.detectors._suspicion import (
    as_suspicion,
    check_bounds,
    check_scored,
    like,
    masked_scores,
    slot_scores,
)
from naysay.text import described
from naysay.types import Array, Negatives, Query

FAMILIES = ("beta", "normal")
MIN_SCORES = 10  # twice the five numbers that are fitted
_SLACK = 1e-4  # of the bounds' width: scores may be this far outside, as rounded cosines are
_EDGE = 1e-6  # scaled scores keep this distance from 0 and 1, where a beta density may be 0 or infinite
_POLES = 0.1  # a beta density with a smaller a + b has all its mass at 0 and 1
_STATE = {
    "family": Entry(whole=True),
    "converged": Entry(whole=True),
    "low": Entry(),
    "high": Entry(),
    "share": Entry(),
    "gain": Entry(),
    "lower": Entry((2,)),
    "higher": Entry((2,)),
}


@final
@public
@dataclass(frozen=True, slots=True)
class TwoComponentMixture:
    """A mixture of two components on scores, scaled by x = (score - low) / (high - low). `Mixture` fits it.

    Args:
        family: "beta": a component is (a, b); "normal": a component is (mean, standard deviation).
        low: The score that is scaled to 0.
        high: The score that is scaled to 1.
        share: The share of the higher component.
        lower: The component with the smaller mean.
        higher: The component with the larger mean.
        gain: The difference in BIC from one component: twice the gain in log-likelihood, less 3 log n for three more
            numbers. Below 0, the scores do not show two components.
        converged: Whether the last iteration changed the mean log-likelihood by at most the tolerance.
    """

    family: str
    low: float
    high: float
    share: float
    lower: tuple[float, float]
    higher: tuple[float, float]
    gain: float
    converged: bool

    def scaled(self, scores: Floats) -> Floats:
        """Return (score - low) / (high - low), for beta clipped to just inside (0, 1)."""
        scaled = (scores - self.low) / (self.high - self.low)
        return np.clip(scaled, _EDGE, 1 - _EDGE) if self.family == "beta" else scaled

    @property
    def increasing_range(self) -> tuple[float, float]:
        """The range of scores in which the odds of the higher component increase with the score.

        For beta the log-odds are c + (a1 - a0) log x + (b1 - b0) log(1 - x), for normal a parabola, so there is at most
        one turning point y: (-inf, y) or (y, inf); (-inf, inf) without one.
        """
        (first0, second0), (first1, second1) = self.lower, self.higher
        if self.family == "beta":
            first, second = first1 - first0, second1 - second0
            turns, rises_after = first * second > 0, first < 0
            place = first / (first + second) if turns else 0.0
        else:
            bend = second0**-2 - second1**-2
            turns, rises_after = bend != 0, bend > 0
            place = (first0 * second0**-2 - first1 * second1**-2) / bend if turns else 0.0
        turn = self.low + place * (self.high - self.low)
        return (turn if turns and rises_after else -math.inf, turn if turns and not rises_after else math.inf)

    def posterior(self, scores: Floats, *, monotone: bool) -> Floats:
        """Return the probability that scores of any shape belong to the higher component.

        With `monotone`, it is constant outside `increasing_range`.
        """
        from scipy.special import expit

        if monotone:
            scores = np.clip(scores, *self.increasing_range)
        x = self.scaled(scores)
        odds = _log_density(self.family, self.higher, x) - _log_density(self.family, self.lower, x)
        return np.asarray(expit(odds + math.log(self.share) - math.log1p(-self.share)))


def _log_density(family: str, part: tuple[float, float], x: Floats) -> Floats:
    """The log-density of one component at scaled scores."""
    if family == "normal":
        mean, spread = part
        return np.asarray(-0.5 * ((x - mean) / spread) ** 2 - math.log(spread) - 0.5 * math.log(2 * math.pi))
    a, b = part
    normaliser = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return np.asarray((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - normaliser)


@final
@public
class Mixture:
    """The posterior probability that a score belongs to the higher of two components, the false negatives.

    With x the scaled score, `update` fits p(x) = (1 - share) p_true(x) + share p_false(x) by expectation-maximisation:

        suspicion = share p_false(x) / p(x),     1/2 where both components are equally likely

    The wider component wins in *both* tails, so the plain posterior may call the easiest negatives false. `monotone`
    keeps the suspicion constant outside `components.increasing_range`. The fit always finds two components: if
    `components.gain` is below 0, one fits as well.

    Xia, Wu, Wang, Chen, Li. ProGCL: Rethinking Hard Negative Mining in Graph Contrastive Learning. ICML 2022. From the
    published code: the start Beta(1, 2) and Beta(2, 1) with f = 0.05, 10 iterations, and weights divided by their row
    mean. That code raises b of the higher component to 1.01 where it falls below 1, which is not done here.

    Args:
        family: "beta", the paper's, or "normal".
        bounds: (low, high) of the scores, which are scaled to 0 ... 1 by them: (-1, 1) for cosines, as in the published
            code. None: the smallest and largest of the scores that it is fitted to.
        false_share: f, the share of false negatives that the fit starts from.
        iterations: The largest number of iterations.
        tolerance: The fit stops where an iteration changes the mean log-likelihood by at most this.
        monotone: Whether to keep suspicion from falling as the score rises. False: the plain posterior of the paper.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> rng = ns.rng_for(0)
        >>> scores = np.concatenate([rng.normal(0.0, 0.1, 900), rng.normal(0.7, 0.1, 100)])
        >>> detector = Mixture(bounds=(-1, 1), iterations=100)
        >>> detector.update(scores)
        >>> round(detector.components.share, 2), detector.components.gain > 0
        (0.1, True)
        >>> negatives = ns.Negatives(np.array([[4, 7, 9, -1]]), scores=np.array([[-0.1, 0.3, 0.6, 0.0]]))
        >>> detector.suspicion(ns.Query([0]), negatives).round(2)
        array([[0.  , 0.05, 1.  , 0.  ]])
    """

    def __init__(
        self,
        family: str = "beta",
        *,
        bounds: tuple[float, float] | None = None,
        false_share: float = 0.05,
        iterations: int = 10,
        tolerance: float = 1e-6,
        monotone: bool = True,
    ) -> None:
        check_one_of("family", family, FAMILIES)
        self.family, self.monotone = family, check_bool("monotone", monotone)
        self.bounds = None if bounds is None else check_bounds(bounds)
        self.false_share = check_number("false_share", false_share, above=0, below=1)
        self.iterations = check_whole("iterations", iterations, 1)
        self.tolerance = check_number("tolerance", tolerance, above=0, finite=True)
        self.components: TwoComponentMixture | None = None

    def update(self, scores: Any, *, mask: Any = None) -> None:
        """Fit both components.

        Args:
            scores: At least 10 scores of candidates, of any shape, NumPy or torch.
            mask: Which scores to use, of the same shape. None: all.
        """
        given, counted = masked_scores("scores", scores, mask)
        values = given[counted]
        if len(values) < MIN_SCORES:
            raise_invalid("scores", f"at least {MIN_SCORES}", len(values), "Use those of more anchors.")
        smallest, largest = float(values.min()), float(values.max())
        if smallest == largest:
            raise_invalid("scores", "of more than one value", f"{len(values)} of {smallest}")
        low, high = self.bounds or (smallest, largest)
        slack = _SLACK * (high - low)
        inside = ((given >= low - slack) & (given <= high + slack)) | ~counted
        check_all("scores", given, inside, f"within the bounds ({low:g}, {high:g})")
        self.components = _fit(values, self.family, (low, high), self.false_share, self.iterations, self.tolerance)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) the posterior probability that each slot is a false negative."""
        check_scored(query, negatives)
        components = self._fitted()
        return as_suspicion(components.posterior(slot_scores(negatives), monotone=self.monotone), negatives)

    def weights(self, scores: Any, *, mask: Any = None) -> Array:
        """Return (B, K) ProGCL's weights of negatives: w = (1 - posterior) x, divided by the mean of its row.

        x is the scaled score, clipped to 0 ... 1. A row in which all are certainly false gets zeros.

        Args:
            scores: (B, K) scores of the negatives.
            mask: (B, K) which slots count, e.g. `Negatives.mask`; the others get 0. None: all.
        """
        components = self._fitted()
        values, counted = masked_scores("scores", scores, mask, 2)
        values = np.where(counted, values, components.low)
        weights = np.clip(components.scaled(values), 0.0, 1.0)
        weights *= 1 - components.posterior(values, monotone=self.monotone)
        weights = np.where(counted, weights, 0.0)
        mean = weights.sum(axis=1, keepdims=True) / np.maximum(counted.sum(axis=1, keepdims=True), 1)
        return like(weights / np.where(mean > 0, mean, 1.0), scores)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return the fitted numbers, the family as 0 for beta and 1 for normal; empty before `update`."""
        if self.components is None:
            return {}
        numbers = asdict(self.components)
        arrays = {name: np.array(numbers[name]) for name in ("lower", "higher")}
        return {**numbers, **arrays, "family": FAMILIES.index(self.family)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Nothing changes if it is of another family or invalid."""
        if isinstance(state, Mapping) and not state:
            self.components = None
            return
        given = {name: part.tolist() for name, part in read_state(state, _STATE).items()}
        if given["family"] != FAMILIES.index(self.family):
            advice = f"0 is {FAMILIES[0]} and 1 {FAMILIES[1]}: create a Mixture of that family."
            raise_invalid("family", f"{FAMILIES.index(self.family)}, for {self.family}", given["family"], advice)
        given |= {"family": self.family, "converged": bool(given["converged"])}
        given |= {name: tuple(given[name]) for name in ("lower", "higher")}
        self.components = TwoComponentMixture(**given)

    def _fitted(self) -> TwoComponentMixture:
        if self.components is None:
            raise_invalid("scores", "fitted before", "no update", "Call update(scores) with scores of candidates.")
        return self.components

    def __repr__(self) -> str:
        return described(self, "not fitted" if self.components is None else f"share={self.components.share:.3g}")


def _fit(
    scores: Floats,
    family: str,
    bounds: tuple[float, float],
    false_share: float,
    iterations: int,
    tolerance: float,
) -> TwoComponentMixture:
    """Fit the two components to (n,) finite scores in at least one iteration of O(n).

    It starts from the posterior x f / (x f + (1 - x)(1 - f)) of the higher component, f = `false_share`, which is that
    of Beta(1, 2) against Beta(2, 1). An iteration computes share, mean and variance of both components from the
    posterior, and then the posterior from them: the method of moments for beta, maximum likelihood for normal.
    """
    (low, high), n = bounds, len(scores)
    x = (scores - low) / (high - low)
    inside = np.clip(x, _EDGE, 1 - _EDGE)
    if family == "beta":
        x = inside
    chance = inside * false_share / (inside * false_share + (1 - inside) * (1 - false_share))
    only = _component(family, x, np.ones(n))
    likelihood_of_one = float(_log_density(family, only, x).mean())
    likelihood, converged = -math.inf, False
    for _ in range(iterations):
        share = float(chance.mean())
        lower = _component(family, x, 1 - chance)
        higher = _component(family, x, chance)
        first = math.log1p(-share) + _log_density(family, lower, x)
        second = math.log(share) + _log_density(family, higher, x)
        both = np.logaddexp(first, second)
        chance = np.exp(second - both)
        before, likelihood = likelihood, float(both.mean())
        converged = abs(likelihood - before) <= tolerance
        if converged:
            break
    if _mean_of(family, lower) > _mean_of(family, higher):
        lower, higher, share = higher, lower, 1 - share
    flat = min(lower, higher, key=sum)
    if family == "beta" and sum(flat) < _POLES:
        got = f"a component Beta({flat[0]:.2g}, {flat[1]:.2g}) with all its mass at the two bounds"
        raise_invalid("scores", "of two components", got, "Pass wider `bounds`.")
    gain = 2 * n * (likelihood - likelihood_of_one) - 3 * math.log(n)
    return TwoComponentMixture(family, low, high, share, lower, higher, gain, converged)


def _component(family: str, x: Floats, weights: Floats) -> tuple[float, float]:
    """The component with the weighted mean and variance. Raises if it holds less than one score, or one value."""
    total = float(weights.sum())
    if total < 1:
        raise_invalid("scores", "of two components", "a component of less than one score", "Use another detector.")
    mean = float(weights @ x) / total
    variance = float(weights @ (x - mean) ** 2) / total
    if variance < _EDGE**2:
        advice = "Leave out scores that all have one value."
        got = f"one component at {mean:.3g} of the range alone"
        raise_invalid("scores", "of two components with a variance", got, advice)
    if family == "normal":
        return mean, math.sqrt(variance)
    size = mean * (1 - mean) / variance - 1  # a + b; above 0, because no variance within (0, 1) reaches mean (1 - mean)
    return mean * size, (1 - mean) * size


def _mean_of(family: str, part: tuple[float, float]) -> float:
    """The mean of a component, scaled."""
    return part[0] if family == "normal" else part[0] / (part[0] + part[1])
