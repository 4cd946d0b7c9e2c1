"""Names, texts and titles of queries or documents, gathered as Arrow arrays, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.encode._inputs import text_array
from naysay.vocabulary import Vocabulary

Ids = NDArray[np.int64]
Gather = Callable[[Ids], Any]  # the strings of some rows, as a list or an Arrow array
_BLOCK = 4096  # names that are Python strings at a time


@final
@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The names and texts of the queries, or of the corpus. Without names, rows are called by their numbers."""

    n: int
    ids_of: Gather | None = None
    texts_of: Gather | None = None
    titles_of: Gather | None = None
    name: str = ""  # of the whole corpus

    def ids(self, rows: Ids) -> Any:
        """Names, or else numbers."""
        import pyarrow as pa

        return pa.array(rows, pa.int64()) if self.ids_of is None else _strings(self.ids_of(rows))

    def names(self, rows: Ids) -> Any:
        """Names, or else numbers as strings."""
        return self.ids(rows).cast("large_string")

    def texts_or_ids(self, rows: Ids) -> Any:
        """Texts, or else ids."""
        return self.ids(rows) if self.texts_of is None else _strings(self.texts_of(rows))

    def titles(self, rows: Ids) -> Any:
        """Titles; None if there are none."""
        return None if self.titles_of is None else _strings(self.titles_of(rows))

    def name_blocks(self) -> Iterator[list[str]]:
        """All names in order, a block at a time; none if there are none."""
        for start in range(0, self.n if self.ids_of is not None else 0, _BLOCK):
            yield self.ids(np.arange(start, min(start + _BLOCK, self.n))).to_pylist()


def _strings(gathered: Any) -> Any:
    import pyarrow as pa

    is_arrow = isinstance(gathered, pa.Array | pa.ChunkedArray)
    return gathered.cast(pa.large_string()) if is_arrow else pa.array(gathered, pa.large_string())


def labels_of(
    side: str, n: int | None, *, ids: Any = None, texts: Any = None, titles: Any = None, name: str = ""
) -> Labels:
    """Check names, texts and titles of `n` rows, or of as many as there are strings; `side` is "query" or "corpus"."""
    gathers: dict[str, Gather] = {}
    for what, values in (("ids", ids), ("texts", texts), ("titles", titles)):
        if values is not None:
            size, gathers[what] = _gather(f"{side}_{what}", values)
            n = size if n is None else n
            if size != n:
                raise_invalid(f"{side}_{what}", f"of {n} strings, one for each row", size)
    labels = Labels(n or 0, gathers.get("ids"), gathers.get("texts"), gathers.get("titles"), name)
    if ids is not None and not isinstance(ids, Vocabulary):
        check_distinct(f"{side}_ids", [name for block in labels.name_blocks() for name in block])
    return labels


def strings(parameter: str, values: Any) -> list[str]:
    """Return a list of strings from a list, an array, an Arrow array or a vocabulary."""
    if isinstance(values, Vocabulary):
        return values.names(np.arange(len(values)))
    listed: list[str] = text_array(parameter, values).to_pylist()
    return listed


def _gather(parameter: str, values: Any) -> tuple[int, Gather]:
    """How many strings there are, and the function that gathers them by row."""
    import pyarrow as pa

    if isinstance(values, Vocabulary):
        return len(values), values.names
    texts = text_array(parameter, values)
    return len(texts), lambda rows: texts.take(pa.array(rows))


def check_distinct(parameter: str, names: Sequence[str]) -> None:
    """Raise for an id that occurs twice, with both rows."""
    if len({*names}) == len(names):
        return
    first: dict[str, int] = {}
    row = next(row for row, name in enumerate(names) if first.setdefault(name, row) != row)
    raise_invalid(parameter, "distinct", f"{shown(names[row])} at rows {first[names[row]]} and {row}")
