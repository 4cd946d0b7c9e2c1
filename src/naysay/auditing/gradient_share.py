"""How hard each negative pulls: its share of the gradient under InfoNCE, at a temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.auditing._scored import Scored

NEGLIGIBLE = 1e-3  # of the largest pull there can be: what pulls less teaches nothing
BANDS = ("easy", "hard", "suspected")
_SLOTS = 1 << 20  # that are worked on at a time

Mask = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True)
class Pulls:
    """What the negatives of a training set pull, by band.

    Args:
        temperature: T.
        counts: {band: slots}: suspected; of the others easy if p_j is below 0.001, else hard.
        masses: {band: share}: of the sum of p_j over all slots; the shares add up to 1, or are 0 if nothing pulls.
        idle: The share of rows in which all negatives together pull less than 0.001: they are learnt.
    """

    temperature: float
    counts: dict[str, int]
    masses: dict[str, float]
    idle: float


def pulls(scored: Scored, temperature: float) -> tuple[NDArray[np.float32], float]:
    """((n, k), idle): p_j of each slot, NaN where it has none, and the share of rows that pull less than 0.001.

        p_j = exp(s_j / t) / (exp(s_p / t) + sum_i exp(s_i / t))

    The gradient of `losses.info_nce` by s_j is p_j / t. A row is an anchor with one of its positives; p_j of an anchor
    with several is the mean over them. Anchors without a scored positive have no row. Blocks of rows; O(k) a row.
    """
    rows = np.flatnonzero(~np.isnan(scored.positives))
    anchors = scored.anchors[rows]
    total = np.zeros(scored.negatives.shape)
    times = np.bincount(anchors, minlength=len(total))
    step, idle = max(1, _SLOTS // max(1, scored.negatives.shape[1])), 0
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        own = scored.negatives[anchors[part]].astype(np.float64) / temperature
        positive = scored.positives[rows[part], None].astype(np.float64) / temperature
        top = np.fmax(positive, np.fmax.reduce(own, axis=1, keepdims=True, initial=-np.inf))
        shares = np.where(np.isnan(own), 0.0, np.exp(own - top))
        shares /= np.exp(positive - top) + shares.sum(axis=1, keepdims=True)
        np.add.at(total, anchors[part], shares)
        idle += int((shares.sum(axis=1) < NEGLIGIBLE).sum())
    mean = total / np.maximum(times, 1)[:, None]
    found = np.where(scored.filled & (times > 0)[:, None], mean, np.nan).astype(np.float32)
    return found, idle / max(1, len(rows))


def by_band(found: NDArray[np.float32], idle: float, suspected: Mask, temperature: float) -> Pulls:
    """The slots and the pull of each band; slots without a pull are in none."""
    there = ~np.isnan(found)
    easy = there & ~suspected & (found < NEGLIGIBLE)
    masks = (easy, there & ~suspected & ~easy, there & suspected)
    sums = [float(found[mask].sum(dtype=np.float64)) for mask in masks]
    whole = sum(sums)
    return Pulls(
        temperature,
        {band: int(mask.sum()) for band, mask in zip(BANDS, masks, strict=True)},
        {band: part / whole if whole else 0.0 for band, part in zip(BANDS, sums, strict=True)},
        idle,
    )
