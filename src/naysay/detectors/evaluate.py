"""How good a detector is, where it is known which candidates are false negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from naysay.checks import check_number, check_whole, public, raise_invalid
from naysay.detectors._intervals import (
    CONFIDENCE,
    check_confidence,
    check_representative,
    effective_size,
    exact_interval,
    moments,
)
from naysay.detectors._slot_truth import Truth, answered, slot_truth
from naysay.detectors._slots import SUSPICION_THRESHOLD, check_asked
from naysay.detectors.reliability import Reliability, bin_sums, reliability
from naysay.types import Detector, Negatives, Query

Interval = tuple[float, float]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """How often a detector is right. NaN where nothing could be counted, then with the interval (0, 1).

    NAME_interval   (low, high) of each: that of Clopper and Pearson, at the number of independent looks that the
                    anchors are worth (`intervals.effective_size`): slots of an anchor are right or wrong together. It
                    is too short where a few anchors in many, of a kind that may be missing here, decide:
                    representative_anchors=False

    A detector that flags nothing has an mtpr of 0 and an mtnr of 1.

    Args:
        mtpr: Mean true positive rate: the mean over anchors of P(flagged | false negative), over those that have
            one.
        mtnr: Mean true negative rate: the mean over anchors of P(kept | true negative), over those that have one.
        precision: The share of false negatives among all that were flagged.
        recall: The share of flagged among all false negatives: like mtpr, but an anchor with many counts for more.
        representative_anchors: Whether the anchors at hand were taken for a picture of all, or each for one look.
        reliability: Suspicion against the observed share of false negatives, and the expected calibration error.
        line: A slot is flagged where its suspicion is at least this.
        anchors: Rows with a slot that could be judged; `anchors_with_false` and `anchors_with_true` of them count
            for mtpr and mtnr. A row is an anchor: one that comes twice counts twice.
        slots: Slots that could be judged, how many of them are what.
        false_negatives: Slots that could be judged, how many of them are what.
        flagged: Slots that could be judged, how many of them are what.
    """

    mtpr: float
    mtnr: float
    precision: float
    recall: float
    mtpr_interval: Interval
    mtnr_interval: Interval
    precision_interval: Interval
    recall_interval: Interval
    confidence: float
    representative_anchors: bool
    reliability: Reliability
    line: float
    anchors: int
    anchors_with_false: int
    anchors_with_true: int
    slots: int
    false_negatives: int
    flagged: int

    def __str__(self) -> str:
        """All of it in one paragraph."""
        counts = (
            f"{self.slots:,} candidates of {self.anchors:,} anchors, {self.false_negatives:,} of them false negatives"
        )
        rate = _said("MTPR", self.mtpr, self.mtpr_interval, "no anchor has a false negative")
        kept = _said("MTNR", self.mtnr, self.mtnr_interval, "no anchor has a true negative")
        precise = _said("precision", self.precision, self.precision_interval, "nothing is flagged")
        recall = _said("recall", self.recall, self.recall_interval, "there is no false negative")
        looks = "" if self.representative_anchors else ", a look for each anchor"
        return (
            f"{counts}; {self.flagged:,} flagged at a suspicion of {self.line:g} or more. {rate}, {kept}; over all "
            f"slots {precise}, {recall}; intervals of {self.confidence:.0%}{looks}. As a probability, suspicion is off "
            f"by {self.reliability.error:.3f} on average."
        )


@final
@public
class Scoreboard:
    """An evaluation over many batches. What is kept is a few dozen sums, however many there are.

    Args:
        line: A slot is flagged where its suspicion is at least this.
        bins: Of the reliability curve.
        confidence: Of the intervals.
        representative_anchors: Whether the anchors at hand show how much anchors differ; False treats each as one
            observation: wider intervals. Those of mtpr and mtnr, where all anchors count alike, then hold for
            any anchors; for recall and precision an anchor with very many slots may still be missing.

    Example:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=200, n_items=100, per_anchor=10)
        >>> class Close:
        ...     def suspicion(self, query, negatives):
        ...         return np.clip(world.scores(query.anchors, negatives.ids), 0, 1).astype(float)
        >>> board = Scoreboard(line=0.3)
        >>> for step in range(4):
        ...     query = ns.Query(np.arange(50 * step, 50 * step + 50))
        ...     drawn = ns.pools.Everything(world.known).draw(query, 20, rng=ns.rng_for(0, step))
        ...     board.add(Close(), query, drawn, world.is_false_negative)
        >>> found = board.result()
        >>> found.slots, found.anchors, round(found.mtpr, 2), round(found.mtnr, 2)
        (4000, 200, 0.64, 0.74)
    """

    def __init__(
        self,
        *,
        line: float = SUSPICION_THRESHOLD,
        bins: int = 10,
        confidence: float = CONFIDENCE,
        representative_anchors: bool = True,
    ) -> None:
        """Nothing counted yet."""
        self.line = check_line(line)
        self.bins = check_whole("bins", bins, 1)
        self.confidence = check_confidence(confidence)
        self.representative_anchors = check_representative(representative_anchors)
        self._shares = np.zeros((4, 6))  # moments of mtpr, mtnr, precision and recall
        self._counts = np.zeros(4, np.int64)  # anchors, slots, false negatives, flagged
        self._bins = np.zeros((3, self.bins))

    def add(self, detector: Detector, query: Query, negatives: Negatives, truth: Truth) -> None:
        """Ask the detector about one batch, and count where it is right.

        All filled slots count, whatever their relation. O(B K).

        Args:
            truth: What is known of the candidates, one of (B, K) bool: whether a slot holds a false negative a
                function truth(anchors (B,), ids (B, K)) -> (B, K) bool, asked in NumPy and never about -1; it is
                not told which side of a triple was replaced, so give a table for those (n_samples,) whole numbers,
                the class of each sample: a candidate of the anchor's class is a false negative. Anchors and
                candidates are then the same samples; -1 is no class, and not judged.
        """
        check_asked(query, negatives)
        known = slot_truth(query, negatives, truth)
        suspicion = answered(detector, query, negatives)
        flagged = (suspicion >= self.line) & known.known
        slots, false, suspects = (part.sum(axis=1) for part in (known.known, known.false, flagged))
        hits = (flagged & known.false).sum(axis=1)
        true = slots - false
        kept = true - (suspects - hits)
        part = np.stack([hits / np.maximum(false, 1), kept / np.maximum(true, 1), hits, hits])
        whole = np.stack([false > 0, true > 0, suspects, false])
        self._shares += moments(part, whole)
        self._counts += np.array([(slots > 0).sum(), slots.sum(), false.sum(), suspects.sum()])
        self._bins += bin_sums(suspicion[known.known], known.false[known.known], self.bins)

    def result(self) -> Evaluation:
        """What was counted so far; refused if that is nothing."""
        anchors, slots, false, flagged = self._counts.tolist()
        if not slots:
            advice = "Add batches with filled slots of known truth."
            raise_invalid("slots", "at least one that was judged", 0, advice)
        behind = (false, slots - false, flagged, false)
        mtpr, mtnr, precision, recall = (self._share(place, most) for place, most in enumerate(behind))
        return Evaluation(
            mtpr=mtpr[0],
            mtnr=mtnr[0],
            precision=precision[0],
            recall=recall[0],
            mtpr_interval=mtpr[1],
            mtnr_interval=mtnr[1],
            precision_interval=precision[1],
            recall_interval=recall[1],
            confidence=self.confidence,
            representative_anchors=self.representative_anchors,
            reliability=reliability(self._bins),
            line=self.line,
            anchors=anchors,
            anchors_with_false=int(self._shares[0, 0]),
            anchors_with_true=int(self._shares[1, 0]),
            slots=slots,
            false_negatives=false,
            flagged=flagged,
        )

    def _share(self, place: int, slots: int) -> tuple[float, Interval]:
        """One of the four shares, which rests on so many slots, and its interval."""
        sums = self._shares[place]
        share = float(sums[2] / sums[1]) if sums[1] else np.nan
        size = effective_size(
            sums, slots, (1 - self.confidence) / 2, representative_anchors=self.representative_anchors
        )
        return share, exact_interval(share * size, size, self.confidence) if size else (0.0, 1.0)


def evaluate(
    detector: Detector,
    query: Query,
    negatives: Negatives,
    truth: Truth,
    *,
    line: float = SUSPICION_THRESHOLD,
    bins: int = 10,
    confidence: float = CONFIDENCE,
    representative_anchors: bool = True,
) -> Evaluation:
    """How good a detector is on one batch; the arguments are those of `Scoreboard` and its `add`.

    The mean rates over anchors are those of Chen et al. Incremental False Negative Detection for Contrastive Learning.
    ICLR 2022.

    Example:
        >>> import naysay as ns
        >>> class Nobody:
        ...     def suspicion(self, query, negatives):
        ...         return np.zeros(negatives.shape)
        >>> found = evaluate(Nobody(), ns.Query([0, 1]), ns.Negatives(np.array([[1, 2], [2, 0]])), np.array([0, 0, 1]))
        >>> found.mtpr, found.mtnr
        (0.0, 1.0)
    """
    board = Scoreboard(line=line, bins=bins, confidence=confidence, representative_anchors=representative_anchors)
    board.add(detector, query, negatives, truth)
    return board.result()


def check_line(line: Any) -> float:
    """A suspicion above 0: at 0 everything would be flagged, empty slots too."""
    given = check_number("line", line)
    if not 0 < given <= 1:
        raise_invalid("line", "above 0 and at most 1", given)
    return given


def _said(name: str, share: float, interval: Interval, missing: str) -> str:
    """'MTPR 58.0 % (51.2 to 64.6)', or why there is none."""
    if np.isnan(share):
        return f"{name} is not defined ({missing})"
    return f"{name} {100 * share:.1f} % ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})"
