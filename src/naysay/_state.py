"""States of parts that learn: named entries that are read back, and the states of several parts in one.

A state is a dictionary of arrays and numbers. `np.savez(file, **state)` writes it and `np.load(file)` reads it without
pickle, so names are plain, and numbers come back as arrays of no dimensions. The state of a part "a" is under "a/...".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay.arrays import to_numpy
from naysay.checks import as_array, check_kind, raise_invalid, shown
from naysay.types import Stateful

_RULE = "what `state` returned"


class Entry(NamedTuple):
    """One named value of a state: its shape, where a name is any length, and whether it is of whole numbers.

    A name has the same length in all entries of a state. What the numbers mean is not checked.
    """

    shape: tuple[int | str, ...] = ()
    whole: bool = False


def read_state(state: Any, entries: Mapping[str, Entry], others: Iterable[str] = ()) -> dict[str, NDArray[Any]]:
    """{name: a new int64 or float64 array} of a state. Keys of `others` may be there too, and are not read."""
    check_state(state, entries, others)
    lengths: dict[str, int] = {}
    arrays = {}
    for name, entry in entries.items():
        array = as_array(name, to_numpy(state[name]))
        expected = [lengths.get(size, size) if isinstance(size, str) else size for size in entry.shape]
        same_shape = len(expected) == array.ndim and all(
            isinstance(size, str) or size == length for size, length in zip(expected, array.shape, strict=True)
        )
        kinds = "iuf" if not entry.whole or array.size == 0 else "biu"  # an empty list becomes an array of floats
        same_kind = array.dtype.kind in kinds
        if not same_shape or not same_kind:
            kind = "whole numbers" if entry.whole else "numbers"
            shape = f"({', '.join(map(str, expected))})"
            raise_invalid(name, f"{kind} of shape {shape}", f"{array.dtype} of shape {array.shape}")
        for size, length in zip(expected, array.shape, strict=True):
            if isinstance(size, str):
                lengths[size] = length
        arrays[name] = array.astype(np.int64 if entry.whole else np.float64)
    return arrays


def check_state(state: Any, keys: Iterable[str], others: Iterable[str] | None = None) -> None:
    """Raise unless `state` is a dictionary with all of these keys, and no others than `others`, if those are given."""
    check_kind("state", state, Mapping, _RULE)
    expected = list(keys)
    for key in expected:
        if key not in state:
            raise_invalid("state", _RULE, f"no {key!r} in {shown(list(state))}")
    if others is None:
        return
    known = {*expected, *others}
    for key in state:
        if key not in known:
            raise_invalid("state", _RULE, f"the unknown key {shown(key)}")


def joined_states(parts: Mapping[str, Stateful]) -> dict[str, Any]:
    """The states of all parts as one: {"name/key": value}."""
    return {f"{name}/{key}": value for name, part in parts.items() for key, value in part.state().items()}


def split_states(state: Any, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """{name: state} of what `joined_states` returned. Names contain no slash; other keys are errors."""
    states: dict[str, dict[str, Any]] = {name: {} for name in names}
    rule = f"a dictionary with the states of {sorted(states)}, as `state` returned"
    check_kind("state", state, Mapping, rule)
    for key in state:
        name, slash, inner = str(key).partition("/")
        if not slash or name not in states:
            raise_invalid("state", rule, f"the key {shown(key)}")
        states[name][inner] = state[key]
    return states


def all_or_none(lock: Lock, parts: Mapping[str, Any], change: Callable[[str, Any], None]) -> None:
    """Call change(name, part) for each part. If one raises, the states of those before it are restored.

    A part that raises has not changed, so the last part's state is never copied. The lock keeps other threads from
    changing the parts in between: restoring them would undo their change.
    """
    before: list[tuple[Stateful, dict[str, Any]]] = []
    with lock:
        try:
            for place, (name, part) in enumerate(parts.items(), 1):
                if place < len(parts) and isinstance(part, Stateful):
                    before.append((part, part.state()))
                change(name, part)
        except BaseException:
            for part, state in reversed(before):
                part.restore(state)
            raise
