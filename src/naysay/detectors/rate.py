"""How many negatives are false: bounds by the scores of known positives, by hidden positives, and by labels.

Bounds by scores: with pi the share of unlabelled positives among the candidates, their scores follow
pi F_pos + (1 - pi) F_neg. For any set S of scores P_cand(S) >= pi P_pos(S), so pi <= P_cand(S) / P_pos(S). True
negatives are fewest at the top of the scores, so the sets that are tried are tails S = {score >= t}.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE, exact_interval, least_share, most_share
from naysay._rows import offsets
from naysay._slots import Score, check_score, score_slots
from naysay.arrays import Floats, to_numpy
from naysay.checks import as_array, check_kind, check_number, check_whole, public, raise_invalid, shown
from naysay.detectors._suspicion import (
    OfPairs,
    as_flags,
    check_confidence,
    check_query_and_negatives,
    check_threshold,
    finite_scores,
    like,
    masked_scores,
    query_anchors,
    slot_pairs,
    suspicion_of,
    threshold_of,
)
from naysay.errors import NaysayError
from naysay.positives import POSITIVE, Positives
from naysay.rng import key_from, rng_for
from naysay.text import percent
from naysay.types import OF_ROWS, Detector, Negatives, Query, check_query, positive_ids

Judge = OfPairs  # judge(anchors (m,), ids (m,)) -> (m,) bool: whether the pair is a false negative
_ANCHORS_INDEPENDENT = "anchors are independent of each other"
_BOUND_ASSUMPTIONS = (
    "unlabelled positives score like the positives given: which pairs are known does not depend on the score",
    "the encoder was not trained on the positives given, and each belongs to another anchor",
    _ANCHORS_INDEPENDENT,
    "these anchors are representative: they differ as much as all anchors do",
)
_HIDDEN_ASSUMPTIONS = (
    "unlabelled positives are like the hidden ones: which pairs are known is random, and so is which are hidden",
    "encoder and detector were fitted without the hidden pairs",
    _ANCHORS_INDEPENDENT,
)
# Tails by the share of the positives that they hold. They are fixed beforehand, and the error is divided among them:
# the lowest of many noisy bounds would be too low.
_TAILS = (0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)
_INCONCLUSIVE = (
    "inconclusive: the positives are too few, or score too little above the candidates, to show that fewer than half "
    "of the candidates are positives"
)


@final
@public
@dataclass(frozen=True, slots=True)
class RateEstimate:
    """An estimated share, its confidence interval, and what it assumes.

    Args:
        what: What the share is of, in words.
        estimate: The share, from 0 to 1; NaN if it is unknown.
        low: The lower end of the interval, which contains the true share with this confidence if the assumptions hold.
        high: The upper end of the interval.
        confidence: The confidence of the interval.
        n: The number of independent observations.
        assumptions: One sentence for each assumption.
        notes: One sentence for each limitation.
        bound: Whether only the upper bound `high` is claimed. `estimate` is then the bound without sampling error.

    Examples:
        >>> print(RateEstimate("false negatives", 0.02, 0.01, 0.04, 0.95, 300, ("the judge is right",)))
        false negatives: 2.0 % (95% CI 1.0 to 4.0, n = 300)
        assumes: the judge is right
    """

    what: str
    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    bound: bool = False

    def __str__(self) -> str:
        """The share and its interval, then the assumptions and notes, one a line."""
        level, n = f"{self.confidence:.0%}", f"n = {self.n:,}"
        if self.bound:
            estimate = f"{percent(self.estimate)} without sampling error"
            lines = [f"{self.what}: at most {percent(self.high)} ({level} confidence, {n}; {estimate})"]
        else:
            interval = f"{level} CI {percent(self.low, sign='')} to {percent(self.high, sign='')}, {n}"
            lines = [f"{self.what}: {percent(self.estimate)} ({interval})"]
        lines += [f"assumes: {sentence}" for sentence in self.assumptions]
        return "\n".join(lines + [f"note: {sentence}" for sentence in self.notes])


def effective_size(part: NDArray[Any], whole: NDArray[Any], slots: float, error: float) -> float:
    """The number of independent observations that the share sum(part) / sum(whole) over anchors (B,) is worth.

    Slots of one anchor tend to be hit or missed together. The size is R (1 - R) over the linearised variance of the
    share R over anchors, at most one for each of the `slots`, at least (sum whole)^2 / sum whole^2 (all slots of an
    anchor agree), and times (z / t)^2, Normal and Student at a tail of `error`, for few anchors. One is worth 0.
    Korn and Graubard. Confidence Intervals for Proportions with Small Expected Number of Positive Counts. 1998.
    """
    from scipy.special import ndtri, stdtrit

    rows, total = int((whole > 0).sum()), float(whole.sum())
    if rows < 2:
        return 0.0
    share = float(part.sum()) / total
    spread = float(((part - share * whole) ** 2).sum()) * rows / (rows - 1)
    fewest = total**2 / float((whole.astype(np.float64) ** 2).sum())
    size_without_spread = slots if 0 < share < 1 else fewest
    size = share * (1 - share) * total**2 / spread if spread > 0 else size_without_spread
    return float(np.clip(size, fewest, max(slots, fewest)) * (ndtri(error) / stdtrit(rows - 1, error)) ** 2)


# ---- bounds by scores -----------------------------------------------------------------------------------


@public
def unlabelled_share(
    candidates: Any, positives: Any, *, mask: Any = None, confidence: float = CONFIDENCE
) -> RateEstimate:
    """Estimate an upper bound on pi, the share of unlabelled positives among the candidates (the class prior).

    `estimate` is P_cand(S) / P_pos(S) at the tail S of the scores whose bound is lowest, and `high` is that bound with
    sampling error (Clopper and Pearson). Both exceed pi if true negatives reach the top scores; if none do, the
    estimate is as often below pi as above: quote `high`. `low` is 0. If a few of many anchors hold most positives, a
    sample may contain none of them, and the bound does not hold. `losses.debiased` takes this prior.

    Blanchard, Lee and Scott. Semi-Supervised Novelty Detection. JMLR 2010: the mixture and its bound. Elkan and Noto.
    Learning Classifiers from Only Positive and Unlabeled Data. KDD 2008: the assumption that labels are random.

    Args:
        candidates: (B, n) scores of all candidates that were searched, one anchor a row; (m,) if each belongs to
            another anchor. If only the best n of a search are available, use only positives found among them.
        positives: (m,) scores of known positives that the encoder was not trained on, one per anchor.
        mask: (B, n) whether a slot holds a candidate. None: all do.
        confidence: The probability with which pi is below `high`.

    Returns:
        The share, of which only `high` is claimed.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> candidates = rng.normal(0, 1, (500, 100))
        >>> candidates[:, :2] += 5                                      # 2 % of them are unlabelled positives
        >>> share = unlabelled_share(candidates, rng.normal(5, 1, 500))
        >>> round(share.estimate, 3), round(share.high, 3)
        (0.021, 0.023)
    """
    scores = _read_scores(candidates, positives, mask)
    level = check_confidence(confidence)
    best = _lowest_bound(scores, 1 - level)
    return _at_most("unlabelled positives among the candidates", scores, best, best.value, best.most, level)


@public
def false_negative_rate(
    candidates: Any,
    positives: Any,
    kept: Any,
    *,
    kept_positives: Any = None,
    mask: Any = None,
    confidence: float = CONFIDENCE,
) -> RateEstimate:
    """Estimate an upper bound on the share of false negatives among the kept: pi P_pos(kept) / P_cand(kept).

    `high` bounds the rate for anchors like these, `estimate` is its value without sampling error, `low` is 0: see
    `unlabelled_share`. The threshold may have been chosen from the same positives, as `Calibrated` does: Clopper and
    Pearson's bound also holds at an order statistic.

    Without `kept_positives` it is a bound for a set that scores chose, whatever the rule: of equal scores, false ones
    were kept no more often than others. It says nothing about a set that another model chose.

    Args:
        candidates: (B, n) scores of all candidates that were searched, kept or not; as for `unlabelled_share`.
        positives: (m,) scores of known positives that the encoder was not trained on, one per anchor.
        kept: Which candidates became negatives: a number t (all that score below t), or (B, n) bool.
        kept_positives: (m,) bool: which positives the same selection would have kept as candidates. None: all that
            score no higher than the highest score kept. That is exact for a number, and too many (so still a bound) if
            more than one threshold selects, as with the k best below a threshold.
        mask: (B, n) whether a slot holds a candidate. None: all do.
        confidence: The probability with which the rate is below `high`.

    Returns:
        The share, of which only `high` is claimed.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> candidates = rng.normal(0, 1, (500, 100))
        >>> candidates[:, :2] += 3                                      # 2 % of them are unlabelled positives
        >>> rate = false_negative_rate(candidates, rng.normal(3, 1, 500), 2.0)
        >>> low = candidates < 2.0
        >>> round(float(low[:, :2].sum() / low.sum()), 4), round(rate.estimate, 4), round(rate.high, 4)
        (0.0031, 0.0035, 0.0061)
    """
    scores = _read_scores(candidates, positives, mask)
    level = check_confidence(confidence)
    chosen, passed = _kept(scores, kept, kept_positives)
    error = (1 - level) / 3  # a part for P_pos(kept), and two for P_cand(S) / P_pos(S)
    n, hits = len(scores.positives), int(passed.sum())
    best = _lowest_bound(scores, 2 * error)
    per_kept = int(scores.filled.sum()) / int(chosen.sum())
    high = best.most * most_share(hits, n, error) * per_kept
    return _at_most("false negatives among the kept", scores, best, best.value * hits / n * per_kept, high, level)


class _Scores(NamedTuple):
    """Scores of candidates (B, n), (m, 1) if given as (m,), which slots are filled, and positives (m,)."""

    candidates: Floats
    filled: NDArray[np.bool_]
    positives: Floats
    shape: tuple[int, ...]  # of the candidates as they were given


class _Tail(NamedTuple):
    """The bound on pi by one tail: the upper confidence limit `most`, and the estimate `value`."""

    most: float
    value: float


def _read_scores(candidates: Any, positives: Any, mask: Any) -> _Scores:
    """Both kinds of scores, which must be finite and not all equal."""
    table, filled = masked_scores("candidates", candidates, mask, 1, 2)
    if not filled.any():
        raise_invalid("candidates", "at least one score", "none")
    known = finite_scores("positives", positives)
    if np.ptp(np.concatenate([table[filled], known])) == 0:
        raise_invalid("candidates", "scores that differ", f"{known[0]:g} everywhere", "Is the encoder trained?")
    rows = (len(table), -1)
    return _Scores(table.reshape(rows), filled.reshape(rows), known, table.shape)


def _lowest_bound(scores: _Scores, error: float) -> _Tail:
    """The tail with the lowest bound on pi. All bounds hold at once with probability 1 - error at least."""
    n, ordered = len(scores.positives), np.sort(scores.positives)[::-1]
    counts = sorted({round(share * n) for share in _TAILS} - {0})
    error_of_each = error / (2 * len(counts))
    slots = scores.filled.sum(axis=1)
    tails = []
    for count in counts:
        reached = ((scores.candidates >= ordered[count - 1]) & scores.filled).sum(axis=1)
        share = float(reached.sum() / slots.sum())
        size = effective_size(reached, slots, int(slots.sum()), error_of_each)
        most = most_share(share * size, size, error_of_each) if size else 1.0
        tails.append(_Tail(most / least_share(count, n, error_of_each), share * n / count))
    return min(tails, key=lambda tail: tail.most)


def _at_most(what: str, scores: _Scores, best: _Tail, estimate: float, high: float, level: float) -> RateEstimate:
    """A share with an upper bound only, and why the bound may be useless."""
    notes: tuple[str, ...] = ()
    if best.most >= 0.5:
        notes = (_INCONCLUSIVE,)
    elif high >= 1:
        notes = ("inconclusive: true negatives may score as high as positives; label some with spot_check",)
    n, share, most = len(scores.positives), min(estimate, 1.0), min(high, 1.0)
    return RateEstimate(what, share, 0.0, most, level, n, _BOUND_ASSUMPTIONS, notes, bound=True)


def _kept(scores: _Scores, kept: Any, kept_positives: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which candidates became negatives (B, n), and which positives would have (m,)."""
    if as_array("kept", to_numpy(kept)).ndim:
        chosen = as_flags("kept", kept, scores.shape).reshape(scores.candidates.shape) & scores.filled
    else:
        threshold = check_number("kept", kept)
        chosen = (scores.candidates < threshold) & scores.filled
        if kept_positives is not None:
            raise_invalid("kept_positives", "left out if `kept` is a number", shown(kept_positives))
        kept_positives = scores.positives < threshold
    if not chosen.any():
        raise_invalid("kept", "at least one candidate", "none")
    if kept_positives is None:
        return chosen, scores.positives <= scores.candidates[chosen].max()
    return chosen, as_flags("kept_positives", kept_positives, scores.positives.shape)


# ---- hidden positives -----------------------------------------------------------------------------------


@public
def hidden_positives(
    detector: Detector,
    query: Query,
    hidden: Positives,
    *,
    rng: np.random.Generator,
    score: Score | None = None,
    threshold: float | None = None,
    confidence: float = CONFIDENCE,
) -> RateEstimate:
    """Estimate the share of unlabelled positives that a detector flags, from known positives alone.

    **One hidden positive per anchor**, so that observations are independent. It counts as often as its anchor has
    hidden positives: one with twice as many known ones has about twice as many unknown ones. The interval is that of
    Clopper and Pearson at (sum w)^2 / sum w^2 observations, w these weights.

    The hidden positives must be a random part of all positives: `Positives.split` without `keep_one`. False alarms are
    not measured: a detector that flags everything scores 1.

    Args:
        detector: A detector that was fitted to `Split.kept`. Neither it nor the encoder may have seen the hidden pairs.
        query: The anchors. Anchors without a hidden positive, and repeated anchors, are left out.
        hidden: The hidden positives, `Split.hidden`.
        rng: The generator that chooses one positive of each anchor.
        score: score(anchors (B,), ids (B, n)) -> (B, n), for detectors that use scores.
        threshold: A slot is flagged if its suspicion is at least this; by default the detector's own, 0.5 for most.
        confidence: The confidence of the interval.

    Returns:
        The share of hidden positives that are flagged, with its interval.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=300, n_items=200, noise=0.3)
        >>> split = world.known.split(0.2, rng=ns.rng_for(0))
        >>> close, query = ns.detectors.MaxScore(0.5), ns.Query(np.arange(300))
        >>> rate = hidden_positives(close, query, split.hidden, rng=ns.rng_for(1), score=world.scores)
        >>> rate.n, rate.low < rate.estimate < rate.high
        (300, True)
    """
    check_query(query)
    check_kind("hidden", hidden, Positives, "a Positives", "Pass positives.split(rng=rng).hidden.")
    level = check_confidence(confidence)
    limit = threshold_of(detector) if threshold is None else check_threshold(threshold)
    if score is not None:
        check_score(score)
    anchors = query_anchors(query, hidden.n_anchors)
    n_seen = 0 if query.positives is None else int(hidden.contains(anchors, positive_ids(query)).sum())
    if n_seen:
        raise_invalid("query.positives", "pairs that are not hidden", f"{n_seen} hidden", "Use those of Split.kept.")
    chosen = np.sort(np.unique(anchors, return_index=True)[1])
    chosen = chosen[hidden.count(anchors[chosen]) > 0]
    if len(chosen) == 0:
        raise_invalid("hidden", "positives of at least one anchor of the query", "none")
    rows = _query_rows(query, chosen)
    candidates = Negatives(_one_of_each(hidden, anchors[chosen], rng)[:, None]).like(query)
    if score is not None:
        candidates = replace(candidates, scores=score_slots(score, rows, candidates.ids))
    try:
        suspicion = suspicion_of("detector", detector, rows, candidates)
    except NaysayError as error:
        if error.parameter != "negatives.scores" or score is not None:
            raise
        # This function made the negatives, so the detector's own advice does not help.
        raise_invalid("score", "given for a detector that uses scores", None, "Pass a function score(anchors, ids).")
    n, weights = len(chosen), hidden.count(anchors[chosen]).astype(np.float64)
    share = float((weights * (suspicion[:, 0] >= limit)).sum() / weights.sum())
    size = float(weights.sum() ** 2 / (weights**2).sum())
    low, high = exact_interval(share * size, size, level)
    left = f"{len(anchors) - n:,} of {len(anchors):,} rows have no hidden positive, or repeat an anchor: left out"
    notes = (left,) if n < len(anchors) else ()
    return RateEstimate("hidden positives that are flagged", share, low, high, level, n, _HIDDEN_ASSUMPTIONS, notes)


def _query_rows(query: Query, chosen: NDArray[Any]) -> Query:
    """The query of some rows."""
    parts = {name: getattr(query, name) for name in OF_ROWS}
    return replace(query, **{name: part[chosen] for name, part in parts.items() if part is not None})


def _one_of_each(positives: Positives, anchors: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """(B,) one positive of each anchor, all equally likely. Every anchor must have one."""
    items = positives.indices
    starts, counts = positives.indptr[:-1], positives.count()
    if positives.relation is not None:
        items, starts = items[positives.relation == POSITIVE], offsets(counts)[:-1]
    numbers = rng_for(int(key_from(rng))).random(len(anchors))
    place = (numbers * counts[anchors]).astype(np.int64)
    return np.asarray(items[starts[anchors] + place], np.int64)


# ---- labels ---------------------------------------------------------------------------------------------


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class PairLabels:
    """Labelled negatives, in the form that `Labelled.fit` and `evaluate` take. `judge_some` makes it.

    It can be unpacked: `detector.fit(*labels)`, `evaluate(detector, *labels)`.

    Args:
        query: The rows with a labelled slot.
        negatives: (B, K) their slots; slots without a label are empty.
        truth: (B, K) bool: whether a slot holds a false negative.
        n: The number of labels.
    """

    query: Query
    negatives: Negatives
    truth: NDArray[np.bool_]
    n: int

    def __iter__(self) -> Iterator[Any]:
        """The query, the negatives and the truth."""
        return iter((self.query, self.negatives, self.truth))


@public
def judge_some(
    query: Query, negatives: Negatives, judge: Judge, m: int = 100, *, rng: np.random.Generator
) -> PairLabels:
    """Label m random negatives, without replacement; all of them if there are fewer.

    Fit a detector to the labels with `Labelled().fit(*labels)`, and evaluate it on labels of other anchors. The slots
    of an anchor stay in one row, because they tend to be right or wrong together.

    Args:
        query: The query of the negatives.
        negatives: What a sampler or a policy returned. Slots of `mask` count.
        judge: judge(anchors (m,), ids (m,)) -> (m,) bool, True for a false negative: a person, a cross-encoder, a
            language model. It is called once, in NumPy. For triples it gets (m, 3) and (m, 3): the triples and the
            corrupted triples.
        m: The number of negatives to label.
        rng: The generator of the draw.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=200, n_items=100)
        >>> query = ns.Query(np.arange(200))
        >>> drawn = ns.pools.Everything(world.known).draw(query, 10, rng=ns.rng_for(0))
        >>> labels = judge_some(query, drawn, world.is_false_negative, 50, rng=ns.rng_for(1))
        >>> labels.n, int(labels.truth.sum()), labels.negatives.shape == (len(labels.query), 10)
        (50, 5, True)
    """
    return _label(query, negatives, judge, m, rng)


@public
def spot_check(
    query: Query,
    negatives: Negatives,
    judge: Judge,
    m: int = 100,
    *,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> RateEstimate:
    """Estimate the share of false negatives from m random negatives that a judge labels.

    The interval is Clopper and Pearson's, slightly too wide for draws without replacement. It is about these negatives,
    and needs none of the assumptions of `false_negative_rate`. To show a rate below 1 % takes about 300 labels without
    a false negative: (1 - 0.01)^300 < 0.05. `judge_some` returns the labels themselves.

    Args:
        query: As for `judge_some`, like `negatives`, `judge`, `m` and `rng`.
        negatives: What a sampler or a policy returned.
        judge: judge(anchors (m,), ids (m,)) -> (m,) bool, True for a false negative.
        m: The number of negatives to label.
        rng: The generator of the draw.
        confidence: The confidence of the interval.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=200, n_items=100)
        >>> query = ns.Query(np.arange(200))
        >>> drawn = ns.pools.Everything(world.known).draw(query, 10, rng=ns.rng_for(0))
        >>> share = spot_check(query, drawn, world.is_false_negative, rng=ns.rng_for(1))
        >>> share.n, share.low < world.false_negative_rate(query.anchors, drawn.ids) < share.high
        (100, True)
    """
    level = check_confidence(confidence)
    labels = _label(query, negatives, judge, m, rng)
    n, hits = labels.n, int(labels.truth.sum())
    everything = n == np.count_nonzero(to_numpy(negatives.mask))
    low, high = (hits / n, hits / n) if everything else exact_interval(hits, n, level)
    notes = ("all negatives were labelled, so the share is exact",) if everything else ()
    return RateEstimate("false negatives", hits / n, low, high, level, n, ("the judge is right",), notes)


def _label(query: Query, negatives: Negatives, judge: Judge, m: Any, rng: np.random.Generator) -> PairLabels:
    """Draw and label m slots."""
    check_query_and_negatives(query, negatives)
    if not callable(judge):
        raise_invalid("judge", "a function judge(anchors, ids)", type(judge).__name__)
    wanted = check_whole("m", m, 1)
    filled = np.flatnonzero(np.asarray(to_numpy(negatives.mask)).ravel())
    if len(filled) == 0:
        raise_invalid("negatives", "at least one negative", "none")
    n = min(wanted, len(filled))
    drawn = rng_for(int(key_from(rng))).choice(filled, n, replace=False)
    rows, slots = np.divmod(drawn, negatives.shape[1])
    labels = as_array("judge", to_numpy(judge(*slot_pairs(query, negatives, rows, slots))))
    if labels.shape != (n,) or labels.dtype != bool:
        rule = f"a function that returns True or False for each of {n} pairs"
        raise_invalid("judge", rule, f"{labels.dtype} of shape {labels.shape}")
    kept, place = np.unique(rows, return_inverse=True)
    truth, labelled = (np.zeros((len(kept), negatives.shape[1]), bool) for _ in range(2))
    truth[place, slots], labelled[place, slots] = labels, True
    values = {part.name: getattr(negatives, part.name) for part in fields(negatives)}
    taken = {name: value[kept] for name, value in values.items() if hasattr(value, "dtype")}
    ids = like(np.where(labelled, to_numpy(taken.pop("ids")), -1), negatives.ids)
    return PairLabels(_query_rows(query, kept), replace(negatives, ids=ids, **taken, dropped={}), truth, n)
