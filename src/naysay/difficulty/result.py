"""The result of a study, as numbers, text, a file and figures."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, final

from naysay.checks import check_one_of, public, raise_invalid
from naysay.difficulty._ranked import BANDS
from naysay.difficulty._study_figure import PARTS, figure
from naysay.difficulty._study_text import (
    as_json,
    as_text,
    consistency_numbers,
    drift_numbers,
    pair_numbers,
    plain,
)
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
    """The measures of negatives by difficulty, a `Curve` each.

    Attributes:
        score: The mean score.
        below_zero: The share of scores below 0: of cosines, the anti-correlated tail.
        gradient: The share of the InfoNCE gradient, at the study's temperature.
        same_class: The share of negatives of the anchor's own class; None without labels.
        depth: The mean depth of the least common ancestor of the two classes, deeper is more similar; None without a
            hierarchy.

    Example: see `study`.
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
    """The difficulty of a model's negatives.

    Attributes:
        anchors: The number of anchors.
        negatives: The number of negatives.
        pairs: The number of pairs, without excluded ones.
        hard: The share of hard negatives, with the hardest.
        hardest: The share of the hardest.
        temperature: The temperature of the gradient.
        metric: The metric of the scores; "given" if a function computed them.
        by_band: A `Profile` of easy, hard (without the hardest) and hardest.
        by_percentile: A `Profile` of intervals of one width, the easiest first.
        gaps: {"same_class": Gap, "depth": Gap}, as far as known: hard, with the hardest, against easy negatives of the
            same anchor.
        consistency: How often each negative is hard, against a shuffled baseline.
        class_pairs: Mean scores by pair of classes, or None.
        drift: Against the other checkpoint, or None.
        names: The names of the classes, or None.

    Example: see `study`.
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
        """Return the bands as a table, and a line for each other result."""
        return as_text(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return all results as plain numbers, NaN as None: what `write` writes. Drift as quantiles over anchors."""
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
        """Write all numbers as JSON (`as_dict`), atomically; NaN is null.

        Args:
            path: A file that ends in .json.
        """
        target = Path(path)
        if target.suffix.lower() != ".json":
            raise_invalid("path", "a file that ends in .json", repr(str(target)))
        check_target("path", target)
        write_whole("path", target, as_json(self.as_dict()))

    def plot(self, path: str | PathLike[str], part: str = "all") -> None:
        """Draw Figures 4, 5 and 6 of Cai et al. (2020) for this study, by vl-convert.

        Args:
            path: A file that ends in .svg or .png.
            part: "bands" (their Fig. 4), "percentiles" (Fig. 5), "consistency" (Fig. 6) or "all".

        Raises:
            NaysayError: If the part is unknown, or the file cannot be written or ends otherwise.
            MissingExtraError: If vl-convert is not installed.
        """
        target = Path(path)
        check_one_of("part", part, PARTS)
        check_picture("path", target)
        check_target("path", target)
        picture = as_picture(figure(self.as_dict(), part), target.suffix.lower())
        write_whole("path", target, picture)
