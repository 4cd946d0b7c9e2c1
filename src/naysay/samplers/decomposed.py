"""Decomposed: a generator that is a product of two small tables, so that draws are cheap and log_q is exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._slots import Score, check_score, like_query, score_slots
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import check_all, check_number, check_range, check_whole, public
from naysay.pools._slots import anchors_of, shortfall
from naysay.positives import Positives
from naysay.rng import generator_of, key_from, rng_for
from naysay.samplers import _policy as policy
from naysay.samplers._candidates import Independent, check_known, wanted_slots
from naysay.types import Negatives, Query

_TRIES = 4  # proposals for each slot before the exact draw
_BLOCK = 1 << 22  # scores in memory at once

Floats = NDArray[np.float64]


@final
@public
@dataclass(eq=False, repr=False)
class Decomposed(Independent):
    """Draw items by q(i | a) = sum_k x_ak y_ki: a factor of the anchor, then an item of the factor.

    Rows of x and y are probabilities. A known item is rejected, and after some tries the draw is an exact one over what
    is free, so that log_q is exact: log q(i | a) - log(1 - q(known | a)). Draws are independent.

    `update(score)` makes one EM step towards p(i | a) proportional to e^{softplus(s) / t} over free items:

        x_ak <- x_ak sum_i y_ki p_ai / q_ai,    y_ki <- y_ki sum_a x_ak p_ai / q_ai, over its sum in i

    after which the divergence sum_a KL(p_a | q_a) is never larger. Call it once an epoch or less often.

    Jin et al. Sampling-Decomposable Generative Adversarial Recommender. NeurIPS 2020. It has the same generator and
    target, and recomputes the tables by a softmax of gains from 64 draws; here EM takes the place of that form. Its
    loss weights draws by softmax(softplus(s) / t - log q).

    Cost: O(log n) per draw; `update` scores all pairs, n_anchors x n_items; 8 (n_anchors + 2 n_items) factors bytes.

    Args:
        positives: What is known, which is never returned.
        factors: The number of factors, k.
        temperature: t of `update`, above 0.
        seed: Of the first tables.
        on_short: "pad" or "raise", if nothing is free.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> known = ns.Positives.from_pairs([0], [0], n_items=5)
        >>> sampler = Decomposed(known, factors=4)
        >>> before = sampler.chances([0])[0, 4]
        >>> for _ in range(20):
        ...     sampler.update(lambda anchors, ids: ids * 1.0)
        >>> bool(sampler.chances([0])[0, 4] > before), float(sampler.chances([0])[0, 0])
        (True, 0.0)
    """

    positives: Positives
    factors: int = 64
    _: KW_ONLY
    temperature: float = 0.5
    seed: int = 0
    on_short: str = "pad"

    def __post_init__(self) -> None:
        check_known(self.positives, self.on_short)
        check_whole("factors", self.factors, 1)
        check_number("temperature", self.temperature, above=0, finite=True)
        rng = rng_for(check_whole("seed", self.seed, 0))
        x = rng.dirichlet(np.ones(self.factors), self.positives.n_anchors)
        y = rng.dirichlet(np.ones(self.positives.n_items), self.factors)
        self._tables = _Tables.of(x, y)  # replaced as one, for other threads

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives with their exact log_q."""
        anchors = anchors_of(query, self.positives.n_anchors)
        counts, width = wanted_slots(k, len(query), rng)
        made = generator_of(key_from(rng))
        tables = self._tables
        x, y = tables.x[anchors], tables.y
        ids = np.full((len(anchors), width), -1, np.int64)
        for _ in range(_TRIES):
            factor = policy.draw_independent(x, width, made)
            item = tables.items(factor, made.random(factor.shape))
            known = self.positives.contains(anchors, item, relation="any")
            ids = np.where((ids < 0) & ~known, item, ids)
        total = 1.0 - self._known_mass(anchors, x, y)
        exact = np.flatnonzero((ids < 0).any(axis=1) | (total < 0.5))  # 1 - q(known) is not exact where that is near 1
        if len(exact):
            free = self._free(anchors[exact], x[exact], y)
            total[exact] = free.sum(axis=1)
            drawn = policy.draw_independent(free, width, made)
            drawn[total[exact] <= 0] = -1
            ids[exact] = np.where(ids[exact] < 0, drawn, ids[exact])
        ids[np.arange(width) >= counts[:, None]] = -1
        chance = np.einsum("bk,kbn->bn", x, y[:, np.maximum(ids, 0)])
        with np.errstate(divide="ignore", invalid="ignore"):
            log_q = np.where(ids < 0, 0.0, np.minimum(np.log(chance) - np.log(total)[:, None], 0.0))
        return Negatives(ids, log_q=log_q, dropped=shortfall(self.on_short, ids, counts)).like(query)

    def chances(self, anchors: Any) -> Floats:
        """(B, n_items) the probability of each item; 0 for what is known."""
        rows = np.asarray(to_numpy(anchors), np.int64)
        check_range("anchors", rows, self.positives.n_anchors, "anchors")
        tables = self._tables
        free = self._free(rows, tables.x[rows], tables.y)
        total = free.sum(axis=1, keepdims=True)
        return np.asarray(free / np.where(total > 0, total, 1.0))

    def update(self, score: Score) -> None:
        """Make one EM step towards a model's scores.

        Args:
            score: score(anchors (B,), ids (B, n)) -> (B, n), as in `Dynamic`.
        """
        check_score(score)
        n_anchors, n_items = self.positives.n_anchors, self.positives.n_items
        x, y = self._tables.x, self._tables.y
        new_x, new_y = np.empty_like(x), np.zeros_like(y)
        step = max(1, _BLOCK // max(n_items, 1))
        for start in range(0, n_anchors, step):
            rows = np.arange(start, min(start + step, n_anchors))
            ratio = self._ratio(score, rows, x[rows], y)
            new_x[rows] = x[rows] * (ratio @ y.T)
            new_y += y * (x[rows].T @ ratio)
        self._tables = _Tables.of(_rows_to_1(new_x, x), _rows_to_1(new_y, y))

    def _ratio(self, score: Score, rows: NDArray[np.int64], x: Floats, y: Floats) -> Floats:
        """(B, n_items) p / q of free items, 0 for what is known."""
        query = Query(rows)
        every = np.broadcast_to(np.arange(y.shape[1]), (len(rows), y.shape[1]))
        scores = np.asarray(to_numpy(score_slots(score, query, like_query(every, query))), np.float64)
        soft = np.logaddexp(0.0, scores)
        known = self.positives.contains(rows, every, relation="any")
        target = policy.softmax(np.where(known, -np.inf, soft / self.temperature))
        return np.asarray(target / np.maximum(x @ y, 1e-300))

    def _free(self, anchors: NDArray[np.int64], x: Floats, y: Floats) -> Floats:
        """(B, n_items) q, 0 for what is known."""
        every = np.broadcast_to(np.arange(y.shape[1]), (len(anchors), y.shape[1]))
        return np.where(self.positives.contains(anchors, every, relation="any"), 0.0, x @ y)

    def _known_mass(self, anchors: NDArray[np.int64], x: Floats, y: Floats) -> Floats:
        """(B,) q(known | a)."""
        counts = np.diff(self.positives.indptr)[anchors]
        rows = np.repeat(np.arange(len(anchors)), counts)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        items = self.positives.indices[self.positives.indptr[anchors[rows]] + place]
        return np.asarray(np.bincount(rows, (x[rows] * y[:, items].T).sum(axis=1), len(anchors)), np.float64)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The two tables."""
        tables = self._tables
        return {"x": tables.x.copy(), "y": tables.y.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        entries = {name: Entry(table.shape) for name, table in self.state().items()}
        read = read_state(state, entries)
        for name, table in read.items():
            sums = table.sum(axis=1)
            check_all(name, sums, np.abs(sums - 1) < 1e-6, "rows that sum to 1")
        self._tables = _Tables.of(read["x"], read["y"])


class _Tables(NamedTuple):
    """The chances of factors for each anchor, and of items for each factor."""

    x: Floats  # (n_anchors, factors)
    y: Floats  # (factors, n_items)
    cumulated: Floats  # (factors * n_items,) the running sums of each row of y, from 2 f to 2 f + 1 for factor f

    @staticmethod
    def of(x: Floats, y: Floats) -> _Tables:
        sums = np.cumsum(y, axis=1)
        return _Tables(x, y, (sums / sums[:, -1:] + 2 * np.arange(len(y))[:, None]).ravel())

    def items(self, factors: NDArray[np.int64], uniform: Floats) -> NDArray[np.int64]:
        """An item of each factor, by a number in [0, 1) for each."""
        n = self.y.shape[1]
        place = np.searchsorted(self.cumulated, 2 * factors + uniform, "right") - factors * n
        return np.asarray(np.minimum(place, n - 1), np.int64)


def _rows_to_1(table: Floats, before: Floats) -> Floats:
    """Rows divided by their sum; a row of zeros, of a factor that nobody uses, stays as it was."""
    total = table.sum(axis=1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1.0), before)
