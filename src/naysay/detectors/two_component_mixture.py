"""A mixture of two components on scores, fitted by expectation-maximisation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.checks import public, raise_invalid

Floats = NDArray[np.float64]
FAMILIES = ("beta", "normal")
MIN_SCORES = 10  # twice the five numbers that are fitted
_STATE = {
    "family": Entry(whole=True),
    "iterations": Entry(whole=True),
    "converged": Entry(whole=True),
    "low": Entry(),
    "high": Entry(),
    "share": Entry(),
    "log_likelihood": Entry(),
    "gain": Entry(),
    "lower": Entry((2,)),
    "higher": Entry((2,)),
}
_POLES = 0.1  # a beta density with a smaller a + b has all its mass at 0 and 1
_MAX_BETA = 1e12  # a component that narrow has the smallest variance that a fit can have
_EDGE = 1e-6  # scaled scores keep this distance from 0 and 1, where a beta density may be 0 or infinite


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
        log_likelihood: The mean log-density of a scaled score.
        gain: The difference in BIC from one component: twice the gain in log-likelihood, less 3 log n for three more
            numbers. Below 0, the scores do not show two components.
        iterations: How many iterations were run.
        converged: Whether the last iteration changed the mean log-likelihood by at most the tolerance.
    """

    family: str
    low: float
    high: float
    share: float
    lower: tuple[float, float]
    higher: tuple[float, float]
    log_likelihood: float
    gain: float
    iterations: int
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
        """Return the probability that a score belongs to the higher component.

        Args:
            scores: Scores of any shape.
            monotone: Whether to keep it constant outside `increasing_range`.
        """
        from scipy.special import expit

        if monotone:
            scores = np.clip(scores, *self.increasing_range)
        x = self.scaled(scores)
        odds = log_density(self.family, self.higher, x) - log_density(self.family, self.lower, x)
        return np.asarray(expit(odds + math.log(self.share) - math.log1p(-self.share)))


def log_density(family: str, part: tuple[float, float], x: Floats) -> Floats:
    """The log-density of one component at scaled scores."""
    if family == "normal":
        mean, spread = part
        return np.asarray(-0.5 * ((x - mean) / spread) ** 2 - math.log(spread) - 0.5 * math.log(2 * math.pi))
    a, b = part
    normaliser = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return np.asarray((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - normaliser)


def fit_two_components(
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
    posterior, and then the posterior from them.
    """
    (low, high), n = bounds, len(scores)
    x = (scores - low) / (high - low)
    inside = np.clip(x, _EDGE, 1 - _EDGE)
    if family == "beta":
        x = inside
    chance = inside * false_share / (inside * false_share + (1 - inside) * (1 - false_share))
    one = _component(family, x, np.ones(n))
    alone = float(log_density(family, one, x).mean())
    run, likelihood, converged = 0, -math.inf, False
    while run < iterations and not converged:
        share = float(chance.mean())
        lower, higher = _component(family, x, 1 - chance), _component(family, x, chance)
        first = math.log1p(-share) + log_density(family, lower, x)
        second = math.log(share) + log_density(family, higher, x)
        both = np.logaddexp(first, second)
        chance = np.exp(second - both)
        run, before, likelihood = run + 1, likelihood, float(both.mean())
        converged = abs(likelihood - before) <= tolerance
    if mean_of(family, lower) > mean_of(family, higher):
        lower, higher, share = higher, lower, 1 - share
    flat = min(lower, higher, key=sum)
    if family == "beta" and sum(flat) < _POLES:
        got = f"a component Beta({flat[0]:.2g}, {flat[1]:.2g}) with all its mass at the two bounds"
        raise_invalid("scores", "of two components", got, "Pass wider `bounds`.")
    gain = 2 * n * (likelihood - alone) - 3 * math.log(n)
    return TwoComponentMixture(family, low, high, share, lower, higher, likelihood, gain, run, converged)


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


def mean_of(family: str, part: tuple[float, float]) -> float:
    """The mean of a component, scaled."""
    return part[0] if family == "normal" else part[0] / (part[0] + part[1])


def as_state(mixture: TwoComponentMixture | None) -> dict[str, Any]:
    """The numbers of a mixture, its family as an index of FAMILIES; empty for None."""
    if mixture is None:
        return {}
    state = {name: getattr(mixture, name) for name in _STATE}
    pairs = {name: np.array(state[name]) for name in ("lower", "higher")}
    return {**state, **pairs, "family": FAMILIES.index(mixture.family)}


def from_state(state: Mapping[str, Any], family: str) -> TwoComponentMixture | None:
    """The mixture from its state. Raises if it is of another family, or invalid."""
    if isinstance(state, Mapping) and not state:
        return None
    given = {name: part.tolist() for name, part in read_state(state, _STATE).items()}
    own = FAMILIES.index(family)
    if given["family"] != own:
        advice = f"0 is {FAMILIES[0]} and 1 {FAMILIES[1]}: create a Mixture of that family."
        raise_invalid("family", f"{own}, for {family}", given["family"], advice)
    if given["low"] >= given["high"]:
        raise_invalid("low", f"below high, {given['high']:g}", given["low"])
    for name in ("lower", "higher"):
        first, second = given[name] = tuple(given[name])
        good = 0 < first <= _MAX_BETA and 0 < second <= _MAX_BETA
        rule = f"numbers above 0 and at most {_MAX_BETA:g}"
        if family == "normal":
            good = abs(first) <= 2 and _EDGE <= second <= 2
            rule = f"a mean from -2 to 2 and a deviation from {_EDGE:g} to 2"
        if not good:
            raise_invalid(name, f"a component of {rule}", given[name])
    if mean_of(family, given["lower"]) > mean_of(family, given["higher"]):
        raise_invalid("lower", f"of a smaller mean than {given['higher']}", given["lower"])
    return TwoComponentMixture(**given | {"family": family, "converged": bool(given["converged"])})
