"""Refresh: new vectors for a pool, made beside the training loop and swapped in between two steps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, final

from naysay._lock import Lock
from naysay.checks import check_kind, check_whole, public, raise_invalid
from naysay.pools.nearest import Nearest
from naysay.text import described


@final
@public
class Refresh:
    """Update the vectors of a `Nearest` every `every` steps, without stopping the loop.

    Call `observe` once a step, in place of the pool's. If the vectors are `every` steps old, it calls `snapshot()` in
    the loop's thread, and then `encode(what it returned)` in a thread of its own. The model is trained meanwhile, so
    `snapshot` must copy what `encode` needs. A later call of `observe` puts the new vectors into the pool, with their
    age: the steps since the snapshot. At most one encoding runs at a time, and what it raises, `observe` raises.

    lag=None swaps as soon as the vectors are there, so a run depends on the machine's speed. With a number of steps it
    swaps exactly then, waiting if it must: the same run gives the same negatives. lag=0 encodes within the step.

    Nothing is saved: after `pool.restore` an encoding that was under way starts again at the next step.

    Args:
        pool: The pool to update.
        snapshot: snapshot() -> anything: a copy of the model, e.g. by copy.deepcopy.
        encode: encode(copy) -> (n_items, d) vectors, or a tuple (vectors, queries).
        every: Steps between two snapshots, at least.
        lag: Steps between a snapshot and the swap; None for as soon as possible.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> model = {"weights": np.eye(2)}
        >>> texts = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> pool = ns.pools.Nearest(texts, 1)
        >>> refresh = Refresh(pool, lambda: model["weights"].copy(), lambda weights: texts @ weights, every=2, lag=1)
        >>> for step in range(5):
        ...     model["weights"] = model["weights"] * 2.0
        ...     refresh.observe(None, None)
        ...     print(step, pool.age, pool.vectors[0, 0])
        0 1 1.0
        1 2 1.0
        2 1 4.0
        3 2 4.0
        4 1 16.0
    """

    def __init__(
        self,
        pool: Nearest,
        snapshot: Callable[[], Any],
        encode: Callable[[Any], Any],
        every: int,
        *,
        lag: int | None = None,
    ) -> None:
        """Start nothing yet."""
        check_kind("pool", pool, Nearest, "a pool of vectors: Nearest")
        for name, function in (("snapshot", snapshot), ("encode", encode)):
            if not callable(function):
                raise_invalid(name, "a function", type(function).__name__)
        self.pool, self.snapshot, self.encode = pool, snapshot, encode
        self.every = check_whole("every", every, 1)
        self.lag = None if lag is None else check_whole("lag", lag, 0)
        self.updates = 0
        self._lock = Lock()
        self._running: Future[Any] | None = None
        self._since = 0  # steps since the snapshot of what is running

    def observe(self, query: Any, negatives: Any, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Count a step; start an encoding if it is due, or swap its vectors in. The arguments are for the pool."""
        self.pool.observe(query, negatives, positive_scores=positive_scores, vectors=vectors)
        with self._lock:
            if self._running is not None:
                self._since += 1
            elif self.pool.age >= self.every:
                self._start()
            running = self._running
            if running is not None and (running.done() if self.lag is None else self._since >= self.lag):
                finished, self._running = running, None
                made = finished.result()
                self.pool.update(*(made if isinstance(made, tuple) else (made,)), age=self._since)
                self.updates += 1

    def _start(self) -> None:
        """Take a snapshot, and encode it in another thread."""
        copied, self._since = self.snapshot(), 0
        if self.lag == 0:
            self._running = Future()
            self._running.set_result(self.encode(copied))
            return
        worker = ThreadPoolExecutor(1, thread_name_prefix="naysay-refresh")
        self._running = worker.submit(self.encode, copied)
        worker.shutdown(wait=False)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but an encoding under way, which a copy starts again when it is due."""
        return {**self.__dict__, "_running": None}

    def __repr__(self) -> str:
        return described(self, f"{self.updates:,} updates")
