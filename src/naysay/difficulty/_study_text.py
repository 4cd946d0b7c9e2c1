"""A study in words: the bands as a table, and a line for each of the other findings."""

from __future__ import annotations

from typing import Any

from naysay.difficulty._numbers import Plain

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
    """All of it, from a study's numbers."""
    lines = [
        f"{found['anchors']:,} anchors x {found['negatives']:,} negatives, {found['pairs']:,} pairs, "
        f"score: {found['metric']}, gradient at temperature {found['temperature']:g}",
        *_bands(found),
        *_gaps(found),
        _tail(found),
        _consistency(found["consistency"]),
    ]
    if found["consistency"]["within_class"] is not None:
        lines.append(_within(found["consistency"]["within_class"]))
    if found["class_pairs"] is not None:
        lines += [
            _pairs(found["class_pairs"], kind, title)
            for kind, title in (
                ("correlated", "closest classes"),
                ("anti_correlated", "opposite classes"),
                ("orthogonal", "unrelated classes"),
            )
        ]
    if found["drift"] is not None:
        lines.append(_drift(found["drift"]))
    return "\n".join(lines)


def _bands(found: Plain) -> list[str]:
    """A row for each band; columns that could not be measured are left out."""
    bands, first = found["by_band"], found["by_band"]["score"]
    names = [name for name in _HEADS if name == "pairs" or bands[name] is not None]
    rows = [["band", "percentile", *(_HEADS[name] for name in names)]]
    for i, band in enumerate(bands["names"]):
        cells = [f"{first['pairs'][i]:,}" if name == "pairs" else _cell(name, bands[name]["mean"][i]) for name in names]
        rows.append([band, f"{100 * first['low'][i]:g} to {100 * first['high'][i]:g}", *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "none"
    return _share(value) if name in _SHARES else f"{value:z.3f}"


def _share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:z.3f}"


def _gaps(found: Plain) -> list[str]:
    """Hard against easy, anchor by anchor."""
    titles = {"same_class": ("same class", _share), "depth": ("depth of the common ancestor", _number)}
    lines = []
    for name, gap in found["gaps"].items():
        title, say = titles[name]
        sides = f"{title}: hard, with the hardest, {say(gap['hard'])}, easy {say(gap['easy'])}"
        lines.append(f"{sides}; difference {say(gap['difference'])} ({say(gap['low'])} to {say(gap['high'])})")
    return lines


def _tail(found: Plain) -> str:
    """The easiest interval, and where negatives are least like the anchor."""
    bins = found["by_percentile"]
    score = bins["score"]
    text = (
        f"easiest {100 * score['high'][0]:g} %: mean score {_number(score['mean'][0])}, "
        f"{_share(bins['below_zero']['mean'][0])} below 0"
    )
    depth = bins["depth"]
    known = [] if depth is None else [i for i, mean in enumerate(depth["mean"]) if mean is not None]
    if known:
        least = min(known, key=lambda i: depth["mean"][i])
        where = f"{100 * depth['low'][least]:g} to {100 * depth['high'][least]:g}"
        text += f"; depth {_number(depth['mean'][0])}, lowest {_number(depth['mean'][least])} at percentile {where}"
    return text


def _consistency(found: Plain) -> str:
    return (
        f"how often a negative is hard: mean {_share(found['mean_rate'])}, spread {_share(found['spread_of_rates'])}, "
        f"by chance {_share(found['spread_by_chance'])}; {_test(found['shuffled'])}"
    )


def _within(found: Plain) -> str:
    return f"the same within classes: {_test(found)}"


def _test(found: Plain) -> str:
    if found["ratio"] is None:
        return "too few to test"
    p_value = "p < 1e-12" if found["p_value"] < 1e-12 else f"p = {found['p_value']:.2g}"
    return f"variance {found['ratio']:.2f} times that of a shuffle, {p_value}"


def _pairs(found: Plain, kind: str, title: str) -> str:
    pairs: list[Any] = found[kind][:3]
    shown = ", ".join(f"{_name(pair['anchor'])} and {_name(pair['negative'])} {pair['mean']:z.3f}" for pair in pairs)
    return f"{title}: {shown or 'none'}"


def _name(name: str) -> str:
    """A class's name on one line: what a terminal would act on is escaped."""
    return name if name.isprintable() else repr(name)[1:-1]


def _drift(found: Plain) -> str:
    one, two = found["correlation"], found["overlap"]
    ranks = f"rank correlation {_number(one['mean'])} ({_number(one['low'])} to {_number(one['high'])})"
    hard = f"hard in both {_share(two['mean'])} ({_share(two['low'])} to {_share(two['high'])})"
    return f"between checkpoints: {ranks}, {hard}, by chance {_share(found['by_chance'])}"
