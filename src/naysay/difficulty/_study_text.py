"""A study as plain numbers, for its file and its figures, and as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from naysay.difficulty.class_pairs import ClassPair, ClassPairs
from naysay.difficulty.consistency import Consistency
from naysay.difficulty.drift import Drift
from naysay.text import plain

Plain = dict[str, Any]
_BARS = 60  # of the histogram of rates
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_KINDS = {
    "correlated": "closest classes",
    "anti_correlated": "opposite classes",
    "orthogonal": "unrelated classes",
}
_TABLE = 100  # up to this many classes, the whole table is written


def consistency_numbers(found: Consistency) -> Plain:
    """Counts, both tests, and the rates as a histogram beside that of a shuffle.

    A bar is the counts from edges[i] to edges[i + 1] - 1. The shuffled shares are those of Binomial(anchors, p),
    the exact distribution of a shuffle if every anchor has every negative; otherwise p is the mean chance.
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
    numbers: Plain = {kind: [_named(pair, names) for pair in getattr(found, kind)()] for kind in _KINDS}
    numbers["classes"] = [class_name(label, names) for label in found.classes.tolist()]
    if len(found.classes) <= _TABLE:
        numbers |= {name: plain(getattr(found, name)) for name in ("pairs", "mean", "below_zero", "hard")}
    return numbers


def class_name(label: int, names: tuple[str, ...] | None) -> str:
    """Return the name of a class."""
    return f"class {label}" if names is None else names[label]


def _named(pair: ClassPair, names: tuple[str, ...] | None) -> Plain:
    both = {"anchor": class_name(pair.anchor, names), "negative": class_name(pair.negative, names)}
    return {**plain(pair), **both}


_SHARES = ("below_zero", "gradient", "same_class")
_HEADS = {
    "pairs": "pairs",
    "score": "score",
    "below_zero": "below 0",
    "gradient": "gradient",
    "same_class": "same class",
    "depth": "depth",
}


def as_text(found: Plain) -> str:
    """Return the bands as a table, and a line for each other result."""
    lines = [
        f"{found['anchors']:,} anchors x {found['negatives']:,} negatives, {found['pairs']:,} pairs, "
        f"score: {found['metric']}, gradient at temperature {found['temperature']:g}",
        *_band_table(found),
        *_gaps(found),
        _tail(found),
        _consistency(found["consistency"]),
    ]
    if found["consistency"]["within_class"] is not None:
        lines.append(f"the same within classes: {_test(found['consistency']['within_class'])}")
    if found["class_pairs"] is not None:
        lines += [f"{title}: {_pairs(found['class_pairs'][kind])}" for kind, title in _KINDS.items()]
    if found["drift"] is not None:
        lines.append(_drift(found["drift"]))
    return "\n".join(lines)


def _band_table(found: Plain) -> list[str]:
    """A row for each band; columns that could not be measured are left out."""
    bands, first = found["by_band"], found["by_band"]["score"]
    names = [name for name in _HEADS if name == "pairs" or bands[name] is not None]
    rows = [["band", "percentile", *(_HEADS[name] for name in names)]]
    for i, band in enumerate(bands["names"]):
        texts = {name: _share if name in _SHARES else _number for name in names if name != "pairs"}
        cells = [f"{first['pairs'][i]:,}", *(text(bands[name]["mean"][i]) for name, text in texts.items())]
        rows.append([band, f"{100 * first['low'][i]:g} to {100 * first['high'][i]:g}", *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:z.3f}"


def _gaps(found: Plain) -> list[str]:
    """Hard against easy negatives of the same anchor."""
    titles = {"same_class": ("same class", _share), "depth": ("depth of the common ancestor", _number)}
    lines = []
    for name, gap in found["gaps"].items():
        title, text = titles[name]
        sides = f"{title}: hard, with the hardest, {text(gap['hard'])}, easy {text(gap['easy'])}"
        lines.append(f"{sides}; difference {text(gap['difference'])} {_interval(gap, text)}")
    return lines


def _interval(found: Plain, text: Callable[[float | None], str]) -> str:
    return f"(95 % CI {text(found['low'])} to {text(found['high'])})"


def _tail(found: Plain) -> str:
    """The easiest interval, and where negatives are least similar to the anchor."""
    bins = found["by_percentile"]
    score = bins["score"]
    text = (
        f"easiest {100 * score['high'][0]:g} %: mean score {_number(score['mean'][0])}, "
        f"{_share(bins['below_zero']['mean'][0])} below 0"
    )
    depth = bins["depth"]
    known = [] if depth is None else [i for i, mean in enumerate(depth["mean"]) if mean is not None]
    if known:
        lowest = min(known, key=lambda i: depth["mean"][i])
        where = f"{100 * depth['low'][lowest]:g} to {100 * depth['high'][lowest]:g}"
        text += f"; depth {_number(depth['mean'][0])}, lowest {_number(depth['mean'][lowest])} at percentile {where}"
    return text


def _consistency(found: Plain) -> str:
    return (
        f"how often a negative is hard: mean {_share(found['mean_rate'])}, spread {_share(found['spread_of_rates'])}, "
        f"by chance {_share(found['spread_by_chance'])}; {_test(found['shuffled'])}"
    )


def _test(found: Plain) -> str:
    if found["ratio"] is None:
        return "too few to test"
    p_value = "p < 1e-12" if found["p_value"] < 1e-12 else f"p = {found['p_value']:.2g}"
    return f"variance {found['ratio']:.2f} times that of a shuffle, {p_value}"


def _pairs(pairs: list[Plain]) -> str:
    shown = (f"{_name(pair['anchor'])} and {_name(pair['negative'])} {pair['mean']:z.3f}" for pair in pairs[:3])
    return ", ".join(shown) or "none"


def _name(name: str) -> str:
    """A class's name on one line, with control characters escaped."""
    return name if name.isprintable() else repr(name)[1:-1]


def _drift(found: Plain) -> str:
    one, two = found["correlation"], found["overlap"]
    ranks = f"rank correlation {_number(one['mean'])} {_interval(one, _number)}"
    hard = f"hard in both {_share(two['mean'])} {_interval(two, _share)}"
    return f"between checkpoints: {ranks}, {hard}, by chance {_share(found['by_chance'])}"
