"""mine: the best negatives in a corpus. Embeddings in, ids out, as `Mined`, with all that explains them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from naysay._options import takes_options
from naysay._packages import need_datasets
from naysay.checks import check_number, check_whole, public, raise_invalid, shown
from naysay.detectors.asking import ReviewedPairs, review_notes
from naysay.detectors.calibrated import Calibrated
from naysay.detectors.rate import RateEstimate
from naysay.mining.auto import PosteriorAndShare, choose_judge, fit_posterior, recut
from naysay.mining.candidates import REASONS, Candidates, Floats32, Ids, Mask, Reason
from naysay.mining.estimate import SetEstimate, estimate_set
from naysay.mining.fit import FittedPosterior
from naysay.mining.judge import (
    Judge,
    anchors_without_positive,
    check_detector,
    check_judge_text,
    is_yet_to_fit,
    judge_of,
)
from naysay.mining.options import MiningOptions
from naysay.mining.pipeline import mine_blocks, rescore_all, take_negatives
from naysay.mining.problem import Problem
from naysay.mining.review import ToReview, drawn_pairs
from naysay.mining.reviewing import ByReview, choose_reviewed_judge, positives_to_write
from naysay.mining.take import notes_of, slots_of, tally_of
from naysay.places import Place
from naysay.positives import Positives
from naysay.types import Negatives, Query

if TYPE_CHECKING:
    from naysay.formats.write_negatives import Written

_PRINTED = 12  # dropped candidates that an explanation prints
_SLOTS = ("ids", "scores", "rank", "suspicion", "source", "kept_by")


@public
@takes_options(MiningOptions)
def mine(queries: Any, corpus: Any, positives: Any, k: Any, options: MiningOptions) -> Mined:
    """Find k hard negatives for each query: near, but neither known nor likely positives.

    The stages run in this order, and each counts what it drops:

        search -> exclude -> (rescore) -> judge -> across anchors -> select -> backfill

    judge="auto" leaves at most an estimated `false_share` of false negatives, by a `Posterior` and the rule that drops
    scores above 95 % of the anchor's positive. Where the data do not allow it, a fallback takes its place; `mined.rule`
    says which, why, and what it leaves. judge=None takes the nearest, copies of positives included. Known positives,
    ignored pairs and the anchor itself are always left out. The same arguments give the same bytes, whatever the
    engine, the budget and the threads. See the page on mining for the policies of "auto" and the depth of the search.

    Args:
        queries: (n, d) vectors of any encoder: NumPy, torch, Arrow, or a .npy, .safetensors or .parquet file.
        corpus: (N, d) vectors, the same.
        positives: Known positives: `Positives` (anchor = query row, item = corpus row), two arrays (anchors, items),
            (n,) the one positive of each query with -1 for none, or None.
        k: Number of negatives: one for all, (n,) one for each, or "auto": as many as the judge does not drop and reach
            the lowest useful score, at most `max_k`.
        options: All other keywords are the fields of `MiningOptions`.

    Returns:
        The negatives, as `Mined`.

    Raises:
        NaysayError: If an argument is invalid, before anything is searched. TypeError for an unknown keyword.

    Examples:
        >>> import numpy as np
        >>> vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1]], np.float32)
        >>> mined = mine(vectors[:1], vectors, [0], 2, judge=None)
        >>> mined.ids.tolist(), mined.rank.tolist(), mined.dropped["positive"].tolist()
        ([[1, 2]], [[1, 2]], [1])
    """
    problem = Problem.of(queries, corpus, positives, k, options)  # the only checks
    rescored = None if options.rescore is None else rescore_all(problem)  # search, exclude, rescore
    if rescored is not None:
        judge = choose_judge(problem, rescored=rescored.positive_scores)
    elif options.reviewer is not None:
        judge = choose_reviewed_judge(problem)
    else:
        judge = choose_judge(problem)
    return _mined_by(judge, problem, rescored)


def _mined_by(judge: Judge, problem: Problem, rescored: Candidates | None) -> Mined:
    """The negatives that a judge leaves; `rescored` are the candidates if a second model scored them."""
    # mine_blocks: search, exclude, judge, each anchor by itself.
    judged = mine_blocks(problem, judge) if rescored is None else judge.apply(rescored, problem.query(problem.anchors))
    problem.release()
    candidates, counts = take_negatives(problem, judge, judged)  # across anchors, select, backfill
    return Mined(problem, judge, candidates, counts, rescored=rescored)  # rule and notes are of what was taken


# ---- the result -----------------------------------------------------------------------------------------------------


@public
class Outcome(NamedTuple):
    """A candidate and what became of it.

    Attributes:
        id: Its corpus row.
        rank: Its rank in the list of its source, 0 for a random item.
        score: Its score.
        suspicion: The judge's suspicion.
        source: Where it was found.
        kept: Whether it is a negative.
        by: The rule that kept it, or the reason for which it was dropped.
    """

    id: int
    rank: int
    score: float
    suspicion: float
    source: str
    kept: bool
    by: str


@final
@public
@dataclass(frozen=True, slots=True)
class Explanation:
    """Why each candidate of an anchor became a negative or did not. `print` shows it as a table.

    Args:
        anchor: The number of the query.
        negatives: Its negatives, in order.
        candidates: What was found and dropped, by score.
        positive_score: The lowest score of its known positives; NaN without one.
        threshold: The score from which the judge suspects, or above which: see `Mined.thresholds`; NaN if none.
        dropped: {reason: count}, known pairs included.
        wanted: k of this anchor.
        rule: The judge, in a sentence.

    Examples:
        >>> outcome = Outcome(id=7, rank=1, score=0.9, suspicion=0.1, source="search", kept=True, by="top")
        >>> print(Explanation(0, (outcome,), (), 0.95, 0.92, {"positive": 1}, 1, "Suspected from 0.92."))
        anchor 0: 1 of 1 negatives, positive 0.9500, threshold 0.9200
        Suspected from 0.92.
                id   rank     score suspicion  source     outcome
                 7      1    0.9000      0.10  search     kept: top
        left out: positive 1
    """

    anchor: int
    negatives: tuple[Outcome, ...]
    candidates: tuple[Outcome, ...]
    positive_score: float
    threshold: float
    dropped: Mapping[str, int]
    wanted: int
    rule: str

    def __str__(self) -> str:
        """A table: kept first, then dropped."""
        scores = {"positive": self.positive_score, "threshold": self.threshold}
        known = "".join(f", {name} {value:.4f}" for name, value in scores.items() if not np.isnan(value))
        lines = [f"anchor {self.anchor}: {len(self.negatives)} of {self.wanted} negatives{known}"]
        lines += [self.rule, f"{'id':>10} {'rank':>6} {'score':>9} {'suspicion':>9}  {'source':<10} outcome"]
        for one in (*self.negatives, *self.candidates[:_PRINTED]):
            numbers = f"{one.id:>10} {str(one.rank) if one.rank else '-':>6} {one.score:>9.4f} {one.suspicion:>9.2f}"
            lines.append(f"{numbers}  {one.source:<10} {'kept' if one.kept else 'dropped'}: {one.by}")
        if len(self.candidates) > _PRINTED:
            lines.append(f"and {len(self.candidates) - _PRINTED} more")
        if self.dropped:
            lines.append("left out: " + ", ".join(f"{reason} {count}" for reason, count in self.dropped.items()))
        return "\n".join(lines)


@final
@public
@dataclass(frozen=True, eq=False, repr=False)
class Mined:
    """What `mine` returns: ids, scores and everything else below, by anchor. Frozen; `rethreshold` returns another.

    `rule`, `false_share`, `dropped` and `notes` are computed from the ids that are returned, whatever chose them.

    Args:
        problem: What was mined.
        chosen_judge: The judge that was applied.
        candidates: What the negatives were taken from, with the outcome of each candidate.
        counts: (n,) k of each anchor.
        anchors: (n,) which anchors of the problem these are; None for all.
        whole: (ids, scores) of all anchors, if these are some of them: the rule and the estimate are about all.
        rescored: The candidates before they were judged, if a second model scored them.

    Attributes:
        ids: (n, k) the negatives, by score, then those that filled the row up; -1 empty.
        scores: (n, k) float32, -inf where empty.
        rank: (n, k) the rank in the list of its source, known pairs not counted; 0 for empty slots and random items.
        suspicion: (n, k) of the judge; 0 where nothing was judged.
        source: (n, k) which of `source_names`; -1 empty.
        kept_by: (n, k) which of `kept_names`; -1 empty.

    Examples:
        >>> import naysay as ns
        >>> vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1]], np.float32)
        >>> mined = ns.mine(vectors[:1], vectors, [0], 2, judge=None)
        >>> mined.ids.tolist(), mined.short, mined.rule
        ([[1, 2]], 0, 'Nothing is suspected: the nearest are taken.')
    """

    problem: Problem
    chosen_judge: Judge
    candidates: Candidates
    counts: Ids
    anchors: Ids | None = None
    whole: tuple[Ids, Floats32] | None = None
    rescored: Candidates | None = None
    ids: Ids = field(init=False)
    scores: Floats32 = field(init=False)
    rank: NDArray[np.int32] = field(init=False)
    suspicion: Floats32 = field(init=False)
    source: NDArray[np.int8] = field(init=False)
    kept_by: NDArray[np.int8] = field(init=False)

    def __post_init__(self) -> None:
        """Take the negatives from the candidates."""
        width = self.problem.largest_k if self.problem.counts is not None else int(self.counts.max(initial=0))
        slots = slots_of(self.candidates, width)
        for name in _SLOTS:
            object.__setattr__(self, name, slots[name])

    @property
    def mask(self) -> Mask:
        """(n, k): slots that hold a negative."""
        return self.ids >= 0

    @property
    def source_names(self) -> tuple[str, ...]:
        """Where candidates come from."""
        return self.candidates.source_names

    @property
    def kept_names(self) -> tuple[str, ...]:
        """The rules that take negatives."""
        return self.candidates.kept_names

    @property
    def positive_scores(self) -> Floats32:
        """(n,) the lowest score of the anchor's known positives; NaN without one."""
        return self.candidates.positive_scores

    @property
    def missing(self) -> Ids:
        """(n,) how many negatives each anchor lacks to its k."""
        return np.asarray(self.counts - np.count_nonzero(self.mask, axis=1))

    @property
    def short(self) -> int:
        """How many anchors have fewer than k negatives."""
        return int(np.count_nonzero(self.missing))

    @property
    def dropped(self) -> dict[Reason, Ids]:
        """{reason: (n,) how many of each anchor}; "not selected" are good candidates that were not needed."""
        return self.candidates.dropped

    @property
    def judge(self) -> Any:
        """The detector, or None."""
        return self.chosen_judge.detector

    @property
    def suspicion_threshold(self) -> float:
        """Candidates with this suspicion or more were dropped."""
        return self.chosen_judge.drop_at

    @cached_property
    def thresholds(self) -> NDArray[np.float64]:
        """(n,) the score from which the judge suspects, or above which: see `Judge.limits`; NaN if it has none.

        With judge="auto" it is that of the rule by the positive's score; a posterior may drop lower scores.
        """
        return self.chosen_judge.limits(self.query, self.positive_scores)

    @cached_property
    def rule(self) -> str:
        """The judge, in a sentence; with judge="auto" also what it leaves of false negatives in these ids."""
        return self.chosen_judge.describe(*self._all_negatives)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each thing to know about the result."""
        problem = self.problem
        notes: tuple[str, ...] = (problem.search_note,) if problem.search_note else ()
        notes += own_text_note(int(np.count_nonzero(self.dropped.get(Reason.OWN_TEXT, 0))))
        tally = tally_of(self.candidates, self.counts, problem.advised_depth)
        return (*notes, *review_notes(problem.reviewers, "mine again"), *notes_of(tally, problem.n_items))

    @property
    def known(self) -> Positives:
        """What could never be a negative: positives, ignored pairs, the anchors themselves."""
        return self.problem.known_of(self._rows)[0]

    @property
    def known_scores(self) -> Floats32 | None:
        """(pairs,) their scores in the order of known.pairs(); None if a second model scored the negatives."""
        if self.problem.options.rescore is not None:
            return None
        return self.problem.known_scores[self.problem.known_of(self._rows)[1]]

    @property
    def depth(self) -> int:
        """How many candidates of each anchor were searched first."""
        return self.problem.first_depth

    @property
    def metric(self) -> str:
        """The metric of the scores."""
        return self.problem.options.metric

    @property
    def query(self) -> Query:
        """What the judge was given."""
        return self.problem.query(self._rows)

    @property
    def _rows(self) -> Ids:
        return self.problem.anchors if self.anchors is None else self.anchors

    @property
    def _all_negatives(self) -> tuple[Ids, Floats32]:
        """Ids and scores of all anchors of the problem."""
        return (self.ids, self.scores) if self.whole is None else self.whole

    @cached_property
    def fitted(self) -> FittedPosterior | None:
        """The posterior by which false negatives are estimated; None where a second model scores.

        It is that of judge="auto"; where another judge was given, it is fitted when this is first asked for.
        """
        if self.problem.options.rescore is not None:
            return None
        return self.chosen_judge.fitted or fit_posterior(self.problem)

    @cached_property
    def estimate(self) -> SetEstimate:
        """What the posterior estimates of the negatives, or why it cannot tell."""
        policy = self.chosen_judge.policy
        if isinstance(policy, ByReview):
            return policy.estimate(*self._all_negatives)
        if self.fitted is None:
            return SetEstimate(None, np.nan, "these scores have no posterior: pairs were rescored")
        return estimate_set(self.fitted, *self._all_negatives)

    @property
    def reviewed(self) -> ReviewedPairs | None:
        """Every answer of the reviewer, or None without one."""
        policy = self.chosen_judge.policy
        return policy.review.asked if isinstance(policy, ByReview) else None

    @property
    def false_share(self) -> RateEstimate | None:
        """The estimated share of false negatives among the negatives, with its 95 % CI; None where it cannot be told.

        With judge="auto" it is what `rule` says.
        """
        return self.estimate.share

    def negatives(self) -> Negatives:
        """Return the same as `Negatives`, for losses, policies and reports; row i is anchor i."""
        return Negatives(
            self.ids,
            scores=np.where(self.mask, self.scores, np.float32(0)),
            suspicion=self.suspicion,
            source=self.source,
            source_names=self.source_names,
            dropped={str(reason): int(counts.sum()) for reason, counts in self.dropped.items()},
        )

    def explain(self, anchor: int) -> Explanation:
        """Explain why each candidate of an anchor became a negative or did not.

        Args:
            anchor: The number of a query.
        """
        row = check_whole("anchor", anchor, 0)
        if row >= len(self.ids):
            raise_invalid("anchor", f"below {len(self.ids)}, the number of queries", row)
        listed = self.candidates
        dropped = np.flatnonzero((listed.ids[row] >= 0) & (listed.why[row] != 0))
        by_score = dropped[np.lexsort((listed.ids[row, dropped], -listed.scores[row, dropped]))]
        return Explanation(
            anchor=row,
            negatives=tuple(
                self._outcome(self, row, slot, self.kept_names[by], kept=True)
                for slot, by in enumerate(self.kept_by[row].tolist())
                if by >= 0
            ),
            candidates=tuple(
                self._outcome(listed, row, slot, REASONS[listed.why[row, slot] - 1], kept=False)
                for slot in by_score.tolist()
            ),
            positive_score=float(self.positive_scores[row]),
            threshold=float(self.thresholds[row]),
            dropped={str(reason): int(counts[row]) for reason, counts in self.dropped.items() if counts[row]},
            wanted=int(self.counts[row]),
            rule=self.rule,
        )

    def _outcome(self, arrays: Mined | Candidates, row: int, slot: int, by: str, *, kept: bool) -> Outcome:
        return Outcome(
            id=int(arrays.ids[row, slot]),
            rank=int(arrays.rank[row, slot]),
            score=float(arrays.scores[row, slot]),
            suspicion=float(arrays.suspicion[row, slot]),
            source=self.source_names[arrays.source[row, slot]],
            kept=kept,
            by=str(by),
        )

    def pairs_to_review(self, count: int = 100) -> ToReview:
        """Draw pairs for a person to label: mine(..., reviewed=(anchors, items, truth)) corrects its estimate by them.

        They are drawn uniformly, by the seed, among the nearest k candidates that may be taken; in random order.

        Args:
            count: How many.

        Returns:
            Their `anchors`, `items`, `scores` and `posterior`, one array each.
        """
        check_whole("count", count, 1)
        fitted = self.chosen_judge.fitted
        if fitted is None:
            raise_invalid("count", "asked for where the judge was 'auto'", count, "Mine with judge='auto'.")
        return drawn_pairs(fitted, self.problem.counts_of(fitted.lists.anchors), count, self.problem.reviewed)

    def rethreshold(
        self,
        threshold: float | None = None,
        *,
        alpha: float | None = None,
        judge: Any = None,
        false_share: float | None = None,
    ) -> Mined:
        """Judge again, without scoring known pairs, fitting, or asking a second model again. Give one of the arguments.

        The result is that of `mine` with the other judge: anchors are searched again, unless they were rescored. What a
        second model was asked about stays the same.
        Selection and backfill run as before, with the same seed: the same threshold gives the same bytes.

        Args:
            threshold: Drop candidates with this suspicion or more, in place of `suspicion_threshold`.
            alpha: Another share of unlabelled positives that may be missed, if the judge is `Calibrated`.
            judge: Another detector, or a text such as "share:0.95".
            false_share: Another estimated share of false negatives, if "auto" fitted a `Posterior` without a reviewer.
        """
        values = {"threshold": threshold, "alpha": alpha, "judge": judge, "false_share": false_share}
        given = [name for name, value in values.items() if value is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            raise_invalid("threshold", "given, or alpha, or judge, or false_share: one of them", got)
        if self.anchors is not None:
            message = "a job on disk keeps the candidates of a sample only. Mine again with another --judge."
            raise_invalid("judge", "that of the job", "another", message)
        problem = self.problem
        if threshold is not None:
            other = self._at_threshold(threshold)
        elif alpha is not None:
            other = self._at_alpha(alpha)
        elif false_share is not None:
            other = self._at_false_share(false_share)
        else:
            other = self._by(judge)
            # Whether duplicates are dropped, how deep is searched and what a detector is shown depends on the judge.
            without_reviewer: dict[str, Any] = {"reviewer": None, "review": 0, "answers": None, "texts": None}
            problem = replace(problem, options=replace(problem.options, judge=judge, **without_reviewer))
        return _mined_by(other, problem, self.rescored)

    def _at_threshold(self, threshold: float) -> Judge:
        """The same detector, with another suspicion from which it drops."""
        if self.judge is None:
            raise_invalid("threshold", "left out where nothing was judged", threshold, "Pass judge.")
        check_number("threshold", threshold, at_least=0, at_most=1)
        return replace(self.chosen_judge, drop_at=threshold)

    def _at_false_share(self, false_share: float) -> Judge:
        """The same posterior with another cut."""
        check_number("false_share", false_share, above=0, below=1)
        if self.reviewed is not None:
            advice = "Mine again with another `false_share`; a file of `answers` keeps what was answered."
            raise_invalid("false_share", "left out after a review", false_share, advice)
        fitted = self.chosen_judge.fitted
        if fitted is None or not fitted.posterior.fitted:
            advice = "Mine with judge='auto'; `rule` says why there is none."
            raise_invalid("false_share", "left out unless 'auto' fitted a Posterior", false_share, advice)
        other = recut(self.problem, fitted.posterior, fitted.lists, false_share)
        return PosteriorAndShare(self.problem, replace(fitted, posterior=other)).judge()

    def _at_alpha(self, alpha: float) -> Judge:
        """The same calibration at another alpha."""
        if not isinstance(self.judge, Calibrated):
            raise_invalid("alpha", "left out unless the judge is Calibrated", alpha, "Pass threshold, or judge.")
        other = Calibrated(alpha, standardise=self.judge.standardise)
        other.restore(self.judge.state())
        return Judge.by(other, fitted=self.chosen_judge.fitted)

    def _by(self, given: Any) -> Judge:
        """Another judge, as a detector or as text."""
        if isinstance(given, str):
            check_judge_text("judge", given)
        detector = judge_of(given, self.positive_scores)
        if is_yet_to_fit(detector):
            advice = "Pass alpha, or mine again."
            raise_invalid("judge", "one that is not fitted to the data, such as 'share:0.95'", shown(given), advice)
        if detector is not None:
            check_detector("judge", detector)
        about = anchors_without_positive(given, self.positive_scores)
        has_other_lists = detector is None or self.problem.options.reviewer is not None  # with duplicates, or deeper
        return Judge.by(detector, about, None if has_other_lists else self.chosen_judge.fitted)

    def write(self, path: str | Path, format: str = "triplet", **options: Any) -> Written:
        """Write the negatives in a format that a trainer reads.

        Args:
            path: The file.
            format: Its format, such as "triplet" or "ids"; most need query_texts and corpus_texts.
            **options: Keywords of `formats.write_negatives`: query_ids, corpus_ids, query_texts, corpus_texts,
                corpus_titles, with_scores, short, corpus_path, tag.
        """
        from naysay.formats.write_negatives import write_negatives  # here, because mining itself needs no format

        positives, positive_scores = self.known, self.known_scores
        if self.problem.options.false_negatives == "positive":
            positives, positive_scores = positives_to_write(self.problem, self.chosen_judge)
        options |= {"ids": self.ids, "scores": self.scores, "positives": positives}
        return write_negatives(path, format, positive_scores=positive_scores, **options)

    def to_dataset(self, format: str = "triplet", **options: Any) -> Any:
        """The negatives as a `datasets.Dataset`, in memory: `.push_to_hub("me/negatives", private=True)` uploads it.

        Args:
            format: As for `write`.
            **options: As for `write`.
        """
        datasets = need_datasets()
        with tempfile.TemporaryDirectory(prefix="naysay-") as folder:
            written = self.write(Path(folder) / "negatives.hf", format, **options)
            return datasets.load_from_disk(str(written.path), keep_in_memory=True)

    def report(self, path: str | Place, **options: Any) -> Place:
        """Write one HTML file that shows what was mined and why.

        Args:
            path: The file, which ends in .html.
            **options: Keywords of `report_mined`: title, numbers, query_texts, corpus_texts, query_ids, corpus_ids,
                provenance, notes, command, seed.
        """
        from naysay.mining.report import report_mined  # here, because mining itself needs no report

        return report_mined(self, path, **options)

    def __reduce__(self) -> NoReturn:
        """Raise: what judges again holds open files, models and functions."""
        message = "Mined: it cannot be pickled, because it can judge again. Keep its arrays, or call mined.write(path)."
        raise TypeError(message)

    def __repr__(self) -> str:
        return f"Mined({self._counted()}, k={self.ids.shape[1]}, metric={self.metric!r}, judge={self.judge!r})"

    def _counted(self) -> str:
        return f"{self.mask.sum():,} of {self.counts.sum():,} negatives for {len(self.ids):,} anchors"

    def __str__(self) -> str:
        """How many, by which rule, and what was left out."""
        smallest, largest = int(self.counts.min(initial=self.ids.shape[1])), int(self.counts.max(initial=0))
        k = f"k = {largest}" if smallest >= largest else f"k = {smallest} to {largest}"
        lines = [f"{self._counted()}, {k}", self.rule]
        lines += [f"{reason:<24} {int(counts.sum()):>12,}" for reason, counts in self.dropped.items()]
        return "\n".join([*lines, *self.notes])


def own_text_note(count: int, option: str = "keep_own_text=True", by: str = "vector") -> tuple[str, ...]:
    """A sentence on the anchors whose own text is in the corpus; none if there are none."""
    if not count:
        return ()
    return (
        f"{count:,} anchors have their own {by} in the corpus under another id. These documents are left out "
        f"({option} keeps them).",
    )
