"""What mining did, in a table: scores of positives and negatives, what each rule dropped, what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.integrations._hard_negative_tables import Rows


def measured(scores: NDArray[np.float32]) -> dict[str, float]:
    """{measure: of these scores}, however many they are; nothing of none."""
    if not len(scores):
        return {}
    wide = scores.astype(np.float64)
    least, quarter, median, three, most = np.quantile(wide, [0, 0.25, 0.5, 0.75, 1]).tolist()
    mean, deviation = float(wide.mean()), float(wide.std())
    return {
        "Mean": mean,
        "Std": deviation,
        "Min": least,
        "25%": quarter,
        "Median": median,
        "75%": three,
        "Max": most,
    }


def statistics(rows: Rows, values: dict[str, Any], wanted: int) -> str:
    """The table, as lines of text.

    "Negative" is over (anchor, positive, negative), so an anchor with two positives has each of its negatives twice, as
    in a file of triplets. A candidate is counted for one rule, the first that it broke; shares are of all candidates
    that were looked at.

    Args:
        values: {parameter: what it was set to}, for the rules that dropped something.
        wanted: How many negatives an anchor was to have.
    """
    picked, pairs = rows.picked, rows.pairs
    places, owners, columns = rows.triples()
    positive, negative = picked.positive_scores, picked.scores[owners, columns]
    parts = (positive, negative, positive[places] - negative)
    lines = [f"{'':<6} {'Positive':>14} {'Negative':>14} {'Difference':>14}"]
    lines.append(f"{'Count':<6} {len(positive):>14,} {len(negative):>14,}")
    measures = [measured(part) for part in parts]
    for name in measures[0]:
        cells = [f"{of[name]:.4f}" if of else "-" for of in measures]
        lines.append(f"{name:<6} {cells[0]:>14} {cells[1]:>14} {cells[2]:>14}")
    for rule, count in picked.dropped.items():
        setting = f" of {values[rule]}" if rule in values else ""
        share = count / max(1, picked.looked)
        lines.append(f"Skipped {count:,} of {picked.looked:,} candidates ({share:.2%}): {rule}{setting}.")
    missing = wanted - np.count_nonzero(picked.ids >= 0, axis=1)
    short = int(np.count_nonzero(missing))
    if short:
        share = short / len(pairs.queries)
        ways = ["a larger range_max"] * picked.cut + ["looser bounds"] * bool(picked.dropped)
        advice = f"{' or '.join(ways).capitalize()} would find more." if ways else "There are no more documents."
        lines.append(
            f"{short:,} of {len(pairs.queries):,} anchors ({share:.2%}) have fewer than {wanted} negatives; "
            f"{int(missing.sum()):,} are missing. {advice}"
        )
    return "\n".join(lines)
