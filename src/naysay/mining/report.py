"""Mined negatives as a page: the trade of false negatives and hardness, outcomes, examples, and pairs to label."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._intervals import CONFIDENCE
from naysay._options import takes_options
from naysay.arrays import Floats
from naysay.checks import check_lengths, public, raise_invalid, shown
from naysay.detectors.posterior import EMPTY, Posterior, cut_at, first_of, nearest_below
from naysay.detectors.rate import RateEstimate
from naysay.mining.auto import RULE_95, lists_of
from naysay.mining.candidates import REASONS, Floats32, Ids, Mask, Reason
from naysay.mining.fit import FittedPosterior
from naysay.mining.judge import Judge, judge_of
from naysay.places import Place, as_place, check_page
from naysay.positives import POSITIVE
from naysay.report.contents import Contents, Example, Examples, ReviewPair, Table
from naysay.report.html import write_report
from naysay.report.scores import Scores
from naysay.report.trade import Trade, TradePoint, false_text
from naysay.rng import rng_for
from naysay.text import counted, percent, versions
from naysay.types import Query

Mined = Any  # `Mined.report` needs this module, so it cannot import the class
CHOSEN = "these negatives"
UNKNOWN = "these scores have no posterior: pairs were rescored"
_RULES = {"share 0.95": RULE_95, "margin 0.05": "margin:0.05"}  # what others use most
_TARGETS = 48  # on the slider
_SMALLEST_TARGET = 1 / 40  # of the share of the nearest
_TO_LABEL = 100  # pairs
_CHARACTERS = 1000  # of a text to label
_EXAMPLES = 10  # of a kind
_SHOWN_SLOTS = 1 << 22  # candidates behind the distributions and examples, in whole anchors
_HIGH_SHARE, _CLEARLY_ABOVE = 0.05, 1.2  # a false share to look into before training
_NO_NEGATIVES = RateEstimate("false negatives", 0.0, 0.0, 1.0, CONFIDENCE, 0, ())


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportOptions:
    """What a report of mined negatives shows beside them.

    Args:
        title: The title of the page.
        numbers: {what: figure} for the headline, beside the report's own; the same name replaces it.
        query_texts: The texts of queries: an object with len() and [row]; only rows that are shown are read.
        corpus_texts: The texts of the corpus, the same.
        query_ids: The ids of queries, the same.
        corpus_ids: The ids of the corpus, the same.
        provenance: {what: value} beside versions and settings: arguments, seed, hashes of the input.
        notes: Sentences at the end; by default those of `mined`.
        command: What mines again with another target, with TARGET in place of its value.
        seed: Seed of the anchors, if there are many, of the examples and of the pairs to label.
    """

    title: str = ""
    numbers: Mapping[str, str] | None = None
    query_texts: Any = None
    corpus_texts: Any = None
    query_ids: Any = None
    corpus_ids: Any = None
    provenance: Mapping[str, str] | None = None
    notes: tuple[str, ...] | None = None
    command: str = "mined.rethreshold(false_share=TARGET)"
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the types."""
        kinds = {"title": str, "command": str, "numbers": Mapping, "provenance": Mapping}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise_invalid(name, "a text" if kind is str else "a dictionary", shown(value))


@public
@takes_options(ReportOptions)
def report_mined(mined: Mined, path: str | Place, options: ReportOptions) -> Place:
    """Write what was mined as one HTML file; see `write_report`.

    With more than 4,194,304 candidates, distributions and examples are of a sample of anchors, as a note says. Counts
    are of all.

    Args:
        mined: A `Mined`.
        path: The file, which ends in .html.
        options: What the report shows beside them.

    Returns:
        The path.
    """
    if not hasattr(mined, "chosen_judge"):
        raise_invalid("mined", "a Mined", type(mined).__name__)
    check_page("path", as_place("path", path))
    n, width = mined.candidates.ids.shape
    queries = Labels("query", options.query_texts, options.query_ids, n)
    corpus = Labels("corpus", options.corpus_texts, options.corpus_ids, mined.problem.n_items)
    rows = np.sort(rng_for(options.seed).permutation(n)[: max(1, _SHOWN_SLOTS // max(1, width))])
    weighed = _weighed(mined)
    trade = None if weighed is None or weighed.reason else _trade(mined, weighed, options)
    contents = Contents(
        title=options.title or "Mined negatives",
        advice=_advice(mined, trade, UNKNOWN if weighed is None else weighed.reason, options),
        numbers=_numbers(mined, trade, options),
        scores=_scores(mined, rows),
        tables=_outcomes(mined),
        examples=_examples(mined, rows, queries, corpus),
        provenance=_provenance(mined) | dict(options.provenance or {}),
        notes=_notes(mined, len(rows), options),
        trade=trade,
        review=() if weighed is None else _to_label(weighed, queries, corpus, options.seed),
    )
    return write_report(path, contents)


# ---- the trade ------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Weighed:
    """Lists of candidates of some anchors, and how likely each is false: what a target or a rule would take of them."""

    fitted: FittedPosterior  # of these lists
    rows: Ids  # (A,) the rows of what was mined
    counts: Ids  # (A,) k of each
    lowest: Floats32  # (A,) the lowest score of the anchor's positives
    nearest: Mask  # (A, M) the nearest k that may be taken
    probability: Floats  # (A, M) NaN where it cannot be told

    @property
    def reason(self) -> str:
        """Why nothing can be estimated; empty if it can."""
        if not self.fitted.usable:
            return self.fitted.posterior.reason
        return "" if self.nearest.any() else "no candidates were found"

    def allowed(self, rule: str) -> Mask:
        """(A, M): the candidates that may be taken by a rule on the scores of the anchors' positives."""
        limits = Judge(judge_of(rule, self.lowest), "").limits(Query(np.arange(len(self.rows))), self.lowest)
        lists = self.fitted.lists
        return lists.free & (lists.scores <= limits[:, None])

    def below_targets(self, targets: list[float]) -> list[Mask]:
        """What judge="auto" would take for each target: by the posterior's cut and the 95 % rule."""
        free = np.where(self.fitted.lists.free, self.probability, EMPTY)
        allowed = np.where(self.allowed(RULE_95), self.probability, EMPTY)
        cuts = (cut_at(free, self.counts, target, None) for target in targets)
        return [nearest_below(allowed, self.counts, cut.tau) for cut in cuts]


def _weighed(mined: Mined) -> _Weighed | None:
    """The lists of the anchors that the posterior was fitted to, or those that are here; None without a posterior."""
    fitted, anchors = mined.fitted, mined.problem.anchors
    if fitted is None:
        return None
    if mined.anchors is not None:
        anchors = mined.anchors
        fitted = replace(fitted, lists=lists_of(mined.problem, fitted.posterior, anchors))
    lists = fitted.lists
    rows = np.searchsorted(anchors, lists.anchors)
    counts = mined.counts[rows]
    probability = fitted.probabilities() if fitted.usable else np.full(lists.scores.shape, nan)
    return _Weighed(fitted, rows, counts, mined.positive_scores[rows], first_of(lists.free, counts), probability)


def _trade(mined: Mined, weighed: _Weighed, options: ReportOptions) -> Trade:
    """What each target and other rules would take from the same lists; counts are scaled to all anchors."""
    fitted, rows, nearest = weighed.fitted, weighed.rows, weighed.nearest
    posterior, lists, total = fitted.posterior, fitted.lists, mined.problem.queries.n
    slots_wanted = int(weighed.counts.sum())
    by_auto = isinstance(mined.judge, Posterior)
    target_in_use = mined.judge.false_share if by_auto else nan

    def point(name: str, mask: Mask, scores: NDArray[Any], share: RateEstimate, target: float = nan) -> TradePoint:
        numbers = int((nearest & ~mask).sum()), len(scores), max(0, slots_wanted - len(scores))
        dropped, taken, empty = (round(number * total / len(rows)) for number in numbers)
        mean = float(scores.mean()) if len(scores) else nan
        return TradePoint(name, dropped, taken, empty, share.estimate, share.low, share.high, mean, target)

    targets = _targets(float(weighed.probability[nearest].mean()), target_in_use)
    rules = {"nearest": nearest}
    rules |= {name: first_of(weighed.allowed(rule), weighed.counts) for name, rule in _RULES.items()}
    names = [*rules, *["cut"] * len(targets)]
    masks = [*rules.values(), *weighed.below_targets(targets)]
    shares = posterior.shares(lists.scores, fitted.own_scores, masks, alike=lists.alike)
    shares[0] = fitted.before or shares[0]  # of all anchors that it was fitted to, as in the rule
    points = [
        point(name, mask, lists.scores[mask], share, target)
        for name, mask, share, target in zip(names, masks, shares, [*[nan] * len(rules), *targets], strict=True)
    ]
    taken = mined.mask[rows]
    is_taken = lists.contain(np.where(taken, mined.ids[rows], -1))
    scores = mined.scores[rows][taken].astype(np.float64)  # of those that are in no list, too
    chosen = point(CHOSEN, is_taken, scores, mined.false_share or _NO_NEGATIVES, target_in_use)
    command = options.command or ""
    if not by_auto and "rethreshold" in command:
        command = ""  # the target is that of a Posterior
    basis = (
        f"Estimated from {counted(posterior.summary.labelled, 'labelled positive')} and the nearest candidates of "
        f"{counted(len(rows), 'anchor')}" + ("; counts are scaled to all." if len(rows) < total else ".")
    )
    return Trade(tuple(points[len(rules) :]), chosen, tuple(points[: len(rules)]), command, basis)


def _targets(highest: float, in_use: float) -> list[float]:
    """Targets up to the share of the nearest, where a cut drops nothing, in three digits; the one in use among them."""
    if not highest > 0:
        return [in_use if in_use > 0 else _HIGH_SHARE]
    steps = np.geomspace(highest * _SMALLEST_TARGET, highest, _TARGETS).tolist()
    rounded = {float(f"{step:.3g}") for step in steps}
    below = {target for target in (*rounded, in_use) if target < highest}
    return sorted({*below, highest})


def _advice(mined: Mined, trade: Trade | None, reason: str, options: ReportOptions) -> tuple[str, ...]:
    """How many of the negatives are false, before and after judging; then why, and what to do."""
    count = f"{int(mined.mask.sum()):,}"
    if mined.anchors is not None:
        count = (options.numbers or {}).get("negatives", "")
    these = f"these {count} negatives" if count else "these negatives"
    others = [mined.rule]
    if not mined.mask.any():
        first = "There is nothing to train on: no negatives were found. The counts below show why."
    elif trade is None:
        first = f"How many of {these} are false cannot be told: {reason}."
        others.insert(0, "Read the examples before you train, or label the pairs below.")
    else:
        chosen, nearest = trade.chosen, trade.rules[0]
        first = f"An estimated {false_text(chosen)} of {these} are false"
        if chosen.dropped:
            before = f"of the nearest after duplicates are dropped, without a judge, it would be {false_text(nearest)}"
            first = f"{first}; {before}."
        else:
            first = f"{first}: they are the nearest, and none was dropped."
        wanted = chosen.target if np.isfinite(chosen.target) else _HIGH_SHARE
        if chosen.false_share > _CLEARLY_ABOVE * wanted:
            others.insert(0, "Too many may be false to train on: move the target to see what fewer would cost.")
        else:
            others.insert(0, "Train on them.")
    if mined.short:
        slots = f"{int(mined.missing.sum()) / int(mined.counts.sum()):.1%} of the slots"
        anchors = f"{mined.short / len(mined.ids):.1%} of the anchors"
        others.append(f"{slots} are empty, in {anchors}: search deeper, or raise the target.")
    return (first, *others)


def _numbers(mined: Mined, trade: Trade | None, options: ReportOptions) -> dict[str, str]:
    """The headline numbers; counts only if all anchors are here."""
    scores, has_all = mined.scores[mined.mask], mined.anchors is None
    own = {"anchors": f"{mined.problem.queries.n:,}"}
    if has_all:
        own["negatives"] = f"{len(scores):,}"
    own["mean score of the negatives"] = f"{scores.mean(dtype=np.float64):.4g}" if len(scores) else "none"
    if trade is not None:
        own["mean score of the nearest"] = f"{trade.rules[0].mean_score:.4g}"
    if has_all:
        own["empty slots"] = f"{int(mined.missing.sum()):,}"
    given = {str(name): str(value) for name, value in (options.numbers or {}).items()}
    return own | given if has_all else given | {name: text for name, text in own.items() if name not in given}


def _notes(mined: Mined, shown_anchors: int, options: ReportOptions) -> tuple[str, ...]:
    """What to know about the page."""
    notes = mined.notes if options.notes is None else options.notes
    n, total = len(mined.ids), mined.problem.queries.n
    if n < total:
        notes = (*notes, f"This page shows {n:,} of {total:,} anchors; the counts of outcomes are of these.")
    if shown_anchors < n:
        notes = (*notes, f"Distributions and examples are of {shown_anchors:,} random anchors.")
    return notes


def _scores(mined: Mined, rows: Ids) -> Scores:
    """The scores of positives, negatives and dropped candidates; thresholds only if all anchors share them."""
    part = mined.candidates.take(rows)
    lost = part.filled & (part.why != 0)
    thresholds = mined.thresholds[np.isfinite(mined.thresholds)]
    low = getattr(mined.judge, "low", nan)
    return Scores(
        positives=_positive_scores(mined),
        kept=mined.scores[mined.mask],
        dropped=part.scores[lost],
        why=part.why[lost] - 1,
        reasons=tuple(map(str, REASONS)),
        low=float(low) if np.ndim(low) == 0 and np.isfinite(low) else nan,
        high=float(thresholds[0]) if len(thresholds) and np.ptp(thresholds) == 0 else nan,
    )


def _positive_scores(mined: Mined) -> Floats32:
    """(p,) the scores of all known positives, or of one of each anchor where only these are known."""
    relation, scores = mined.known.relation, mined.known_scores
    if scores is None:
        scores = mined.positive_scores[~np.isnan(mined.positive_scores)]
    elif relation is not None:
        scores = scores[relation == POSITIVE]
    return np.asarray(scores, np.float32)


def _outcomes(mined: Mined) -> tuple[Table, ...]:
    """Outcomes of the candidates, and where the negatives come from if there are several sources."""
    taken = {name: int((mined.kept_by == place).sum()) for place, name in enumerate(mined.kept_names)}
    counts = {f"kept: {name}": count for name, count in taken.items() if count}
    counts |= {f"dropped: {reason}": int(each.sum()) for reason, each in mined.dropped.items()}
    whole = max(1, sum(counts.values()))
    rows = tuple((name, count, percent(count / whole)) for name, count in counts.items())
    caption = "Every candidate has one outcome; known pairs are counted, too."
    tables = [Table("Outcomes of the candidates", ("outcome", "candidates", "share"), rows, caption)]
    if len(mined.source_names) > 1:
        sources = [int((mined.source == place).sum()) for place in range(len(mined.source_names))]
        pairs = tuple(zip(mined.source_names, sources, strict=True))
        tables.append(Table("Where the negatives come from", ("source", "negatives"), pairs, "Negatives by source."))
    return tuple(tables)


@final
class Labels:
    """The label of a row on the page: its text, its id, both, or its number."""

    def __init__(self, side: str, texts: Any, ids: Any, n: int) -> None:
        """Raise if texts or ids have another length, or no rows."""
        for name, given in ((f"{side}_texts", texts), (f"{side}_ids", ids)):
            if given is None:
                continue
            if not (hasattr(given, "__getitem__") and hasattr(given, "__len__")) or getattr(given, "shape", None) == ():
                raise_invalid(name, "a sequence, or None", type(given).__name__)
            check_lengths(**{name: len(given), "rows": n})
        self.texts, self.ids = texts, ids

    def __getitem__(self, row: int) -> str:
        """The label of a row; nothing for -1."""
        if row < 0:
            return ""
        given = None if self.ids is None else self.ids[row]
        name = f"row {row}" if given is None else shown(given) if isinstance(given, int) else str(given)
        if self.texts is None:
            return name
        text = str(self.texts[row])
        return text if self.ids is None else f"{name}: {text}"

    def named(self, row: int) -> tuple[str, str]:
        """The id of a row, or its number, and its text, or nothing."""
        name = str(row if self.ids is None else self.ids[row])
        return name, "" if self.texts is None else _clipped(str(self.texts[row]))


def _clipped(text: str) -> str:
    """The beginning of a long text: a page with 100 pairs of long documents would be too large."""
    more = len(text) - _CHARACTERS
    return text if more <= 0 else f"{text[:_CHARACTERS]} ... and {more:,} more characters"


def _examples(mined: Mined, rows: Ids, queries: Labels, corpus: Labels) -> tuple[Examples, ...]:
    """The most suspect negatives, or the hardest where nothing was judged, and the hardest that the judge dropped."""
    part = mined.candidates.take(rows)
    taken = part.kept & (part.kept_by >= 0)
    lost = part.dropped_for(Reason.SUSPICIOUS, Reason.DUPLICATE)
    title, note, values = "The hardest negatives", "Kept, with the highest scores; one for each anchor.", part.scores
    if part.suspicion[taken].any():
        title, values = "The most suspect that were kept", part.suspicion
        note = "With the highest suspicion; one for each anchor."
    groups = (
        (title, "kept", values, taken, note),
        ("The hardest that were dropped", "dropped", part.scores, lost, "By score; one for each anchor."),
    )
    found = []
    for title, kind, values, mask, note in groups:
        places = _one_each(values, mask)
        examples = tuple(_example(mined, int(rows[row]), slot, queries, corpus) for row, slot in places)
        found += [Examples(title, kind, examples, note)] if examples else []
    return tuple(found)


def _one_each(values: NDArray[Any], mask: Mask) -> list[tuple[int, int]]:
    """(row, slot) of the highest value of each row, the highest rows first."""
    if not values.size:
        return []
    inside = np.where(mask, values, -np.inf)
    slot = inside.argmax(axis=1)
    rows = np.flatnonzero(mask.any(axis=1))
    best = inside[rows, slot[rows]]
    chosen = rows[np.argsort(-best, kind="stable")[:_EXAMPLES]]
    return list(zip(chosen.tolist(), slot[chosen].tolist(), strict=True))


def _example(mined: Mined, row: int, slot: int, queries: Labels, corpus: Labels) -> Example:
    """One candidate with its texts and its outcome."""
    found = mined.candidates
    why, kept_by = int(found.why[row, slot]), int(found.kept_by[row, slot])
    outcome = f"dropped: {REASONS[why - 1]}" if why else f"kept: {found.kept_names[kept_by]}"
    score, rank = float(found.scores[row, slot]), int(found.rank[row, slot])
    threshold, lowest = float(mined.thresholds[row]), float(found.positive_scores[row])
    sentences = [f"Found by {found.source_names[found.source[row, slot]]} at rank {rank}." if rank else "Random."]
    if np.isfinite(threshold):
        sentences.append(f"The threshold of its anchor is {threshold:.4f}, its score {score:.4f}.")
    if np.isfinite(lowest):
        sentences.append(f"The lowest of the anchor's positives scores {lowest:.4f}.")
    return Example(
        anchor=queries[row],
        positive=corpus[_lowest_positive(mined, row)],
        candidate=corpus[int(found.ids[row, slot])],
        score=score,
        suspicion=float(found.suspicion[row, slot]),
        rank=rank,
        outcome=outcome,
        explanation=" ".join(sentences),
    )


def _lowest_positive(mined: Mined, row: int) -> int:
    """The known positive of a row with the lowest score, or the first where they were not scored; -1 none."""
    known, scores = mined.known, mined.known_scores
    pairs = slice(int(known.indptr[row]), int(known.indptr[row + 1]))
    items = np.asarray(known.indices[pairs])
    positive = np.ones(len(items), np.bool_)
    if known.relation is not None:
        positive = np.asarray(known.relation[pairs] == POSITIVE)
    if not positive.any():
        return -1
    return int(items[positive][0 if scores is None else np.argmin(scores[pairs][positive])])


def _to_label(weighed: _Weighed, queries: Labels, corpus: Labels, seed: int) -> tuple[ReviewPair, ...]:
    """Random pairs of the nearest, which can be labelled in the page."""
    lists, places = weighed.fitted.lists, np.argwhere(weighed.nearest)
    places = rng_for(seed).permutation(places)[:_TO_LABEL]
    return tuple(
        ReviewPair(
            *queries.named(int(weighed.rows[row])),
            *corpus.named(int(lists.ids[row, slot])),
            float(lists.scores[row, slot]),
            float(weighed.probability[row, slot]),
        )
        for row, slot in places.tolist()
    )


def _provenance(mined: Mined) -> dict[str, str]:
    """Versions, what was searched and how, and a hash of the answer."""
    known = mined.known
    return versions("naysay", "numpy", "numba", "vl-convert-python") | {
        "metric": mined.metric,
        "depth": f"{mined.depth:,}",
        "judge": repr(mined.judge),
        "rule": mined.rule,
        "suspicion threshold": f"{mined.suspicion_threshold:g}",
        "anchors x corpus": f"{len(mined.ids):,} x {known.n_items:,}",
        "known pairs": f"{len(known.indices):,}",
        "negatives, sha256 of the ids": hashlib.sha256(np.ascontiguousarray(mined.ids).tobytes()).hexdigest(),
    }
