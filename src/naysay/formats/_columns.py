"""The columns of a block of rows, and the kinds of values that they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Values of one kind, one for each row.

    Args:
        kind: "text", "number" or "float", or lists of them: "texts", "numbers", "floats"; or lists of objects:
            "passages" with docid and text, "titled" with a title as well.
        values: Python objects, as JSON takes them.
    """

    kind: str
    values: list[Any]


Columns = dict[str, Column]


def lists(kind: str) -> str:
    """The kind of lists of values of a kind."""
    return f"{kind}s"


def arrow_schema(columns: Columns) -> Any:
    """The Arrow schema of columns; strings are large, so that no block is too long for its offsets."""
    import pyarrow as pa

    plain = {"text": pa.large_string(), "number": pa.int64(), "float": pa.float32()}
    passage = [("docid", pa.large_string()), ("text", pa.large_string())]
    titled = [passage[0], ("title", pa.large_string()), passage[1]]
    kinds = plain | {lists(kind): pa.list_(inner) for kind, inner in plain.items()}
    kinds |= {"passages": pa.list_(pa.struct(passage)), "titled": pa.list_(pa.struct(titled))}
    return pa.schema([(name, kinds[column.kind]) for name, column in columns.items()])


def rows_of(columns: Columns) -> int:
    """How many rows there are."""
    return len(next(iter(columns.values())).values)
