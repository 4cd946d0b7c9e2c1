"""Mixture: scores come from true negatives and from false ones, and two fitted components say which is likelier."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import as_array, check_one_of, check_whole, first_bad, public, raise_invalid, shown
from naysay.detectors._score_blocks import first_slot
from naysay.detectors._slots import as_suspicion, check_asked, slot_scores
from naysay.detectors.two_component_mixture import (
    FAMILIES,
    LEAST,
    TwoComponentMixture,
    as_state,
    fit_two_kinds,
    from_state,
)
from naysay.types import Array, Negatives, Query

_SLACK = 1e-4  # of the bounds' width: by so much may a score be outside, as a rounded cosine is


@final
@public
class Mixture:
    """The chance that a score is of the higher of two components: that of the false negatives.

    With x the scaled score, `update` fits p(x) = (1 - share) p_true(x) + share p_false(x), and

        suspicion = share p_false(x) / p(x),     1/2 where one kind is as likely as the other

    A round weights each score by its chances, and takes for each component the weighted mean m and variance v; for
    beta a = m (m (1 - m) / v - 1), b = (1 - m) (m (1 - m) / v - 1). For normal that is the likeliest component, and
    the likelihood never falls; for beta it is the method of moments, which does not promise that. What it does keep,
    in every round: the mixture has the mean and the variance of the scores. The fit draws nothing.

    **It may turn.** A component that is wide wins in *both* tails: where the false negatives are the wider kind, as
    they often are, the plain posterior calls the easiest negatives false. It turns at most once; `found.rising` says
    where, in closed form, and `monotone` holds the suspicion level beyond.

    **It always finds two.** `found.gain` below 0 says that one component does as well: suspicion means nothing then.
    And two kinds of scores need not be true and false negatives: near and far clusters look the same. The scores may be
    a sample, e.g. every anchor with a hundred others; fit anew when the encoder has moved.

    `weights` are the paper's: the chance of a true negative times how hard it is. Cost: O(n) a round for n scores, O(1)
    a slot; the state is a dozen numbers.

    Xia, Wu, Wang, Chen, Li. ProGCL: Rethinking Hard Negative Mining in Graph Contrastive Learning. ICML 2022: message
    passing makes nodes of one class alike, so that most hard negatives of a graph are false. From the published code:
    the start Beta(1, 2) and Beta(2, 1) with f = 0.05, 10 rounds, the fit once, late in training, the weights by their
    row mean; it raises b of the higher component to 1.01 where it falls below 1, which is not done here. The paper
    itself was read as far as its abstract.

    Args:
        family: "beta", the paper's, or "normal".
        bounds: (low, high) of the scores, scaled to 0 ... 1 by them: (-1, 1) for cosines, as in the published code;
            None: the least and the largest of the scores that it is fitted to.
        false_share: F, the share of false negatives that the fit begins with.
        rounds: How many rounds of expectation and maximisation at most.
        tolerance: It stops where a round changes the mean log-likelihood by no more.
        monotone: Whether suspicion may not fall as the score rises; False: the plain posterior, as in the paper.

    Example:
        >>> import numpy as np, naysay as ns
        >>> rng = ns.rng_for(0)
        >>> scores = np.concatenate([rng.normal(0.0, 0.1, 900), rng.normal(0.7, 0.1, 100)])
        >>> detector = Mixture(bounds=(-1, 1), rounds=100)
        >>> detector.update(scores)
        >>> round(detector.found.share, 2), detector.found.gain > 0
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
        rounds: int = 10,
        tolerance: float = 1e-6,
        monotone: bool = True,
    ) -> None:
        """Nothing is fitted yet."""
        check_one_of("family", family, FAMILIES)
        if bounds is not None:
            if not isinstance(bounds, tuple | list) or len(bounds) != 2 or not all(map(_is_number, bounds)):
                raise_invalid("bounds", "a pair (low, high) of numbers", shown(bounds))
            if not -math.inf < bounds[0] < bounds[1] < math.inf:
                raise_invalid("bounds", "a finite low below high", shown(bounds))
        for name, value, limit in (("false_share", false_share, 1.0), ("tolerance", tolerance, math.inf)):
            if not _is_number(value) or not 0 < value < limit:
                raise_invalid(name, "above 0 and below 1" if limit == 1 else "above 0", shown(value))
        if not isinstance(monotone, bool | np.bool_):
            raise_invalid("monotone", "True or False", shown(monotone))
        self.family, self.monotone = family, bool(monotone)
        self.bounds = None if bounds is None else (float(bounds[0]), float(bounds[1]))
        self.false_share, self.tolerance = float(false_share), float(tolerance)
        self.rounds = check_whole("rounds", rounds, 1)
        self.found: TwoComponentMixture | None = None

    def update(self, scores: Any, *, mask: Any = None) -> None:
        """Fit both components to the scores of candidates, of any shape, NumPy or torch; `mask` says which count."""
        given = _scores(scores)
        counted = _mask(mask, given.shape)
        _check_none("finite", given, ~np.isfinite(given) & counted)
        values = given[counted]
        if len(values) < LEAST:
            raise_invalid("scores", f"at least {LEAST}", len(values), "Take those of more anchors.")
        least, most = float(values.min()), float(values.max())
        if least == most:
            raise_invalid("scores", "of more than one value", f"{len(values)} of {least}")
        low, high = self.bounds or (least, most)
        slack = _SLACK * (high - low)
        outside = ((given < low - slack) | (given > high + slack)) & counted
        _check_none(f"within the bounds ({low:g}, {high:g})", given, outside)
        self.found = fit_two_kinds(values, self.family, (low, high), self.false_share, self.rounds, self.tolerance)

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) the chance that each slot is a false negative, from its score."""
        check_asked(query, negatives)
        found = self._fitted()
        return as_suspicion(found.posterior(slot_scores(negatives), monotone=self.monotone), negatives)

    def posterior(self, scores: Any) -> Array:
        """The chance that each of some scores, of any shape, is of the false negatives; in their array type."""
        found, values = self._fitted(), _scores(scores)
        _check_none("finite", values, ~np.isfinite(values))
        return _like(found.posterior(values, monotone=self.monotone), scores)

    def weights(self, scores: Any, *, mask: Any = None) -> Array:
        """(B, K) ProGCL's weights of negatives: w = (1 - posterior) x, divided by the mean of its row.

        x is the scaled score, within 0 ... 1. `mask` (B, K), `Negatives.mask`, says which slots count: the others get
        0 and no say in the mean. A row in which all are surely false gets zeros.
        """
        found, values = self._fitted(), _scores(scores)
        if values.ndim != 2:
            raise_invalid("scores", "of shape (B, K)", f"shape {values.shape}")
        counted = _mask(mask, values.shape)
        _check_none("finite", values, ~np.isfinite(values) & counted)
        values = np.where(counted, values, found.low)
        hard = np.clip(found.scaled(values), 0.0, 1.0) * (1 - found.posterior(values, monotone=self.monotone))
        hard = np.where(counted, hard, 0.0)
        mean = hard.sum(axis=1, keepdims=True) / np.maximum(counted.sum(axis=1, keepdims=True), 1)
        return _like(hard / np.where(mean > 0, mean, 1.0), scores)

    def state(self) -> dict[str, Any]:
        """All that was fitted, the family as 0 for beta and 1 for normal; empty before `update`."""
        return as_state(self.found)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; refused, with nothing changed, if it is of another family or not whole."""
        self.found = from_state(state, self.family)

    def _fitted(self) -> TwoComponentMixture:
        if self.found is None:
            raise_invalid("scores", "fitted before", "no update", "Call update(scores) with scores of candidates.")
        return self.found

    def __repr__(self) -> str:
        """The family, and the share that it found."""
        return f"Mixture({self.family}, {'not fitted' if self.found is None else f'share={self.found.share:.3g}'})"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _scores(scores: Any) -> NDArray[np.float64]:
    values = as_array("scores", to_numpy(scores))
    if values.dtype.kind not in "iuf":
        raise_invalid("scores", "numbers", f"dtype {values.dtype}")
    return np.atleast_1d(values.astype(np.float64))


def _mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which scores count: all, or those that the mask says."""
    counted = np.ones(shape, np.bool_) if mask is None else as_array("mask", to_numpy(mask))
    if counted.dtype != np.bool_ or counted.shape != shape:
        raise_invalid("mask", f"True or False of shape {shape}", f"shape {counted.shape} {counted.dtype}")
    return counted


def _check_none(rule: str, values: NDArray[np.float64], bad: NDArray[np.bool_]) -> None:
    """Refuse scores of which any is bad; of (B, K) the row and the slot are named, else the place in all."""
    if bad.any():
        flat = values.ndim != 2
        got = first_bad(values.ravel(), bad.ravel()) if flat else first_slot(values, bad)
        raise_invalid("scores", rule, got)


def _like(values: NDArray[np.float64], given: Any) -> Array:
    return to_torch(values, given.device) if is_torch(given) else values
