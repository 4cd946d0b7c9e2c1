"""Where the scores of a study come from: two tables of vectors, or a function; a block of anchors at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy
from naysay.checks import as_array, first_bad, raise_invalid
from naysay.difficulty._inputs import read_scores
from naysay.difficulty._ranked import Floats
from naysay.kernels import dots
from naysay.kernels import percentiles as kernels
from naysay.kernels.threads import in_rows

METRICS = ("cosine", "dot")
_LEAST = 1e-150  # a shorter vector counts as zero: the product of two such lengths is none that float64 holds
_LOOK = 1 << 16  # numbers that are looked at together before the work


@final
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """n anchors by m negatives.

    Args:
        block: The scores (rows, m) of the anchors from start to stop.
        held: Bytes that it holds for the whole study; `row` more for each anchor of a block.
    """

    n: int
    m: int
    block: Callable[[int, int], NDArray[Any]]
    held: int
    row: int


def source_of(anchors: Any, negatives: Any, metric: str, budget: int, where: str = "") -> Source:
    """Vectors (n, d) and (m, d), or anchors (n, ...) and a function of a part of them; `where` names the argument."""
    if callable(negatives) and not is_torch(negatives):
        return _called(where, anchors, negatives)
    ours = _vectors(f"{where}anchors", anchors)
    theirs = _vectors(f"{where}negatives", negatives)
    if ours.shape[1] != theirs.shape[1]:
        raise_invalid(f"{where}negatives", f"of width {ours.shape[1]}, like the anchors", theirs.shape[1])
    (n, width), m = ours.shape, len(theirs)
    cosine = metric == "cosine"
    lengths = _lengths(f"{where}anchors", ours, cosine=cosine)
    norms = _lengths(f"{where}negatives", theirs, cosine=cosine)
    with np.errstate(over="ignore"):
        most = float(lengths.max() * norms.max())
    if not cosine and not most < float(np.finfo(np.float32).max):
        advice = "Scale the vectors down."
        raise_invalid(f"{where}anchors", "of norms whose scores float32 holds", f"scores up to {most:.3g}", advice)
    held = 8 * (width * m + n + m)
    if held > budget:
        raise_invalid("budget", f"at least {held}, to hold {m} negatives of width {width}", budget)
    columns = np.empty((width, m))
    columns[:] = theirs.T

    def block(start: int, stop: int) -> NDArray[Any]:
        rows = np.ascontiguousarray(ours[start:stop], np.float64)
        out = np.empty((len(rows), m), np.float32)
        arguments = (cosine, rows, lengths[start:stop], columns, norms, out)
        in_rows(kernels.pair_scores, len(rows), out.size * width, *arguments)
        return out

    return Source(n, m, block, held, 8 * width + 4 * m)


def _called(where: str, anchors: Any, negatives: Callable[[Any], Any]) -> Source:
    """Anchors that a function scores against all negatives; one call tells how many those are."""
    given = anchors if is_torch(anchors) else as_array(f"{where}anchors", anchors)
    if given.ndim == 0 or len(given) == 0:
        raise_invalid(f"{where}anchors", "at least one anchor", f"shape {tuple(given.shape)}")

    m = read_scores(negatives(given[:1]), parameter=f"{where}negatives")[0].shape[1]
    if not m:
        raise_invalid(f"{where}negatives", "at least one negative", "none")

    def block(start: int, stop: int) -> NDArray[Any]:
        scores, _ = read_scores(negatives(given[start:stop]), parameter=f"{where}negatives", start=start)
        if scores.shape != (stop - start, m):
            wanted = f"a function that answers with scores of shape ({stop - start}, {m})"
            raise_invalid(f"{where}negatives", wanted, f"shape {scores.shape}")
        return scores

    return Source(len(given), m, block, 0, 16 * m)


def _vectors(parameter: str, given: Any) -> NDArray[Any]:
    array = as_array(parameter, to_numpy(given))
    if array.ndim != 2 or 0 in array.shape:
        raise_invalid(parameter, "of shape (n, d), at least one vector", f"shape {array.shape}")
    if array.dtype.kind != "f":
        raise_invalid(parameter, "floats", f"dtype {array.dtype}", "Convert them with .astype(np.float32).")
    return array


def _lengths(parameter: str, vectors: NDArray[Any], *, cosine: bool) -> Floats:
    """(n,) the norms, looked at before any work: NaN, infinity and, for cosines, zero vectors are refused."""
    found = np.empty(len(vectors))
    step = max(1, _LOOK // vectors.shape[1])
    for start in range(0, len(vectors), step):
        rows = np.ascontiguousarray(vectors[start : start + step], np.float64)
        in_rows(dots.norms, len(rows), rows.size, rows, found[start : start + step])
    bad = ~np.isfinite(found)
    if bad.any():
        raise_invalid(parameter, "finite", first_bad(found, bad).replace(" at row", " for the norm at row"))
    short = found < _LEAST
    if cosine and short.any():
        advice = "A zero vector has no cosine; leave it out, or use metric='dot'."
        raise_invalid(parameter, "vectors of a length above 0", first_bad(found, short), advice)
    return found
