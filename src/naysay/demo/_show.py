"""What the demonstration prints: corpus, quality of each arm with 95 % CIs, detectors, choices, result and advice."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from naysay.demo.library import Library
from naysay.difficulty.study import Mean, mean_of
from naysay.text import percent

if TYPE_CHECKING:
    from naysay.demo.tutorial import Split
    from naysay.detectors import Evaluation

MEASURES = ("nDCG@10", "recall@10", "MRR")
RIVALS = ("in-batch", "plain hard")


def mean_text(found: Mean) -> str:
    """Return a mean over seeds in per cent, with half of its 95 % CI: '41.9 ± 0.6'; one seed has no CI.

    Examples:
        >>> mean_text(mean_of([0.40, 0.42, 0.41]))
        '41.0 ± 2.5'
    """
    shown = f"{100 * found.mean:.1f}"
    return shown if math.isnan(found.low) else f"{shown} ± {100 * (found.high - found.mean):.1f}"


def excludes_zero(found: Mean) -> bool:
    """Whether the interval excludes 0."""
    return found.low > 0 or found.high < 0


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Mean:
    """Return the mean difference, paired by seed, so that what both arms of a seed share cancels."""
    return mean_of(np.subtract(ours, theirs))


def result_sentence(values: Mapping[str, Sequence[float]], measure: str) -> str:
    """Return which arm has the highest mean, and how "judged" compares with each rival; one number per seed."""
    means = {name: float(np.mean(each)) for name, each in values.items()}
    best = max(means, key=lambda name: means[name])
    gaps = []
    for rival in RIVALS:
        gap = difference(values["judged"], values[rival])
        points = f"{abs(100 * gap.mean):.1f} points {'above' if gap.mean >= 0 else 'below'} {rival}"
        if math.isnan(gap.low):
            gaps.append(f"{points} (one seed: no CI)")
        else:
            zero = "excludes 0" if excludes_zero(gap) else "includes 0"
            gaps.append(f"{points} (95 % CI {100 * gap.low:.1f} to {100 * gap.high:.1f}, {zero})")
    return f"Best mean {measure}: {best}, {100 * means[best]:.1f} %. Judged is {gaps[0]} and {gaps[1]}."


def advice_sentence(values: Mapping[str, Sequence[float]]) -> str:
    """Return what to do, from the same numbers: whether to mine, and whether to judge."""
    mined, judged = (difference(values["judged"], values[rival]) for rival in RIVALS)
    if not excludes_zero(mined):
        return "What to do: run more seeds. They do not show yet whether mined negatives are better than in-batch ones."
    if mined.mean < 0:
        return "What to do: train with in-batch negatives. Mined negatives are worse here."
    if not excludes_zero(judged):
        return "What to do: mine negatives. These seeds do not show that judging them changes the result here."
    return f"What to do: mine negatives{' and judge them' if judged.mean > 0 else '; judging them is worse here'}."


def print_corpus(screen: Console, library: Library, parts: Split) -> None:
    """Print where the texts come from, and how they are split."""
    from naysay.demo.tutorial import ASKED, PASSAGE, STRIDE

    passages = [len(part.passages) for part in (parts.train, parts.validation, parts.test)]
    print_plain(
        screen,
        f"Corpus: {len(library):,} docstrings of the standard library of Python {platform.python_version()}, the long "
        f"ones cut into {sum(passages):,} passages of {PASSAGE} words, one every {STRIDE} words. A question is {ASKED} "
        f"words of a passage; one of the passages that answer it is labelled. Fingerprint {library.fingerprint}.",
        f"Split by docstring: {len(parts.train):,} questions to train, {len(parts.validation):,} to validate, "
        f"{len(parts.test):,} to test.",
    )


def print_quality(screen: Console, quality: Mapping[str, Mapping[str, list[float]]], parts: Split) -> None:
    """Print the table of arms, and the differences of "judged" to its rivals, paired by seed."""
    from naysay.demo.tutorial import BATCH, K

    passages = sum(len(part.passages) for part in (parts.train, parts.validation, parts.test))
    title = f"Answers to {len(parts.test):,} test questions among {passages:,} passages, in %"
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(("negatives", "per question", *MEASURES)):
        table.add_column(heading, justify="left" if place < 2 else "right", no_wrap=True)
    batch = f"{min(BATCH, len(parts.train)) - 1} in-batch"
    kinds = (f"{K} random", batch, f"{batch}, {K} nearest", f"{batch}, {K} judged")
    for (arm, rows), kind in zip(quality.items(), kinds, strict=True):
        table.add_row(arm, kind, *(mean_text(mean_of(rows[measure])) for measure in MEASURES))
    table.add_section()
    for rival in RIVALS:
        gaps = (difference(quality["judged"][measure], quality[rival][measure]) for measure in MEASURES)
        table.add_row("judged", f"minus {rival}", *(f"{'+' if gap.mean >= 0 else ''}{mean_text(gap)}" for gap in gaps))
    screen.print(table)
    seeds = len(quality["judged"]["MRR"])
    print_plain(
        screen,
        f"Mean over {seeds} seeds ± 95 % CI (Student's t); differences are paired by seed. The last row is what "
        "judging was worth.",
    )


def print_detectors(screen: Console, detection: Mapping[str, Evaluation]) -> None:
    """Print how well each detector finds the false ones among the plain hard negatives."""
    first = next(iter(detection.values()))
    title = f"{first.false_negatives:,} of {first.slots:,} plain hard negatives are false: they answer the question"
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(("detector", "flagged", "precision", "recall")):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for name, each in detection.items():
        shares = ("none" if math.isnan(share) else percent(share) for share in (each.precision, each.recall))
        table.add_row(name, f"{each.flagged:,}", *shares)
    screen.print(table)


def print_choices(screen: Console, result: Any) -> None:
    """Print what the judge did, beside the truth, and k with its reason."""
    from naysay.demo.tutorial import BATCH, K

    estimate, (plain, judged) = result.k_estimate, result.false_shares
    low, high = estimate.flat
    reach = f"{low:,} or more" if high == len(estimate.curve) else f"{low:,} to {high:,}"
    print_plain(
        screen,
        f"The judge: {result.rule} In truth {percent(plain)} of the nearest are false, and {percent(judged)} of the "
        "judged.",
        f"k: by a run with one random negative per question, the labels have a separation of "
        f"{estimate.separation:.2f} and the encoder reaches {estimate.reached[-1]:.2f} on validation questions. Best: "
        f"{estimate.k:,} random negatives; {reach} are within 1 % of it. A batch of {BATCH} has {BATCH - 1} that need "
        f"no extra encoding, so all are used, plus {K} mined ones.",
        *estimate.notes,
    )


def print_plain(screen: Console, *sentences: str) -> None:
    """Print paragraphs without colours for numbers and without markup in names."""
    for sentence in sentences:
        screen.print(sentence, highlight=False, markup=False)
