"""The numbers of one training step: scores (B, K) and suspicion in, {name: number} out."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_exact, raise_invalid
from naysay.difficulty.curves import BANDS, Floats, Intervals, Mask, Ranked, rank

_WORD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing
_BINS = 30

Scalars = dict[str, float]
Histograms = dict[str, tuple[NDArray[np.int64], Floats]]


def floats_of(parameter: str, values: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Scores as float32 or float64 of a shape; they may be NaN or infinite."""
    array = as_array(parameter, to_numpy(values))
    if array.shape != shape:
        raise_invalid(parameter, f"of shape {shape}", f"shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    check_exact(parameter, array)
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if narrow else np.float64, copy=False)


def hardness(scores: NDArray[Any], kept: Mask, positive: NDArray[Any] | None) -> Scalars:
    """The mean score of the negatives, and how many are above the positive of their row."""
    found = {"score/negatives": _mean(scores[kept])}
    if positive is not None:
        good = np.isfinite(positive)
        found["score/positives"] = _mean(positive[good])
        both = kept & good[:, None]
        found["above_positive"] = _mean((scores > positive[:, None])[both])
    return found


def softmax_shares(scores: NDArray[Any], kept: Mask, temperature: float) -> Floats:
    """(B, K) e^{s/t} / sum e^{s/t} over the slots of a row that count; 0 in the others."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = np.where(kept, scores.astype(np.float64) / temperature, -np.inf)
        top = scaled.max(axis=1, keepdims=True, initial=-np.inf)
        powers = np.where(kept, np.exp(scaled - np.where(np.isfinite(top), top, 0.0)), 0.0)
    whole = powers.sum(axis=1, keepdims=True)
    return np.asarray(powers / np.where(whole > 0, whole, 1.0))


def gradient(shares: Floats, ranked: Ranked, hard: float, hardest: float) -> Scalars:
    """The share of the gradient in each band, and the effective number 1 / sum of squared shares, means over rows."""
    rows = ranked.counts > 0
    groups = [(0.0, 1.0 - hard), (1.0 - hard, 1.0 - hardest), (1.0 - hardest, 1.0)]
    sums = Intervals.of(groups).sums(ranked, shares)[rows]
    found = {f"gradient/{band}": _mean(part) for band, part in zip(BANDS, sums.T, strict=True)}
    squares = (shares * shares).sum(axis=1)[rows]
    return found | {"effective_negatives": _mean(1.0 / squares)}


def ranked_rows(scores: NDArray[Any], kept: Mask) -> Ranked:
    """The order of each row by difficulty."""
    return rank(np.where(kept, scores, 0).astype(scores.dtype, copy=False), kept)


def suspected(suspicion: NDArray[Any], kept: Mask, threshold: float) -> Scalars:
    """The mean suspicion, which estimates the share of false negatives, and the share from the threshold on."""
    values = suspicion[kept]
    return {"false_share": _mean(values), "suspected": _mean(values >= threshold)}


def histogram(values: NDArray[Any]) -> tuple[NDArray[np.int64], Floats]:
    """Counts (30,) and ends (31,) of finite values."""
    counts, ends = np.histogram(values[np.isfinite(values)].astype(np.float64), _BINS)
    return counts.astype(np.int64), ends


@final
class Seen:
    """Which pairs of anchor and negative came before, in a table of fixed size, where later pairs replace earlier.

    A pair is known by 32 bits beside its place, so that two pairs are taken for one in a share of 2^-32 at most.
    """

    def __init__(self, size: int) -> None:
        self.table = np.zeros(size, np.uint32)

    def repeats(self, anchors: NDArray[np.int64], ids: NDArray[np.int64], kept: Mask) -> float:
        """The share of the step's pairs that are in the table, before they are added."""
        rows = np.atleast_2d(anchors.T).T.astype(np.uint64)
        keys = np.zeros((len(rows), 1), np.uint64)
        for column in rows.T:  # one, or three for triples
            keys = _mixed(keys ^ column[:, None])
        hashes = _mixed(keys ^ _mixed(ids.astype(np.uint64) + np.uint64(1)))[kept]
        places = (hashes % np.uint64(len(self.table))).astype(np.int64)
        marks = (hashes >> np.uint64(32)).astype(np.uint32) | np.uint32(1)  # never 0, which is an empty place
        known = self.table[places] == marks
        self.table[places] = marks
        return _mean(known)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of 64-bit words, one to one."""
    words = (words + _WORD) * _WORD
    words = (words ^ (words >> np.uint64(32))) * _WORD
    return np.asarray(words ^ (words >> np.uint64(29)))


def _mean(values: NDArray[Any]) -> float:
    """The mean, or NaN of nothing."""
    return float(np.mean(values, dtype=np.float64)) if values.size else float("nan")
