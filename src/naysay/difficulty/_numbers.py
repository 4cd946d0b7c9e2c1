"""What a study found as plain numbers: what its file holds, and what its text and its figures are made of."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from naysay.difficulty.class_pairs import ClassPair, ClassPairs
from naysay.difficulty.consistency import Consistency
from naysay.difficulty.drift import Drift

Plain = dict[str, Any]
_BARS = 60  # of the histogram of rates: more than the picture has room for
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_TABLE = 100  # classes of which the whole table is kept


def plain(value: Any) -> Any:
    """Dataclasses as dictionaries, arrays as lists, and NaN as None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return None if isinstance(value, float) and np.isnan(value) else value


def as_json(found: Plain) -> bytes:
    """One object, NaN as null."""
    return (json.dumps(found, indent=1, allow_nan=False) + "\n").encode()


def consistency_numbers(found: Consistency) -> Plain:
    """Counts, both tests, and the rates as a histogram beside that of a shuffle.

    A bar covers the counts from edges[i] to edges[i + 1] - 1. The shuffled shares are those of Binomial(anchors, p),
    which a shuffle follows exactly where every anchor has every negative, and else nearly: p is then the mean chance.
    """
    from scipy.special import bdtr

    n, rates = max(found.anchors, 1), found.rates
    chance = float(np.clip(found.expected.mean() / n, 0.0, 1.0))
    spread = (n * chance * (1 - chance)) ** 0.5
    last = int(max(found.counts.max(), np.ceil(n * chance + 4 * spread))) + 1
    edges = np.arange(0, last + _BARS, max(1, -(-last // _BARS)))
    edges = edges[: np.searchsorted(edges, last) + 1]
    below = np.where(edges > 0, bdtr(np.clip(edges - 1.0, 0, n), n, chance), 0.0)
    numbers: Plain = plain(
        {
            "anchors": found.anchors,
            "hard": found.hard,
            "mean_rate": float(rates.mean()),
            "spread_of_rates": float(rates.std()),
            "spread_by_chance": spread / n,
            "quantiles": dict(zip(map(str, _QUANTILES), np.quantile(rates, _QUANTILES).tolist(), strict=True)),
            "shuffled": found.shuffled,
            "within_class": found.within_class,
            "histogram": {
                "edges": edges,
                "observed": np.histogram(found.counts, edges)[0] / len(rates),
                "shuffled": np.diff(below),
            },
            "counts": found.counts,
        }
    )
    return numbers


def drift_numbers(found: Drift) -> Plain:
    """The two means, and the quantiles of both over anchors."""
    numbers: Plain = {
        "correlation": plain(found.correlation),
        "overlap": plain(found.overlap),
        "by_chance": plain(found.by_chance),
    }
    for name, values in (("correlations", found.correlations), ("overlaps", found.overlaps)):
        known = values[~np.isnan(values)]
        taken = np.quantile(known, _QUANTILES).tolist() if len(known) else [None] * len(_QUANTILES)
        numbers[f"quantiles_of_{name}"] = dict(zip(map(str, _QUANTILES), taken, strict=True))
    return numbers


def pair_numbers(found: ClassPairs, names: tuple[str, ...] | None) -> Plain:
    """The first pairs of each kind by name, and the whole table of up to 100 classes."""
    kinds = {
        "correlated": found.correlated(),
        "anti_correlated": found.anti_correlated(),
        "orthogonal": found.orthogonal(),
    }
    numbers: Plain = {name: [_named(pair, names) for pair in pairs] for name, pairs in kinds.items()}
    numbers["classes"] = [class_name(label, names) for label in found.classes.tolist()]
    if len(found.classes) <= _TABLE:
        numbers |= {name: plain(getattr(found, name)) for name in ("pairs", "mean", "below_zero", "hard")}
    return numbers


def class_name(label: int, names: tuple[str, ...] | None) -> str:
    """What a class is called."""
    return f"class {label}" if names is None else names[label]


def _named(pair: ClassPair, names: tuple[str, ...] | None) -> Plain:
    both = {"anchor": class_name(pair.anchor, names), "negative": class_name(pair.negative, names)}
    return {**plain(pair), **both}
