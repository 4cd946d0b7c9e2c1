"""Nearest: the items whose stored vectors are nearest to the anchor's vector now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._rows import frozen
from naysay._state import Entry, check_state, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import (
    check_device,
    check_one_of,
    check_range,
    check_whole,
    public,
    raise_invalid,
    shown,
    with_parameter,
)
from naysay.pools._slots import (
    asked,
    check_count,
    check_known,
    check_settings,
    draw_filled,
    pairs_of,
    shortfall,
    shown_settings,
)
from naysay.positives import Positives
from naysay.search._scores import METRICS, thread_count
from naysay.search.exact import Exact, survey
from naysay.search.vectors import Vectors, as_vectors
from naysay.types import Negatives, Query, positive_ids


class _Stored(NamedTuple):
    """Vectors of one moment. They are never written to: an update puts others in their place."""

    items: Vectors
    exact: Exact
    queries: NDArray[Any] | None


@final
@public
class Nearest:
    """Draw from the `depth` items whose stored vectors score highest with the anchor's vector, without known ones.

    A draw searches all items, exactly (`naysay.search`), with `query.vectors`; where the query has none, with the
    stored vectors of its anchors. Known pairs and the query's own positives are excluded before the ranks are counted.
    Draws are uniform over the m items of the window. log_q, exact given the vectors:
        independent   -log m
        distinct      -log(m - slot)

    `update` replaces the vectors; draws of other threads use the old ones or the new ones, never some of each. `age`
    is the number of steps since the stored vectors were made, as `observe` counts them. `Refresh` makes new vectors
    beside the training loop. Which method it is depends on when the vectors are updated:
        never, with the query's vectors   ADORE: Zhan et al. Optimizing Dense Retrieval Model Training with Hard
                                          Negatives. SIGIR 2021 (depth 200; with rank-weighted pairs as its loss)
        every m steps                     ANCE: Xiong et al. Approximate Nearest Neighbor Negative Contrastive Learning
                                          for Dense Text Retrieval. ICLR 2021 (depth 200; its code knows one positive
                                          per query, so that others can become negatives)
        once, before the training         STAR, the same paper as ADORE, together with random negatives

    Cost: a product of (B, d) and (d, n_items) per draw, in low precision where the processor has it; a copy of the
    vectors.

    Args:
        vectors: (n_items, d) floating-point, NumPy or torch; copied.
        depth: How many of the best items are candidates.
        positives: The pairs to exclude, exactly: positives and ignored pairs.
        queries: (n_anchors, d) the anchors' vectors, for queries without vectors; copied.
        window: (low, high): draw only from ranks low to high - 1, the best at 0. By default (0, depth).
        metric: "cosine", "dot" or "l2".
        distinct: Whether a row has an id at most once (default), or draws are independent.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.
        device: Where torch multiplies, such as "cuda"; None for the processor. The draws are the same.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> items = np.array([[1.0, 0.0], [0.9, 0.1], [0.5, 0.5], [0.0, 1.0]])
        >>> pool = Nearest(items, 2, ns.Positives.from_pairs([0], [0], n_items=4))
        >>> query = ns.Query([0], vectors=np.array([[1.0, 0.0]]))
        >>> np.sort(pool.draw(query, 2, rng=ns.rng_for(0)).ids).tolist()
        [[1, 2]]
        >>> pool.update(items[::-1])
        >>> np.sort(pool.draw(query, 2, rng=ns.rng_for(0)).ids).tolist()
        [[2, 3]]
    """

    needs_main_process = True  # `Refresh` replaces the vectors during an epoch

    def __init__(
        self,
        vectors: Any,
        depth: int,
        positives: Positives | None = None,
        *,
        queries: Any = None,
        window: tuple[int, int] | None = None,
        metric: str = "cosine",
        distinct: bool = True,
        on_short: str = "pad",
        device: Any = None,
    ) -> None:
        """Copy and check the vectors."""
        self.depth = check_count("depth", depth)
        self.window = _checked_window(window, self.depth)
        check_one_of("metric", metric, tuple(METRICS))
        self.metric = metric
        check_known(positives)
        self.positives = positives
        self.distinct, self.on_short = check_settings(distinct, on_short)
        if device is not None:
            check_device("device", device)
        self.device = device
        self._lock = Lock()
        self._stored, self._age = self._checked(vectors, queries, None), 0

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self._stored.items.n

    @property
    def age(self) -> int:
        """The number of steps since the stored vectors were made."""
        return self._age

    @property
    def vectors(self) -> NDArray[Any]:
        """(n_items, d) the stored vectors, read-only."""
        return frozen(self._stored.items.rows(0, self.n_items))

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) of the nearest items; n is a number, or (B,) numbers."""
        stored = self._stored  # one read: an update in another thread does not change this draw
        n_anchors = None if self.positives is None else self.positives.n_anchors
        if stored.queries is not None:
            n_anchors = len(stored.queries)
        anchors, counts, width, key = asked(query, n, rng, n_anchors)
        nearest = self._search(query, anchors, stored)
        ids, log_q = draw_filled(nearest, counts, width, key, distinct=self.distinct)
        return Negatives(ids, log_q=log_q, dropped=shortfall(self.on_short, ids, counts))

    def update(self, vectors: Any, queries: Any = None, *, age: int = 0) -> None:
        """Replace the stored vectors.

        Args:
            vectors: (n_items, d).
            queries: (n_anchors, d); None keeps the stored ones.
            age: How many steps ago they were made.

        Raises:
            NaysayError: If there are more or fewer items, or vectors are not finite; nothing is changed.
        """
        self._replace(vectors, queries, age)

    def observe(self, query: Any, negatives: Any, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Count a step of the vectors' `age`. No argument is used."""
        with self._lock:
            self._age += 1

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The stored vectors and their age."""
        with self._lock:
            stored, age = self._stored, self._age
        queries = {} if stored.queries is None else {"queries": stored.queries.copy()}
        return {"vectors": np.array(stored.items.rows(0, stored.items.n)), "age": age, **queries}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if the vectors do not fit."""
        arrays = ["vectors"] if self._stored.queries is None else ["vectors", "queries"]
        check_state(state, [*arrays, "age"], ())
        age = int(read_state(state, {"age": Entry(whole=True)}, arrays)["age"])
        self._replace(state["vectors"], state.get("queries"), age)

    def _replace(self, vectors: Any, queries: Any, age: Any) -> None:
        """Store checked copies, at once."""
        made, steps = self._checked(vectors, queries, self._stored), check_whole("age", age, 0)
        with self._lock:
            self._stored, self._age = made, steps

    def _checked(self, vectors: Any, queries: Any, before: _Stored | None) -> _Stored:
        """Copies of the vectors, with their norms; raises if they do not fit each other or what was stored."""
        items = _copied("vectors", vectors)
        if before is not None and items.n != before.items.n:
            raise_invalid("vectors", f"of {before.items.n} items, like those stored", items.n)
        if self.positives is not None and items.n < self.positives.n_items:
            raise_invalid("vectors", f"of {self.positives.n_items} items, like positives", items.n)
        measured = survey("vectors", items, METRICS[self.metric], thread_count(None))
        if queries is None:
            kept = None if before is None else before.queries
        else:
            copied = _copied("queries", queries)
            survey("queries", copied, METRICS[self.metric], thread_count(None))
            kept = copied.rows(0, copied.n)
            least = 0 if self.positives is None else self.positives.n_anchors
            rows = len(kept) if before is None or before.queries is None else len(before.queries)
            if len(kept) != rows or rows < least:
                raise_invalid("queries", f"of {max(rows, least)} anchors", len(kept))
        if kept is not None and kept.shape[1] != items.width:
            raise_invalid("queries", f"of dimension {items.width}, like the items'", kept.shape[1])
        return _Stored(items, Exact(items, self.metric, device=self.device, measured=measured), kept)

    def _search(self, query: Query, anchors: NDArray[np.int64], stored: _Stored) -> NDArray[np.int64]:
        """(B, high - low) the free items of the window, the best first, -1 at the end."""
        if query.vectors is None and stored.queries is None:
            raise_invalid("query.vectors", "given", None, "Pass Query(anchors, vectors=...), or `queries` to the pool.")
        given = stored.queries[anchors] if query.vectors is None and stored.queries is not None else query.vectors
        left = as_vectors("query.vectors", given)
        if left.width != stored.items.width:
            raise_invalid("query.vectors", f"of dimension {stored.items.width}, like the items'", left.width)
        exclude = self._excluded(query, anchors, stored.items.n)
        low, high = self.window
        source = "queries" if query.vectors is None else "query.vectors"
        with with_parameter(source, instead_of="queries"):
            found = stored.exact.search(left, min(high, stored.items.n), exclude=exclude)
        return np.ascontiguousarray(found.ids[:, low:])

    def _excluded(self, query: Query, anchors: NDArray[np.int64], n_items: int) -> Positives | None:
        """The known pairs of the query's rows, and their own positives, by row."""
        rows, items = np.empty(0, np.int64), np.empty(0, np.int64)
        if self.positives is not None:
            rows, places = pairs_of(self.positives, anchors)
            items = self.positives.indices[places]
        if query.positives is not None:
            own = positive_ids(query)
            check_range("positives", own, n_items, "items")
            rows, items = np.concatenate([rows, np.arange(len(anchors))]), np.concatenate([items, own])
        return Positives.from_pairs(rows, items, len(anchors), n_items) if len(rows) else None

    def __repr__(self) -> str:
        held = f"{self.n_items:,} vectors of age {self._age:,}"
        settings = {"depth": self.depth, "window": self.window, "metric": self.metric}
        return shown_settings(self, held, self.positives, **settings)


def _copied(parameter: str, vectors: Any) -> Vectors:
    """Vectors in memory that nobody else writes to."""
    opened = as_vectors(parameter, to_numpy(vectors))
    return as_vectors(parameter, np.array(opened.rows(0, opened.n), order="C"))


def _checked_window(window: Any, depth: int) -> tuple[int, int]:
    """The ranks to draw from."""
    if window is None:
        return 0, depth
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise_invalid("window", "a pair (low, high) of ranks", shown(window))
    low, high = check_whole("window", window[0], 0), check_whole("window", window[1], 1)
    if not low < high <= depth:
        raise_invalid("window", f"a pair (low, high) with low < high <= `depth`, {depth}", shown(window))
    return low, high
