"""Several detectors as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._state import all_or_none, joined_states, split_states
from naysay.arrays import for_checkpoints
from naysay.checks import check_one_of, public, raise_invalid, shown
from naysay.detectors._suspicion import (
    SUSPICION_THRESHOLD,
    as_suspicion,
    by_probability,
    check_query_and_negatives,
    filled_slots,
    is_detector,
    suspicion_of,
    threshold_of,
)
from naysay.text import described
from naysay.types import Array, Detector, Negatives, Query, Stateful, needs_main_process

RULES = ("max", "all", "mean", "noisy_or")
_MAX_DETECTORS = 127  # int8 indices


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """The suspicion of several detectors for the same slots, in NumPy.

    Args:
        suspicion: (B, K) of all detectors together, by the rule.
        parts: {name: (B, K)} of each detector.
        blame: (B, K) int8: the index of the detector with the largest suspicion. Ties go to the first.
        threshold: The suspicion from which a slot is flagged, by one detector and by all together.
    """

    suspicion: NDArray[np.float64]
    parts: Mapping[str, NDArray[np.float64]]
    blame: NDArray[np.int8]
    threshold: float = SUSPICION_THRESHOLD

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the detectors, in order."""
        return tuple(self.parts)

    def flags(self, threshold: float | None = None) -> dict[str, int]:
        """Count the slots that each detector flags by itself. A slot that two detectors flag counts for both."""
        limit = self.threshold if threshold is None else threshold
        return {name: int(np.count_nonzero(part >= limit)) for name, part in self.parts.items()}


@final
@public
class Combined:
    """Combine the suspicion of several detectors.

    Reports count a slot under one name only, the detector with the largest suspicion (ties: the first), so counts add
    up to the number of slots. `judge` returns the parts; `Judgement.flags` counts every detector that flags.

    Several detectors flag at a suspicion of 0.5 together. One with another `suspicion_threshold`, such as `Posterior`,
    has its odds divided by those of its threshold, so that it flags at 0.5, too. A single detector is as it is.

    `observe` updates all detectors that learn, and `state` holds their states under "name/key". An error in one leaves
    all unchanged.

    Args:
        detectors: {name: detector}. Reports, `dropped` and states use the names, which must not contain a slash.
        rule: How to combine. "max": the largest, so a slot is flagged if any detector flags it. "all": the smallest,
            so a slot is flagged if all do. "mean": the mean. "noisy_or": 1 - product of (1 - s), which treats the
            detectors as independent chances, so that two weak hints add up. Detectors that use the same scores are
            not independent: use "max" for those.

    Examples:
        >>> import naysay as ns
        >>> both = Combined({"high": ns.detectors.MaxScore(0.8), "ranks": ns.detectors.RankWindow(1)})
        >>> negatives = ns.Negatives(np.array([[5, 6, -1]]), scores=np.array([[0.9, 0.4, 0.0]]))
        >>> (both.suspicion(ns.Query([0]), negatives) >= 0.5).tolist(), both.judge(ns.Query([0]), negatives).flags()
        ([[True, False, False]], {'high': 1, 'ranks': 1})
    """

    def __init__(self, detectors: Mapping[str, Detector], rule: str = "max") -> None:
        if not isinstance(detectors, Mapping) or not detectors:
            raise_invalid("detectors", "a dictionary {name: detector} of at least one", shown(detectors))
        if len(detectors) > _MAX_DETECTORS:
            raise_invalid("detectors", f"at most {_MAX_DETECTORS}", len(detectors))
        for name, detector in detectors.items():
            if not isinstance(name, str) or not is_detector(detector):
                expected = "a dictionary {name: detector}, each with a method suspicion(query, negatives)"
                raise_invalid("detectors", expected, f"{shown(name)}: {type(detector).__name__}")
            if "/" in name:
                raise_invalid("detectors", "a dictionary of names without a slash", shown(name))
        check_one_of("rule", rule, RULES)
        self.detectors, self.rule = dict(detectors), rule
        self._lock = Lock()
        self._stateful = {name: part for name, part in detectors.items() if isinstance(part, Stateful)}

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return the combined suspicion, (B, K) in [0, 1]."""
        return as_suspicion(self.judge(query, negatives).suspicion, negatives)

    def judge(self, query: Query, negatives: Negatives) -> Judgement:
        """Return the suspicion of each detector and of all together.

        `drop(negatives, found.suspicion, name=found.names, blame=found.blame)` counts by detector.
        """
        check_query_and_negatives(query, negatives)
        parts = {name: suspicion_of(name, part, query, negatives) for name, part in self.detectors.items()}
        for name, part in self.detectors.items() if len(parts) > 1 else ():
            own = threshold_of(part)
            if own != SUSPICION_THRESHOLD:
                parts[name] = by_probability(parts[name], own)
        values = list(parts.values())
        if self.rule == "max":
            combined = reduce(np.maximum, values)
        elif self.rule == "all":
            combined = reduce(np.minimum, values)
        elif self.rule == "mean":
            combined = sum(values[1:], values[0]) / len(values)
        else:
            combined = 1 - reduce(np.multiply, [1 - part for part in values])
        blame = np.stack(values).argmax(axis=0).astype(np.int8)
        return Judgement(np.where(filled_slots(negatives), combined, 0.0), parts, blame, self.suspicion_threshold)

    def observe(self, query: Query, negatives: Negatives, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Update the detectors that learn from a step. If one raises, those with a state stay unchanged."""
        all_or_none(
            self._lock,
            self._learning(),
            lambda _, part: part.observe(query, negatives, positive_scores=positive_scores, vectors=vectors),
        )

    @property
    def suspicion_threshold(self) -> float:
        """The suspicion from which a slot is flagged: that of a single detector, else 0.5."""
        only = list(self.detectors.values())
        return threshold_of(only[0]) if len(only) == 1 else SUSPICION_THRESHOLD

    @property
    def needs_main_process(self) -> bool:
        """Whether a detector does."""
        return needs_main_process(*self.detectors.values())

    @property
    def learns(self) -> bool:
        """Whether any detector learns from a step."""
        return bool(self._learning())

    def _learning(self) -> dict[str, Any]:
        return {name: part for name, part in self.detectors.items() if learns(part)}

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return {"name/key": value} of the detectors that have a state, to save with np.savez(file, **state)."""
        return joined_states(self._stateful)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. If one detector raises, all stay unchanged."""
        states = split_states(state, self._stateful)
        all_or_none(self._lock, self._stateful, lambda name, part: part.restore(states[name]))

    __repr__ = described


def learns(part: object) -> bool:
    """Whether a part learns from a step: it has `observe`, and a `Combined` contains a part that learns."""
    return part.learns if isinstance(part, Combined) else hasattr(part, "observe")
