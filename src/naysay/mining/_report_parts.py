"""Parts of a report on what was mined: outcomes, threshold tables, charts, and examples."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_lengths, raise_invalid, shown
from naysay.detectors.calibrated import one_per_anchor
from naysay.detectors.thresholds import choose_thresholds
from naysay.mining._task import pairs_of
from naysay.mining._weigh import Weighed
from naysay.mining.candidates import Candidates
from naysay.mining.explain import MinedArrays
from naysay.mining.judge import was_suspicious
from naysay.positives import POSITIVE
from naysay.quantity.effectiveness import auc, separation, simulated
from naysay.quantity.estimate import Estimate, estimate
from naysay.report.charts import difficulty_by_percentile, effectiveness, percentile_bins
from naysay.report.contents import Chart, Example, Examples, ReviewPair, Table
from naysay.report.threshold_tables import threshold_tables
from naysay.text import percent as share

_AROUND = np.array([3, 2, 1.5, 1.25, 1.1, 1.02, 0.95, 0.8, 0.65, 0.5, 0.25])  # times the share: thresholds shown
_FALSE, _HARD = 0.001, 0.05  # the note's shares
Floats = NDArray[np.floating[Any]]
_EACH = 10  # examples of a kind
Ids = NDArray[np.int64]


def outcomes(mined: MinedArrays) -> tuple[Table, ...]:
    """Outcomes of the candidates, and where the negatives come from if there are several sources."""
    taken = {name: int((mined.kept_by == place).sum()) for place, name in enumerate(mined.kept_names)}
    counts = {f"kept: {name}": count for name, count in taken.items() if count}
    counts |= {f"dropped: {reason}": int(each.sum()) for reason, each in mined.dropped.items()}
    whole = max(1, sum(counts.values()))
    rows = tuple((name, count, share(count / whole)) for name, count in counts.items())
    said = "Every candidate has one outcome; what the search left out is counted."
    tables = [Table("Outcomes of the candidates", ("outcome", "candidates", "share"), rows, said)]
    if len(mined.source_names) > 1:
        sources = [int((mined.source == place).sum()) for place in range(len(mined.source_names))]
        pairs = tuple(zip(mined.source_names, sources, strict=True))
        tables.append(Table("Where the negatives come from", ("source", "negatives"), pairs, "Negatives by source."))
    return tuple(tables)


def thresholds_of(mined: MinedArrays, part: Candidates, background: Floats | None) -> tuple[Table, ...]:
    """The two threshold tables: of random pairs if there are some, else of what the search found."""
    if background is None:
        scores: Floats = part.scores[part.filled]
        of = f"Of the {len(scores):,} candidates that the search found, the nearest: not of all pairs."
    else:
        scores = background
        of = f"Of {len(scores):,} random pairs."
    if len(scores) < 2 or np.ptp(scores) == 0:
        return ()
    shares: dict[str, Any] = {"false_share": _FALSE, "hard_share": _HARD}
    chosen = choose_thresholds(scores, **shares)
    if not np.isfinite([chosen.low, chosen.high]).all():
        return ()
    high = np.unique([chosen.high, *np.quantile(scores, np.clip(1 - _FALSE * _AROUND, 0, 1))])
    low = np.unique([chosen.low, *np.quantile(scores, np.clip(1 - _FALSE - _HARD * _AROUND, 0, 1))])
    grid = low, high
    both = choose_thresholds(scores, **shares, grid=grid, start_low=0.0 if mined.metric == "cosine" else chosen.low)
    rule = f"Thresholds by shares: {_FALSE:.1%} of the pairs false, {_HARD:.0%} hard."
    return threshold_tables(both, caption=f"{of} {rule}")


def charts_of(
    mined: MinedArrays,
    part: Candidates,
    positives: NDArray[np.float32],
    background: Floats | None,
    run: Estimate | None,
) -> tuple[tuple[Chart, ...], tuple[str, ...]]:
    """Effectiveness over k and difficulty by percentile, and a sentence for each that is missing."""
    charts, notes = [], []
    counts = np.unique(mined.counts)
    used = int(counts[0]) if len(counts) == 1 else None
    if run is not None:
        charts.append(effectiveness(run, k=used, caption="By the AUCs of a run over uniform negatives."))
    else:
        found, why = _estimated(positives, background)
        if found is None:
            notes.append(why)
        else:
            charts.append(effectiveness(found, k=used, caption=why))
    if part.filled.any():
        flags = {"suspected": was_suspicious(part), "kept": part.kept & (part.kept_by >= 0)}
        bins = percentile_bins(part.scores, part.filled, flags)
        within = (
            "Percentiles are within the candidates of each anchor, the hardest at 100; known pairs are not among them."
        )
        charts.append(difficulty_by_percentile(*bins, caption=within))
    return tuple(charts), tuple(notes)


def _estimated(positives: NDArray[np.float32], background: Floats | None) -> tuple[Estimate | None, str]:
    """The best k of a simulated run whose labels are as far apart as these scores, and what it rests on."""
    known = positives[~np.isnan(positives)].astype(np.float64)
    if background is None or not len(background) or not len(known):
        return None, (
            "The best number of negatives is not estimated: this needs scores of random pairs and of positives, or the "
            "AUCs of a run (naysay howmany)."
        )
    ordered = np.sort(background)
    ties = (np.searchsorted(ordered, known) + np.searchsorted(ordered, known, side="right")) / 2
    area = float(ties.mean()) / len(ordered)
    if not 0.5 < area < 1:
        return (
            None,
            f"The best number of negatives cannot be estimated: positives against random pairs have AUC {area:.4g}.",
        )
    found = estimate(area, auc(simulated(separation(area))))
    return found, (
        f"By a simulated run: {len(known):,} positives against {len(ordered):,} random pairs have an AUC of "
        f"{area:.4g}, taken as that of the labels, which the model approaches. The AUCs of a real run are better."
    )


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
        return name, "" if self.texts is None else str(self.texts[row])


def examples_of(
    mined: MinedArrays, part: Candidates, rows: Ids, queries: Labels, corpus: Labels
) -> tuple[Examples, ...]:
    """The most suspect negatives, or the hardest where nothing was judged, and the hardest that the judge dropped."""
    taken = part.kept & (part.kept_by >= 0)
    judged = bool(part.suspicion[taken].any())
    title, most = "The hardest negatives", "Kept, with the highest scores; one for each anchor."
    if judged:
        title, most = "The most suspect that were kept", "With the highest suspicion; one for each anchor."
    ordered = np.where(taken, part.suspicion if judged else part.scores, -np.inf)
    lost = was_suspicious(part) | part.dropped_for(["duplicate"])
    hard = np.where(lost, part.scores, -np.inf)
    groups = [
        (title, "kept", _one_each(ordered, taken), most),
        ("The hardest that were dropped", "dropped", _one_each(hard, lost), "By score; one for each anchor."),
    ]
    found = []
    for title, kind, places, note in groups:
        rows_shown = tuple(_example(mined, part, rows, queries, corpus, row, slot) for row, slot in places)
        found += [Examples(title, kind, rows_shown, note)] if places else []
    return tuple(found)


def review_of(found: Weighed, queries: Labels, corpus: Labels) -> tuple[ReviewPair, ...]:
    """The pairs that can be labelled in the page."""
    if found.rows is None or found.ids is None or found.scores is None or found.posterior is None:
        return ()
    return tuple(
        ReviewPair(*queries.named(row), *corpus.named(item), score, posterior)
        for row, item, score, posterior in zip(
            found.rows.tolist(), found.ids.tolist(), found.scores.tolist(), found.posterior.tolist(), strict=True
        )
    )


def _one_each(values: NDArray[Any], mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(row, slot) of the highest value of each row, the highest rows first."""
    if not values.size:
        return []
    slot = values.argmax(axis=1)
    there = np.flatnonzero(mask.any(axis=1))
    best = values[there, slot[there]]
    chosen = there[np.argsort(-best, kind="stable")[:_EACH]]
    return list(zip(chosen.tolist(), slot[chosen].tolist(), strict=True))


def _example(
    mined: MinedArrays, part: Candidates, rows: Ids, queries: Labels, corpus: Labels, row: int, slot: int
) -> Example:
    """One candidate with its texts and its outcome."""
    anchor = int(rows[row])
    kept = bool(part.why[row, slot] == 0) and part.kept_by[row, slot] >= 0
    by = part.kept_names[part.kept_by[row, slot]] if kept else part.reasons[part.why[row, slot] - 1]
    score, rank = float(part.scores[row, slot]), int(part.rank[row, slot])
    threshold, lowest = float(mined.thresholds[anchor]), float(part.positive_scores[row])
    sentences = [f"Found by {part.source_names[part.source[row, slot]]} at rank {rank}." if rank else "Random."]
    if np.isfinite(threshold):
        sentences.append(f"The threshold of its anchor is {threshold:.4f}, its score {score:.4f}.")
    if np.isfinite(lowest):
        sentences.append(f"The lowest of the anchor's positives scores {lowest:.4f}.")
    return Example(
        anchor=queries[anchor],
        positive=corpus[_positive(mined, anchor)],
        candidate=corpus[int(part.ids[row, slot])],
        score=score,
        suspicion=float(part.suspicion[row, slot]),
        rank=rank,
        outcome=f"{'kept' if kept else 'dropped'}: {by}",
        explanation=" ".join(sentences),
    )


def _positive(mined: MinedArrays, anchor: int) -> int:
    """The known positive of an anchor with the lowest score, or the first where they were not scored; -1 none."""
    start, stop = int(mined.known.indptr[anchor]), int(mined.known.indptr[anchor + 1])
    items = np.asarray(mined.known.indices[start:stop])
    own = np.ones(len(items), np.bool_)
    if mined.known.relation is not None:
        own = np.asarray(mined.known.relation[start:stop] == POSITIVE)
    if not own.any():
        return -1
    if mined.known_scores is None:
        return int(items[own][0])
    return int(items[own][np.argmin(mined.known_scores[start:stop][own])])


def one_positive_each(mined: MinedArrays, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n,) the score of one known positive of each anchor, at random; NaN without one.

    Where positives were scored by pairs, as after `rescore`, the one that was is taken.
    """
    if mined.known_scores is None:
        return np.asarray(mined.positive_scores, np.float32)
    found = np.full(len(mined.ids), np.nan, np.float32)
    anchors, _ = pairs_of(mined.known, POSITIVE)
    if len(anchors):
        one = one_per_anchor(anchors, rng=rng)
        found[anchors[one]] = positive_scores(mined)[one]
    return found


def positive_scores(mined: MinedArrays) -> NDArray[np.float32]:
    """(p,) the scores of all known positives, or of one of each anchor where only these are known."""
    relation, scores = mined.known.relation, mined.known_scores
    if scores is None:
        return mined.positive_scores[~np.isnan(mined.positive_scores)]
    return scores if relation is None else scores[relation == POSITIVE]


def floats_of(parameter: str, values: Any) -> NDArray[np.float64]:
    """(n,) numbers, NaN among them."""
    array = as_array(parameter, to_numpy(values))
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise_invalid(parameter, "(n,) numbers", f"shape {array.shape} {array.dtype}")
    return array.astype(np.float64)
