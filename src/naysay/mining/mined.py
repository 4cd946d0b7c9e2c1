"""Mined: the negatives of a corpus, with all that explains them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, check_whole, public, raise_invalid, shown
from naysay.detectors.calibrated import Calibrated
from naysay.detectors.posterior import Posterior
from naysay.detectors.rate import RateEstimate
from naysay.mining._false_share import FitLists, SetEstimate
from naysay.mining._review import ToReview
from naysay.mining._rules import Background, rule_of
from naysay.mining.backfill import notes_of, tally_of
from naysay.mining.candidates import Candidates
from naysay.mining.explain import Explanation, MinedArrays, explained, slots_of
from naysay.mining.judge import (
    check_judge_text,
    combined,
    drop_at,
    is_fitted_here,
    judge_of,
    limits_of,
    rejudged,
    was_suspicious,
    without_positive,
)
from naysay.mining.judge import judge as judge_candidates
from naysay.places import Place
from naysay.types import Negatives, Query, anchor_ids

if TYPE_CHECKING:
    from naysay.formats.write_negatives import Written

# finish(candidates as judged, detector or None, threshold) -> (candidates with the negatives marked, k of each anchor)
Finish = Callable[[Candidates, Any, float], tuple[Candidates, NDArray[np.int64]]]
Recut = Callable[[float], Posterior]  # the judge at another false share
Judged = tuple[Any, str, float]  # the detector, what it does, and the suspicion at which it drops
Fit = Callable[[], tuple[Posterior, FitLists]]  # the posterior by which false negatives are estimated, and lists
# of the negatives that are returned, (n, k) ids and scores: their estimate, and the rule in a sentence
Estimate = Callable[[NDArray[np.int64], NDArray[np.float32]], SetEstimate]
Describe = Callable[[Judged, NDArray[np.int64], NDArray[np.float32]], str]


@final
@public
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mined(MinedArrays):
    """What `mine` returns. Frozen; `rethreshold` returns another.

    Args:
        ids: (n, k) int64, -1 empty: the negatives, by score, then those that filled the row up.
        scores: (n, k) float32, -inf where empty.
        rank: (n, k) int32, in the list of its source before anything was dropped; 0 for empty slots and random items.
        suspicion: (n, k) float32, of the judge; 0 where nothing was judged.
        source: (n, k) int8, which of `source_names`.
        kept_by: (n, k) int8, which of `kept_names`; -1 empty.
        source_names: The sources.
        kept_names: The rules that took negatives.
        positive_scores: (n,) float32, the lowest score of the anchor's known positives; NaN without one.
        thresholds: (n,) the score at or above which the judge suspects; NaN if it does not go by scores alone.
        counts: (n,) k of each anchor.
        rule: The judge, in a sentence; with judge="auto" also what it leaves of false negatives in these ids.
        judge: The detector, or None.
        suspicion_threshold: Candidates with this suspicion or more were dropped.
        candidates: What the negatives were taken from, with its outcome: all that was found with `depth`, and where
            queries times corpus rows are at most 2^26; else no more than was needed.
        known: What could never be a negative: positives, ignored pairs, the anchors themselves.
        known_scores: (pairs,) float32, their scores in the order of known.pairs(); None if they were not scored.
        depth: How many candidates were searched.
        metric: The metric of the scores.
        notes: A sentence for each thing to know about the result.
        query: What the judge was given.

    Examples:
        >>> import naysay as ns
        >>> vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1]], np.float32)
        >>> mined = ns.mine(vectors[:1], vectors, [0], 2, judge=None)
        >>> mined.ids.tolist(), mined.short, mined.rule
        ([[1, 2]], 0, 'Nothing is suspected: the nearest are taken.')
    """

    query: Query
    _auto_k: bool
    _judged: Candidates
    _finish: Finish
    _mine: Callable[..., Any] | None = None  # mines again where not all is listed
    _recut: Recut | None = None
    _draw: Callable[[int], ToReview] | None = None
    _background: Callable[[], Background] | None = None
    _fit: Fit | None = None
    _judge_rule: str = ""  # what the judge does, whatever the negatives are
    _estimate: Estimate | None = None
    _describe: Describe | None = None

    def negatives(self) -> Negatives:
        """Return the same as `Negatives`, for losses, policies and reports; row i is anchor i."""
        return Negatives(
            self.ids,
            scores=np.where(self.mask, self.scores, np.float32(0)),
            suspicion=self.suspicion,
            source=self.source,
            source_names=self.source_names,
            dropped={reason: int(counts.sum()) for reason, counts in self.dropped.items()},
        )

    @property
    def false_share(self) -> RateEstimate | None:
        """The estimated share of false negatives among the negatives, with its 95 % CI; None where it cannot be told.

        It is computed from `ids`, whatever chose them: what a judge left, a selection took, or a backfill added. With
        judge="auto" it is what `rule` says. With another judge the posterior is fitted when this is first asked.
        """
        return None if self._estimate is None else self._estimate(self.ids, self.scores).share

    def explain(self, anchor: int) -> Explanation:
        """Explain why each candidate of an anchor became a negative or did not.

        Args:
            anchor: The number of a query.
        """
        row = check_whole("anchor", anchor, 0)
        if row >= len(self.ids):
            raise_invalid("anchor", f"below {len(self.ids)}, the number of queries", row)
        return explained(self, row, self._listed(row) if self._mine is not None else None)

    def _listed(self, anchor: int | None = None) -> Candidates:
        """All candidates of an anchor, or of all, which are searched for here if they are not listed."""
        if self._mine is None:
            return self.candidates
        anchors = None if anchor is None else np.array([anchor])
        judge = self.judge, self.rule, self.suspicion_threshold
        found: Candidates = self._mine(judge, anchors, list_all=True).candidates
        return found

    def pairs_to_review(self, count: int = 100) -> ToReview:
        """Draw pairs for a person to label: mine(..., reviewed=(anchors, items, truth)) corrects its estimate by them.

        They are drawn uniformly, by the seed, among the nearest k candidates that may be taken; in random order.

        Args:
            count: How many.

        Returns:
            Their `anchors`, `items`, `scores` and `posterior`, one array each.
        """
        check_whole("count", count, 1)
        if self._draw is None:
            raise_invalid("count", "asked for where the judge was 'auto'", count, "Mine with judge='auto'.")
        return self._draw(count)

    def rethreshold(
        self,
        threshold: float | None = None,
        *,
        alpha: float | None = None,
        judge: Any = None,
        false_share: float | None = None,
    ) -> Mined:
        """Judge again, without scoring known pairs or fitting again.

        Give one of them. Selection and backfill run as before, with the same seed: the same threshold gives the same
        bytes. Where all candidates are listed (see `candidates`) there is no new search, and only those can come in:
        not those beyond the depth, and not suspected ones that a deeper search skipped. A note counts the anchors that
        have such. Else the anchors are searched again, and the result is that of `mine` with the other judge.

        Args:
            threshold: Drop candidates with this suspicion or more, in place of `suspicion_threshold`.
            alpha: Another share of unlabelled positives that may be missed, if the judge is `Calibrated`.
            judge: Another detector, or a text such as "share:0.95". It is given all candidates that were not dropped
                for other reasons.
            false_share: Another estimated share of false negatives, if the judge is the `Posterior` of "auto".
        """
        values = {"threshold": threshold, "alpha": alpha, "judge": judge, "false_share": false_share}
        given = [name for name, value in values.items() if value is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            raise_invalid("threshold", "given, or alpha, or judge, or false_share: one of them", got)
        if threshold is not None:
            if self.judge is None:
                raise_invalid("threshold", "left out where nothing was judged", threshold, "Pass judge.")
            check_number("threshold", threshold, at_least=0, at_most=1)
            rule = f"{self._judge_rule} Dropped at a suspicion of {threshold:g} or more."
            moved = threshold != self.suspicion_threshold
            scores = np.full(len(self.ids), np.nan) if moved else self.thresholds
            return self._again((self.judge, rule, threshold), scores, asked=True)
        if false_share is not None:
            posterior = self._at_false_share(false_share)
            return self._again((posterior, rule_of(posterior), posterior.threshold), self.thresholds, asked=True)
        detector = self._at_alpha(alpha) if alpha is not None else self._detector(judge)
        scores = limits_of(detector, self.query, self.positive_scores)
        rule = f"{rule_of(detector)}{without_positive(judge, self.positive_scores)}"
        return self._again((detector, rule, drop_at(detector)), scores, asked=False)

    def _at_false_share(self, false_share: float) -> Posterior:
        """The same posterior with another cut."""
        check_number("false_share", false_share, above=0, below=1)
        if self._recut is None or not isinstance(self.judge, Posterior):
            advice = "Mine with judge='auto'; `rule` says why there is none."
            raise_invalid("false_share", "left out unless the judge is the Posterior of 'auto'", false_share, advice)
        return self._recut(false_share)

    def _at_alpha(self, alpha: float) -> Calibrated:
        """The same calibration at another alpha."""
        if not isinstance(self.judge, Calibrated):
            raise_invalid("alpha", "left out unless the judge is Calibrated", alpha, "Pass threshold, or judge.")
        other = Calibrated(alpha, standardise=self.judge.standardise)
        other.restore(self.judge.state())
        return other

    def _detector(self, given: Any) -> Any:
        """A detector, as given or from text; None for "none"."""
        if isinstance(given, str):
            check_judge_text("judge", given)
        detector = judge_of(given, self.positive_scores)
        if is_fitted_here(detector):
            advice = "Pass alpha, or mine again."
            raise_invalid("judge", "one that is not fitted to the data, such as 'share:0.95'", shown(given), advice)
        if detector is not None:
            combined(detector, "judge")
        return detector

    def _again(self, judge: Judged, thresholds: NDArray[np.float64], *, asked: bool) -> Mined:
        """The result with another judge; `asked`: whether the stored suspicion is this judge's."""
        detector, rule, threshold = judge
        if self._mine is not None:
            mined = self._mine(judge)
            judged, candidates, counts = mined.judged, mined.candidates, mined.counts
        else:
            judged = rejudged(self._judged, threshold) if asked else self._judged_by(detector)
            candidates, counts = self._finish(judged, detector, threshold)
        width = int(counts.max(initial=0)) if self._auto_k else self.ids.shape[1]
        slots = slots_of(candidates, width)
        again = self._mine is None
        return replace(
            self,
            **slots,
            rule=rule if self._describe is None else self._describe(judge, slots["ids"], slots["scores"]),
            judge=detector,
            suspicion_threshold=threshold,
            thresholds=thresholds,
            notes=notes_of(tally_of(candidates, counts, self.depth), self.known.n_items, again=again),
            candidates=candidates,
            counts=counts,
            _judged=judged,
            _judge_rule=rule if asked is False else self._judge_rule,
        )

    def _judged_by(self, detector: Any) -> Candidates:
        """What was found, judged by another detector."""
        restored = self._judged.restored(was_suspicious(self._judged))
        unjudged = replace(restored, suspicion=np.zeros_like(restored.suspicion))
        return unjudged if detector is None else judge_candidates(unjudged, detector, query=self.query)

    def write(self, path: str | Path, format: str = "triplet", **options: Any) -> Written:
        """Write the negatives in a format that a trainer reads.

        Args:
            path: The file.
            format: Its format, such as "triplet", "n-tuple", "ids" or "flagembedding". All but "ids", "trec" and
                those of ColBERT need query_texts, most of them corpus_texts, too.
            **options: Keywords of `formats.write_negatives`: query_ids, corpus_ids, query_texts, corpus_texts,
                corpus_titles, with_scores, short, corpus_path, tag.
        """
        from naysay.formats.write_negatives import write_negatives  # here, because mining itself needs no format

        options |= {"ids": self.ids, "scores": self.scores, "positives": self.known}
        return write_negatives(path, format, positive_scores=self.known_scores, **options)

    def report(self, path: str | Place, *, background: Any = None, **options: Any) -> Place:
        """Write one HTML file that shows what was mined and why. Candidates that are not listed are searched for.

        Args:
            path: The file, which ends in .html.
            background: (s,) scores of random pairs. By default they are scored here, unless pairs were rescored.
            **options: Keywords of `report_mined`: title, numbers, query_texts, corpus_texts, query_ids, corpus_ids,
                provenance, run, of_anchors, seed, command.
        """
        from naysay.mining._report import report_mined

        if background is None and self._background is not None:
            background = self._background()
        shown = self if self._mine is None else replace(self, candidates=self._listed(), _mine=None)
        own = {"background": background, "fit": self._fit and self._fit(), "anchors": anchor_ids(self.query)}
        return report_mined(shown, path, **(own | options))

    def __reduce__(self) -> NoReturn:
        """Raise: what judges again holds open files, models and functions."""
        message = "Mined: it cannot be pickled, because it can judge again. Keep its arrays, or call mined.write(path)."
        raise TypeError(message)

    def __repr__(self) -> str:
        return f"Mined({self._said()}, k={self.ids.shape[1]}, metric={self.metric!r}, judge={self.judge!r})"

    def _said(self) -> str:
        return f"{self.mask.sum():,} of {self.counts.sum():,} negatives for {len(self.ids):,} anchors"

    def _k(self) -> str:
        """k, or its range where anchors differ."""
        least, most = int(self.counts.min(initial=self.ids.shape[1])), int(self.counts.max(initial=0))
        return f"k = {most}" if least >= most else f"k = {least} to {most}"

    def __str__(self) -> str:
        """How many, by which rule, and what was left out."""
        lines = [f"{self._said()}, {self._k()}", self.rule]
        lines += [f"{name:<24} {int(counts.sum()):>12,}" for name, counts in self.dropped.items()]
        return "\n".join([*lines, *self.notes])
