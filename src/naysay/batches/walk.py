"""Walk: batches of rows that a random walk over a graph of near rows visits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay import checks
from naysay._lock import Lock
from naysay._rows import frozen
from naysay.arrays import for_checkpoints, to_numpy
from naysay.batches._plans import Ids, batches_needed, check_epoch, check_sizes
from naysay.checks import public
from naysay.kernels import batches as loops
from naysay.kernels.threads import in_rows
from naysay.rng import key_from
from naysay.text import described

FILLED = "filled at random"
_STEPS = 16  # steps of a walk for each row of a batch, before the batch is filled at random


@final
@public
class Walk:
    """Batches of similar rows: from a random row on, the rows that a walk with restarts visits.

    `update` links each row to the `neighbours` nearest, by cosine, of `candidates` random others. A batch begins at a
    random row; a step goes back to it with the chance `restart`, and then to a random neighbour. With few candidates
    the neighbours are less near, and fewer of them are false negatives; with restart=1 a batch is a row and its
    neighbours. A walk that finds too few new rows in 16 steps per row ends, and the batch is filled with random ones;
    `dropped` counts them. Before the first `update` batches are random.

    Yang, Huang, Ding, et al. BatchSampler: Sampling Mini-Batches for Contrastive Learning in Vision, Language, and
    Graphs. KDD 2023. Its code allows a row to be its own neighbour, lets the batches of an epoch overlap, and walks
    for ever in a component that is smaller than a batch.

    Cost: an update scores n x candidates pairs; a plan makes a few steps per row. Memory: 4 bytes for each of n x
    neighbours links.

    Args:
        n: The number of rows.
        size: Rows per batch.
        neighbours: Links of a row.
        candidates: Random others among which they are searched.
        restart: The chance to go back, from 0 to 1.
        cover: Whether each row comes once an epoch; if not, batches may overlap.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> vectors = np.repeat(np.eye(2), 4, axis=0)                       # two clusters
        >>> batches = Walk(8, 4, neighbours=3, candidates=50)
        >>> batches.update(vectors, rng=ns.rng_for(0))
        >>> sorted(sorted(batch) for batch in batches.plan(0, rng=ns.rng_for(1)).tolist())
        [[0, 1, 2, 3], [4, 5, 6, 7]]
    """

    def __init__(
        self,
        n: int,
        size: int,
        *,
        neighbours: int = 100,
        candidates: int = 1000,
        restart: float = 0.1,
        cover: bool = True,
    ) -> None:
        """Start without links."""
        self.n, self.size = check_sizes(n, size)
        self.neighbours = checks.check_whole("neighbours", neighbours, 1)
        self.candidates = checks.check_whole("candidates", candidates, self.neighbours)
        self.restart = checks.check_number("restart", restart, at_least=0, at_most=1)
        self.cover = checks.check_bool("cover", cover)
        if not cover and self.size > self.n:
            checks.raise_invalid("size", f"at most `n`, {self.n}, without `cover`", self.size)
        self.dropped: dict[str, int] = {}
        self._lock = Lock()
        self._links: NDArray[np.int32] = np.full((self.n, 0), -1, np.int32)

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return batches_needed(self.n, self.size) if self.cover else max(1, self.n // self.size)

    def update(self, vectors: Any, *, rng: np.random.Generator) -> None:
        """Link the rows by new vectors (n, d), NumPy or torch."""
        given = checks.as_array("vectors", to_numpy(vectors))
        if given.ndim != 2 or len(given) != self.n or given.dtype.kind != "f":
            checks.raise_invalid("vectors", f"({self.n}, d) floating numbers", f"shape {given.shape} of {given.dtype}")
        checks.check_all("vectors", given, np.isfinite(given), "finite")
        lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
        units = frozen(np.ascontiguousarray(given / np.where(lengths > 0, lengths, 1.0), np.float32))
        links = np.full((self.n, self.neighbours), -1, np.int32)
        key = key_from(rng)
        if self.n > 1:
            steps = self.n * self.candidates * (1 + given.shape[1] // 8)
            in_rows(loops.nearest_of_random, self.n, steps, key, units, self.candidates, links)
        with self._lock:
            self._links = links

    def plan(self, epoch: int, *, rng: np.random.Generator) -> Ids:
        """Return (n_batches, size) rows; -1 at the end of the last batch."""
        check_epoch(epoch, rng)
        with self._lock:
            links = self._links
        order, out = rng.permutation(self.n), np.full((len(self), self.size), -1, np.int64)
        key, used = key_from(rng), np.zeros(self.n, np.int64)
        steps = _STEPS * self.size if links.shape[1] else 0
        rows = frozen(links if links.shape[1] else np.full((self.n, 1), -1, np.int32))
        filled = loops.walk(key, rows, order, float(self.restart), self.cover, steps, used, out)
        self.dropped = {FILLED: int(filled)} if filled and steps else {}
        return out

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The links (n, neighbours), or (n, 0) before the first update."""
        with self._lock:
            return {"links": self._links.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        checks.check_kind("state", state, Mapping, "what Walk.state returned")
        if set(state) != {"links"}:
            checks.raise_invalid("state", "of ['links']", checks.shown(list(state)))
        links = checks.whole_numbers("links", to_numpy(state["links"]), "(n, neighbours)")
        if links.shape not in ((self.n, self.neighbours), (self.n, 0)):
            checks.raise_invalid("links", f"of shape ({self.n}, {self.neighbours})", f"shape {links.shape}")
        checks.check_all("links", links, (links >= -1) & (links < self.n), f"rows below {self.n}, or -1")
        with self._lock:
            self._links = np.array(links, np.int32, order="C")

    def __repr__(self) -> str:
        return described(self, "linked" if self._links.shape[1] else "not linked yet")
