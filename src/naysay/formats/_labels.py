"""Names, texts and titles of queries or documents, gathered as Arrow arrays, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.encode._inputs import is_broken, string_list
from naysay.vocabulary import Vocabulary

Ids = NDArray[np.int64]
Gather = Callable[[Ids], Any]  # the strings of some rows, as a list or an Arrow array
_BLOCK = 4096  # strings that are checked at a time


@final
class Labels:
    """The names and texts of the queries, or of the corpus. Without names, rows are called by their numbers.

    Ids, texts and titles are functions of rows, or None; `labels_of` makes them of what users pass. `side` is "query"
    or "corpus", for errors; `name` is that of the whole corpus.
    """

    def __init__(
        self,
        side: str,
        n: int,
        *,
        ids: Gather | None = None,
        texts: Gather | None = None,
        titles: Gather | None = None,
        name: str = "",
    ) -> None:
        self.side, self.n, self.name = side, n, name
        self._ids, self._texts, self._titles = ids, texts, titles

    @property
    def has_texts(self) -> bool:
        """Whether there are texts."""
        return self._texts is not None

    @property
    def has_titles(self) -> bool:
        """Whether there are titles."""
        return self._titles is not None

    def names(self, rows: Ids) -> Any:
        """The ids of rows as strings: names, or else numbers."""
        import pyarrow as pa

        return pa.array(map(str, rows.tolist()), pa.large_string()) if self._ids is None else self.ids(rows)

    def ids(self, rows: Ids) -> Any:
        """The ids of rows: names, or else numbers."""
        import pyarrow as pa

        return pa.array(rows, pa.int64()) if self._ids is None else self._strings("ids", self._ids, rows)

    def texts_or_ids(self, rows: Ids) -> Any:
        """What a training file holds: texts, or else ids."""
        return self.ids(rows) if self._texts is None else self._strings("texts", self._texts, rows)

    def titles(self, rows: Ids) -> Any:
        """Titles."""
        return None if self._titles is None else self._strings("titles", self._titles, rows)

    def name_blocks(self) -> Iterator[list[str]]:
        """All names in order, a block at a time; none if there are none."""
        if self._ids is not None:
            for start in range(0, self.n, _BLOCK):
                yield self.ids(np.arange(start, min(start + _BLOCK, self.n))).to_pylist()

    def _strings(self, what: str, gather: Gather, rows: Ids) -> Any:
        import pyarrow as pa

        strings = gather(rows)
        if isinstance(strings, pa.Array | pa.ChunkedArray):
            return strings.cast(pa.large_string())
        try:
            return pa.array(strings, pa.large_string())
        except UnicodeEncodeError:
            place = next(place for place, text in enumerate(strings) if is_broken(text))
            got = f"{shown(strings[place])} at row {rows[place]}"
            raise_invalid(f"{self.side}_{what}", "text that UTF-8 can hold", got)


def labels_of(
    side: str, n: int | None, *, ids: Any = None, texts: Any = None, titles: Any = None, name: str = ""
) -> Labels:
    """Check names, texts and titles, each a list, an array, an Arrow array or a Vocabulary, of `n` strings.

    If `n` is None, there are as many rows as strings.
    """
    given = {f"{side}_ids": ids, f"{side}_texts": texts, f"{side}_titles": titles}
    sizes = {parameter: sized(parameter, values) for parameter, values in given.items() if values is not None}
    rows = n if n is not None else next(iter(sizes.values()), 0)
    for parameter, size in sizes.items():
        if size != rows:
            raise_invalid(parameter, f"of {rows} strings, one for each row", size)
    gathers = [None if values is None else _gather(parameter, values) for parameter, values in given.items()]
    labels = Labels(side, rows, ids=gathers[0], texts=gathers[1], titles=gathers[2], name=name)
    if ids is not None and not isinstance(ids, Vocabulary):
        check_distinct(f"{side}_ids", [name for block in labels.name_blocks() for name in block])
    return labels


def sized(parameter: str, values: Any) -> int:
    """Return the number of strings; raise for a single string."""
    if isinstance(values, str) or not hasattr(values, "__len__") or getattr(values, "shape", None) == ():
        raise_invalid(parameter, "a sequence of strings", shown(values))
    return len(values)


def strings(parameter: str, values: Any) -> list[str]:
    """Return a list of strings from a list, an array, an Arrow array or a vocabulary."""
    found = _gather(parameter, values)(np.arange(sized(parameter, values)))
    return found if isinstance(found, list) else found.to_pylist()


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
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return lambda rows: whole.take(pa.array(rows))


def check_distinct(parameter: str, names: Sequence[str]) -> None:
    """Raise for an id that occurs twice, with both rows."""
    if len({*names}) == len(names):
        return
    first: dict[str, int] = {}
    row = next(row for row, name in enumerate(names) if first.setdefault(name, row) != row)
    raise_invalid(parameter, "distinct", f"{shown(names[row])} at rows {first[names[row]]} and {row}")
