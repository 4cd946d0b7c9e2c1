"""Verdicts on claims of papers, from differences that are paired by seed; the start of docs/evidence-images.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.training.seed_summaries import spread

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]
Spread = dict[str, Any]
NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Seen:
    """A claim, what the paper reports, and the paired difference that tests it: above 0 if the claim is true."""

    claim: str
    paper: str
    difference: Spread | None

    @property
    def verdict(self) -> str:
        """By the 95 % CI of the difference over seeds."""
        if self.difference is None:
            return NOT_TRIED
        mean, half = self.difference["mean"], self.difference["half"]
        if half is None:
            return "one seed only"
        if mean > half:
            return "reproduced"
        return "not reproduced" if mean < -half else f"not shown, {'same' if mean > 0 else 'other'} sign"

    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        seeds = str(len(self.difference["values"])) if self.difference else "0"
        return self.claim, self.paper, "" if self.difference is None else points(self.difference), seeds, self.verdict


HEADINGS = ("claim", "in the paper", "here, points", "seeds", "verdict")


def points(found: Spread | None, figures: int = 2) -> str:
    """A difference and half its 95 % CI."""
    if found is None:
        return ""
    half = "" if found["half"] is None else f" ± {found['half']:.{figures}f}"
    return f"{found['mean']:+.{figures}f}{half}"


def minus(one: Spread | None, other: Spread | None) -> Spread | None:
    """The difference of two spreads, paired by seed. Every row has its seeds from 0 on."""
    if one is None or other is None:
        return None
    pairs = list(zip(one["values"], other["values"], strict=False))
    return spread([mine - theirs for mine, theirs in pairs])


def of(arms: dict[str, Any], name: str, measure: str = "accuracy") -> Spread | None:
    """A measure of an arm; None if it has not run."""
    found: Spread | None = arms[name][measure] if name in arms else None
    return found


def over(arms: dict[str, Any], name: str, base: str, measure: str = "accuracy") -> Spread | None:
    """An arm against another."""
    return minus(of(arms, name, measure), of(arms, base, measure))


PREFACE = """\
# Evidence: claims about negatives of pictures

Three papers say what false negatives and hard negatives do to an encoder of pictures. Their main claims were trained
again here, on a small scale: Fashion-MNIST at 14 x 14, a convolutional encoder that trains in under a minute of one
core. Figures are from `claims_detection.json`, `claims_percentiles.json` and `claims_in_batch.json` of
`benchmarks/results`.

A difference is paired by seed and given with half its 95 % CI (Student's t). A claim is **reproduced** if the CI of the
difference that it predicts is above 0, **not reproduced** if it is below, and **not shown** if it includes 0. With
three to five seeds the CI is wide, so "not shown" does not mean that the claim is false. Of so many comparisons one or
two may be outside their CI by chance. What was not tried did not fit the time.
"""
