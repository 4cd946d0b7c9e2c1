"""What generators of `Learned` share: parameters in arrays, and steps of gradient ascent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.checks import check_number, check_whole
from naysay.rng import rng_for
from naysay.samplers import _looked_up as looked_up

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class Generator(Protocol):
    """What scores candidates and learns from rewards."""

    def logits(self, anchors: Ids, candidates: Ids) -> Floats:
        """(B, n), for candidates (B, n), or (B, n, 3) for triples."""
        ...

    def ascend(self, anchors: Ids, candidates: Ids, gradient: Floats) -> None:
        """One step up the gradient (B, n) in the logits."""
        ...

    def state(self) -> dict[str, Any]:
        """All parameters."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        ...


_PREFIX = "generator/"


def state_within(generator: Generator) -> dict[str, Any]:
    """The state of a generator, as a part of its sampler's."""
    return {f"{_PREFIX}{name}": value for name, value in generator.state().items()}


def read_within(state: Any, mine: Mapping[str, Entry]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The checked entries of a sampler's state that are its own, and the state of its generator."""
    given = state if isinstance(state, Mapping) else {}
    theirs = {str(name): value for name, value in given.items() if str(name).startswith(_PREFIX)}
    read = read_state(state, mine, others=tuple(theirs))
    return read, {name.removeprefix(_PREFIX): value for name, value in theirs.items()}


def weights_of(shape: tuple[int, ...]) -> Entry:
    """The entry of parameters in a state."""
    return Entry(shape)


@final
class Tables:
    """Arrays of parameters, by name."""

    def __init__(self, rate: float, decay: float, shapes: Mapping[str, tuple[int, ...]], seed: int) -> None:
        self.rate = check_number("rate", rate, above=0, finite=True)
        self.decay = check_number("decay", decay, at_least=0, below=1)
        rng = rng_for(check_whole("seed", seed, 0))
        self.arrays = {name: 0.1 * rng.standard_normal(shape) for name, shape in shapes.items()}

    def __getitem__(self, name: str) -> Floats:
        return self.arrays[name]

    def state(self) -> dict[str, Any]:
        """Copies of all."""
        return {name: array.copy() for name, array in self.arrays.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        read = read_state(state, {name: weights_of(array.shape) for name, array in self.arrays.items()})
        self.arrays = {name: np.ascontiguousarray(array) for name, array in read.items()}

    def add(self, name: str, rows: Any, gradient: Floats, left: Any = None) -> None:
        """A step: rows that come several times get the sum; decay pulls the touched rows to 0.

        With `left` (B, d) the gradient of row rows[b, j] is gradient[b, j] * left[b].
        """
        table = self.arrays[name]
        if self.decay:
            table[np.unique(rows)] *= 1 - self.decay
        looked_up.add(table, rows, self.rate, gradient, left)
