"""TieWalks: items of people that a walk over social ties reaches."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_kind, check_number, public, raise_invalid
from naysay.pools._edge_steps import EdgeSteps, edge_steps, first_allowed
from naysay.pools._slots import anchors_of, check_count, check_settings, shown_settings, slot_counts
from naysay.pools.khop import positive_rows
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.types import Negatives, Query


@final
@public
class TieWalks:
    """Draw an item of a user whom a walk over ties reaches: something the anchor has probably seen, and did not take.

    A walk begins at the anchor and stops at each user with probability `stop`; else it steps to a friend, by the
    weights of ties, or from one without ties to any user. After `depth` steps it stops at any user. Then one item of
    that user is drawn uniformly; a user without items gives none. With c = 1 - stop and the steps Phi, it stops at a
    user with probability (1 - c) sum over t < depth of (c Phi)^t + c^depth / n: `chances` computes it. What is known of
    the anchor is rejected, and log_q is None.

    Chen et al. SamWalker: Social Recommendation with Informative Sampling Strategy. WWW 2019. It draws training pairs
    with label 0 and 1 in this way, where known items come back as positives; here they are excluded. It also learns
    the weights of ties by back-propagation: pass those of your model. `consumption_ties` makes ties from shared items,
    as SamWalker++ (Wang et al. TKDE 2021) does where there are no social ones.

    Cost: `depth` + 1 binary searches per walk; 8 bytes per tie.

    Args:
        ties: A square Positives of users, followed from anchor to item; as from `Positives.from_edges`.
        consumed: A Positives of users and items. It is also what is excluded.
        weights: (ties,) at least 0, by anchor, then by friend; None: all equal.
        stop: The probability to stop at a user, above 0 and at most 1.
        depth: The longest walk.
        walks: The maximum number of walks per row.
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" or "raise".

    Examples:
        >>> import naysay as ns
        >>> ties = ns.Positives.from_edges([0], [1])
        >>> pool = TieWalks(ties, ns.Positives.from_pairs([0, 1], [0, 1], 2, 2))
        >>> pool.chances([0]).round(6).tolist()
        [[0.541855, 0.458145]]
        >>> pool.draw(ns.Query([0]), 1, rng=ns.rng_for(0)).ids.tolist()
        [[1]]
    """

    def __init__(
        self,
        ties: Positives,
        consumed: Positives,
        weights: ArrayLike | None = None,
        *,
        stop: float = 0.1,
        depth: int = 5,
        walks: int = 1000,
        distinct: bool = True,
        on_short: str = "pad",
    ) -> None:
        """Cumulate the weights: O(ties)."""
        for name, given in (("ties", ties), ("consumed", consumed)):
            check_kind(name, given, Positives, "a Positives")
        if ties.n_anchors != ties.n_items or ties.n_anchors != consumed.n_anchors:
            sizes = f"{ties.n_anchors} x {ties.n_items}"
            raise_invalid("ties", f"square, of the {consumed.n_anchors} users of consumed", sizes)
        self.stop = check_number("stop", stop, above=0, at_most=1)
        self.depth, self.walks = check_count("depth", depth), check_count("walks", walks)
        self.distinct, self.on_short = check_settings(distinct, on_short)
        self.ties, self.positives = ties, consumed
        self._steps = edge_steps(positive_rows(ties), weights)
        self._items: EdgeSteps = edge_steps(positive_rows(consumed), None)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) negatives for the query's anchors; n is a number, or (B,) numbers."""
        anchors = anchors_of(query, self.positives.n_anchors)
        counts, width = slot_counts(n, len(anchors))

        def propose(made: np.random.Generator, many: int) -> NDArray[np.int64]:
            return self._items.next(self._users(anchors, many, made), made.random((len(anchors), many)))

        return first_allowed(
            propose,
            lambda ids: self.positives.contains(anchors, ids, relation="any"),
            counts,
            width,
            key=key_from(rng),
            walks=self.walks,
            distinct=self.distinct,
            on_short=self.on_short,
        )

    def _users(self, anchors: NDArray[np.int64], many: int, made: np.random.Generator) -> NDArray[np.int64]:
        """(B, many) where walks stop."""
        n = self.positives.n_anchors
        users = np.repeat(anchors[:, None], many, axis=1)
        walking = np.ones(users.shape, bool)
        for _ in range(self.depth):
            walking &= made.random(users.shape) >= self.stop
            after = self._steps.next(users, made.random(users.shape))
            anyone = made.integers(0, max(n, 1), users.shape)
            users = np.where(walking, np.where(after < 0, anyone, after), users)
        return np.where(walking, made.integers(0, max(n, 1), users.shape), users)

    def chances(self, anchors: ArrayLike) -> NDArray[np.float64]:
        """(B, n_users) the exact probability that a walk stops at each user. For small worlds: O(n_users^2) memory."""
        start = anchors_of(Query(to_numpy(anchors)), self.positives.n_anchors)
        step = self._steps.matrix()
        step[step.sum(axis=1) == 0] = 1.0 / len(step)
        still, total = np.eye(len(step))[start], np.zeros((len(start), len(step)))
        for _ in range(self.depth):
            total += self.stop * still
            still = (1 - self.stop) * still @ step
        return np.asarray(total + still.sum(axis=1, keepdims=True) / len(step))

    def __repr__(self) -> str:
        """The settings."""
        settings = {"stop": self.stop, "depth": self.depth, "walks": self.walks}
        return shown_settings(self, self.ties, self.positives, **settings)


@public
def consumption_ties(consumed: Positives) -> tuple[Positives, NDArray[np.float64]]:
    """Ties between users who share an item, and their weights: how a step user -> item -> user goes.

    The weight of (u, v) is sum over shared items i of 1 / (|I_u| |U_i|), both uniform; oneself is left out. SamWalker++
    learns a weight for each interaction, and adds steps over latent communities; neither is here.

    Wang et al. SamWalker++: Recommendation with Informative Sampling Strategy. TKDE 2021.

    Args:
        consumed: A Positives of users and items; ignored pairs are left out.

    Returns:
        The ties, and (ties,) their weights, for `TieWalks`. Cost: the sum of squared item counts.

    Examples:
        >>> import naysay as ns
        >>> ties, weights = consumption_ties(ns.Positives.from_pairs([0, 1, 1, 2], [0, 0, 1, 1], 3, 2))
        >>> [part.tolist() for part in ties.pairs()], weights.tolist()
        ([[0, 1, 1, 2], [1, 0, 2, 1]], [0.5, 0.25, 0.25, 0.5])
    """
    check_kind("consumed", consumed, Positives, "a Positives")
    rows = positive_rows(consumed)
    users, items = np.repeat(np.arange(consumed.n_anchors), np.diff(rows.indptr)), rows.indices.astype(np.int64)
    order = np.argsort(items, kind="stable")
    users, items = users[order], items[order]
    counts = np.bincount(items, minlength=consumed.n_items)
    first = np.repeat(np.cumsum(counts) - counts, counts)  # where the users of an interaction's item begin
    many = counts[items]
    left = np.repeat(np.arange(len(users)), many)
    right = np.repeat(first, many) + np.arange(len(left)) - np.repeat(np.cumsum(many) - many, many)
    other = users[left] != users[right]
    left, right = left[other], right[other]
    pairs = users[left] * consumed.n_anchors + users[right]
    chance = 1.0 / (consumed.count(users[left]) * counts[items[left]])
    unique, place = np.unique(pairs, return_inverse=True)
    n = consumed.n_anchors
    weights = np.bincount(place, chance, len(unique)).astype(np.float64)
    return Positives.from_pairs(unique // n, unique % n, n, n), weights
