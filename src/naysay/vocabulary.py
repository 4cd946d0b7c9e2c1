"""A vocabulary: the strings that users call their anchors and items, and the ids that everything else uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_range, first_bad, refuse, whole_numbers


@final
class Vocabulary:
    """Names in the order of their ids, held as one run of UTF-8 bytes with offsets, so that it maps from disk.

    >>> words = Vocabulary(["cat", "dog"])
    >>> words.ids(["dog", "cat"]).tolist(), words.names([1])
    ([1, 0], ['dog'])
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Take distinct names; the id of a name is its place."""
        import pyarrow as pa

        try:
            array = pa.array(names, pa.large_string())
        except (TypeError, ValueError) as error:
            refuse("Vocabulary", "names", "strings", str(error).splitlines()[0])
        if array.null_count:
            refuse("Vocabulary", "names", "strings", first_bad(np.asarray(names), np.asarray(array.is_null())))
        self._set(array)
        if len(self._index) != len(names):
            twice = next(name for place, name in enumerate(names) if self._index[name] != place)
            refuse("Vocabulary", "names", "distinct", f"{twice!r} more than once")

    def _set(self, array: Any) -> None:
        self._array = array
        self._index: dict[str, int] = {name: place for place, name in enumerate(array.to_pylist())}

    def ids(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The ids of names; an unknown name is refused with the first one and how many."""
        found = np.fromiter((self._index.get(name, -1) for name in names), np.int64, len(names))
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            got = first_bad(np.asarray(names), found < 0)
            refuse("Vocabulary.ids", "names", f"among the {len(self):,} known names", got)
        return found

    def names(self, ids: Any) -> list[str]:
        """The names of ids, (n,)."""
        import pyarrow as pa

        places = whole_numbers("Vocabulary.names", "ids", to_numpy(ids))
        check_range("Vocabulary.names", "ids", places, len(self), "names")
        found: list[str] = self._array.take(pa.array(places)).to_pylist()
        return found

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The two arrays to save: bytes and offsets."""
        _, where, text = self._array.buffers()
        starts = np.frombuffer(where, np.int64)[: len(self) + 1]
        data = np.frombuffer(text, np.uint8)[: starts[-1]] if text is not None else np.empty(0, np.uint8)
        return {f"{prefix}_offsets": starts, f"{prefix}_bytes": data}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str) -> Vocabulary | None:
        """What `arrays` gave, or None if it is not among them; a damaged one is refused."""
        import pyarrow as pa

        if f"{prefix}_offsets" not in arrays:
            return None
        try:
            starts = np.ascontiguousarray(arrays[f"{prefix}_offsets"], np.int64)
            data = np.ascontiguousarray(arrays[f"{prefix}_bytes"], np.uint8)
            names = pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(data))
            names.validate(full=True)
        except (KeyError, ValueError) as error:
            got = f"{prefix}: {str(error).splitlines()[0]}"
            refuse("Vocabulary.from_arrays", "arrays", "offsets that fit their UTF-8 bytes", got)
        vocabulary = cls.__new__(cls)
        vocabulary._set(names)
        return vocabulary

    def __len__(self) -> int:
        """How many names there are."""
        return len(self._array)

    def __eq__(self, other: object) -> bool:
        """Equal names in equal order."""
        return isinstance(other, Vocabulary) and bool(self._array.equals(other._array))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to a spawned worker as a list of names."""
        return Vocabulary, (self._array.to_pylist(),)


def shared_names(
    owner: str, kind: str, one: Vocabulary | None, other: Vocabulary | None, size: int
) -> Vocabulary | None:
    """The names of a union of `size` anchors or items: of either side, and of both if both have some."""
    if one is not None and other is not None and one != other:
        advice = "Encode both with one vocabulary first: vocabulary.ids(names)."
        refuse(owner, "other", f"of the same {kind} names", "another vocabulary", advice)
    names = one if one is not None else other
    if names is not None and size > len(names):
        rule = f"of at most {len(names)} {kind}s, as many as have a name"
        refuse(owner, "other", rule, f"{size} in all")
    return names
