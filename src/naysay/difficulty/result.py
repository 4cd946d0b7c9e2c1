"""Study: what a study found, as numbers, text, a file and figures."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, final

from naysay.checks import check_one_of, public, raise_invalid
from naysay.difficulty._numbers import as_json, consistency_numbers, drift_numbers, pair_numbers, plain
from naysay.difficulty._ranked import BANDS
from naysay.difficulty._study_figure import PARTS, figure
from naysay.difficulty._study_text import as_text
from naysay.difficulty.class_pairs import ClassPairs
from naysay.difficulty.consistency import Consistency
from naysay.difficulty.curves import Curve, Gap
from naysay.difficulty.drift import Drift
from naysay.files import check_target, write_whole
from naysay.plots import as_picture, check_picture

_NUMBERS = ("anchors", "negatives", "pairs", "hard", "hardest", "temperature", "metric")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What negatives are like by difficulty, a `Curve` each; the last two are None without labels, or a hierarchy.

    Args:
        score: The mean score.
        below_zero: The share of scores below 0: of cosines, the anti-correlated tail.
        gradient: The share of InfoNCE's gradient that goes there, at the study's temperature.
        same_class: The share of negatives of the anchor's own class.
        depth: The mean depth of the least common ancestor of the two classes; deeper is more alike.
    """

    score: Curve
    below_zero: Curve
    gradient: Curve
    same_class: Curve | None
    depth: Curve | None


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What a model makes of its negatives.

    Args:
        anchors: How many; pairs that were excluded do not count.
        negatives: How many; pairs that were excluded do not count.
        pairs: How many; pairs that were excluded do not count.
        hard: The shares that bound the bands.
        hardest: The shares that bound the bands.
        temperature: Of the gradient, and of the scores ("given" where a function gave them).
        metric: Of the gradient, and of the scores ("given" where a function gave them).
        by_band: A `Profile` of easy, hard (without the hardest) and hardest.
        by_percentile: A `Profile` of intervals of one width, the easiest first.
        gaps: {"same_class": Gap, "depth": Gap}, as far as known: the hard, with the hardest, against the easy of
            the same anchor.
        consistency: How often each negative is hard, against a shuffled baseline.
        class_pairs: Mean scores by pair of classes, or None.
        drift: Against the other checkpoint, or None.
        names: Of the classes, or None.
    """

    anchors: int
    negatives: int
    pairs: int
    hard: float
    hardest: float
    temperature: float
    metric: str
    by_band: Profile
    by_percentile: Profile
    gaps: dict[str, Gap]
    consistency: Consistency
    class_pairs: ClassPairs | None
    drift: Drift | None
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        """The bands as a table, and a line for each of the other findings."""
        return as_text(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, NaN as None: what `write` writes. Of drift the quantiles over anchors."""
        pairs, moved = self.class_pairs, self.drift
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "by_band": {"names": list(BANDS), **plain(self.by_band)},
            "by_percentile": plain(self.by_percentile),
            "gaps": plain(self.gaps),
            "consistency": consistency_numbers(self.consistency),
            "class_pairs": None if pairs is None else pair_numbers(pairs, self.names),
            "drift": None if moved is None else drift_numbers(moved),
        }

    def write(self, path: str | PathLike[str]) -> None:
        """All numbers as JSON (`as_dict`), whole or not at all; NaN is null."""
        target = Path(path)
        if target.suffix.lower() != ".json":
            raise_invalid("path", "a file that ends in .json", repr(str(target)))
        check_target("path", target)
        write_whole("path", target, as_json(self.as_dict()))

    def plot(self, path: str | PathLike[str], part: str = "all") -> None:
        """Figures 4, 5 and 6 of Cai et al. (2020) for this study, as .svg or .png, by vl-convert.

        Args:
            part: "bands" (their Fig. 4), "percentiles" (Fig. 5), "consistency" (Fig. 6) or "all".
        """
        target = Path(path)
        check_one_of("part", part, PARTS)
        check_picture("path", target)
        check_target("path", target)
        picture = as_picture(figure(self.as_dict(), part), target.suffix.lower())
        write_whole("path", target, picture)
