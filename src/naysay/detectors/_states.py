"""States of detectors: reading one back, and several in one flat dictionary.

A state is written with `np.savez(file, **state)` and read with `np.load(file, allow_pickle=False)`. Those keep arrays
under plain names, so the state of part "a" is stored under "a/...", and numbers come back as arrays of no dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import check_whole, raise_invalid, shown
from naysay.types import Stateful


def check_state(state: object, keys: Iterable[str]) -> None:
    """Raise unless `state` is a dictionary with all of these keys."""
    if not isinstance(state, Mapping):
        raise_invalid("state", "what `state` returned", type(state).__name__)
    missing = [key for key in keys if key not in state]
    if missing:
        raise_invalid("state", "what `state` returned", f"no {missing[0]!r} in {shown(list(state))}")


def plain(value: Any) -> Any:
    """Return an array of no dimensions as Python's own number, and anything else as it is."""
    value = to_numpy(value)
    return value.item() if isinstance(value, np.ndarray | np.generic) and value.ndim == 0 else value


def whole_of_state(name: str, value: Any, least: int) -> int:
    """Return a number of a state as an int of at least `least`."""
    return check_whole(name, plain(value), least)


def joined_states(parts: Mapping[str, Stateful]) -> dict[str, Any]:
    """Return the states of all parts as one: {"name/key": value}."""
    return {f"{name}/{key}": value for name, part in parts.items() for key, value in part.state().items()}


def split_states(state: object, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return {name: state} from what `joined_states` returned. Names contain no slash; other keys are errors."""
    states: dict[str, dict[str, Any]] = {name: {} for name in names}
    rule = f"a dictionary with the states of {sorted(states)}, as `state` returned"
    if not isinstance(state, Mapping):
        raise_invalid("state", rule, type(state).__name__)
    for key in state:
        name, slash, inner = str(key).partition("/")
        if not slash or name not in states:
            raise_invalid("state", rule, f"the key {shown(key)}")
        states[name][inner] = state[key]
    return states


def all_or_none(parts: Mapping[str, Any], change: Callable[[str, Any], None]) -> None:
    """Call change(name, part) for each part. If one fails, restore the states of those before it.

    A part that raises has not changed, so the last part's state is never copied, and a single part costs nothing.
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
