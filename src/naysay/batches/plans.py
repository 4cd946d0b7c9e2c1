"""Plans of batches: which rows of the training data come together in an epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay import checks
from naysay._lock import Lock
from naysay._rows import frozen
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import MOST_ROWS, public
from naysay.kernels import batches as loops
from naysay.kernels.threads import in_rows
from naysay.positives import Positives
from naysay.quantity.schedules import at_step
from naysay.rng import key_from
from naysay.text import described

FILLED = "filled at random"
_STEPS_PER_ROW = 16  # of a walk, before the batch is filled at random

Ids = NDArray[np.int64]


@final
@public
class Shuffled:
    """Random batches that hold each row once an epoch; rows that are forbidden together are in different batches.

    Rows are placed in random order. Each goes to the first batch that is not full and holds no row that is forbidden
    with it. With in-batch negatives, two rows with the same item are each other's false negatives: pass the items as
    `forbid`. Rows that fit in no batch are left out of this epoch; `dropped` counts them.

    Cost: O(n + forbidden pairs); 16 bytes per row.

    Args:
        n: The number of rows.
        size: Rows per batch.
        forbid: (n,) labels: two rows of one label never meet; -1 matches nothing. Or a Positives of (row, row) pairs,
            in either direction.

    Examples:
        >>> import naysay as ns
        >>> plan = Shuffled(6, 2, forbid=[0, 0, 0, 1, 1, 2]).plan(0, rng=ns.rng_for(0))
        >>> plan.shape, sorted(plan.ravel().tolist())
        ((3, 2), [0, 1, 2, 3, 4, 5])
    """

    def __init__(self, n: int, size: int, forbid: Any = None) -> None:
        """Check the labels, or make the links symmetric."""
        self.n, self.size = _check_sizes(n, size)
        self.forbid = forbid
        self.dropped: dict[str, int] = {}
        self._labels = np.full(self.n, -1)
        self._links: Positives | None = None
        if isinstance(forbid, Positives):
            if max(forbid.n_anchors, forbid.n_items) > self.n:
                got = f"{forbid.n_anchors} x {forbid.n_items}"
                checks.raise_invalid("forbid", f"pairs of {self.n} rows", got)
            self._links = Positives.from_edges(*forbid.pairs(), self.n, self_pairs=True)
        elif forbid is not None:
            labels = _labels("forbid", forbid, least=-1)
            if len(labels) != self.n:
                checks.raise_invalid("forbid", f"of {self.n} rows", len(labels))
            distinct, places = np.unique(labels, return_inverse=True)
            self._labels = np.where(labels < 0, -1, places.reshape(-1) - int((distinct < 0).any()))

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return _batches_needed(self.n, self.size)

    def plan(self, epoch: int, *, rng: np.random.Generator) -> Ids:
        """Return (n_batches, size) rows; -1 where a batch is not full."""
        _check_epoch(epoch, rng)
        out, counts = np.full((len(self), self.size), -1, np.int64), np.zeros(len(self), np.int64)
        following, order = np.arange(len(self) + 1), rng.permutation(self.n)
        if self._links is not None:
            marks, batch_of = np.full(len(self) + 1, -1), np.full(self.n, -1)
            links = (np.array(self._links.indptr), np.array(self._links.indices))
            left = loops.place_linked(order, *links, self.size, following, batch_of, marks, counts, out)
        else:
            next_batch = np.zeros(self.n + 1, np.int64)
            left = loops.place_labelled(order, self._labels, self.size, following, next_batch, counts, out)
        self.dropped = {"forbidden": int(left)} if left else {}
        return out

    def __repr__(self) -> str:
        return described(self)


@final
@public
class Grouped:
    """Batches from `per_batch` groups each, so that in-batch negatives are of the anchor's own topic, task or language.

    Every row comes once an epoch. The rows of a group are shuffled and cut into parts of size / per_batch; the parts
    are shuffled, and per_batch of them are a batch. A group's last part may be shorter, and so may its batch.

    Hofstaetter, Lin, Yang, Lin, Hanbury. Efficiently Teaching an Effective Dense Retriever with Balanced Topic Aware
    Sampling. SIGIR 2021 (TAS; groups are clusters of queries). Its code draws clusters without epochs, so it does not
    promise that every query comes.

    Cost: a sort of n numbers per epoch.

    Args:
        groups: (n,) the group of each row, at least 0.
        size: Rows per batch.
        per_batch: How many parts of groups make a batch; it divides `size`.

    Examples:
        >>> import naysay as ns
        >>> groups = [0, 1, 0, 1, 0, 1]
        >>> plan = Grouped(groups, 3).plan(0, rng=ns.rng_for(0))
        >>> sorted(sorted(batch) for batch in plan.tolist())
        [[0, 2, 4], [1, 3, 5]]
    """

    def __init__(self, groups: Any, size: int, *, per_batch: int = 1) -> None:
        """Check the groups."""
        self.groups = _labels("groups", groups, least=0, advice="Give a row without a group one of its own.")
        self.n, self.size = _check_sizes(len(self.groups), size)
        self.per_batch = checks.check_whole("per_batch", per_batch, 1)
        if self.size % self.per_batch:
            checks.raise_invalid("per_batch", f"a divisor of `size`, {self.size}", self.per_batch)
        rows_of_group = np.unique(self.groups, return_counts=True)[1]
        self._part_size = self.size // self.per_batch
        self._parts = sum(_batches_needed(rows, self._part_size) for rows in rows_of_group.tolist())

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return _batches_needed(self._parts, self.per_batch)

    def plan(self, epoch: int, *, rng: np.random.Generator) -> Ids:
        """Return (n_batches, size) rows; -1 where a batch is not full."""
        _check_epoch(epoch, rng)
        order = rng.permutation(self.n)
        order = order[np.argsort(self.groups[order], kind="stable")]
        group = self.groups[order]
        group_starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        rank_in_group = np.arange(self.n) - np.repeat(group_starts, np.diff(np.append(group_starts, self.n)))
        place_in_part = rank_in_group % self._part_size
        part = np.cumsum(place_in_part == 0) - 1
        out = np.full((len(self) * self.per_batch, self._part_size), -1, np.int64)
        out[rng.permutation(self._parts)[part], place_in_part] = order
        out = out.reshape(len(self), self.size)
        return np.take_along_axis(out, np.argsort(out < 0, axis=1, kind="stable"), axis=1)

    def __repr__(self) -> str:
        return described(self)


@final
@public
class RandomWalkBatches:
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
        >>> batches = RandomWalkBatches(8, 4, neighbours=3, candidates=50)
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
        self.n, self.size = _check_sizes(n, size)
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
        return _batches_needed(self.n, self.size) if self.cover else max(1, self.n // self.size)

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
            work = self.n * self.candidates * (1 + given.shape[1] // 8)
            in_rows(loops.nearest_of_random, self.n, work, key, units, self.candidates, links)
        with self._lock:
            self._links = links

    def plan(self, epoch: int, *, rng: np.random.Generator) -> Ids:
        """Return (n_batches, size) rows; -1 at the end of the last batch."""
        _check_epoch(epoch, rng)
        with self._lock:
            links = self._links
        order, out = rng.permutation(self.n), np.full((len(self), self.size), -1, np.int64)
        key, used = key_from(rng), np.zeros(self.n, np.int64)
        is_linked = links.shape[1] > 0
        steps = _STEPS_PER_ROW * self.size if is_linked else 0
        rows = frozen(links if is_linked else np.full((self.n, 1), -1, np.int32))
        filled = loops.walk(key, rows, order, float(self.restart), self.cover, steps, used, out)
        self.dropped = {FILLED: int(filled)} if filled and is_linked else {}
        return out

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The links (n, neighbours), or (n, 0) before the first update."""
        with self._lock:
            return {"links": self._links.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        links = read_state(state, {"links": Entry((self.n, "neighbours"), whole=True)})["links"]
        if links.shape[1] not in (self.neighbours, 0):
            checks.raise_invalid("links", f"of shape ({self.n}, {self.neighbours})", f"shape {links.shape}")
        checks.check_all("links", links, (links >= -1) & (links < self.n), f"rows below {self.n}, or -1")
        with self._lock:
            self._links = np.array(links, np.int32, order="C")

    def __repr__(self) -> str:
        return described(self, "linked" if self._links.shape[1] else "not linked yet")


@final
@public
class ByLoss:
    """Draw rows by the rank of their last loss: p(rank i) proportional to pressure^(-i / n), i = 1 the highest.

    The first rank is pressure^((n - 1) / n) times as likely as the last. Draws are independent, so an epoch of as many
    draws as rows repeats some, also within a batch, and leaves others out. Rows that were never observed rank first.
    The drawn losses are biased towards hard rows; `weights` removes that. With wrong labels among the rows, the highest
    losses are mostly theirs.

    Loshchilov and Hutter. Online Batch Selection for Faster Training of Neural Networks. 2015.

    Cost: a sort of n numbers per epoch; 8 bytes per row.

    Args:
        n: The number of rows.
        size: Rows per batch.
        pressure: At least 1, which is uniform; or a function of the epoch.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> batches = ByLoss(5, 2)
        >>> batches.observe(np.arange(5), np.array([0.1, 0.5, 0.3, 0.2, 0.4]))
        >>> batches.chances(0).round(3).tolist()
        [0.015, 0.608, 0.096, 0.038, 0.242]
    """

    def __init__(self, n: int, size: int, *, pressure: Any = 100.0) -> None:
        """Start with no loss known."""
        self.n, self.size = _check_sizes(n, size)
        self.pressure = pressure
        if not callable(pressure):
            checks.check_number("pressure", pressure, at_least=1, finite=True)
        self._lock = Lock()
        self._losses = np.full(self.n, np.inf)

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return _batches_needed(self.n, self.size)

    def chances(self, epoch: int) -> NDArray[np.float64]:
        """(n,) how likely a draw of this epoch is each row."""
        pressure = checks.check_number("pressure", at_step(self.pressure, epoch), at_least=1, finite=True)
        with self._lock:
            order = np.argsort(-self._losses, kind="stable")
        by_rank = np.exp(-np.arange(self.n) * np.log(pressure) / self.n)
        chances = np.empty(self.n)
        chances[order] = by_rank / by_rank.sum()
        return chances

    def weights(self, epoch: int) -> NDArray[np.float64]:
        """(n,) 1 / (n p): losses times these have the mean of all rows, on average."""
        return np.asarray(1.0 / (self.n * self.chances(epoch)))

    def plan(self, epoch: int, *, rng: np.random.Generator) -> Ids:
        """Return (n_batches, size) rows, n draws; -1 at the end of the last batch."""
        _check_epoch(epoch, rng)
        ends = np.cumsum(self.chances(epoch))
        out = np.full(len(self) * self.size, -1, np.int64)
        out[: self.n] = np.searchsorted(ends, rng.random(self.n) * ends[-1], side="right")
        return out.reshape(len(self), self.size)

    def observe(self, rows: ArrayLike, losses: Any) -> None:
        """Store the losses (B,) of rows (B,). Call it once a step."""
        ids = checks.whole_numbers("rows", to_numpy(rows)).astype(np.int64)
        checks.check_range("rows", ids, self.n, "rows")
        values = checks.as_floats("losses", to_numpy(losses))
        if values.ndim != 1:
            checks.raise_invalid("losses", "of shape (B,)", f"shape {values.shape}")
        checks.check_lengths(rows=len(ids), losses=len(values))
        checks.check_all("losses", values, np.isfinite(values), "finite")
        with self._lock:
            self._losses[ids] = values

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The losses; infinity for rows that were never observed."""
        with self._lock:
            return {"losses": self._losses.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        losses = read_state(state, {"losses": Entry((self.n,))})["losses"]
        checks.check_all("losses", losses, np.isfinite(losses) | (losses == np.inf), "numbers, or infinity for none")
        with self._lock:
            self._losses = losses

    def __repr__(self) -> str:
        return described(self, f"{np.count_nonzero(np.isfinite(self._losses)):,} losses")


def _check_sizes(n: object, size: object) -> tuple[int, int]:
    """The number of rows and the size of a batch."""
    return checks.check_whole("n", n, 1, MOST_ROWS), checks.check_whole("size", size, 1, MOST_ROWS)


def _check_epoch(epoch: object, rng: Any) -> None:
    checks.check_whole("epoch", epoch, 0)
    checks.check_generator(rng)


def _labels(parameter: str, labels: Any, *, least: int, advice: str = "") -> Ids:
    """(n,) whole numbers, none below `least`."""
    array = checks.whole_numbers(parameter, to_numpy(labels)).astype(np.int64)
    if array.size and array.min() < least:
        checks.raise_invalid(parameter, f"at least {least}", int(array.min()), advice)
    return array


def _batches_needed(n: int, size: int) -> int:
    """How many batches hold n rows."""
    return -(-n // size)
