"""The line of a job: what is suspected and what is too easy, decided once for all anchors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated
from naysay.mining._auto import ALPHA, Background, background, by_shares, calibrated, shares_sentence
from naysay.mining._finish import SAMPLED
from naysay.mining._pipeline import Task
from naysay.rng import rng_for


@final
@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A judge and a floor.

    Args:
        detector: None where nothing is suspected, and where a rescored job has yet to decide.
        rule: What it does, in a sentence.
        low: The score below which candidates are too easy, or None.
    """

    detector: Any
    rule: str
    low: float | None


def needs_sample(judge: Any, scores: NDArray[np.float32], floor: float | None, *, auto_k: bool, rescored: bool) -> bool:
    """Whether random pairs have to say where a line is: no bound can be held, or k is "auto" and nobody gave a floor.

    Args:
        scores: Of one positive of each anchor.
    """
    by_share = isinstance(judge, str) and not rescored and calibrated(ALPHA, scores) is None
    return by_share or (auto_k and floor is None and not isinstance(judge, Bands))


def sample_of(task: Task) -> Background:
    """The scores of random pairs, drawn by the seed."""
    return background(task.queries, task.corpus, task.known, task.metric, rng_for(task.seed, SAMPLED))


def floor_of(judge: Any, floor: float | None, sample: Background | None, *, auto_k: bool) -> float | None:
    """The lowest score of a negative; with k "auto" there is one always."""
    if floor is not None or not auto_k:
        return floor
    return float(judge.low) if isinstance(judge, Bands) or sample is None else by_shares(sample).low


def decide(judge: Any, scores: NDArray[np.float32], sample: Background | None) -> tuple[Any, str]:
    """The detector and what it does, in a sentence.

    Args:
        scores: One known positive of each anchor.
        sample: Of all pairs, where the line is by shares.
    """
    if judge is None:
        return None, "Nothing is suspected: the nearest are taken."
    unfitted = isinstance(judge, Calibrated) and judge.n == 0
    if not isinstance(judge, str) and not unfitted:
        return judge, judge.describe() if isinstance(judge, Calibrated) else f"Suspected by {judge!r}."
    alpha = judge.alpha if isinstance(judge, Calibrated) else ALPHA
    line = calibrated(alpha, scores)
    if line is not None:
        return line, line.describe()
    if unfitted or sample is None:
        raise_invalid("judge", "another, where all positives score the same", f"{len(scores)} equal scores")
    bands = by_shares(sample)
    return bands, shares_sentence(bands, sample, len(scores), alpha)
