"""Parts of one whole: their states in one flat dictionary, and changes that all of them take or none.

A state is written with `np.savez(file, **state)` and read with `np.load(file, allow_pickle=False)`, which keep arrays
under plain names. So the state of part "a" stands in that of the whole under "a/...", and numbers come back as arrays
without dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import check_whole, raise_invalid, shown
from naysay.types import Stateful


def joined_states(parts: Mapping[str, Stateful]) -> dict[str, Any]:
    """{"name/key": value} of what each part keeps; a part that has learnt nothing has no key."""
    return {f"{name}/{key}": value for name, part in parts.items() for key, value in part.state().items()}


def parted_states(state: object, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """{name: state} out of what `joined_states` gave; a key of no part is refused. No name has a slash."""
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    wanted = f"a dictionary with the states of {sorted(found)}, as `state` gave"
    if not isinstance(state, Mapping):
        raise_invalid("state", wanted, type(state).__name__)
    for key in state:
        name, slash, inner = str(key).partition("/")
        if not slash or name not in found:
            raise_invalid("state", wanted, f"the key {shown(key)}")
        found[name][inner] = state[key]
    return found


def all_or_none(parts: Mapping[str, Any], change: Callable[[str, Any], None]) -> None:
    """change(name, part) of each in turn; if one fails, those that have a state are put back.

    A part that refuses has changed nothing, so the state of the last one is never copied: one part alone costs nothing.
    """
    before: list[tuple[Stateful, dict[str, Any]]] = []
    try:
        for place, (name, part) in enumerate(parts.items(), 1):
            if place < len(parts) and isinstance(part, Stateful):
                before.append((part, part.state()))
            change(name, part)
    except BaseException:
        for part, state in reversed(before):
            part.restore(state)
        raise


def plain(value: Any) -> Any:
    """A number of a state, which files keep as an array without dimensions, as Python's own; others as they are."""
    value = to_numpy(value)
    return value.item() if isinstance(value, np.ndarray | np.generic) and value.ndim == 0 else value


def whole_of_state(name: str, value: Any, least: int) -> int:
    """A whole number of a state, of at least `least`."""
    return check_whole(name, plain(value), least)
