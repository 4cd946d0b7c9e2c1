"""loader: queries and negatives from torch's workers, the same for any number of workers, and resumable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._options import takes_options
from naysay._processes import rank_and_size
from naysay.arrays import is_torch, need_torch, to_torch
from naysay.checks import (
    MOST_ROWS,
    check_bool,
    check_kind,
    check_number,
    check_whole,
    public,
    raise_invalid,
    shown,
)
from naysay.errors import NaysayError
from naysay.kernels.threads import set_threads
from naysay.pools._times import Times
from naysay.positives import POSITIVE, Positives
from naysay.quantity.schedules import at_step
from naysay.rng import rng_for
from naysay.text import counted
from naysay.triples import Triples
from naysay.types import OF_ROWS, Negatives, Query, Sampler, needs_main_process

_SHUFFLE = 1  # the number of a worker that draws nothing, so that no draw shares the stream of the shuffle
_FITS = ("seed", "shuffle", "drop_last")  # options that a state must share

Rows = NDArray[np.int64]
# A step, its anchors, its items (None for triples), its times (None if not asked for) and its k.
Order = tuple[int, Rows, Rows | None, NDArray[Any] | None, Any]


# ---- a batch --------------------------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The pairs of one training step and their negatives, in torch.

    Args:
        query: Anchors (B,), positives (B,), the step and, if asked for, times (B,), where dates stay in NumPy; or
            triples (B, 3) as anchors, without positives.
        negatives: (B, K), drawn for this query.

    Examples:
        >>> import numpy as np
        >>> import naysay as ns
        >>> batch = Batch(ns.Query([0, 1], positives=[4, 5]), ns.Negatives(np.array([[2, 3], [3, 2]])))
        >>> len(batch), batch.to("cpu").negatives.shape
        (2, (2, 2))
    """

    query: Query
    negatives: Negatives

    def __post_init__(self) -> None:
        check_kind("query", self.query, Query, "a Query")
        check_kind("negatives", self.negatives, Negatives, "Negatives")

    def __len__(self) -> int:
        """B, the number of rows."""
        return len(self.query)

    def to(self, device: Any) -> Batch:
        """The same on a torch device."""
        return Batch(self._mapped(lambda array: in_torch(array, device)), self.negatives.to(device))

    def pin_memory(self) -> Batch:
        """The same in page-locked memory. A DataLoader with pin_memory=True calls it."""
        return Batch(self._mapped(_pinned), self.negatives.pin_memory())

    def _mapped(self, convert: Any) -> Query:
        """The query with other arrays."""
        arrays = {name: getattr(self.query, name) for name in OF_ROWS}
        return replace(self.query, **{name: convert(array) for name, array in arrays.items() if array is not None})


def in_torch(array: Any, device: Any = None) -> Any:
    """An array in torch, which has no dates: they stay in NumPy."""
    return array if getattr(array.dtype, "kind", "") == "M" else to_torch(array, device)


def _pinned(array: Any) -> Any:
    tensor = in_torch(array)
    return tensor.pin_memory() if is_torch(tensor) else tensor


# ---- the loader -----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderOptions:
    """All options of `loader`.

    Args:
        k: Negatives per row: a number, or a function of the step such as `quantity.adaptive`. It is called in the main
            process, a few steps ahead if there are workers.
        shuffle: Whether each epoch has its own random order; if not, pairs come in the order of `positives.pairs()`.
        drop_last: Whether to leave out the last batch of an epoch if it is not full.
        seed: Of the order and of the draws; the same on all ranks.
        times: (anchors, items, times), as for `pools.Everything`: the query of a batch has the time of each pair, the
            first of several. With `Everything(positives, times=times)` a negative is no pair known at that time.
        rank: The number of this process. By default that of torch.distributed if it is initialised, else 0.
        ranks: The number of processes. By default the world size of torch.distributed if it is initialised, else 1.
        workers: The number of worker processes; 0 draws in this process.
        prefetch: How many batches each worker makes ahead.
        pin_memory: Whether to copy batches to page-locked memory.
    """

    k: float | Callable[[int], float] = 1
    shuffle: bool = True
    drop_last: bool = False
    seed: int = 0
    times: Any = None
    rank: int | None = None
    ranks: int | None = None
    workers: int = 0
    prefetch: int = 2
    pin_memory: bool = False


@public
@takes_options(LoaderOptions)
def loader(positives: Positives | Triples, sampler: Sampler, batch_size: int, options: LoaderOptions) -> Loader:
    """Make a loader of batches: each pair once an epoch, in random order, with negatives from a sampler.

    The batch of a step depends on the seed, the step and the rank alone: not on the number of workers, and not on
    earlier batches. Its negatives are `sampler.sample(batch.query, k, rng=rng_for(seed, step, rank))`. The order of an
    epoch depends on the seed and the epoch. Process `rank` of `ranks` gets its own `batch_size` pairs of each step, and
    all processes have equally many steps. The pairs that are left at the end are shared evenly; if there are fewer than
    processes, they are left out of this epoch (`left_out`).

    With workers, a sampler draws in another process, which has a copy of it, made anew for each epoch. A sampler whose
    draws depend on what changes during an epoch needs `workers=0`: one with a part that learns from steps (a memory, a
    cache), or with a function such as the score of the model in training. Parts say so by `needs_main_process`, which
    is also how a function of yours says that it does not change: `score.needs_main_process = False`.

    Args:
        positives: The pairs to train on; ignored ones are left out. Or `Triples`: a query has (B, 3) anchors then.
        sampler: Draws the negatives.
        batch_size: Rows per step of each process.
        options: How to load.

    Returns:
        A `Loader`.

    Raises:
        NaysayError: If an argument is invalid, there are fewer pairs than one step needs, or there are
            workers for a sampler that needs the main process.

    Examples:
        >>> import naysay as ns
        >>> known = ns.Positives.from_pairs([0, 1, 2, 3, 4], [1, 2, 3, 4, 0], n_items=9)
        >>> sampler = ns.samplers.Static(ns.pools.Everything(known))
        >>> [batch.negatives.shape for batch in loader(known, sampler, 2, k=3)]
        [(2, 3), (2, 3), (1, 3)]
    """
    need_torch()
    check_kind("positives", positives, Positives | Triples, "a Positives or Triples")
    if isinstance(sampler, type) or not hasattr(sampler, "sample"):
        raise_invalid("sampler", "a sampler, with a method sample(query, k, *, rng)", type(sampler).__name__)
    size = check_whole("batch_size", batch_size, 1, MOST_ROWS)
    if not callable(options.k):
        check_number("k", options.k, at_least=0, finite=True)
    for name in ("shuffle", "drop_last", "pin_memory"):
        check_bool(name, getattr(options, name))
    check_whole("seed", options.seed, 0)
    if check_whole("workers", options.workers, 0) and needs_main_process(sampler):
        rule = f"0 for this {type(sampler).__name__}, whose draws depend on what changes in this process"
        advice = (
            "Workers have copies of its parts and functions, which would not change during an epoch. "
            "If a function or part does not change, set its attribute needs_main_process = False."
        )
        raise_invalid("workers", rule, options.workers, advice)
    check_whole("prefetch", options.prefetch, 1)
    rank, ranks = _place(options)
    pairs = Pairs(positives, options.times)
    least = size * ranks if options.drop_last else ranks
    if len(pairs) < least:
        rule = f"at least {counted(least, 'pair')}, for one step of {counted(ranks, 'rank')}"
        raise_invalid("positives", rule, len(pairs))
    return Loader(pairs, Draws(sampler, options.seed, rank), size, ranks, options)


def _place(options: LoaderOptions) -> tuple[int, int]:
    """The rank and the number of ranks: as given, or those of torch.distributed."""
    if (options.rank is None) != (options.ranks is None):
        missing, given = ("rank", "ranks") if options.rank is None else ("ranks", "rank")
        raise_invalid(missing, f"given along with `{given}`", None)
    if options.rank is not None:
        ranks = check_whole("ranks", options.ranks, 1)
        return check_whole("rank", options.rank, 0, ranks - 1), ranks
    return rank_and_size()


@final
@public
class Loader:
    """Batches of one epoch after the other, with the place in the run; see `loader`, which makes one.

    A loop over it ends with the epoch, and the next loop is the next epoch. A loop that was left early is resumed by
    the next one. `step` counts from the start of the run: it is the step of the next batch.

    Args:
        pairs: What to train on.
        draws: What workers do.
        batch_size: Rows per step of this process.
        ranks: The number of processes.
        options: The options of `loader`.
    """

    def __init__(self, pairs: Pairs, draws: Draws, batch_size: int, ranks: int, options: LoaderOptions) -> None:
        """Start at step 0."""
        self.batch_size, self.ranks, self.rank = batch_size, ranks, draws.rank
        self.step, self.options, self._draws, self._pairs = 0, options, draws, pairs
        self.pairs = len(pairs)
        self._full, rest = divmod(self.pairs, batch_size * ranks)
        self._last = 0 if options.drop_last or rest < ranks else rest
        self.left_out = rest - self._last

    def __len__(self) -> int:
        """The number of steps of an epoch."""
        return self._full + (self._last > 0)

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self.step // len(self)

    def set_epoch(self, epoch: int) -> None:
        """Go to the first step of an epoch."""
        self.step = check_whole("epoch", epoch, 0) * len(self)

    def state(self) -> dict[str, Any]:
        """The step of the next batch, and the settings that give a step its meaning; the same for all ranks."""
        return {"step": self.step} | self._settings()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to the step of a state. Raises NaysayError if it belongs to other pairs or settings."""
        check_kind("state", state, Mapping, "what `state` returned")
        for name, own in self._settings().items():
            if name not in state or state[name] != own:
                raise_invalid("state", f"of a loader with {name} {own}", shown(state.get(name)))
        self.step = check_whole("state", state.get("step"), 0)

    def _settings(self) -> dict[str, Any]:
        found = {"pairs": self.pairs, "batch_size": self.batch_size, "ranks": self.ranks}
        return found | {name: getattr(self.options, name) for name in _FITS}

    def __iter__(self) -> Iterator[Batch]:
        """The batches from the present step to the end of its epoch."""
        torch, options = need_torch(), self.options
        in_workers = {"worker_init_fn": one_thread, "prefetch_factor": options.prefetch} if options.workers else {}
        batches = torch.utils.data.DataLoader(
            self._draws,
            batch_size=None,
            sampler=self._orders(self.step),
            num_workers=options.workers,
            collate_fn=unchanged,
            pin_memory=options.pin_memory,
            generator=torch.Generator(),  # else it takes a number from torch's global generator
            **in_workers,
        )
        for batch in batches:
            if isinstance(batch, NaysayError):
                raise batch
            self.step = batch.query.step + 1  # a state that is saved in the loop is resumed after this batch
            yield batch

    def _orders(self, start: int) -> Iterator[Order]:
        """(step, anchors, items, k) of each step from `start` to the end of its epoch, made in the main process."""
        epoch, first = divmod(start, len(self))
        order = np.arange(self.pairs)
        if self.options.shuffle:
            order = rng_for(self.options.seed, epoch, worker=_SHUFFLE).permutation(self.pairs)
        for place in range(first, len(self)):
            step = epoch * len(self) + place
            yield step, *self._pairs.at(self._rows(order, place)), at_step(self.options.k, step)

    def _rows(self, order: Rows, place: int) -> Rows:
        """The rows of this rank at a place of the epoch; at the last place the ranks share what is left."""
        begin, size = place * self.batch_size * self.ranks, self.batch_size
        if place < self._full:
            return order[begin + self.rank * size : begin + (self.rank + 1) * size]
        ends = [begin + self._last * rank // self.ranks for rank in (self.rank, self.rank + 1)]
        return order[ends[0] : ends[1]]

    def __repr__(self) -> str:
        """The sizes, and where it is."""
        place = f"rank {self.rank} of {self.ranks}, {counted(self.options.workers, 'worker')}"
        sizes = f"{self.pairs:,} pairs, batch_size={self.batch_size}, {len(self):,} steps an epoch"
        return f"Loader({sizes}, {place}; step {self.step:,}, epoch {self.epoch})"


# ---- what workers do ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Draws:
    """A dataset for torch: its index is an `Order`, its item is the batch, or the error of the sampler.

    The pairs themselves stay in the main process. An error is returned, not raised: torch would replace its sentence by
    the worker's traceback.
    """

    sampler: Sampler
    seed: int
    rank: int

    def __getitem__(self, order: Order) -> Batch | NaysayError:
        step, anchors, items, times, k = order
        positives, at = None if items is None else to_torch(items), None if times is None else in_torch(times)
        query = Query(to_torch(anchors), positives=positives, step=step, times=at)
        try:
            return Batch(query, self.sampler.sample(query, k, rng=rng_for(self.seed, step, self.rank)))
        except NaysayError as error:
            return error


class Pairs:
    """The pairs to train on, by their numbers: known pairs without ignored ones, or triples. Nothing is copied."""

    def __init__(self, known: Positives | Triples, times: Any) -> None:
        if times is not None and isinstance(known, Triples):
            raise_invalid("times", "left out for Triples", "times")
        self._known = known
        self._times = None if times is None or isinstance(known, Triples) else Times.of(known, times).of_pairs()
        relation = known.relation if isinstance(known, Positives) else None
        self._kept = None if relation is None else np.flatnonzero(relation == POSITIVE)

    def __len__(self) -> int:
        return len(self._known if self._kept is None else self._kept)

    def at(self, rows: Rows) -> tuple[Rows, Rows | None, NDArray[Any] | None]:
        """The anchors, items and times of some pairs; triples (n, 3), None and None."""
        if isinstance(self._known, Triples):
            return self._known.array[rows], None, None
        places = rows if self._kept is None else self._kept[rows]
        anchors = np.searchsorted(self._known.indptr, places, side="right") - 1
        times = None if self._times is None else self._times[places]
        return anchors, self._known.indices[places].astype(np.int64), times


def unchanged(batch: Any) -> Any:
    """The collate function: an item is a whole batch already."""
    return batch


def one_thread(worker: int) -> None:
    """Start a worker with one thread, because the workers together use all cores."""
    set_threads(1)
