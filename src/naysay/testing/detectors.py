"""check_detector: what every detector of false negatives promises."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_lengths, public, raise_invalid
from naysay.testing._trials import equal
from naysay.testing.promises import Promises, check_promises, named, used_generator
from naysay.types import Detector, Negatives, Query, check_query


@dataclass(frozen=True)
class Trial:
    """A detector under test, with a query and negatives."""

    detector: Detector
    query: Query
    negatives: Negatives

    def ask(self) -> NDArray[Any]:
        """Its suspicion, in NumPy."""
        return np.asarray(to_numpy(self.detector.suspicion(self.query, self.negatives)))

    def emptied(self, every: int) -> Trial:
        """The same with every slot empty, or every second one."""
        ids = copy.deepcopy(self.negatives.ids)
        ids[:, ::every] = -1
        return replace(self, negatives=replace(self.negatives, ids=ids))


def _first_rows(flowing: Any, stop: int) -> Any:
    """A query or negatives with the first `stop` rows of all its arrays."""
    cut = {f.name: getattr(flowing, f.name) for f in fields(flowing)}
    return replace(flowing, **{name: value[:stop] for name, value in cut.items() if hasattr(value, "dtype")})


def shape(trial: Trial) -> Iterator[str]:
    """(B, K), a number for each slot."""
    given = trial.ask().shape
    if given != trial.negatives.shape:
        yield f"returned shape {given} for negatives of shape {trial.negatives.shape}"


def dtype(trial: Trial) -> Iterator[str]:
    """A floating-point number, not a flag: a threshold can be chosen later."""
    given = trial.ask().dtype
    if given.kind != "f":
        yield f"returned dtype {given}; suspicion is a float"


def range_(trial: Trial) -> Iterator[str]:
    """Finite, from 0 to 1."""
    given = trial.ask()
    bad = ~((given >= 0) & (given <= 1))
    if not bad.any():
        return
    row, slot = np.argwhere(bad)[0]
    yield f"returned {given[row, slot]} at row {row}, slot {slot}; suspicion is within 0 ... 1 ({bad.sum()} such)"


def empty(trial: Trial) -> Iterator[str]:
    """0 in an empty slot."""
    given = trial.emptied(every=2)
    bad = given.ask()[np.asarray(to_numpy(given.negatives.ids)) < 0]
    if (bad != 0).any():
        yield f"returned {bad[bad != 0][0]} in an empty slot, where suspicion is 0"


def no_rows(trial: Trial) -> Iterator[str]:
    """B = 0 and B = 1 work like other batches."""
    for stop in (0, 1):
        part = Trial(trial.detector, _first_rows(trial.query, stop), _first_rows(trial.negatives, stop))
        given = part.ask().shape
        if given != part.negatives.shape:
            yield f"returned shape {given} for negatives of shape {part.negatives.shape}"


def all_empty(trial: Trial) -> Iterator[str]:
    """Rows without a single negative are answered with zeros."""
    if not equal(trial.emptied(every=1).ask(), np.zeros(trial.negatives.shape)):
        yield "returned other than 0 for rows that are all empty"


def frozen(trial: Trial) -> Iterator[str]:
    """The query and the negatives are not changed."""
    for name, flowing in (("query", trial.query), ("negatives", trial.negatives)):
        before = copy.deepcopy(flowing)
        trial.ask()
        for f in fields(flowing):
            one, other = getattr(before, f.name), getattr(flowing, f.name)
            if hasattr(other, "dtype") and not equal(one, other):
                yield f"changed {name}.{f.name}"


def determinism(trial: Trial) -> Iterator[str]:
    """Equal inputs give equal answers."""
    if not equal(trial.ask(), trial.ask()):
        yield "returned two results for equal inputs"


def global_state(trial: Trial) -> Iterator[str]:
    """No global generator is used."""
    return used_generator(trial.ask)


PROMISES: Promises[Trial] = named(shape, dtype, range_, empty, no_rows, all_empty, frozen, determinism, global_state)


@public
def check_detector(detector: Detector, query: Query, negatives: Negatives, *, without: Collection[str] = ()) -> None:
    """Raise PromiseBroken if `detector` breaks a promise of a detector.

    shape         (B, K), like the negatives
    dtype         a float
    range         finite, from 0 (surely a negative) to 1 (surely a false one)
    empty         0 where ids is -1; also tested with every second slot empty
    no_rows       B = 0 and B = 1 work: slices of the same batch
    all_empty     rows without any negative work, and get zeros
    frozen        query and negatives are not changed
    determinism   equal inputs give equal answers
    global_state  the global generators of NumPy, Python and torch are not used

    Args:
        detector: Anything with suspicion(query, negatives) -> (B, K).
        query: A batch of at least one row, with all that the detector needs.
        negatives: Its negatives, of which at least one slot is filled.
        without: Names of promises that this detector does not make.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> class Same:
        ...     def suspicion(self, query, negatives):
        ...         return (negatives.ids == query.anchors[:, None]).astype(float)
        >>> check_detector(Same(), ns.Query([0, 1]), ns.Negatives(np.array([[0, 2], [3, -1]])))
    """
    if not isinstance(detector, Detector):
        raise_invalid("detector", "an object with suspicion(query, negatives)", f"a {type(detector).__name__}")
    check_query(query)
    if not isinstance(negatives, Negatives):
        raise_invalid("negatives", "Negatives", f"a {type(negatives).__name__}", "Write naysay.Negatives(ids).")
    check_lengths(query=len(query), negatives=negatives.shape[0])
    if not (to_numpy(negatives.ids) >= 0).any():
        raise_invalid("negatives", "at least one negative", "none", "A detector cannot be tested on empty slots.")
    trial = Trial(detector, query, negatives)
    check_promises(f"{type(detector).__name__}.suspicion", PROMISES, trial, without)
