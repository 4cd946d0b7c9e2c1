"""Mixture: a two-component mixture fitted to scores, whose higher component is that of the false negatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from naysay.arrays import for_checkpoints
from naysay.checks import check_all, check_bool, check_number, check_one_of, check_whole, public, raise_invalid
from naysay.detectors._slots import (
    as_scores,
    as_suspicion,
    check_bounds,
    check_query_and_negatives,
    like,
    masked_scores,
    slot_scores,
)
from naysay.detectors.two_component_mixture import (
    FAMILIES,
    MIN_SCORES,
    TwoComponentMixture,
    as_state,
    fit_two_components,
    from_state,
)
from naysay.text import described
from naysay.types import Array, Negatives, Query

_SLACK = 1e-4  # of the bounds' width: scores may be this far outside, as rounded cosines are


@final
@public
class Mixture:
    """The posterior probability that a score belongs to the higher of two components, the false negatives.

    With x the scaled score, `update` fits p(x) = (1 - share) p_true(x) + share p_false(x) by expectation-maximisation:

        suspicion = share p_false(x) / p(x),     1/2 where both components are equally likely

    An iteration takes the weighted mean m and variance v of each component; for beta a = m (m (1 - m) / v - 1),
    b = (1 - m) (m (1 - m) / v - 1), the method of moments; for normal it is maximum likelihood. The fit is
    deterministic, and always finds two components: if `components.gain` is below 0, one fits as well.

    The wider component wins in *both* tails, so the plain posterior may call the easiest negatives false. `monotone`
    keeps the suspicion constant outside `components.increasing_range`.

    `weights` are the paper's: the probability of a true negative times its hardness. Cost: O(n) per iteration for n
    scores, O(1) per slot; the state is a dozen numbers.

    Xia, Wu, Wang, Chen, Li. ProGCL: Rethinking Hard Negative Mining in Graph Contrastive Learning. ICML 2022: message
    passing makes nodes of one class similar, so most hard negatives of a graph are false. From the published code:
    the start Beta(1, 2) and Beta(2, 1) with f = 0.05, 10 iterations, one fit late in training, weights divided by their
    row mean. That code raises b of the higher component to 1.01 where it falls below 1, which is not done here. Of the
    paper itself only the abstract was read.

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
        self.components = fit_two_components(
            values, self.family, (low, high), self.false_share, self.iterations, self.tolerance
        )

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) the posterior probability that each slot is a false negative."""
        check_query_and_negatives(query, negatives)
        components = self._fitted()
        return as_suspicion(components.posterior(slot_scores(negatives), monotone=self.monotone), negatives)

    def posterior(self, scores: Any) -> Array:
        """Return the posterior probability of a false negative for scores of any shape, in their array type."""
        components, values = self._fitted(), np.atleast_1d(as_scores("scores", scores))
        return like(components.posterior(values, monotone=self.monotone), scores)

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
        return as_state(self.components)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Nothing changes if it is of another family or invalid."""
        self.components = from_state(state, self.family)

    def _fitted(self) -> TwoComponentMixture:
        if self.components is None:
            raise_invalid("scores", "fitted before", "no update", "Call update(scores) with scores of candidates.")
        return self.components

    def __repr__(self) -> str:
        return described(self, "not fitted" if self.components is None else f"share={self.components.share:.3g}")
