"""Mined: the negatives of a corpus, each with what it takes to explain it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_whole, public, raise_invalid
from naysay.detectors.calibrated import Calibrated
from naysay.formats.write_negatives import Written, write_negatives
from naysay.mining._auto import Background
from naysay.mining._notes import notes_of, tally_of
from naysay.mining.candidates import Candidates, canonical_order
from naysay.mining.explain import Explanation, Outcome
from naysay.mining.judge import judge as judged
from naysay.mining.judge import lines_of, rejudged, was_suspicious
from naysay.positives import Positives
from naysay.types import Negatives, Query

# finish(candidates as judged, judge or None) -> (candidates with the negatives marked, k of each anchor)
Finish = Callable[[Candidates, Any], tuple[Candidates, NDArray[np.int64]]]


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Mined:
    """What `mine` answers. Frozen; `rethreshold` gives another.

    Args:
        ids: (n, k) int64, -1 empty: those that were selected by score, then those that filled the row up.
        scores: (n, k) float32, -inf where empty.
        rank: (n, k) int32, in the list of its source before anything was dropped; 0 empty, or a random one.
        suspicion: (n, k) float32, of the judge; 0 where nothing was judged.
        source: (n, k) int8, which of `source_names`.
        kept_by: (n, k) int8, which of `kept_names`; -1 empty.
        positive_scores: (n,) float32, the lowest score of the anchor's known positives; NaN without one.
        thresholds: (n,) the score from which on the judge suspects; NaN where it does not go by scores alone.
        counts: (n,) how many negatives each anchor was to have.
        rule: The judge, in a sentence.
        judge: Itself, and the suspicion from which on it drops.
        line: Itself, and the suspicion from which on it drops.
        candidates: All that was found, with its fate.
        known: What could never be a negative: positives, ignored pairs, the anchors themselves.
        known_scores: (pairs,) float32, their scores in the order of known.pairs(); None where they were not scored.
        depth: How deep and by what was searched, and a sentence for each thing to know about the result.
        metric: How deep and by what was searched, and a sentence for each thing to know about the result.
        notes: How deep and by what was searched, and a sentence for each thing to know about the result.
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    rank: NDArray[np.int32]
    suspicion: NDArray[np.float32]
    source: NDArray[np.int8]
    kept_by: NDArray[np.int8]
    source_names: tuple[str, ...]
    kept_names: tuple[str, ...]
    positive_scores: NDArray[np.float32]
    thresholds: NDArray[np.float64]
    counts: NDArray[np.int64]
    rule: str
    judge: Any
    line: float
    candidates: Candidates
    known: Positives
    known_scores: NDArray[np.float32] | None
    depth: int
    metric: str
    notes: tuple[str, ...]
    query: Query = field(repr=False)
    _auto_k: bool = field(repr=False)
    _before: Candidates = field(repr=False)
    _finish: Finish = field(repr=False)
    _background: Callable[[], Background] | None = field(repr=False, default=None)

    @property
    def dropped(self) -> dict[str, NDArray[np.int64]]:
        """{reason: (n,) how many of each anchor}; "not selected" are those that were good and not needed."""
        return self.candidates.dropped

    @property
    def short(self) -> NDArray[np.int64]:
        """(n,) how many negatives are missing to k."""
        return np.asarray(self.counts - np.count_nonzero(self.ids >= 0, axis=1))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(n, k): slots that hold a negative."""
        return self.ids >= 0

    def negatives(self) -> Negatives:
        """The same as `Negatives`, for losses, policies and reports; row i is anchor i."""
        return Negatives(
            self.ids,
            scores=np.where(self.mask, self.scores, np.float32(0)),
            suspicion=self.suspicion,
            source=self.source,
            source_names=self.source_names,
            dropped={reason: int(counts.sum()) for reason, counts in self.dropped.items()},
        )

    def explain(self, anchor: int) -> Explanation:
        """Every candidate of an anchor, and why it became a negative or did not."""
        row = check_whole("anchor", anchor, 0)
        if row >= len(self.ids):
            raise_invalid("anchor", f"below {len(self.ids)}, the number of queries", row)
        found = self.candidates
        kept = [
            self._fate(self.ids, self.rank, self.scores, self.suspicion, self.source, row, slot, self.kept_names[by])
            for slot, by in enumerate(self.kept_by[row].tolist())
            if by >= 0
        ]
        lost = np.flatnonzero((found.ids[row] >= 0) & (found.why[row] != 0))
        order = lost[np.lexsort((found.ids[row, lost], -found.scores[row, lost]))].tolist()
        parts = (found.ids, found.rank, found.scores, found.suspicion, found.source)
        others = [self._fate(*parts, row, slot, found.reasons[found.why[row, slot] - 1], kept=False) for slot in order]
        return Explanation(
            anchor=row,
            negatives=tuple(kept),
            candidates=tuple(others),
            positive_score=float(self.positive_scores[row]),
            threshold=float(self.thresholds[row]),
            dropped={reason: int(counts[row]) for reason, counts in self.dropped.items() if counts[row]},
            wanted=int(self.counts[row]),
            rule=self.rule,
        )

    def _fate(
        self,
        ids: Any,
        rank: Any,
        scores: Any,
        suspicion: Any,
        source: Any,
        row: int,
        slot: int,
        by: str,
        *,
        kept: bool = True,
    ) -> Outcome:
        name = self.source_names[source[row, slot]]
        numbers = int(ids[row, slot]), int(rank[row, slot]), float(scores[row, slot]), float(suspicion[row, slot])
        return Outcome(*numbers, name, kept, by)

    def rethreshold(self, line: float | None = None, *, alpha: float | None = None, judge: Any = None) -> Mined:
        """The same job with another verdict: no new search, and nothing scored again.

        Give one of them. Selection and backfill run as before, with the same seed: the same line gives the same bytes.
        Only candidates that were found can come in: not those beyond the depth, and not suspects that a deeper search
        passed over. A note counts the anchors that have such; mine again to raise their line.

        Args:
            line: The suspicion from which on a candidate is dropped; it was 0.5.
            alpha: Another share of unlabelled positives that may be let through, if the judge is `Calibrated`.
            judge: Another detector, which is asked about what the others left.
        """
        given = [name for name, value in (("line", line), ("alpha", alpha), ("judge", judge)) if value is not None]
        if len(given) != 1:
            raise_invalid("line", "given, or alpha, or judge: one of them", " and ".join(given) or "none")
        if line is not None:
            if self.judge is None:
                raise_invalid("line", "None where nothing was judged", line, "Pass judge.")
            rule = f"{self.rule} Dropped from a suspicion of {line:g} on."
            thresholds = self.thresholds if line == self.line else np.full(len(self.ids), np.nan)
            return self._again(rejudged(self._before, line), self.judge, line, rule, thresholds)
        if alpha is not None:
            if not isinstance(self.judge, Calibrated):
                raise_invalid("alpha", "None unless the judge is Calibrated", alpha, "Pass line, or judge.")
            judge = Calibrated(alpha, standardise=self.judge.standardise)
            judge.restore(self.judge.state())
        open_again = self._before.restored(was_suspicious(self._before))
        open_again = replace(open_again, suspicion=np.zeros_like(open_again.suspicion))
        rule = judge.describe() if isinstance(judge, Calibrated) else f"Suspected by {judge!r}."
        found = judged(open_again, judge, query=self.query)
        return self._again(found, judge, 0.5, rule, lines_of(judge, self.query))

    def _again(self, before: Candidates, judge: Any, line: float, rule: str, thresholds: NDArray[np.float64]) -> Mined:
        after, counts = self._finish(before, judge)
        notes = notes_of(tally_of(after, counts, self.depth), self.known.n_items, again=True)
        made = replace(self, rule=rule, judge=judge, line=line, thresholds=thresholds, notes=notes, _before=before)
        return replace(
            made,
            candidates=after,
            counts=counts,
            **slots_of(after, int(counts.max(initial=0)) if self._auto_k else self.ids.shape[1]),
        )

    def write(
        self,
        path: str | Path,
        format: str = "triplet",
        *,
        query_ids: Any = None,
        corpus_ids: Any = None,
        query_texts: Any = None,
        corpus_texts: Any = None,
        corpus_titles: Any = None,
        with_scores: bool = False,
        short: str | None = None,
        corpus_path: str | None = None,
        tag: str | None = None,
    ) -> Written:
        """Write the negatives in a format that a trainer reads; the arguments are those of `write_negatives`."""
        return write_negatives(
            path,
            format,
            ids=self.ids,
            positives=self.known,
            scores=self.scores,
            positive_scores=self.known_scores,
            query_ids=query_ids,
            corpus_ids=corpus_ids,
            query_texts=query_texts,
            corpus_texts=corpus_texts,
            corpus_titles=corpus_titles,
            with_scores=with_scores,
            short=short,
            corpus_path=corpus_path,
            tag=tag,
        )

    def report(
        self,
        path: str | Path,
        *,
        title: str = "",
        numbers: Mapping[str, str] | None = None,
        query_texts: Any = None,
        corpus_texts: Any = None,
        query_ids: Any = None,
        corpus_ids: Any = None,
        provenance: Mapping[str, str] | None = None,
        background: Any = None,
        run: Any = None,
        one_positive: Any = None,
        of_anchors: int | None = None,
        seed: int = 0,
    ) -> Path:
        """Write one HTML file that shows what was mined and why; the arguments are those of `report_mined`.

        Without `background` random pairs are scored for it here, where the vectors are at hand.
        """
        from naysay.mining._report import report_mined  # a report draws a Mined, so it stands after it

        if background is None and self._background is not None:
            background = self._background()
        return report_mined(
            self,
            path,
            title=title,
            numbers=numbers,
            query_texts=query_texts,
            corpus_texts=corpus_texts,
            query_ids=query_ids,
            corpus_ids=corpus_ids,
            provenance=provenance,
            background=background,
            run=run,
            one_positive=one_positive,
            of_anchors=of_anchors,
            seed=seed,
        )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: what draws the line anew holds open files, models and functions."""
        message = (
            "Mined: it cannot be pickled, because it can judge anew. Keep its arrays, or write it: mined.write(path)."
        )
        raise TypeError(message)

    def __str__(self) -> str:
        """How many, by which rule, and what was left out."""
        filled = int(np.count_nonzero(self.mask))
        lines = [
            f"{filled:,} negatives for {len(self.ids):,} anchors, of {int(self.counts.sum()):,} asked for",
            self.rule,
        ]
        for name, counts in self.dropped.items():
            lines.append(f"{name:<24} {int(counts.sum()):>12,}")
        return "\n".join([*lines, *self.notes])


def slots_of(candidates: Candidates, width: int) -> dict[str, Any]:
    """(n, k) what `Mined` holds of each negative, in order: the selected, then the relaxed, then the random ones."""
    kept = candidates.kept & (candidates.kept_by >= 0)
    order = canonical_order(candidates, kept)
    late = [place for place, name in enumerate(candidates.kept_names) if name in ("relaxed", "random")]
    turn = np.where(np.isin(candidates.kept_by, late), candidates.kept_by, -1)
    turn = np.where(kept, turn, len(candidates.kept_names))
    order = np.take_along_axis(order, np.argsort(np.take_along_axis(turn, order, 1), axis=1, kind="stable"), 1)
    order = order[:, :width]
    filled = np.take_along_axis(kept, order, axis=1)
    empty = {"ids": -1, "scores": -np.inf, "rank": 0, "suspicion": 0, "source": -1, "kept_by": -1}
    found: dict[str, Any] = {}
    for name, none in empty.items():
        values = getattr(candidates, name)
        wide = np.full((len(candidates), width), none, values.dtype)
        wide[:, : order.shape[1]] = np.where(filled, np.take_along_axis(values, order, axis=1), values.dtype.type(none))
        found[name] = wide
    return found | {"source_names": candidates.source_names, "kept_names": candidates.kept_names}
