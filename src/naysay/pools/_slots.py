"""What all pools share: checked anchors, the number of slots of each row, and the count of empty slots."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from naysay import checks
from naysay._rows import frozen, offsets
from naysay._slots import check_ids
from naysay.arrays import to_numpy
from naysay.errors import NaysayError
from naysay.kernels.lists import draw_places
from naysay.kernels.threads import draw_in_rows, in_rows
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.triples import Triples, check_parts
from naysay.types import Query, anchor_ids, check_query

ON_SHORT = ("pad", "raise")
EXHAUSTED = "exhausted"


def check_settings(distinct: object, on_short: str) -> tuple[bool, str]:
    """The two settings that every pool has, checked."""
    checks.check_one_of("on_short", on_short, ON_SHORT)
    return checks.check_bool("distinct", distinct), on_short


def shown_settings(pool: Any, *parts: object, **settings: object) -> str:
    """The repr of a pool: what it holds, its own settings, and the two that every pool has."""
    shared = {"distinct": pool.distinct, "on_short": pool.on_short}
    shown_parts = [part if isinstance(part, str) else repr(part) for part in parts]
    named = [f"{name}={value!r}" for name, value in {**settings, **shared}.items()]
    return f"{type(pool).__name__}({', '.join([*shown_parts, *named])})"


def check_known(positives: object) -> None:
    """Raise if `positives` is neither a Positives nor None."""
    checks.check_kind("positives", positives, Positives | None, "a Positives or None")


def check_count(name: str, value: object, least: int = 1) -> int:
    """A number of slots, steps or entries. Below 2^31, so that products of two and counters fit 64 bits."""
    number = checks.check_whole(name, value, least)
    if number >> 31:
        checks.raise_invalid(name, "below 2^31", number)
    return number


def anchors_of(query: Query, size: int | None, what: str = "anchors", *, timed: bool = False) -> NDArray[np.int64]:
    """The anchors of a query (B,), checked to be below `size` if it is known, in the form that compiled loops take.

    Times raise, unless the caller is `timed`: to ignore them would exclude other pairs.
    """
    check_query(query)
    if query.times is not None and not timed:
        raise_invalid_times()
    anchors = anchor_ids(query)
    if anchors.ndim != 1:
        checks.raise_invalid("query.anchors", "of shape (B,)", "triples", "Use naysay.pools.Corruption.")
    check_ids("anchors", anchors, size, what)
    return frozen(np.ascontiguousarray(anchors))


def given_ids(ids: Any, n_items: int) -> NDArray[np.int64]:
    """Ids (B, K) whose probability is asked for, checked; -1 is an empty slot."""
    given = checks.whole_numbers("ids", to_numpy(ids), "(B, K)")
    checks.check_range("ids", given, n_items, "items", least=-1)
    return given


def raise_invalid_times(advice: str = "Only Everything(positives, times=...) excludes by time.") -> NoReturn:
    """Raise because a query has times."""
    checks.raise_invalid("query.times", "left out here", "times", advice)


def asked(
    query: Query, n: Any, rng: np.random.Generator, size: int | None, what: str = "anchors", *, timed: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, np.uint64]:
    """The checked inputs of a draw: anchors (B,), slots of each row (B,), the largest of these, and the call's key."""
    anchors = anchors_of(query, size, what, timed=timed)
    counts, width = slot_counts(n, len(anchors))
    return anchors, counts, width, key_from(rng)


def triples_of(query: Query, known: Triples) -> NDArray[np.int64]:
    """The triples of a query (B, 3), checked to be of known entities and relations."""
    check_query(query)
    if query.times is not None:
        raise_invalid_times()
    triples = anchor_ids(query)
    if triples.ndim != 2:
        checks.raise_invalid("query.anchors", "of shape (B, 3): head, relation, tail", f"shape {triples.shape}")
    check_parts(triples, known.n_entities, known.n_relations)
    return triples


def pairs_of(known: Positives, anchors: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row of `anchors` and the place in `known.indices` of each known pair of these anchors, row after row."""
    sizes = known.indptr[anchors + 1] - known.indptr[anchors]
    ends = offsets(sizes)
    rows = np.repeat(np.arange(len(anchors)), sizes)
    return rows, np.arange(ends[-1]) + np.repeat(known.indptr[anchors] - ends[:-1], sizes)


def slot_counts(n: Any, rows: int) -> tuple[NDArray[np.int64], int]:
    """The number of slots of each row (B,), and the largest; n is one number, or one per row."""
    plain = to_numpy(n)
    array = checks.as_array("n", plain) if isinstance(plain, np.ndarray | list | tuple) else None
    if array is None or array.ndim == 0:
        width = check_count("n", plain if array is None else array.item(), 0)
        return frozen(np.full(rows, width, np.int64)), width
    counts = checks.whole_numbers("n", array).astype(np.int64, copy=False)
    if len(counts) != rows:
        checks.raise_invalid("n", f"one number, or one for each of the {rows} rows", f"{len(counts)} numbers")
    if counts.size and counts.min() < 0:
        checks.raise_invalid("n", "at least 0", int(counts.min()))
    return frozen(np.ascontiguousarray(counts)), int(counts.max(initial=0))


def logs(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithms of probabilities, in place. NumPy vectorises them, compiled loops do not."""
    in_rows(_take_logs, len(chance), chance.size, chance)
    return chance


def _take_logs(start: int, stop: int, chance: NDArray[np.float64]) -> None:
    np.log(chance[start:stop], out=chance[start:stop])


def draw_listed(
    lists: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    counts: NDArray[np.int64],
    width: int,
    key: np.uint64,
    *,
    distinct: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(B, width) uniform draws from each row's list, values[begins[r] : begins[r] + sizes[r]], and their log_q.

    lists = (begins, sizes, values); counts[r] of row r are drawn, the other slots are -1.
    """
    begins, sizes, values = lists
    ids, log_q = np.empty((len(counts), width), np.int64), np.empty((len(counts), width))
    draw_in_rows(
        draw_places, len(ids), 3 * ids.size, key, not distinct, counts, (begins, sizes, frozen(values)), ids, log_q
    )
    return ids, log_q


def draw_filled(
    table: NDArray[np.int64], counts: NDArray[np.int64], width: int, key: np.uint64, *, distinct: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """`draw_listed` from the rows of a table (B, m) that are filled from the left, then -1."""
    begins = np.arange(len(table)) * table.shape[1]
    full = all_filled(table)
    sizes = np.full(len(table), table.shape[1]) if full else np.count_nonzero(table >= 0, axis=1)
    return draw_listed((begins, sizes, table.reshape(-1)), counts, width, key, distinct=distinct)


def all_filled(ids: NDArray[np.int64]) -> bool:
    """Whether no slot is empty; rows are filled from the left, so only the last column is read."""
    return ids.size == 0 or bool(ids[:, -1].min() >= 0)


def shortfall(on_short: str, ids: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[str, int]:
    """{"exhausted": requested slots that stayed empty}. Raises if there are any and `on_short` is "raise"."""
    if all_filled(ids):
        return {}
    missing = int(counts.sum()) - int(np.count_nonzero(ids >= 0))
    if missing == 0:
        return {}
    if on_short == "raise":
        filled = np.count_nonzero(ids >= 0, axis=1)
        short = np.flatnonzero(filled < counts)
        row = int(short[0])
        message = (
            f"row {row} has {filled[row]} candidates left of the {counts[row]} requested "
            f"({len(short)} such row{'s' if len(short) > 1 else ''}). Request fewer, or pass on_short='pad'."
        )
        raise NaysayError(message)
    return {EXHAUSTED: missing}
