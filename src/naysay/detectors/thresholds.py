"""Two thresholds by shares: from which score on a negative is likely false, and from which it is hard."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats, to_numpy
from naysay.checks import (
    as_array,
    as_floats,
    at_row,
    check_all,
    check_exact,
    check_number,
    check_one_of,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    shown,
    shown_names,
)
from naysay.detectors._suspicion import rounded
from naysay.places import Url, check_table, local, shards, table_suffix
from naysay.tables import open_parquet, parquet_schema, reading

KINDS = ("positive", "false", "hard", "easy")
Rows = NDArray[np.void]
Counts = NDArray[np.int64]
Scores = NDArray[Any]
ReadScores = Callable[[], Iterator[Scores]]  # starts a pass over all scores: (n,) finite floats at a time
_BLOCK = 1 << 18  # scores at a time: a block stays in the processor's cache
_LISTS = 1 << 12  # rows of a column of lists that are decoded at a time
_NAMES = ("score", "scores")  # of a column that is taken without being named
_ROW = np.dtype(
    [("value", np.float64)]
    + [(kind, np.int64) for kind in KINDS]
    + [(f"{kind}_share", np.float64) for kind in KINDS[1:]]
)
_KEY_BITS = 20  # of a score, its sign and exponent first: a histogram of 1,048,576 bins takes 8 MB
_SHOWN_VALUES = 8  # of a grid, side by side in a table: those around the choice
_FEWER = 0.9  # of the allowed negatives: where equal scores leave fewer than this above a threshold, a note says so


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Thresholds:
    """The thresholds that `choose_thresholds` chose, and the counts behind them. print() shows both tables.

    Args:
        low: A negative is hard if low <= score < high, and easy below `low`.
        high: A negative is false if score >= high.
        table: "high": a row for each high value, counted at low = start_low; "low": a row for each low value, at the
            chosen high. The rows are a structured NumPy array with the fields value, positive, false, hard, easy,
            false_share, hard_share and easy_share: `table["high"]["false"]` is a column.
        n_negatives: The number of scores.
        n_positives: The number of known positives.
        false_share: As given.
        hard_share: As given.
        start_low: As given.
        notes: A sentence for each thing that makes the choice less certain.
    """

    low: float
    high: float
    table: Mapping[str, Rows]
    n_negatives: int
    n_positives: int
    false_share: float
    hard_share: float
    start_low: float
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many negatives are false, hard and easy by the choice."""
        row = self.table["low"][self.table["low"]["value"] == self.low][0]
        return {kind: int(row[kind]) for kind in KINDS[1:]}

    def __str__(self) -> str:
        """Both tables, each with a heading that names the fixed threshold."""
        high = shown_number(self.high, self.counts["false"])
        lines = [
            f"high, counted at low = {self.start_low:g}",
            *_table_lines("high", self.table["high"], self.high, "false"),
            "",
            f"low, counted at high = {high}",
            *_table_lines("low", self.table["low"], self.low, "hard"),
        ]
        return "\n".join(lines)


@public
def choose_thresholds(
    scores: Any,
    *,
    n_positives: int = 0,
    false_share: float = 0.001,
    hard_share: float = 0.05,
    grid: Any = None,
    start_low: float = 0.0,
    column: str | None = None,
) -> Thresholds:
    """Choose `high` and `low` so that given shares of all pairs are false and hard negatives.

    With all = negatives + n_positives:

        grid      high = the smallest value with  #{score >= high} <= false_share all
                  low  = the largest value with   #{low <= score < high} >= hard_share all
        no grid   high leaves floor(false_share all) negatives at or above it,
                  low leaves  floor((false_share + hard_share) all)

    Without a grid, equal scores at a threshold all stay below it, and a note says so. Files are read in blocks, and
    everything is exact. The shares are a guess: use `Calibrated` where scores of known positives are available.

    Args:
        scores: Scores of the negatives, higher is closer: an array (n,) or (anchors, n), or the name of an .npy or
            .parquet file.
        n_positives: The number of known positives, which count among all pairs.
        false_share: The share of all pairs that may score at or above `high`.
        hard_share: The share of all pairs that should score from `low` up to `high`.
        grid: (low values, high values) to choose from.
        start_low: The `low` at which the table of high values is counted.
        column: The column of a .parquet file. By default the one named score, or the only column of numbers.

    Returns:
        The thresholds and both tables.

    Raises:
        NaysayError: If all scores are equal, or no value of the grid fits the shares.

    Examples:
        >>> chosen = choose_thresholds([0.1, 0.2, 0.3, 0.9], false_share=0.25, hard_share=0.25)
        >>> chosen.low, chosen.high, chosen.table["low"]["hard"].tolist()
        (0.3, 0.9, [1])
    """
    start = check_number("start_low", start_low)
    false, hard = _share("false_share", false_share), _share("hard_share", hard_share)
    if false + hard > 1:
        raise_invalid("hard_share", f"at most {float(1 - false):g}, what `false_share` leaves", float(hard))
    positives = check_whole("n_positives", n_positives, 0)
    values = None if grid is None else _grid(grid)
    with _open_scores(scores, column) as read:
        if values is None:
            choice = _by_quantiles(read, positives, false, hard, start)
        else:
            choice = _from_grid(read, values, positives, false, hard, start)
    first = choice.by_low[0]
    return Thresholds(
        low=choice.low,
        high=choice.high,
        table=MappingProxyType({"high": choice.by_high, "low": choice.by_low}),
        n_negatives=sum(int(first[kind]) for kind in KINDS[1:]),
        n_positives=positives,
        false_share=float(false),
        hard_share=float(hard),
        start_low=start,
        notes=tuple(choice.notes),
    )


class _Choice(NamedTuple):
    """Thresholds, the rows of counts by high and by low value, and notes on their certainty."""

    low: float
    high: float
    by_high: Rows
    by_low: Rows
    notes: list[str]


def _share(parameter: str, value: Any) -> Fraction:
    """A share as it is written: 0.1 is one tenth."""
    return Fraction(repr(check_number(parameter, value, at_least=0, at_most=1)))


def _grid(grid: Any) -> tuple[Floats, Floats]:
    """Low and high values, in their order."""
    rule = "(low values, high values), each (n,) with n of at least 1"
    if not isinstance(grid, list | tuple | np.ndarray) or len(grid) != 2:
        raise_invalid("grid", rule, shown(grid))
    low, high = (np.atleast_1d(as_floats("grid", side)) for side in grid)
    for side in (low, high):
        if side.ndim != 1 or not side.size:
            raise_invalid("grid", rule, f"shape {side.shape}")
        check_all("grid", side, np.isfinite(side), "finite")
    return low, high


def _check_different(n: int, smallest: float, largest: float) -> None:
    """Raise if there are no scores, or if all are equal: no threshold separates them."""
    if not n:
        raise_invalid("scores", "at least one score", "none")
    if smallest == largest:
        raise_invalid("scores", "of more than one value", f"{n} times {smallest:g}", "Is the encoder trained?")


# ---- a grid ---------------------------------------------------------------------------------------------


def _from_grid(
    read: ReadScores, grid: tuple[Floats, Floats], positives: int, false: Fraction, hard: Fraction, start: float
) -> _Choice:
    """Count at every value in one pass, then choose."""
    lows, highs = grid
    n, at_least = _count(read, np.concatenate([lows, highs, [start]]))
    at_lows, at_highs, at_start = np.split(at_least, [len(lows), len(lows) + len(highs)])
    pairs = n + positives
    high, at_high = _smallest_high(highs, at_highs, pairs, false)
    low = _largest_low(lows, np.maximum(at_lows - at_high, 0), pairs, hard, high)
    notes = []
    if high == highs.min() and len(highs) > 1:
        notes.append(f"high is the smallest value of its grid ({high:g}): a smaller one may fit the false share too.")
    if low == lows.max() and len(lows) > 1:
        notes.append(f"low is the largest value of its grid ({low:g}): a larger one may fit the hard share too.")
    by_high = _rows(highs, at_start, at_highs, n, positives)
    by_low = _rows(lows, at_lows, at_high, n, positives)
    return _Choice(low, high, by_high, by_low, notes)


def _count(read: ReadScores, values: Floats) -> tuple[int, Counts]:
    """How many scores there are, and how many reach each value, compared in the precision of the scores."""
    n, smallest, largest = 0, inf, -inf
    at_least = np.zeros(len(values), np.int64)
    for block in read():
        ordered = np.sort(block)
        at_least += len(block) - np.searchsorted(ordered, rounded(values, block.dtype))
        n += len(block)
        smallest = min(smallest, float(ordered[0]))
        largest = max(largest, float(ordered[-1]))
    _check_different(n, smallest, largest)
    return n, at_least


def _smallest_high(highs: Floats, reached: Counts, pairs: int, false: Fraction) -> tuple[float, int]:
    """The smallest value that at most the false share reaches, and how many scores do."""
    fits = reached <= floor(false * pairs)
    if not fits.any():
        largest = int(highs.argmax())
        share = f"{reached[largest] / pairs:.4g}, the share at the largest high value {highs[largest]:g}"
        raise_invalid("false_share", f"at least {share}", float(false), "Add higher values to the grid.")
    place = int(np.where(fits, highs, np.inf).argmin())
    return float(highs[place]), int(reached[place])


def _largest_low(lows: Floats, hards: Counts, pairs: int, hard: Fraction, high: float) -> float:
    """The largest value with at least the hard share, not above high."""
    below = lows <= high
    if not below.any():
        rule = f"a grid with a low value at or below the chosen high, {high:g}"
        raise_invalid("grid", rule, f"low values from {lows.min():g}")
    fits = below & (hards >= ceil(hard * pairs))
    if not fits.any():
        share = f"{hards[lows.argmin()] / pairs:.4g}, the share at the smallest low value {lows.min():g}"
        raise_invalid("hard_share", f"at most {share}", float(hard), "Add lower values to the grid.")
    return float(lows[fits].max())


# ---- quantiles ------------------------------------------------------------------------------------------


def _by_quantiles(read: ReadScores, positives: int, false: Fraction, hard: Fraction, start: float) -> _Choice:
    """Exact quantiles of all scores: a pass that counts them in bins, and one that reads a few of the bins."""
    bins, at_start = _histogram(read, start)
    n = int(bins.sum())
    pairs = n + positives
    allowed_false, allowed_both = (floor(share * pairs) for share in (false, false + hard))
    if allowed_both > n:
        rule = f"at most {n / pairs:.4g} with `false_share`, as negatives are {n} of {pairs} pairs"
        raise_invalid("hard_share", rule, f"{float(false + hard):g}")
    (high, at_high), (low, at_low) = _lowest_values(read, bins, (allowed_false, allowed_both))
    notes = []
    for name, kind, reached, allowed in (
        ("high", "false", at_high, allowed_false),
        ("low", "false or hard", at_low, allowed_both),
    ):
        if not allowed:
            notes.append(f"The share is less than one of {pairs} pairs, so no negative is {kind}.")
        elif reached < _FEWER * allowed:
            none = "" if reached else f", so no negative is {kind}"
            notes.append(f"Equal scores: {reached} negatives reach {name}, where {allowed} were allowed{none}.")
    by_high = _rows([high], at_start, at_high, n, positives)
    return _Choice(low, high, by_high, _rows([low], at_low, at_high, n, positives), notes)


def _histogram(read: ReadScores, start: float) -> tuple[Counts, int]:
    """(2^bits,) how many scores have each key, and how many reach `start`."""
    bins = np.zeros(1 << _KEY_BITS, np.int64)
    smallest, largest, at_start = inf, -inf, 0
    for block in read():
        bins += np.bincount(_keys(block), minlength=len(bins))
        smallest = min(smallest, float(block.min()))
        largest = max(largest, float(block.max()))
        at_start += int(np.count_nonzero(block >= rounded(start, block.dtype)))
    _check_different(int(bins.sum()), smallest, largest)
    return bins, at_start


def _keys(scores: Scores) -> NDArray[np.int64]:
    """(n,) whole numbers below 2^_KEY_BITS in the order of the scores: the leading bits of each float.

    As an unsigned number a positive float rises with its value, and a negative one falls.
    """
    n_bits = 8 * scores.dtype.itemsize
    plain = scores + scores.dtype.type(0)  # -0 + 0 is 0
    raw = plain.view(f"u{scores.dtype.itemsize}")
    sign = raw.dtype.type(1 << (n_bits - 1))
    ordered = np.where(raw & sign, ~raw, raw | sign)
    return np.asarray(ordered >> raw.dtype.type(max(0, n_bits - _KEY_BITS))).astype(np.int64)


def _lowest_values(read: ReadScores, bins: Counts, allowed: tuple[int, int]) -> list[tuple[float, int]]:
    """For each allowed number the lowest score that at most so many scores reach, and how many do.

    It is in the last bin whose scores and those above are too many, or in the next bin that has any. Where even the
    largest score is reached by too many, it is the next float above.
    """
    from_key = np.append(np.cumsum(bins[::-1])[::-1], 0)  # scores with at least each key
    read_bins: list[int] = []
    for number in allowed:
        last_too_many = int(np.count_nonzero(from_key > number)) - 1
        next_bin = np.flatnonzero(bins[last_too_many + 1 :])[:1] + last_too_many + 1
        read_bins += [last_too_many, *next_bin.tolist()]
    values, counts = np.zeros(0), np.zeros(0, np.int64)
    for block in read():
        inside = block[np.isin(_keys(block), read_bins)]
        values, places = np.unique(np.concatenate([values, inside]), return_inverse=True)
        once = np.ones(len(inside), np.int64)
        counts = np.bincount(places, np.concatenate([counts, once]), len(values)).astype(np.int64)
        kind = block.dtype
    keys = _keys(values.astype(kind))
    from_value = np.append(np.cumsum(counts[::-1])[::-1], 0)
    reached = from_value[:-1] - from_value[np.searchsorted(keys, keys, side="right")] + from_key[keys + 1]
    lowest = []
    for number in allowed:
        few_enough = np.flatnonzero(reached <= number)
        if len(few_enough):
            lowest.append((float(values[few_enough[0]]) + 0.0, int(reached[few_enough[0]])))  # -0 + 0 is 0
        else:
            with np.errstate(over="ignore"):  # above the largest float comes infinity
                lowest.append((float(np.nextafter(kind.type(values[-1]), kind.type(inf))), 0))
    return lowest


# ---- tables ---------------------------------------------------------------------------------------------


def _rows(values: Any, low: Any, high: Any, negatives: int, positives: int) -> Rows:
    """Rows of counts for (r,) values, read-only. `low` and `high` are how many scores reach them, a number or (r,).

    A low above its high counts as that high.
    """
    rows = np.empty(len(values), _ROW)
    rows["value"], rows["positive"], rows["false"] = values, positives, high
    rows["easy"] = negatives - np.maximum(low, high)
    rows["hard"] = negatives - rows["easy"] - rows["false"]
    for kind in KINDS[1:]:
        rows[f"{kind}_share"] = rows[kind] / (negatives + positives)
    rows.flags.writeable = False
    return rows


def shown_number(value: float, n_scores: int = 1) -> str:
    """A threshold in six digits, or in as many as it has before the point.

    If none of the scores reaches it, it may be the next float after the largest score: after 1 that is
    1.0000000000000002, and in six digits 1, which some scores do reach.
    """
    digits = max(6, len(f"{abs(value):.0f}")) if abs(value) < 1e15 else 6
    text = f"{value:.{digits}g}"
    return text if n_scores or float(text) >= value else f"just above {text}"


def _table_lines(name: str, rows: Rows, choice: float, share: str) -> list[str]:
    """A line for each kind of pair, a column for each value; the chosen one has a star."""
    place = int(np.flatnonzero(rows["value"] == choice)[0])
    start = max(0, min(place - _SHOWN_VALUES // 2, len(rows) - _SHOWN_VALUES))
    shown_rows = rows[start : start + _SHOWN_VALUES]
    reached = shown_rows["false"] + (shown_rows["hard"] if name == "low" else 0)
    heading = [name]
    for value, n_scores in zip(shown_rows["value"].tolist(), reached.tolist(), strict=True):
        heading.append(f"{shown_number(value, n_scores)}{'*' if value == choice else ' '}")
    lines = [heading]
    lines += [[kind, *(f"{count} " for count in shown_rows[kind].tolist())] for kind in KINDS]
    lines += [[f"{share} share", *(f"{100 * part:.4f}%" for part in shown_rows[f"{share}_share"].tolist())]]
    left = len(rows) - len(shown_rows)
    return [*_aligned(lines), *([f"and {left} other values"] if left else [])]


def _aligned(lines: list[list[str]]) -> list[str]:
    """Columns as wide as they need, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    form = "  ".join(f"{{:{'>' if place else '<'}{width}}}" for place, width in enumerate(widths))
    return [form.format(*line).rstrip() for line in lines]


# ---- scores as users pass them --------------------------------------------------------------------------


class _Block(NamedTuple):
    """Some rows of scores, not yet checked."""

    scores: Scores  # a row for each row; of a column of lists, their values one after another
    rows: int
    row_of_score: NDArray[np.int64] | None = None  # (n,) of a column of lists


@contextmanager
def _open_scores(scores: Any, column: str | None = None) -> Iterator[ReadScores]:
    """Give a function that reads the scores from the start. Errors of a file's header are raised here."""
    if isinstance(scores, str | os.PathLike | Url):
        with local("scores", scores) as path:
            blocks = _file(path, column)
            yield lambda: _checked(blocks())
        return
    _check_no_column(column)
    table = as_array("scores", to_numpy(scores))
    _check_dimensions(table)
    yield lambda: _checked(_slices(table))


def _checked(blocks: Iterator[_Block]) -> Iterator[Scores]:
    """The scores as (n,), at most _BLOCK at a time: finite floats. Whole numbers become float64."""
    first_row = 0
    for block in blocks:
        scores = _floats(block.scores)
        bad = ~np.isfinite(scores)
        if bad.any():
            raise_invalid("scores", "finite", _first_bad(scores, bad, block, first_row), "Leave out such pairs.")
        flat = scores.reshape(-1)
        yield from (flat[start : start + _BLOCK] for start in range(0, len(flat), _BLOCK))
        first_row += block.rows


def _floats(scores: Scores) -> Scores:
    if scores.dtype.kind not in "iuf":
        raise_invalid("scores", "numbers", f"dtype {scores.dtype}")
    check_exact("scores", scores)
    wide = scores.dtype.kind != "f" or scores.dtype.itemsize > 8
    return scores.astype(np.float64 if wide else scores.dtype.newbyteorder("="), copy=False)


def _first_bad(scores: Scores, bad: NDArray[np.bool_], block: _Block, first_row: int) -> str:
    """The first bad score and its row, also of a column of lists."""
    if block.row_of_score is None:
        return first_bad(scores, bad, first_row)
    place = int(bad.argmax())
    row = int(block.row_of_score[place])
    slot = place - int(np.searchsorted(block.row_of_score, row))
    n_rows = len(np.unique(block.row_of_score[bad]))
    return at_row(scores[place], first_row + row, n_rows, f", slot {slot}")


def _slices(table: Scores) -> Iterator[_Block]:
    """An array in memory or memory-mapped, in blocks of rows."""
    width = max(1, int(np.prod(table.shape[1:])))
    step = max(1, _BLOCK // width)
    for start in range(0, len(table), step):
        rows = table[start : start + step]
        yield _Block(rows, len(rows))


def _file(path: Path, column: str | None) -> Callable[[], Iterator[_Block]]:
    """Parquet, one file or several, or an .npy file, which is memory-mapped."""
    suffix = table_suffix(path)
    if suffix not in (".npy", ".parquet"):
        raise_invalid("scores", "a file that ends in .npy or .parquet", shown(str(path)))
    if suffix == ".npy":
        _check_no_column(column)
    check_table("scores", path)
    if suffix == ".parquet":
        with reading("scores", path, "a readable .parquet file"):
            name = _chosen_column(parquet_schema(path, "scores"), column)
        return lambda: _parquet_blocks(path, name)
    with reading("scores", path, "a readable .npy file"):
        table = np.lib.format.open_memmap(path, mode="r")
    _check_dimensions(table)
    return lambda: _slices(table)


def _check_no_column(column: str | None) -> None:
    if column is not None:
        raise_invalid("column", "left out, unless scores is a .parquet file", shown(column))


def _check_dimensions(table: Scores) -> None:
    if table.ndim not in (1, 2):
        raise_invalid("scores", "of shape (n,) or (anchors, n)", f"shape {table.shape}")


def _chosen_column(schema: Any, wanted: str | None) -> str:
    """The named column, else the one called score or scores, else the only column of numbers."""
    import pyarrow as pa

    def is_number(kind: Any) -> bool:
        is_list = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)
        inner = kind.value_type if is_list else kind
        return bool(pa.types.is_floating(inner) or pa.types.is_integer(inner))

    columns_named = Counter(schema.names)
    unique = [field for field in schema if columns_named[field.name] == 1]
    numeric = [field.name for field in unique if is_number(field.type)]
    if wanted is not None:
        check_one_of("column", wanted, schema.names)
        if wanted not in numeric:
            raise_invalid("column", "the name of one column of numbers", shown(wanted))
        return wanted
    named = [name for name in _NAMES if name in numeric]
    if not named and len(numeric) != 1:
        rule = "a file with one column of numbers, or with one of them named score"
        raise_invalid("scores", rule, shown_names(schema.names), "Choose with `column`." if numeric else "")
    return str((named or numeric)[0])


def _parquet_blocks(path: Path, name: str) -> Iterator[_Block]:
    """A column of numbers, or of lists of numbers. Nulls are an error."""
    import pyarrow as pa

    for part in shards(path):
        with reading("scores", part, "a readable .parquet file"), open_parquet(part) as file:
            step = _LISTS if pa.types.is_nested(file.schema_arrow.field(name).type) else _BLOCK
            for batch in file.iter_batches(batch_size=step, columns=[name]):
                column = batch.column(0)
                is_list = hasattr(column, "flatten")
                values = column.flatten() if is_list else column
                if column.null_count or values.null_count:
                    got = f"{column.null_count + values.null_count} in a block"
                    raise_invalid("column", f"a column without nulls ({name!r})", got)
                row_of_score = column.value_parent_indices().to_numpy() if is_list else None
                yield _Block(values.to_numpy(zero_copy_only=False), len(column), row_of_score)
                del batch, column, values
                pa.default_memory_pool().release_unused()  # else freed pages stay resident
