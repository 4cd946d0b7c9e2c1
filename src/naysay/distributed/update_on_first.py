"""update_on_first: rows of all processes, collected in the first, and its state sent to the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay._processes import check_same, exchange, exchanging, rank_and_size
from naysay.arrays import need_torch, to_numpy
from naysay.checks import as_array, check_kind, check_lengths, public, raise_invalid, whole_numbers
from naysay.errors import NaysayError
from naysay.types import Stateful

_BLOCK = 1 << 20  # numbers that a process sends at a time


@public
def update_on_first(
    part: Stateful, ids: Any, rows: Any, update: Callable[[NDArray[Any]], object], *, group: Any = None
) -> None:
    """Update a part from rows that are spread over the processes, without a copy of all of them in each.

    The first process collects the rows in the order of their ids, in blocks of 4 MB, and calls update(rows); all
    others then restore the state of its part. So the result is that of one process, to the bit:

        update_on_first(detector, ids, features, lambda whole: detector.update(whole, progress=epoch / epochs))

    The first process holds all rows once; another one holds its own, a block, and the state. The others wait for
    the update: where it takes longer than the timeout of the group, pass a longer one to init_process_group.

    Args:
        part: Such as `detectors.Incremental` or `detectors.SoftClusters`: with `state` and `restore`.
        ids: (n,) the numbers of this process's rows. Together the processes have 0 ... N - 1, each once or more often,
            as a DistributedSampler gives them; one of several rows counts.
        rows: (n, d) floating-point, NumPy or torch.
        update: A function of all rows (N, d), which is called in the first process only.
        group: As in `WholeBatch`.

    Raises:
        NaysayError: In all processes, if ids are missing, widths or dtypes differ, or `update` raises it.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> detector = ns.detectors.Incremental(4, clusters=2)
        >>> rows = np.array([[1, 9], [9, 1], [9, 2], [2, 9]], np.float32)
        >>> update_on_first(detector, [3, 0, 1, 2], rows, lambda whole: detector.update(whole, progress=1.0))
        >>> bool(detector.labels[0, 0] == detector.labels[0, 1])
        True
    """
    check_kind("part", part, Stateful, "a part with state and restore")

    def own() -> tuple[NDArray[np.int64], tuple[int, ...], str]:
        numbers = whole_numbers("ids", to_numpy(ids)).astype(np.int64, copy=False)
        given = _matrix(rows)
        check_lengths(ids=len(numbers), rows=len(given))
        return numbers, given.shape[1:], str(given.dtype)

    everyone = exchange(own, group)
    for what, place_of in (("of one width", 1), ("of one dtype", 2)):
        check_same("rows", what, [str(one[place_of]) for one in everyone])
    n = _check_all_ids([one[0] for one in everyone])
    whole = _collected(_matrix(rows), [one[0] for one in everyone], n, group)
    if whole is None:
        outcome = _from_first(None, group)
        if isinstance(outcome, Exception):
            raise outcome
        part.restore(outcome)
        return
    try:
        update(whole)
    except Exception as error:  # the others wait for an answer, whatever happened here
        sent = error if isinstance(error, NaysayError) else RuntimeError(f"the first process failed: {error!r}")
        _from_first(sent, group)
        raise
    _from_first(part.state(), group)


def _matrix(rows: Any) -> Any:
    array = as_array("rows", to_numpy(rows))
    if array.ndim != 2 or array.dtype.kind != "f":
        raise_invalid("rows", "floating-point numbers of shape (n, d)", f"{array.dtype} of shape {array.shape}")
    return array


def _check_all_ids(parts: list[NDArray[np.int64]]) -> int:
    """The number of rows of all processes, which must have all ids below it."""
    low, n = min(int(part.min(initial=0)) for part in parts), 1 + max(int(part.max(initial=-1)) for part in parts)
    if low < 0:
        raise_invalid("ids", "at least 0", low)
    given = sum(map(len, parts))
    rule = f"all of 0 to {n - 1} over all processes"
    if n > given:
        raise_invalid("ids", rule, f"{given} of them")
    there = np.zeros(n, bool)
    for part in parts:
        there[part] = True
    if not there.all():
        missing = np.flatnonzero(~there)
        raise_invalid("ids", rule, f"no {missing[0]} ({len(missing)} missing)")
    return n


def _collected(own: Any, ids: list[NDArray[np.int64]], n: int, group: Any) -> Any:
    """In the first process all rows (n, d) by their ids, in others None. A block of each process at a time."""
    rank, size = rank_and_size(group)
    whole = np.empty((n, own.shape[1]), own.dtype) if rank == 0 else None
    step = max(1, _BLOCK // max(1, own.shape[1]))
    for start in range(0, max(map(len, ids)), step):
        part = slice(start, start + step)
        blocks = [own[part]] * size if rank == 0 else None
        if size > 1:
            with exchanging(group):
                need_torch().distributed.gather_object(own[part], blocks, dst=_first(group), group=group)
        if whole is not None and blocks is not None:
            for numbers, block in zip(ids, blocks, strict=True):
                whole[numbers[part]] = block
    return whole


def _from_first(value: Any, group: Any) -> Any:
    """What the first process has, in every process."""
    found = [value]
    if rank_and_size(group)[1] == 1:
        return value
    with exchanging(group):
        need_torch().distributed.broadcast_object_list(found, src=_first(group), group=group)
    return found[0]


def _first(group: Any) -> int:
    """The number of the group's first process among all processes."""
    return 0 if group is None else int(need_torch().distributed.get_global_rank(group, 0))
