"""The promise of parts that learn: their state can be written down, and it is all of it."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import numpy as np

from naysay.arrays import to_numpy
from naysay.errors import NaysayError
from naysay.rng import rng_for
from naysay.testing._trials import MANY, Trial, differs
from naysay.types import Stateful


def saved_state(part: Any) -> Any:
    """A copy of a part's state, or None if it keeps none."""
    return copy.deepcopy(part.state()) if isinstance(part, Stateful) else None


def state(trial: Trial) -> str | None:
    """A flat dictionary of arrays, numbers and strings, and all of it: restored, the next draw is the same."""
    if trial.saved is None:
        return None
    strange = _strange(trial.saved)
    if strange is not None:
        return f"keeps {strange}; a state is a flat dictionary of arrays, numbers and strings"
    query = trial.batches.mixed(MANY)
    first = trial.ask(query)
    for step in range(1, 4):  # let it move, as far as drawing and observing move it
        drawn = trial.call(query, trial.slots, rng=rng_for(trial.seed, step))
        if hasattr(trial.part, "observe"):
            with suppress(NaysayError):  # it wants to see scores or vectors, which nobody has here
                trial.part.observe(query, drawn)
    difference = differs(first, trial.ask(query))
    return None if difference is None else f"gave other {difference} after restore(state())"


def _strange(state: Any) -> str | None:
    """What in a state `np.savez(file, **state)` could not write down without pickle, or None."""
    if not isinstance(state, dict):
        return f"a {type(state).__name__} in place of a dictionary"
    for key, value in state.items():
        if not isinstance(key, str):
            return f"the key {key!r}"
        plain = to_numpy(value)
        number = isinstance(plain, bool | int | float | str | np.generic)
        if not number and not (isinstance(plain, np.ndarray) and plain.dtype.kind != "O"):
            return f"a {type(value).__name__} at {key!r}"
    return None
