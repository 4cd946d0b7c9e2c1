"""States of detectors: reading them back, and several states in one.

A state is written with `np.savez(file, **state)` and read with `np.load(file, allow_pickle=False)`. Those keep arrays
under plain names, so the state of part "a" is stored under "a/...", and numbers come back as arrays of no dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, check_kind, raise_invalid, shown
from naysay.types import Stateful


class Entry(NamedTuple):
    """What an entry of a state must be: finite numbers of a shape, where a letter is any length, within limits."""

    shape: tuple[int | str, ...] = ()
    whole: bool = False
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    missing: bool = False  # whether NaN stands for what is not there


_LIMITS = {"above": np.greater, "at_least": np.greater_equal, "below": np.less, "at_most": np.less_equal}


def read_state(state: Any, entries: Mapping[str, Entry], others: Iterable[str] = ()) -> dict[str, NDArray[Any]]:
    """{name: float64 or int64} of a state: new arrays, checked. Missing and unknown keys are errors.

    Keys of `others` may be there, too, and are not read. A letter of the shapes has one length in all entries.
    """
    check_state(state, entries, others)
    lengths: dict[str, int] = {}
    found = {}
    for name, entry in entries.items():
        array = as_array(name, to_numpy(state[name]))
        sizes = [lengths.get(size, size) if isinstance(size, str) else size for size in entry.shape]
        fits = len(sizes) == array.ndim and all(
            isinstance(size, str) or size == length for size, length in zip(sizes, array.shape, strict=True)
        )
        kinds = ("biu" if entry.at_most == 1 else "iu") if entry.whole else "iuf"  # True and False are 1 and 0
        kinds += "f" * (not array.size)  # what an empty list becomes
        if not fits or array.dtype.kind not in kinds:
            kind = "whole number" if entry.whole else "number"
            if not sizes:
                raise_invalid(name, f"a {kind}", shown(state[name]))
            rule = f"{kind}s of shape ({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"
            raise_invalid(name, rule, f"{array.dtype} of shape {array.shape}")
        lengths |= {size: length for size, length in zip(sizes, array.shape, strict=True) if isinstance(size, str)}
        if array.dtype == np.uint64:
            check_all(name, array, array <= np.uint64(np.iinfo(np.int64).max), "below 2^63")
        values = found[name] = array.astype(np.int64 if entry.whole else np.float64)
        absent = np.isnan(values) & entry.missing
        check_all(name, values, np.isfinite(values) | absent, "finite")
        for limit, fits_limit in _LIMITS.items():
            bound = getattr(entry, limit)
            if bound is not None:
                check_all(name, values, fits_limit(values, bound) | absent, f"{limit.replace('_', ' ')} {bound:g}")
    return found


def check_state(state: Any, keys: Iterable[str], others: Iterable[str] | None = None) -> None:
    """Raise unless `state` is a dictionary with all of these keys, and no others than `others`, if those are given."""
    rule, keys = "what `state` returned", list(keys)
    check_kind("state", state, Mapping, rule)
    for key in keys:
        if key not in state:
            raise_invalid("state", rule, f"no {key!r} in {shown(list(state))}")
    for key in () if others is None else [key for key in state if key not in {*keys, *others}]:
        raise_invalid("state", rule, f"the unknown key {shown(key)}")


def joined_states(parts: Mapping[str, Stateful]) -> dict[str, Any]:
    """Return the states of all parts as one: {"name/key": value}."""
    return {f"{name}/{key}": value for name, part in parts.items() for key, value in part.state().items()}


def split_states(state: Any, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return {name: state} from what `joined_states` returned. Names contain no slash; other keys are errors."""
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
    """Call change(name, part) for each part. If one fails, restore the states of those before it.

    A part that raises has not changed, so the last part's state is never copied, and a single part costs nothing. The
    lock keeps another thread from changing the parts in between: restoring them would undo its change.
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
