"""What the demonstration prints: the corpus, who found what, and why the choices are what they are."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from naysay.demo._summary import difference, mean_of
from naysay.demo.library import Library

if TYPE_CHECKING:
    from naysay.demo.tutorial import Split
    from naysay.detectors import Evaluation

MEASURES = ("recall@1", "recall@10", "MRR")
RIVALS = ("in-batch", "plain hard")


def print_corpus(screen: Console, library: Library, parts: Split) -> None:
    """Where the texts come from, and how they are divided."""
    tell(
        screen,
        f"The standard library of Python {platform.python_version()}: {len(library):,} names with a docstring, "
        f"{library.with_duplicate:,} of which share it with another name (overridden methods, mostly): their duplicates. "
        f"Corpus {library.fingerprint}.",
        f"{len(parts.train):,} names to train on, {len(parts.validation):,} to tune on, {len(parts.test):,} to be "
        "asked about; no docstring is in two parts.",
    )


def print_quality(screen: Console, quality: Mapping[str, Mapping[str, list[float]]], parts: Split) -> None:
    """The table of arms, and the differences of the last to its rivals, seed by seed."""
    from naysay.demo.tutorial import BATCH, K

    documents = sum(map(len, (parts.train, parts.validation, parts.test)))
    table = Table(title=f"{len(parts.test):,} names to find among {documents:,} docstrings, in %", title_justify="left")
    seeds = len(quality["judged"]["MRR"])
    for place, heading in enumerate(("negatives", "of each name", *MEASURES)):
        table.add_column(heading, justify="left" if place < 2 else "right", no_wrap=True)
    batch = min(BATCH, len(parts.train)) - 1
    told = (f"{K} random", f"{batch} of the batch", f"those, {K} nearest", f"those, {K} judged")
    for (arm, rows), what in zip(quality.items(), told, strict=True):
        table.add_row(arm, what, *(str(mean_of(rows[measure])) for measure in MEASURES))
    table.add_section()
    for rival in RIVALS:
        gaps = (difference(quality["judged"][measure], quality[rival][measure]) for measure in MEASURES)
        table.add_row("judged", f"against {rival}", *(f"{'+' if gap.mean >= 0 else ''}{gap}" for gap in gaps))
    screen.print(table)
    tell(
        screen, f"Means over {seeds} seeds, with intervals of 95 % by Student's t; differences are taken seed by seed."
    )


def print_found(screen: Console, found: Mapping[str, Evaluation]) -> None:
    """How well each detector finds the duplicates among the plain hard negatives."""
    one = next(iter(found.values()))
    title = f"{one.false_negatives:,} of {one.slots:,} plain hard negatives are duplicates"
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(("found by", "flagged", "precision", "recall")):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for name, each in found.items():
        table.add_row(name, f"{each.flagged:,}", _percent(each.precision), _percent(each.recall))
    screen.print(table)


def print_choices(screen: Console, result: Any) -> None:
    """Threshold and k, each with its reason."""
    from naysay.demo.tutorial import BATCH, K

    howmany = result.howmany
    low, high = howmany.flat
    reach = f"{low:,} or more" if high == len(howmany.curve) else f"{low:,} to {high:,}"
    line = result.found["Calibrated, by score"]
    tell(
        screen,
        f"{result.rule} It was set by the validation names; of the test names "
        f"{result.let_through:.1%} score below it. It flags {line.flagged / line.slots:.0%} of the plain hard "
        f"negatives, and {_percent(line.precision)} of what it flags are duplicates. The judge here goes by text.",
        f"k: by a run with one random negative for each name, the labels have a separation of {howmany.separation:.2f} "
        f"and the encoder reaches {howmany.reached[-1]:.2f} on validation names, which is best served by {howmany.k:,} "
        f"random negatives; {reach} are within 1 % of that. A batch of {BATCH} brings {BATCH - 1} that need no "
        f"encoding of their own, so they are all taken; the {K} mined ones come on top.",
        *howmany.notes,
    )


def tell(screen: Console, *sentences: str) -> None:
    """Print paragraphs as they are: no colours for numbers, and no markup in names."""
    for sentence in sentences:
        screen.print(sentence, highlight=False, markup=False)


def _percent(share: float) -> str:
    return "none" if math.isnan(share) else f"{100 * share:.1f} %"
