"""Adaptive oversampling: items that rank high on a factor that is large for the anchor, without scoring any."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay import checks
from naysay._lock import Lock
from naysay.arrays import for_checkpoints, to_numpy, without_gradients
from naysay.checks import public
from naysay.pools._slots import ON_SHORT, anchors_of, shortfall
from naysay.positives import Positives
from naysay.rng import generator_of, key_from
from naysay.samplers._candidates import number_at, wanted_slots
from naysay.samplers._factor_ranks import FactorRanks, exact_items, ranks_below
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query, check_query

Embed = Callable[[Array], Array]  # embed(anchors (B,)) -> (B, d)
_ROUNDS = 8  # redraws of a slot that hit something known, before it is drawn exactly


@final
@public
class AdaptiveOversampling(MadeOf):
    """Draw a rank r and a factor f that is large for the anchor, and take the item of rank r on that factor.

    With v the anchor's vector and sigma_f the standard deviation of factor f over the items:

        p(f | a) = |v_f| sigma_f / sum,    p(j | a) = sum_f p(f | a) p(rank_f(j)) over what is not known of a

    where rank_f counts from the highest value of f if v_f > 0, and from the lowest if not. For an anchor of all zeros
    every factor is equally likely. Draws are independent. A known item is redrawn a few times, and then exactly from
    the formula, so work is bounded. log_q is None, because the sum over the known items is not computed.

    Ranks are those of the last `update`. The paper sorts again every n log n draws, so that a draw costs O(d) with the
    sorting included; `due` says when that is. `state` has the ranks: 4 bytes per item and factor.

    The ranking depends on the axes: rotated factors give other negatives for the same scores. Rendle and
    Freudenthaler. Improving Pairwise Learning for Item Recommendation from Implicit Feedback. WSDM 2014 (AOBPR).

    Args:
        positives: What is excluded, exactly: positives and ignored pairs.
        item_factors: (n_items, d) the items' current vectors, NumPy or torch; `update` sets later ones.
        embed: embed(anchors (B,)) -> (B, d), the anchors' current vectors, for a score that is the dot product.
        scale: lambda, above 0, in ranks: p(r) is proportional to exp(-r / lambda), r = 1 ... n. It may be a function
            of the step.
        on_short: "pad" or "raise", if every item is known of an anchor.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> items = np.arange(10.0)[:, None] * [1.0, -1.0]
        >>> known = ns.Positives.from_pairs([0, 1], [9, 0], n_items=10)
        >>> users = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> sampler = AdaptiveOversampling(known, items, lambda anchors: users[anchors], scale=0.1)
        >>> sampler.sample(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids
        array([[8, 8, 8],
               [1, 1, 1]])
    """

    distinct = False
    _made_of = ("embed",)

    def __init__(
        self, positives: Positives, item_factors: Any, embed: Embed, scale: Any, *, on_short: str = "pad"
    ) -> None:
        """Sort the items by each factor: O(d n log n)."""
        checks.check_kind("positives", positives, Positives, "a Positives")
        if not callable(embed):
            checks.raise_invalid("embed", "a function embed(anchors)", type(embed).__name__)
        checks.check_one_of("on_short", on_short, ON_SHORT)
        self.positives, self.embed, self.scale, self.on_short = positives, embed, scale, on_short
        self._scale(None)
        self._ranks = _ranked(item_factors, positives.n_items)
        self._draws = 0
        self._lock = Lock()

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives. Draws are independent, so an item may come twice."""
        check_query(query)
        anchors = anchors_of(query, self.positives.n_anchors)
        scale = self._scale(query.step)
        counts, width = wanted_slots(k, len(query), rng)
        ranks = self._ranks  # an update in another thread does not change those of this call
        vectors = self._vectors(query, len(ranks.spread))
        free = self.positives.n_items - self.positives.count(anchors, relation="any")
        ids = np.full((len(anchors), width), -1, np.int64)
        generator = generator_of(key_from(rng))
        rows, slots = np.nonzero((np.arange(width) < counts[:, None]) & (free > 0)[:, None])
        with self._lock:
            self._draws += len(rows)
        for _ in range(_ROUNDS):
            if not len(rows):
                break
            steps = ranks_below(self.positives.n_items, scale, generator.random(len(rows)))
            found = ranks.items(vectors, rows, steps, generator.random(len(rows)))
            known = self.positives.contains(anchors[rows], found, relation="any")
            ids[rows[~known], slots[~known]] = found[~known]
            rows, slots = rows[known], slots[known]
        if len(rows):
            chances = generator.random(len(rows))
            ids[rows, slots] = exact_items(ranks, self.positives, anchors, vectors, scale, rows, chances)
        dropped = shortfall(self.on_short, ids, counts)
        return Negatives(ids, dropped=dropped).like(query)

    def update(self, item_factors: Any) -> None:
        """Rank the items again by their current vectors (n_items, d): O(d n log n)."""
        ranks = _ranked(item_factors, self.positives.n_items)
        with self._lock:
            self._ranks, self._draws = ranks, 0

    @property
    def due(self) -> bool:
        """Whether n log n negatives were drawn since the last ranking: then the paper calls for `update`."""
        items = self.positives.n_items
        return self._draws >= items * math.log(max(items, 2))

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The ranks, and how many negatives were drawn by them."""
        with self._lock:
            ranks, draws = self._ranks, self._draws
        return {"order": ranks.order.copy(), "spread": ranks.spread.copy(), "draws": draws}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if it is not of these factors."""
        if not isinstance(state, Mapping) or not {"order", "spread", "draws"} <= set(state):
            checks.raise_invalid("state", "what AdaptiveOversampling.state returned", checks.shown(state))
        order = checks.whole_numbers("order", to_numpy(state["order"]), "(d, n_items)")
        if order.shape != self._ranks.order.shape:
            checks.raise_invalid("order", f"of shape {self._ranks.order.shape}, as here", f"shape {order.shape}")
        whole = (np.sort(order, axis=1) == np.arange(order.shape[1])).all(axis=1)
        checks.check_all("order", order, whole, "every item once for each factor")
        spread = checks.as_floats("spread", state["spread"])
        if spread.shape != order.shape[:1]:
            checks.raise_invalid("spread", f"of shape {order.shape[:1]}", f"shape {spread.shape}")
        checks.check_all("spread", spread, np.isfinite(spread) & (spread >= 0), "finite and at least 0")
        draws = checks.as_array("draws", to_numpy(state["draws"]))
        if draws.shape or draws.dtype.kind not in "iu" or draws < 0:
            checks.raise_invalid("draws", "a whole number of at least 0", checks.shown(state["draws"]))
        ranks = FactorRanks(order.astype(self._ranks.order.dtype), spread.copy())
        with self._lock:
            self._ranks, self._draws = ranks, int(draws)

    def _scale(self, step: int | None) -> Any:
        return number_at("scale", self.scale, step, above=0, finite=True)

    def _vectors(self, query: Query, width: int) -> NDArray[np.float64]:
        """(B, d) the anchors' vectors in NumPy, without gradients."""
        with without_gradients(query.anchors):
            vectors = np.asarray(to_numpy(self.embed(query.anchors)), np.float64)
        shape = (len(query), width)
        if vectors.shape != shape:
            checks.raise_invalid("embed", f"a function that returns shape {shape}", f"shape {vectors.shape}")
        checks.check_all("embed", vectors, np.isfinite(vectors), "a function that returns finite numbers")
        return vectors

    def __repr__(self) -> str:
        return described(self, item_factors=self._ranks.order.T)


def _ranked(item_factors: Any, n_items: int) -> FactorRanks:
    """The ranks of item vectors, checked."""
    factors = checks.as_array("item_factors", to_numpy(item_factors))
    if factors.ndim != 2 or len(factors) != n_items or not factors.size or factors.dtype.kind not in "iuf":
        checks.raise_invalid(
            "item_factors", f"numbers of shape ({n_items}, d)", f"{factors.dtype} of shape {factors.shape}"
        )
    checks.check_all("item_factors", factors, np.isfinite(factors), "finite")
    return FactorRanks.of(factors)
