"""Two components behind one lot of scores, found by expectation and maximisation: the lower, and the higher."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, raise_invalid, shown
from naysay.detectors._part_states import plain, whole_of_state

Floats = NDArray[np.float64]
FAMILIES = ("beta", "normal")
LEAST = 10  # scores: five numbers are fitted, and as many are left to speak against them
_NUMBERS = ("low", "high", "share", "log_likelihood", "gain")
_STATE = ("family", "rounds", "converged", *_NUMBERS, "lower", "higher")
_POLES = 0.1  # a + b of a beta density that is all in its two poles, at 0 and at 1
_EDGE = 1e-6  # a beta density may be 0 or infinite at 0 and 1: scaled scores keep this far away


@final
@dataclass(frozen=True, slots=True)
class TwoComponentMixture:
    """A mixture of two components on scores, scaled by x = (score - low) / (high - low).

    Args:
        family: "beta": a component is (a, b); "normal": a component is (mean, standard deviation).
        share: Of the higher component.
        lower: The components; the higher has the larger mean.
        higher: The components; the higher has the larger mean.
        log_likelihood: Mean log-density of a scaled score.
        gain: Twice the log-likelihood above that of one component, less 3 log n for its three numbers more (the
            difference of BIC): below 0 the scores do not show two kinds.
        rounds: How many rounds were run.
        converged: Whether the last round changed the mean log-likelihood by no more than the tolerance.
    """

    family: str
    low: float
    high: float
    share: float
    lower: tuple[float, float]
    higher: tuple[float, float]
    log_likelihood: float
    gain: float
    rounds: int
    converged: bool

    def scaled(self, scores: Floats) -> Floats:
        """(score - low) / (high - low); for beta within [0, 1], a hair inside."""
        scaled = (scores - self.low) / (self.high - self.low)
        return np.clip(scaled, _EDGE, 1 - _EDGE) if self.family == "beta" else scaled

    @property
    def rising(self) -> tuple[float, float]:
        """The scores between which the odds of the higher component rise, with what is outside turned back.

        For beta the log-odds are c + (a1 - a0) log x + (b1 - b0) log(1 - x), for normal a parabola: at most one turn.
        (-inf, y): above y they fall again; (y, inf): below y they rise again; (-inf, inf): they rise throughout.
        """
        if self.family == "beta":
            first, second = self.higher[0] - self.lower[0], self.higher[1] - self.lower[1]
            if first * second <= 0:
                return -math.inf, math.inf
            place, rises_after = first / (first + second), first < 0
        else:
            (mean0, spread0), (mean1, spread1) = self.lower, self.higher
            bend = spread0**-2 - spread1**-2
            if bend == 0:
                return -math.inf, math.inf
            place, rises_after = (mean0 * spread0**-2 - mean1 * spread1**-2) / bend, bend > 0
        turn = self.low + place * (self.high - self.low)
        return (turn, math.inf) if rises_after else (-math.inf, turn)

    def posterior(self, scores: Floats, *, monotone: bool) -> Floats:
        """The chance that a score is of the higher component; `monotone` holds it level beyond its turn."""
        from scipy.special import expit

        if monotone:
            scores = np.clip(scores, *self.rising)
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


def fit_two_kinds(
    scores: Floats,
    family: str,
    bounds: tuple[float, float],
    false_share: float,
    rounds: int,
    tolerance: float,
) -> TwoComponentMixture:
    """Fit the two components to (n,) finite scores: O(n) a round.

    It begins with the chance x f / (x f + (1 - x)(1 - f)) of being of the higher one, f = `false_share`: that is what
    Beta(1, 2) against Beta(2, 1) says. A round takes share, mean and variance of both by those chances, and then the
    chances by them. `rounds` is at least 1.
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
    while run < rounds and not converged:
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
        got = f"a component Beta({flat[0]:.2g}, {flat[1]:.2g}) that is nothing but the two ends"
        raise_invalid("scores", "of two kinds", got, "Pass bounds beyond the scores.")
    gain = 2 * n * (likelihood - alone) - 3 * math.log(n)
    return TwoComponentMixture(family, low, high, share, lower, higher, likelihood, gain, run, converged)


def _component(family: str, x: Floats, weights: Floats) -> tuple[float, float]:
    """The component of the weighted mean and variance; refused if nothing, or a single value, is left of it."""
    total = float(weights.sum())
    if total < 1:
        raise_invalid("scores", "of two kinds", "a component of less than one score", "Use another detector.")
    mean = float(weights @ x) / total
    variance = float(weights @ (x - mean) ** 2) / total
    if variance < _EDGE**2:
        advice = "Leave out scores that are all one value."
        raise_invalid("scores", "of two kinds that spread", f"a component at {mean:.3g} of the range alone", advice)
    if family == "normal":
        return mean, math.sqrt(variance)
    size = mean * (1 - mean) / variance - 1  # a + b; above 0, because no variance within (0, 1) reaches mean (1 - mean)
    return mean * size, (1 - mean) * size


def mean_of(family: str, part: tuple[float, float]) -> float:
    """The mean of a component, scaled."""
    return part[0] if family == "normal" else part[0] / (part[0] + part[1])


def as_state(found: TwoComponentMixture | None) -> dict[str, Any]:
    """The numbers of a mixture, its family among them by its place in FAMILIES; of none, nothing."""
    if found is None:
        return {}
    numbers = {name: getattr(found, name) for name in ("rounds", "converged", *_NUMBERS)}
    parts = {"lower": np.array(found.lower), "higher": np.array(found.higher)}
    return {"family": FAMILIES.index(found.family), **numbers, **parts}


def from_state(state: Mapping[str, Any], family: str) -> TwoComponentMixture | None:
    """The mixture that `as_state` wrote down, refused if it is of another family, or not whole."""
    if not isinstance(state, Mapping):
        raise_invalid("state", "what state() gave", type(state).__name__)
    if not state:
        return None
    missing = [name for name in _STATE if name not in state]
    if missing:
        raise_invalid("state", "what state() gave", f"no {missing[0]!r} in {shown(list(state))}")
    place, rounds = (whole_of_state(name, state[name], least) for name, least in (("family", 0), ("rounds", 1)))
    if place != FAMILIES.index(family):
        rule = f"{FAMILIES.index(family)}, for {family}"
        raise_invalid("family", rule, place, f"0 is {FAMILIES[0]} and 1 {FAMILIES[1]}: make a Mixture of that family.")
    converged = plain(state["converged"])
    if not isinstance(converged, bool):
        raise_invalid("converged", "True or False", shown(state["converged"]))
    low, high, share, likelihood, gain = (_numbers(name, state[name], ()).item() for name in _NUMBERS)
    lower, higher = (_pair(name, state[name], family) for name in ("lower", "higher"))
    if not low < high:
        raise_invalid("low", f"below high ({high:g})", low)
    if not 0 < share < 1:
        raise_invalid("share", "above 0 and below 1", share)
    if mean_of(family, lower) > mean_of(family, higher):
        raise_invalid("lower", f"of a smaller mean than {higher}", lower)
    return TwoComponentMixture(family, low, high, share, lower, higher, likelihood, gain, rounds, converged)


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    array = as_array(name, to_numpy(value))
    if array.shape != shape or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise_invalid(name, "two finite numbers" if shape else "a finite number", shown(value))
    return array.astype(np.float64)


def _pair(name: str, value: Any, family: str) -> tuple[float, float]:
    first, second = _numbers(name, value, (2,)).tolist()
    if second <= 0 or (family == "beta" and first <= 0):
        raise_invalid(name, "a component of numbers above 0", (first, second))
    return first, second
