"""Combined: one detector of several, by a rule that is stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_one_of, public, raise_invalid, shown
from naysay.detectors._part_states import all_or_none, joined_states, parted_states
from naysay.detectors._slots import SUSPICION_THRESHOLD, as_suspicion, check_asked, filled_slots
from naysay.types import Array, Detector, Negatives, Query, Stateful

RULES = ("max", "all", "mean", "noisy_or")
_MOST = 127  # detectors that an int8 can number


@final
@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """What several detectors said of the same slots, in NumPy.

    Args:
        suspicion: (B, K) of all together, by the rule.
        parts: {name: (B, K)} of each.
        blame: (B, K) int8: the detector, by its place, whose suspicion is the largest; of equal ones the first
            named.
    """

    suspicion: NDArray[np.float64]
    parts: Mapping[str, NDArray[np.float64]]
    blame: NDArray[np.int8]

    @property
    def names(self) -> tuple[str, ...]:
        """The detectors, in order."""
        return tuple(self.parts)

    def flags(self, line: float = SUSPICION_THRESHOLD) -> dict[str, int]:
        """How many slots each detector flags by itself. A slot that two flag counts for both."""
        return {name: int(np.count_nonzero(part >= line)) for name, part in self.parts.items()}


@final
@public
class Combined:
    """Ask several detectors about the same slots, and make one suspicion of theirs.

    A slot is counted under one name: the detector with the largest suspicion, of equal ones the first named. So counts
    add up to the slots. `judge` gives the parts, and `Judgement.flags` counts every detector that flagged.

    Parts that learn are taught together (`observe`), and `state` holds the states of those that have one, under
    "name/key". Cost: the parts'; each is asked once. Where several learn, teaching them copies the states of all but
    the last, to put them back if one refuses.

    Args:
        detectors: {name: detector}; reports, `dropped` and states use the names, which have no slash.
        rule: "max"       the largest: flagged if any of them flags
            "all"       the smallest: flagged if all of them flag
            "mean"      the mean
            "noisy_or"  1 - product of (1 - s): each is a chance of its own to be a false negative, so that two
                        weak hints add up. Detectors that look at the same scores are not independent: take "max"

    Example:
        >>> import numpy as np, naysay as ns
        >>> class Always:
        ...     def __init__(self, value):
        ...         self.value = value
        ...     def suspicion(self, query, negatives):
        ...         return np.where(negatives.ids >= 0, self.value, 0.0)
        >>> two = Combined({"a": Always(0.4), "b": Always(0.3)}, rule="noisy_or")
        >>> two.suspicion(ns.Query([0]), ns.Negatives(np.array([[5, -1]])))
        array([[0.58, 0.  ]])
    """

    def __init__(self, detectors: Mapping[str, Detector], rule: str = "max") -> None:
        """Keep the detectors."""
        if not isinstance(detectors, Mapping) or not detectors:
            raise_invalid("detectors", "a dictionary {name: detector} of at least one", shown(detectors))
        if len(detectors) > _MOST:
            raise_invalid("detectors", f"at most {_MOST}", len(detectors))
        for name, detector in detectors.items():
            if not isinstance(name, str) or isinstance(detector, type) or not isinstance(detector, Detector):
                wanted = "a dictionary {name: detector}, each with a method suspicion(query, negatives)"
                raise_invalid("detectors", wanted, f"{shown(name)}: {type(detector).__name__}")
            if "/" in name:
                raise_invalid("detectors", "of names without a slash, which parts the keys of a state", shown(name))
        check_one_of("rule", rule, RULES)
        self.detectors, self.rule = dict(detectors), rule
        self._keeping = {name: part for name, part in detectors.items() if isinstance(part, Stateful)}

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) in [0, 1], by the rule."""
        return as_suspicion(self.judge(query, negatives).suspicion, negatives)

    def judge(self, query: Query, negatives: Negatives) -> Judgement:
        """What each detector says and what follows; `drop(..., name=found.names, blame=found.blame)` counts by it."""
        check_asked(query, negatives)
        parts = {name: self._asked(name, query, negatives) for name in self.detectors}
        given = list(parts.values())
        if self.rule == "max":
            found = reduce(np.maximum, given)
        elif self.rule == "all":
            found = reduce(np.minimum, given)
        elif self.rule == "mean":
            found = sum(given[1:], given[0]) / len(given)
        else:
            found = 1 - reduce(np.multiply, [1 - part for part in given])
        blame = np.stack(given).argmax(axis=0).astype(np.int8)
        return Judgement(np.where(filled_slots(negatives), found, 0.0), parts, blame)

    def _asked(self, name: str, query: Query, negatives: Negatives) -> NDArray[np.float64]:
        """The suspicion of one detector, refused unless it is one."""
        found = np.asarray(to_numpy(self.detectors[name].suspicion(query, negatives)))
        if found.shape != negatives.shape or found.dtype.kind not in "iuf" or not ((found >= 0) & (found <= 1)).all():
            seen = f"shape {found.shape} {found.dtype}"
            if found.shape == negatives.shape and found.dtype.kind in "iuf":
                seen = f"{found[~((found >= 0) & (found <= 1))][0]}"
            rule = f"a detector that answers with numbers from 0 to 1 of shape {negatives.shape}"
            raise_invalid(name, rule, seen)
        return found.astype(np.float64)

    def observe(self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Teach the parts that learn from a step; if one refuses, those that have a state stay as they were."""
        told = {"positive_scores": positive_scores, "vectors": vectors}
        all_or_none(self._learning(), lambda _, part: part.observe(query, negatives, **told))

    @property
    def learns(self) -> bool:
        """Whether any part learns from a step."""
        return bool(self._learning())

    def _learning(self) -> dict[str, Any]:
        """The parts that learn from a step; those that hold others say so themselves."""
        return {name: part for name, part in self.detectors.items() if learns(part)}

    def state(self) -> dict[str, Any]:
        """{"name/key": value} of the parts that have a state: flat, so that np.savez(file, **state) keeps it."""
        return joined_states(self._keeping)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; if one part refuses its own, all stay as they were."""
        found = parted_states(state, self._keeping)
        all_or_none(self._keeping, lambda name, part: part.restore(found[name]))

    def __repr__(self) -> str:
        """The detectors and the rule."""
        return f"Combined({self.detectors!r}, rule={self.rule!r})"


def learns(part: object) -> bool:
    """Whether a part learns from a step: it has `observe`, and if it holds others, so has one of them."""
    return part.learns if isinstance(part, Combined) else hasattr(part, "observe")
