"""The part of the benchmarks page about difficulty: what is hard for a small encoder, and what a study costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]

PREFACE = """\
SimCLR on {train:,} images of Fashion-MNIST, {epochs} epochs, {seeds} seeds; {anchors:,} of them as anchors and
{negatives:,} others as negatives. Scores are cosines of the vectors that the loss uses. Classes form a tree:
everything; clothing (tops; bottoms and dresses), shoes, bag. The depth of a common ancestor is 0 to 3; deeper means
more similar. Values are means over seeds, with the range over seeds in brackets. A claim of Cai et al. (2020) is
confirmed if it holds for every seed.
"""
SPEED = """\
A study of {anchors:,} anchors with {negatives:,} random negatives each, d = {width}, with labels and a tree, on
{threads} threads. The machine was busy (load {load:.1f}): compare processor seconds.
"""
PICTURES = ("difficulty-4.svg", "difficulty-5.svg", "difficulty-6.svg")


def _over(values: list[float], figures: int, scale: float = 1.0) -> str:
    """A mean over seeds, and its range."""
    low, high = (f"{scale * end:.{figures}f}" for end in (min(values), max(values)))
    return f"{scale * sum(values) / len(values):.{figures}f} ({low} to {high})"


def difficulty(result: dict[str, Any], table: Table) -> list[str]:
    """The section, from results/difficulty.json."""
    runs, settings, speed = result["runs"], result["settings"], result["speed"]
    studies = [run["study"] for run in runs]
    rows = []
    for i, band in enumerate(studies[0]["by_band"]["names"]):
        bands = [one["by_band"] for one in studies]
        rows.append(
            (
                band,
                _over([one["score"]["mean"][i] for one in bands], 3),
                _over([one["gradient"]["mean"][i] for one in bands], 1, 100),
                _over([one["same_class"]["mean"][i] for one in bands], 1, 100),
                _over([one["depth"]["mean"][i] for one in bands], 2),
            )
        )
    tests = [one["consistency"] for one in studies]
    moved = [one["drift"] for one in studies]
    more = [
        (
            "variance of how often a negative is hard, times a shuffle's",
            _over([one["shuffled"]["ratio"] for one in tests], 2),
        ),
        ("the same within classes", _over([one["within_class"]["ratio"] for one in tests], 2)),
        ("the same for rows that were shuffled", _over([run["shuffled_once"] for run in runs], 2)),
        ("rank correlation, half of training to its end", _over([one["correlation"]["mean"] for one in moved], 3)),
        ("hard negatives that were hard at half, %", _over([one["overlap"]["mean"] for one in moved], 1, 100)),
        (
            "gradient to the hardest 5 % at temperature 0.07, %",
            _over([run["gradient_of_hard_at_0.07"] for run in runs], 1, 100),
        ),
    ]
    costs = [
        (
            name,
            f"{row['processor_seconds']:.1f}",
            f"{row['seconds']:.1f}",
            f"{row['peak_megabytes_beside_the_vectors']:.0f}",
        )
        for name, row in speed["rows"].items()
    ]
    sizes = {name: settings[name] for name in ("train", "epochs", "seeds", "anchors", "negatives")}
    return [
        "## Difficulty",
        PREFACE.format(**sizes).strip(),
        table(("band", "cosine", "gradient, %", "same class, %", "depth"), rows),
        table(("claim", "confirmed"), [(claim, "yes" if holds else "no") for claim, holds in result["seen"].items()]),
        table(("what", "mean over seeds"), more),
        "\n".join(f"![difficulty of negatives]({name})" for name in PICTURES),
        SPEED.format(
            **{name: speed[name] for name in ("anchors", "negatives", "width", "threads")}, load=speed["load_average"]
        ).strip(),
        table(("study of", "processor seconds", "seconds", "MB besides the vectors"), costs),
    ]
