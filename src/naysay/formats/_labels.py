"""Names, texts and titles of queries or documents, gathered a block at a time.

Texts need not be clean. A lone surrogate, which a byte of broken UTF-8 becomes when a file is read, passes through
lists; only Arrow, and so Parquet, cannot hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.encode._inputs import is_broken, string_list
from naysay.vocabulary import Vocabulary

Gather = Callable[[NDArray[np.int64]], list[str]]
_BLOCK = 4096


@final
class Labels:
    """Names and texts of the queries, or of the corpus: `names`, `texts` and `titles` are functions of rows, or None.

    Each is given as a list, an array, an Arrow array or a Vocabulary. Without ids, rows are called by their numbers. If
    `n` is None, there are as many rows as strings. Errors name the side, "query" or "corpus".
    """

    def __init__(self, side: str, n: int | None, *, ids: Any = None, texts: Any = None, titles: Any = None) -> None:
        """Raise for other lengths than `n`, for values that are not strings, and for repeated ids."""
        given = {f"{side}_ids": ids, f"{side}_texts": texts, f"{side}_titles": titles}
        sizes = {name: sized(name, values) for name, values in given.items() if values is not None}
        self.n = n if n is not None else next(iter(sizes.values()), 0)
        for name, size in sizes.items():
            if size != self.n:
                raise_invalid(name, f"of {self.n} strings, one for each row", size)
        self.names, self.texts, self.titles = (
            None if values is None else _gather(name, values) for name, values in given.items()
        )
        if self.names is not None and not isinstance(ids, Vocabulary):
            check_distinct(f"{side}_ids", self.names(np.arange(self.n)))

    def called(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the ids of rows as strings: names, or else numbers."""
        return self.names(rows) if self.names is not None else [str(row) for row in rows.tolist()]

    def ids(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the ids of rows: names, or else integers."""
        return self.names(rows) if self.names is not None else rows.tolist()

    def values(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return what a training file holds: texts, or else ids."""
        return self.texts(rows) if self.texts is not None else self.ids(rows)

    def kind(self, *, of_ids: bool = False) -> str:
        """Return the type of such a column: "text" or "number"."""
        return "text" if self.names is not None or (self.texts is not None and not of_ids) else "number"

    def blocks(self, gather: Gather | None) -> Iterator[list[str]]:
        """Yield all names, texts or titles in order, a block at a time; none if there are none."""
        for start in range(0, self.n, _BLOCK):
            if gather is not None:
                yield gather(np.arange(start, min(start + _BLOCK, self.n)))

    def check_utf8(self, side: str) -> None:
        """Raise for strings that UTF-8 cannot hold, for files that must be UTF-8."""
        for name, gather in (("ids", self.names), ("texts", self.texts), ("titles", self.titles)):
            for row, text in enumerate(chain.from_iterable(self.blocks(gather))):
                if is_broken(text):
                    got = f"{shown(text)} at row {row}"
                    advice = "Parquet holds UTF-8 only; .jsonl can escape what is broken."
                    raise_invalid(f"{side}_{name}", "text that UTF-8 can hold", got, advice)


def sized(parameter: str, values: Any) -> int:
    """Return the number of strings; raise for a single string."""
    if isinstance(values, str) or not hasattr(values, "__len__") or getattr(values, "shape", None) == ():
        raise_invalid(parameter, "a sequence of strings", shown(values))
    return len(values)


def strings(parameter: str, values: Any) -> list[str]:
    """Return a list of strings from a list, an array, an Arrow array or a vocabulary."""
    return _gather(parameter, values)(np.arange(sized(parameter, values)))


def _gather(parameter: str, values: Any) -> Gather:
    """Return the function that gathers strings by row, without a copy of an Arrow array; raise for other values."""
    if isinstance(values, Vocabulary):
        return values.names
    if type(values).__module__.partition(".")[0] != "pyarrow":
        listed = string_list(parameter, values)
        return lambda rows: list(map(listed.__getitem__, rows.tolist()))
    import pyarrow as pa

    if not isinstance(values, pa.Array | pa.ChunkedArray) or values.null_count:
        got = type(values).__name__ if not hasattr(values, "null_count") else f"{values.null_count} nulls"
        raise_invalid(parameter, "an Arrow column without nulls", got)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise_invalid(parameter, "strings", f"an Arrow column of {values.type}")
    return lambda rows: values.take(pa.array(rows)).to_pylist()


def check_distinct(parameter: str, names: Sequence[str]) -> None:
    """Raise for an id that occurs twice, with both rows."""
    if len({*names}) == len(names):
        return
    first: dict[str, int] = {}
    row = next(row for row, name in enumerate(names) if first.setdefault(name, row) != row)
    raise_invalid(parameter, "distinct", f"{shown(names[row])} at rows {first[names[row]]} and {row}")
