"""A share that was estimated without knowing the truth, with its assumptions, and confidence intervals of shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, public
from naysay.quantity.separation import Floats

CONFIDENCE = 0.95


@final
@public
@dataclass(frozen=True, slots=True)
class Share:
    """An estimated share, its confidence interval, and what it assumes.

    Args:
        what: What the share is of, in words.
        estimate: The share, from 0 to 1.
        low: The lower end of the interval, which contains the true share with this confidence if the assumptions hold.
        high: The upper end of the interval.
        confidence: The confidence of the interval.
        n: The number of independent observations.
        assumptions: One sentence for each assumption.
        notes: One sentence for each limitation.
        bound: Whether only the upper bound `high` is claimed. `estimate` is then the bound without sampling error.

    Examples:
        >>> print(Share("false negatives", 0.02, 0.01, 0.04, 0.95, 300, ("the judge is right",)))
        false negatives: 2.0 % (95% CI 1.0 to 4.0, n = 300)
        assumes: the judge is right
    """

    what: str
    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    bound: bool = False

    def __str__(self) -> str:
        """The share and its interval, then the assumptions and notes, one a line."""
        level, n = f"{self.confidence:.0%}", f"n = {self.n:,}"
        if self.bound:
            estimate = f"{_percent(self.estimate)} % without sampling error"
            lines = [f"{self.what}: at most {_percent(self.high)} % ({level} confidence, {n}; {estimate})"]
        else:
            interval = f"{level} CI {_percent(self.low)} to {_percent(self.high)}, {n}"
            lines = [f"{self.what}: {_percent(self.estimate)} % ({interval})"]
        lines += [f"assumes: {sentence}" for sentence in self.assumptions]
        return "\n".join(lines + [f"note: {sentence}" for sentence in self.notes])


def _percent(share: float) -> str:
    """Per cent with two significant digits or one decimal: 12.3, 1.2, 0.012."""
    return f"{100 * share:.1f}" if share >= 0.01 or share == 0 else f"{100 * share:.2g}"


def check_confidence(confidence: Any) -> float:
    """A number between 0 and 1, both excluded."""
    return check_number("confidence", confidence, above=0, below=1)


def least_share(hits: float, n: float, error: float) -> float:
    """The lower bound of Clopper and Pearson: above the true share with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, n - hits + 1, error)) if hits > 0 else 0.0


def most_share(hits: float, n: float, error: float) -> float:
    """The upper bound of Clopper and Pearson: below the true share with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, n - hits, 1 - error)) if hits < n else 1.0


def exact_interval(hits: float, n: float, confidence: float) -> tuple[float, float]:
    """(low, high) of a share by `hits` of n independent trials. Coverage is at least `confidence` for every n.

    Clopper and Pearson. The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial. 1934.
    """
    error = (1 - confidence) / 2
    return least_share(hits, n, error), most_share(hits, n, error)


def moments(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """(..., 6) sums over anchors, of which `part` of `whole` (..., B) slots are hits. Sums of batches add up.

    They are the number of rows with slots, then the sums of whole, part, whole^2, whole part and part^2.
    """
    p, w = part.astype(np.float64), whole.astype(np.float64)
    return np.stack([(w > 0).sum(-1), w.sum(-1), p.sum(-1), (w * w).sum(-1), (w * p).sum(-1), (p * p).sum(-1)], axis=-1)


def effective_size(sums: Floats, slots: float, error: float, *, representative_anchors: bool = True) -> float:
    """The number of independent observations that the share sum(part) / sum(whole) of these `moments` is worth.

    Slots of one anchor tend to be hit or missed together, so B anchors with K slots are worth less than B K
    observations. The linearised variance of the share R over n anchors is
    n / (n - 1) sum (part - R whole)^2 / (sum whole)^2. The size is R (1 - R) over it, at most one observation for each
    of the `slots`, and at least (sum whole)^2 / sum whole^2, where all slots of an anchor agree. Few anchors estimate
    their variance badly, so the size is multiplied by (z / t)^2, the quantiles of Normal and Student at a tail of
    `error`. One anchor is worth 0.

    This takes the spread of the anchors at hand for the spread of all. If one anchor in a hundred is unlike the
    others, a hundred anchors may hold none of its kind, and the interval is too short. representative_anchors=False
    treats each anchor as one observation (conservative), (sum whole)^2 / sum whole^2 in all: no distribution of shares
    from 0 to 1 spreads more than hit or miss. That holds for anchors of one weight; where weights differ, a heavy one
    may be missing too.

    Korn and Graubard. Confidence Intervals for Proportions with Small Expected Number of Positive Counts. 1998.
    """
    from scipy.special import ndtri, stdtrit

    rows, whole, part, squares, products, parts = sums.tolist()
    if not representative_anchors:
        return whole * whole / squares if rows else 0.0
    if rows < 2:
        return 0.0
    share = part / whole
    spread = max(parts - 2 * share * products + share * share * squares, 0.0) * rows / (rows - 1)
    fewest = whole * whole / squares
    size = share * (1 - share) * whole * whole / spread if spread > 0 else slots if 0 < share < 1 else fewest
    return float(np.clip(size, fewest, max(slots, fewest)) * (ndtri(error) / stdtrit(rows - 1, error)) ** 2)
