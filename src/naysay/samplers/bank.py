"""Bank: static draws with one stored vector for each item, from when it was last observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay import checks
from naysay._lock import Lock
from naysay._slots import PER_SLOT, blanked, gather
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import public
from naysay.samplers._candidates import check_is_pool, draw_k
from naysay.text import described
from naysay.types import Negatives, Pool, Query, check_query, positive_ids

UNSEEN = "unseen"
_ROUNDING = 1e-2  # of the length of a vector in half precision


@final
@public
class Bank:
    """Take k candidates as the pool draws them, with the vectors that they had when they were last observed.

    Call `observe` once a step with the vectors of the query's positives. An item that was never observed has no vector:
    it is left out, its slot stays empty, and `dropped` counts it as "unseen". The answer has `vectors` (B, K, d), 0 in
    empty slots, without gradients. log_q is the pool's once all items were observed, None before. If an id comes twice
    in a batch, the last row counts.

    Cost: n_items x d numbers, which are the whole state, and a copy of the vectors of a draw. `Memory` keeps the last
    few batches instead, which are fresher, at the cost of their number.

    Wu, Xiong, Yu, Lin. Unsupervised Feature Learning via Non-Parametric Instance Discrimination. CVPR 2018.

    Args:
        pool: Where candidates come from; for instance discrimination `Everything` with each sample its own positive.
        n_items: The number of items.
        momentum: The share of the old vector: unit(momentum * old + (1 - momentum) * new).
        initial: (n_items, d) vectors to begin with, e.g. those of the untrained encoder; None for no vectors.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> bank = Bank(ns.pools.Everything(ns.Positives.from_pairs([0, 1, 2], [0, 1, 2])), 3)
        >>> bank.observe(ns.Query([1], positives=[1]), None, vectors=np.array([[0.0, 2.0]]))
        >>> drawn = bank.sample(ns.Query([0]), 2, rng=ns.rng_for(0))
        >>> drawn.ids.tolist(), drawn.vectors.tolist(), dict(drawn.dropped)
        ([[1, -1]], [[[0.0, 1.0], [0.0, 0.0]]], {'unseen': 1})
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    def __init__(self, pool: Pool, n_items: int, momentum: float = 0.5, initial: ArrayLike | None = None) -> None:
        check_is_pool(pool)
        self.pool, self.momentum = pool, checks.check_number("momentum", momentum, at_least=0, at_most=1)
        self.n_items = checks.check_whole("n_items", n_items, 1, checks.MOST_ROWS)
        self.distinct = getattr(pool, "distinct", None)
        self._vectors: NDArray[Any] = np.zeros((self.n_items, 0), np.float32)
        self._seen = np.zeros(self.n_items, np.bool_)
        self._lock = Lock()
        if initial is not None:
            self._vectors = _units(_vectors("initial", initial, self.n_items))
            self._seen[:] = True

    @property
    def vectors(self) -> NDArray[Any]:
        """(n_items, d) the stored vectors; 0 where an item was never observed."""
        return self._vectors

    @property
    def seen(self) -> NDArray[np.bool_]:
        """(n_items,) whether an item was ever observed."""
        return self._seen

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives with `vectors`."""
        drawn = draw_k(self.pool, query, k, rng).numpy()
        checks.check_range("pool", drawn.ids, self.n_items, "items", least=-1)
        filled = drawn.ids >= 0
        with self._lock:
            known, vectors = filled & self._seen[drawn.ids], self._vectors[drawn.ids]
            all_seen = self._seen.all()
        unseen = int(np.count_nonzero(filled & ~known))
        if not all_seen:
            drawn = replace(drawn, log_q=None)
        drawn = replace(drawn, ids=np.where(known, drawn.ids, -1), vectors=vectors)
        if unseen:
            order = np.argsort(~known, axis=1, kind="stable")  # filled slots move to the front of their row
            arrays = {name: getattr(drawn, name) for name in PER_SLOT}
            moved = {name: gather(array, order) for name, array in arrays.items() if array is not None}
            drawn = replace(drawn, **moved, dropped={**drawn.dropped, UNSEEN: unseen})
        return blanked(drawn).like(query)

    def observe(
        self,
        query: Query,
        negatives: Negatives | None,
        *,
        positive_scores: Any = None,
        vectors: ArrayLike | None = None,
    ) -> None:
        """Update the vectors of the query's positives by `vectors` (B, d), NumPy or torch; the rest is not used."""
        check_query(query)
        items = positive_ids(query)
        checks.check_range("positives", items, self.n_items, "items")
        if vectors is None:
            checks.raise_invalid("vectors", "given", None, "Pass the vectors (B, d) of the query's positives.")
        new = _units(_vectors("vectors", vectors, len(items)))
        with self._lock:
            if self._vectors.shape[1] == 0:
                self._vectors = np.zeros((self.n_items, new.shape[1]), new.dtype)
            if new.shape[1] != self._vectors.shape[1]:
                checks.raise_invalid(
                    "vectors", f"of dimension {self._vectors.shape[1]}, like those stored", new.shape[1]
                )
            stays = np.where(self._seen[items], self.momentum, 0.0)[:, None]
            self._vectors[items] = _units(stays * self._vectors[items] + (1 - stays) * new)
            self._seen[items] = True

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Everything that the next answer depends on but the settings."""
        with self._lock:
            return {"vectors": self._vectors.copy(), "seen": self._seen.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if the vectors do not fit."""
        if not isinstance(state, Mapping) or not {"vectors", "seen"} <= set(state):
            checks.raise_invalid("state", "what Bank.state returned", checks.shown(state))
        vectors = _vectors("vectors", state["vectors"], self.n_items)
        seen = np.asarray(to_numpy(state["seen"]))
        if seen.shape != (self.n_items,) or seen.dtype != np.bool_:
            checks.raise_invalid("seen", f"({self.n_items},) bool", f"{seen.shape} {seen.dtype}")
        width = self._vectors.shape[1] or max(vectors.shape[1], 1)
        if seen.any() and vectors.shape[1] != width:
            checks.raise_invalid("vectors", f"of dimension {width}", vectors.shape[1])
        lengths = np.linalg.norm(np.clip(vectors, -2, 2).astype(np.float64), axis=1)  # clipped: squares may overflow
        good = (lengths == 0) | (seen & (np.abs(lengths - 1) <= _ROUNDING))
        checks.check_all("vectors", lengths, good, "of length 1, or 0 for an item that was not seen")
        with self._lock:
            self._vectors, self._seen = vectors.copy(), seen.copy()

    def __repr__(self) -> str:
        return described(self, f"{np.count_nonzero(self._seen):,} of {self.n_items:,} items seen")


def _vectors(parameter: str, vectors: ArrayLike, rows: int) -> NDArray[Any]:
    """(rows, d) finite floating-point vectors. Raises if they are not."""
    array = checks.as_array(parameter, to_numpy(vectors))
    if array.ndim != 2 or len(array) != rows:
        checks.raise_invalid(parameter, f"of shape ({rows}, d)", f"shape {array.shape}")
    if array.dtype.kind != "f":
        checks.raise_invalid(parameter, "floating numbers", f"dtype {array.dtype}")
    checks.check_all(parameter, array, np.isfinite(array), "finite")
    return array


def _units(vectors: NDArray[Any]) -> NDArray[Any]:
    """Rows of length 1; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
