"""A vocabulary: the names of anchors or items, and the ids that everything else uses."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_range, first_bad, public, raise_invalid, shown, whole_numbers
from naysay.errors import NaysayWarning
from naysay.text import first_line

__all__ = ["Vocabulary"]
_MANY_GAPS = 100  # unused ids that are worth a warning: fewer are a small example


@final
@public
class Vocabulary:
    """Names in the order of their ids, stored as UTF-8 bytes with offsets, so that they can be memory-mapped.

    Args:
        names: Distinct names, also as an Arrow array. The id of a name is its place.

    Raises:
        NaysayError: If names are not distinct strings.

    Examples:
        >>> words = Vocabulary(["cat", "dog"])
        >>> words.ids(["dog", "cat"]).tolist(), words.names([1])
        ([1, 0], ['dog'])
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Check the names."""
        import pyarrow as pa

        if isinstance(names, str):
            raise_invalid("names", "a sequence of names", shown(names), f"Pass [{shown(names)}].")
        try:
            array = names.cast(pa.large_string()) if isinstance(names, pa.Array) else pa.array(names, pa.large_string())
        except (TypeError, ValueError) as error:
            raise_invalid("names", "strings", first_line(error))
        if array.null_count:
            raise_invalid("names", "strings", first_bad(np.asarray(names), np.asarray(array.is_null())))
        self._array = array
        if len(array.unique()) != len(array):
            self._places([])  # raises: they are not distinct

    @cached_property
    def _index(self) -> dict[str, int]:
        """Names to ids, made when it is first needed, because it takes far more memory than the names."""
        index = {name: place for place, name in enumerate(self._array.to_pylist())}
        if len(index) < len(self):  # also those of a damaged folder
            twice = next(name for place, name in enumerate(self._array.to_pylist()) if index[name] != place)
            raise_invalid("names", "distinct", f"{twice!r} more than once")
        return index

    def ids(self, names: Any) -> NDArray[np.int64]:
        """The ids of names (n,); a whole number is the name of its digits. Raises NaysayError if one is unknown."""
        return ids_of_names(self, "names", names)

    def _places(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The ids of names, -1 for those that are not known."""
        index = self._index
        return np.fromiter((index.get(name, -1) for name in names), np.int64, len(names))

    def names(self, ids: Any) -> list[str]:
        """The names of ids, (n,)."""
        import pyarrow as pa

        places = whole_numbers("ids", to_numpy(ids))
        check_range("ids", places, len(self), "names")
        names: list[str] = self._array.take(pa.array(places)).to_pylist()
        return names

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The two arrays to save, bytes and offsets, under names that begin with `prefix`."""
        _, where, text = self._array.buffers()
        starts, data = np.zeros(1, np.int64), np.empty(0, np.uint8)
        if len(self):
            first = self._array.offset  # an Arrow array may be a part of a longer one
            starts = np.frombuffer(where, np.int64)[first : first + len(self) + 1]
            data = np.frombuffer(text, np.uint8)[starts[0] : starts[-1]] if text is not None else data
        return {f"{prefix}_offsets": starts - starts[0], f"{prefix}_bytes": data}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str) -> Vocabulary | None:
        """The vocabulary saved by `arrays`, or None if there is none. Raises NaysayError if it is damaged."""
        import pyarrow as pa

        if f"{prefix}_offsets" not in arrays:
            return None
        try:
            starts = np.ascontiguousarray(arrays[f"{prefix}_offsets"], np.int64)
            data = np.ascontiguousarray(arrays[f"{prefix}_bytes"], np.uint8)
            names = pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(data))
            names.validate(full=True)
        except (KeyError, ValueError) as error:
            got = f"{prefix}: {first_line(error)}"
            raise_invalid("arrays", "offsets that fit their UTF-8 bytes", got)
        vocabulary = cls.__new__(cls)
        vocabulary._array = names
        return vocabulary

    def __len__(self) -> int:
        """How many names there are."""
        return len(self._array)

    def __eq__(self, other: object) -> bool:
        """Equal names in equal order."""
        return isinstance(other, Vocabulary) and bool(self._array.equals(other._array))

    def __repr__(self) -> str:
        """The number of names, and the first of them."""
        first = ", ".join(map(shown, self._array[:3].to_pylist()))
        return f"Vocabulary({len(self):,} names{': ' if first else ''}{first}{', ...' if len(self) > 3 else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as two arrays, for a spawned worker."""
        return Vocabulary.from_arrays, (self.arrays("names"), "names")


def arrays_of_names(part: Any, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """`Vocabulary.arrays` of the named attributes of a part that are not None."""
    found = {name: getattr(part, name) for name in names}
    return {key: array for name, one in found.items() if one is not None for key, array in one.arrays(name).items()}


def shown_extras(part: Any, names: Sequence[str]) -> str:
    """The named attributes for a repr, without those that are 0 or None."""
    found = {name: getattr(part, name) for name in names}
    return "".join(f", {name}={value}" for name, value in found.items() if value)


def unused_ids(size: int, ids: NDArray[Any]) -> int:
    """How many of 0 ... size - 1 are not among the ids."""
    if size > 8 * ids.size:
        return size - len(np.unique(ids))
    used = np.zeros(size, np.bool_)
    used[ids] = True
    return size - int(np.count_nonzero(used))


def warn_of_gaps(name: str, what: str, size: int, ids: NDArray[Any], advice: str) -> int:
    """Return `unused_ids`, and warn if there are many: each would be drawn as if it existed."""
    unused = unused_ids(size, ids)
    if unused >= _MANY_GAPS and unused > size / 10:
        message = (
            f"{unused:,} of the {size:,} {what} ids from 0 to {size - 1:,} ({unused / size:.1%}) occur nowhere, and "
            f"may be drawn as negatives. Pass {name}={size} if they all exist, or {advice}."
        )
        frame, level = sys._getframe(), 1
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "naysay":
            frame, level = frame.f_back, level + 1
        warnings.warn(message, NaysayWarning, stacklevel=level)
    return unused


def joined_names(
    one: Vocabulary | None, other: Vocabulary | None
) -> tuple[Vocabulary | None, NDArray[np.int64] | None]:
    """A vocabulary that keeps the ids of `one`; and the new ids of `other`, or None if they are kept, too."""
    import pyarrow as pa

    if one is None or other is None or one == other:
        return (other if one is None else one), None
    names = other._array.to_pylist()
    ids = one._places(names)
    new = np.flatnonzero(ids < 0)
    ids[new] = len(one) + np.arange(len(new))
    return Vocabulary(pa.concat_arrays([one._array, other._array.take(pa.array(new))])), ids


def ids_of_names(vocabulary: Vocabulary, parameter: str, names: Any) -> NDArray[np.int64]:
    """`Vocabulary.ids` for internal callers. An Arrow array costs one look-up for each distinct name."""
    import pyarrow as pa

    ids: NDArray[np.int64]
    names = _numbers_as_arrow(names)
    if isinstance(names, pa.Array):
        coded = names.dictionary_encode()
        known = coded.dictionary.cast(pa.large_string()).to_pylist()
        ids = vocabulary._places(known)[coded.indices.to_numpy(zero_copy_only=False)]
    else:
        if isinstance(names, str):  # its letters are not names
            raise_invalid(parameter, "a sequence of names", shown(names), f"Pass [{shown(names)}].")
        try:
            ids = vocabulary._places(names)
        except TypeError:  # no length, or a name that cannot be looked up
            raise_invalid(parameter, "a sequence of names", shown(names))
    if len(ids) and ids.min() < 0:
        raise_invalid(parameter, f"among the {len(vocabulary):,} known names", first_bad(np.asarray(names), ids < 0))
    return ids


def _numbers_as_arrow(names: Any) -> Any:
    """Whole numbers as an Arrow array; anything else as it is."""
    import pyarrow as pa

    values = to_numpy(names)
    if isinstance(values, list | tuple) and values and isinstance(values[0], int):
        values = np.asarray(values)
    whole = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu"
    return pa.array(values) if whole else values
