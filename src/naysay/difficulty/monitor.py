"""Monitor: what the negatives of a training run are like, step by step, for any logger."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, final

import numpy as np

from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import as_array, check_kind, check_whole, public, raise_invalid
from naysay.detectors._slots import threshold_of
from naysay.difficulty import _step_measures as measures
from naysay.difficulty._loggers import writer
from naysay.difficulty.curves import TEMPERATURE, check_shares, check_temperature
from naysay.text import described
from naysay.types import Detector, Negatives, Query, anchor_ids, check_query

_HARD, _HARDEST = 0.5, 0.125  # of 8 negatives: one hardest, three hard, four easy
_MEMORY = 1 << 20


@final
@public
class Monitor:
    """Measure the negatives of each training step, and pass numbers and histograms to a logger.

    Call `observe` once a step. The numbers of a step, means over its negatives or rows:

    | name | meaning |
    |---|---|
    | `score/negatives`, `score/positives` | the mean scores |
    | `above_positive` | the share of negatives with a higher score than the positive of their row |
    | `gradient/easy`, `/hard`, `/hardest` | the share of InfoNCE's gradient in each band of a row (`bands`) |
    | `effective_negatives` | 1 / sum of w_j^2 for w = softmax(scores / t): k if all count alike, 1 if one has it all |
    | `false_share`, `suspected` | the mean suspicion, and the share from the detector's threshold (0.5) on |
    | `repeats` | the share of pairs (anchor, negative) that came in an earlier step |
    | `negatives` | the mean number of negatives of a row |
    | `empty_rows` | the share of rows without any |
    | `exhausted`, `dropped/REASON` | slots that could not be filled, and others that were left out: counts |
    | `not_finite` | the share of scores that are NaN or infinite; they count in nothing else |
    | `monitor/cost` | the time of `observe` as a share of the time since the call before |

    A measure that cannot be computed is left out. The suspicion is that of the detector, or else of the negatives.

    Cost: a copy of the scores to the CPU, a sort of each row, and 4 bytes of memory for each remembered pair.

    Args:
        log: Where to write: a path that ends in .jsonl (`naysay report` draws it), a SummaryWriter of TensorBoard, a
            run of Weights & Biases, a logger of Lightning, or a function of a dictionary. None: nowhere.
        every: Measure each so many steps; the others cost nothing.
        histograms: Add histograms of the scores each so many steps; 0 for none.
        temperature: t of the gradient, above 0.
        hard: The share of hard negatives in a row, with the hardest.
        hardest: The share of the hardest.
        detector: Gives the suspicion of each slot.
        memory: The number of pairs that `repeats` remembers; 0 leaves it out.

    Examples:
        >>> import numpy as np
        >>> import naysay as ns
        >>> monitor = Monitor(temperature=1.0)
        >>> negatives = ns.Negatives(np.array([[4, 2], [5, 3]]), scores=np.array([[0.5, 0.5], [0.9, 0.1]]))
        >>> found = monitor.observe(ns.Query([0, 1]), negatives, positive_scores=[0.8, 0.8])
        >>> found["score/negatives"], found["above_positive"], round(found["effective_negatives"], 3)
        (0.5, 0.25, 1.874)
    """

    def __init__(
        self,
        log: Any = None,
        *,
        every: int = 1,
        histograms: int = 100,
        temperature: float = TEMPERATURE,
        hard: float = _HARD,
        hardest: float = _HARDEST,
        detector: Detector | None = None,
        memory: int = _MEMORY,
    ) -> None:
        """Check the settings, and open the log."""
        self.every, self.histograms = check_whole("every", every, 1), check_whole("histograms", histograms, 0)
        self.temperature = check_temperature(temperature)
        self.hard, self.hardest = check_shares(hard, hardest)
        if detector is not None and (isinstance(detector, type) or not hasattr(detector, "suspicion")):
            raise_invalid("detector", "a detector, with a method suspicion", type(detector).__name__)
        self.detector, self.log = detector, log
        self.memory = check_whole("memory", memory, 0, 1 << 32)
        self.calls, self.seconds, self.elapsed = 0, 0.0, 0.0
        self._seen = measures.Seen(self.memory)
        self._before: float | None = None
        self._write = writer(log)

    @property
    def cost(self) -> float:
        """The time in `observe` as a share of the time of the run, from the first call on; NaN before the second."""
        return self.seconds / self.elapsed if self.elapsed else float("nan")

    def observe(
        self, query: Query, negatives: Negatives, scores: Any = None, *, positive_scores: Any = None
    ) -> dict[str, float] | None:
        """Measure a step, and log it under `query.step`.

        Args:
            query: The anchors, with the step.
            negatives: Their negatives.
            scores: (B, K) the model's scores; by default `negatives.scores`.
            positive_scores: (B,) the scores of the positives.

        Returns:
            {name: number}, or None for a step that is not measured.
        """
        start = perf_counter()
        check_query(query)
        check_kind("negatives", negatives, Negatives, "Negatives")
        number, self.calls = self.calls, self.calls + 1
        if number % self.every:
            return None
        given = negatives.scores if scores is None else scores
        if given is None:
            raise_invalid("scores", "given, or in `negatives`", None)
        values = measures.floats_of("scores", given, negatives.shape)
        positive = None
        if positive_scores is not None:
            positive = measures.floats_of("positive_scores", positive_scores, (len(query),))
        found, pictures = self._measured(query, negatives, values, positive, number)
        found = {name: value for name, value in found.items() if not np.isnan(value)}
        self._count_time(start, found)
        if self._write is not None:
            self._write(query.step, found, pictures)
        self.seconds += perf_counter() - start
        return found

    def _measured(
        self, query: Query, negatives: Negatives, scores: Any, positive: Any, number: int
    ) -> tuple[measures.Scalars, measures.Histograms]:
        """All numbers and, if it is their turn, the histograms of a step."""
        mask = np.asarray(to_numpy(negatives.mask))
        kept = mask & np.isfinite(scores)
        found = measures.hardness(scores, kept, positive)
        shares = measures.softmax_shares(scores, kept, self.temperature)
        found |= measures.gradient(shares, measures.ranked_rows(scores, kept), self.hard, self.hardest)
        suspicion = negatives.suspicion
        if self.detector is not None:
            suspicion = self.detector.suspicion(query, negatives)
        pictures: measures.Histograms = {}
        drawn = self.histograms > 0 and (number // self.every) % self.histograms == 0
        if drawn:
            pictures["score/negatives"] = measures.histogram(scores[kept])
        if drawn and positive is not None:
            pictures["score/positives"] = measures.histogram(positive)
        if suspicion is not None:
            distrust = measures.floats_of("suspicion", suspicion, negatives.shape)
            found |= measures.suspected(distrust, mask, threshold_of(self.detector))
            if drawn:
                pictures["suspicion"] = measures.histogram(distrust[mask])
        if self.memory:
            ids = np.asarray(to_numpy(negatives.ids))
            found["repeats"] = self._seen.repeats(anchor_ids(query), ids, mask)
        counts = mask.sum(axis=1)
        found["negatives"] = float(counts.mean()) if len(counts) else float("nan")
        found["empty_rows"] = float((counts == 0).mean()) if len(counts) else float("nan")
        found["not_finite"] = 1 - float(kept.sum() / mask.sum()) if mask.any() else float("nan")
        for reason, count in {"exhausted": 0, **negatives.dropped}.items():
            found["exhausted" if reason == "exhausted" else f"dropped/{reason}"] = float(count)
        return found, pictures

    def _count_time(self, start: float, found: measures.Scalars) -> None:
        """Add the cost of this call, as a share of the time since the one before."""
        if self._before is not None:
            passed = start - self._before
            self.elapsed += passed
            found["monitor/cost"] = (perf_counter() - start) / max(passed, 1e-9)
        self._before = start

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The number of calls and the remembered pairs, as arrays and numbers."""
        return {"calls": self.calls, "seen": self._seen.table.view(np.int32).copy()}  # not every torch has uint32

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state. Raises NaysayError if it does not fit, and changes nothing."""
        check_kind("state", state, Mapping, "what `state` returned")
        calls = check_whole("state", state.get("calls"), 0)
        table = as_array("state", to_numpy(state.get("seen")))
        if table.shape != (self.memory,) or table.dtype != np.int32:
            raise_invalid("state", f"of a monitor with memory {self.memory}", f"{table.shape} {table.dtype}")
        self.calls, self._seen.table, self._before = calls, table.copy().view(np.uint32), None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the open log, which a copy opens again, and the time of the last call in this process."""
        return {**self.__dict__, "_write": None, "_before": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._write = writer(self.log)

    def __repr__(self) -> str:
        """The settings."""
        return described(self, f"{self.calls:,} calls")
