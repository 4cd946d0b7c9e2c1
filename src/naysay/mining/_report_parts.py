"""Tables and charts of what was mined: fates, the note's two tables, how many negatives, difficulty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.detectors.thresholds import choose_thresholds
from naysay.mining.candidates import Candidates
from naysay.mining.explain import MinedArrays
from naysay.mining.judge import was_suspicious
from naysay.quantity.estimate import Estimate, estimate
from naysay.quantity.separation import auc, separation
from naysay.quantity.simulated import simulated
from naysay.report.charts import difficulty_by_percentile, percentile_bins
from naysay.report.contents import Chart, Table
from naysay.report.effectiveness import effectiveness
from naysay.report.threshold_tables import threshold_tables
from naysay.text import percent as share

_AROUND = np.array([3, 2, 1.5, 1.25, 1.1, 1.02, 0.95, 0.8, 0.65, 0.5, 0.25])  # times the share: lines that are shown
_FALSE, _HARD = 0.001, 0.05  # the note's shares
Floats = NDArray[np.floating[Any]]


def fates(mined: MinedArrays) -> tuple[Table, ...]:
    """What became of the candidates, and where the negatives come from if there are several sources."""
    taken = {name: int((mined.kept_by == place).sum()) for place, name in enumerate(mined.kept_names)}
    counts = {f"kept: {name}": count for name, count in taken.items() if count}
    counts |= {f"dropped: {reason}": int(each.sum()) for reason, each in mined.dropped.items()}
    whole = max(1, sum(counts.values()))
    rows = tuple((name, count, share(count / whole)) for name, count in counts.items())
    said = "Every candidate has one fate; what the search left out is counted."
    tables = [Table("What became of the candidates", ("fate", "candidates", "share"), rows, said)]
    if len(mined.source_names) > 1:
        sources = [int((mined.source == place).sum()) for place in range(len(mined.source_names))]
        pairs = tuple(zip(mined.source_names, sources, strict=True))
        tables.append(Table("Where the negatives come from", ("source", "negatives"), pairs, "Negatives by source."))
    return tuple(tables)


def thresholds_of(mined: MinedArrays, part: Candidates, background: Floats | None) -> tuple[Table, ...]:
    """The note's two tables: of all pairs where random ones are at hand, else of what the search found."""
    if background is None:
        scores: Floats = part.scores[part.filled]
        of = f"Of the {len(scores):,} candidates that the search found, which are the nearest: not of all pairs."
    else:
        scores = background
        of = f"Of {len(scores):,} random pairs."
    if len(scores) < 2 or np.ptp(scores) == 0:
        return ()
    asked: dict[str, Any] = {"false_share": _FALSE, "hard_share": _HARD}
    chosen = choose_thresholds(scores, **asked)
    if not np.isfinite([chosen.low, chosen.high]).all():
        return ()
    high = np.unique([chosen.high, *np.quantile(scores, np.clip(1 - _FALSE * _AROUND, 0, 1))])
    low = np.unique([chosen.low, *np.quantile(scores, np.clip(1 - _FALSE - _HARD * _AROUND, 0, 1))])
    grid = low, high
    both = choose_thresholds(scores, **asked, grid=grid, start_low=0.0 if mined.metric == "cosine" else chosen.low)
    shares = f"Lines as the note on thresholds chooses them: {_FALSE:.1%} of the pairs false, {_HARD:.0%} hard."
    return threshold_tables(both, caption=f"{of} {shares}")


def charts_of(
    mined: MinedArrays,
    part: Candidates,
    positives: NDArray[np.float32],
    background: Floats | None,
    run: Estimate | None,
) -> tuple[tuple[Chart, ...], tuple[str, ...]]:
    """Effectiveness over k and difficulty by percentile, and a sentence for each that there is not."""
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
            "How many negatives are best is not estimated here: it takes scores of random pairs and of positives, or "
            "the AUCs of a run (naysay howmany)."
        )
    ordered = np.sort(background)
    ties = (np.searchsorted(ordered, known) + np.searchsorted(ordered, known, side="right")) / 2
    area = float(ties.mean()) / len(ordered)
    if not 0.5 < area < 1:
        return (
            None,
            f"How many negatives are best cannot be estimated: positives against random pairs have AUC {area:.4g}.",
        )
    found = estimate(area, auc(simulated(separation(area))))
    return found, (
        f"Of a simulated run: {len(known):,} positives against {len(ordered):,} random pairs have an AUC of "
        f"{area:.4g}, taken as that of the labels, which the model approaches. The AUCs of a real run say more."
    )
