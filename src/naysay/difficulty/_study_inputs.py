"""The inputs of a study: scores in blocks of anchors, from vectors or a function; classes; names; excluded pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy
from naysay.checks import as_array, check_kind, first_bad, raise_invalid, shown
from naysay.difficulty.curves import Floats, Mask, read_labels, read_scores
from naysay.difficulty.measures import check_in_tree, depths_of, read_hierarchy
from naysay.kernels import dots
from naysay.kernels import percentiles as kernels
from naysay.kernels.threads import in_rows
from naysay.positives import Positives

METRICS = ("cosine", "dot")
_MIN_NORM = 1e-150  # shorter vectors count as zero: the product of two such norms underflows
_CHECKED = 1 << 16  # numbers that are checked at once
_CELLS = 1 << 19  # pairs of a block that keep the threads busy; more would leave the cache


@final
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The scores of n anchors by m negatives."""

    n: int  # the number of anchors
    m: int  # the number of negatives
    block: Callable[[int, int], NDArray[Any]]  # a function of start and stop that returns the scores (stop - start, m)
    fixed_bytes: int  # memory for the whole study
    row_bytes: int  # memory for each anchor of a block


def source_of(anchors: Any, negatives: Any, metric: str, budget: int, where: str = "") -> Source:
    """Return the scores of vectors (n, d) and (m, d), or of anchors and a function; `where` prefixes their names."""
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
        highest = float(lengths.max() * norms.max())
    if not cosine and not highest < float(np.finfo(np.float32).max):
        advice = "Scale the vectors down."
        raise_invalid(f"{where}anchors", "of norms whose scores float32 holds", f"scores up to {highest:.3g}", advice)
    fixed = 8 * (width * m + n + m)
    if fixed > budget:
        raise_invalid("budget", f"at least {fixed}, to hold {m} negatives of width {width}", budget)
    columns = np.empty((width, m))
    columns[:] = theirs.T

    def block(start: int, stop: int) -> NDArray[Any]:
        rows = np.ascontiguousarray(ours[start:stop], np.float64)
        out = np.empty((len(rows), m), np.float32)
        arguments = (cosine, rows, lengths[start:stop], columns, norms, out)
        in_rows(kernels.pair_scores, len(rows), out.size * width, *arguments)
        return out

    return Source(n, m, block, fixed, 8 * width + 4 * m)


def _called(where: str, anchors: Any, negatives: Callable[[Any], Any]) -> Source:
    """Return the scores that a function computes; one call gives the number of negatives."""
    given = anchors if is_torch(anchors) else as_array(f"{where}anchors", anchors)
    if given.ndim == 0 or len(given) == 0:
        raise_invalid(f"{where}anchors", "at least one anchor", f"shape {tuple(given.shape)}")

    m = read_scores(negatives(given[:1]), parameter=f"{where}negatives")[0].shape[1]
    if not m:
        raise_invalid(f"{where}negatives", "at least one negative", "none")

    def block(start: int, stop: int) -> NDArray[Any]:
        scores, _ = read_scores(negatives(given[start:stop]), parameter=f"{where}negatives", start=start)
        if scores.shape != (stop - start, m):
            wanted = f"a function that returns scores of shape ({stop - start}, {m})"
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
    """Return the (n,) norms; raise on NaN, infinity and, for cosines, zero vectors."""
    norms = np.empty(len(vectors))
    step = max(1, _CHECKED // vectors.shape[1])
    for start in range(0, len(vectors), step):
        rows = np.ascontiguousarray(vectors[start : start + step], np.float64)
        in_rows(dots.norms, len(rows), rows.size, rows, norms[start : start + step])
    bad = ~np.isfinite(norms)
    if bad.any():
        raise_invalid(parameter, "finite", first_bad(norms, bad).replace(" at row", " for the norm at row"))
    short = norms < _MIN_NORM
    if cosine and short.any():
        advice = "A zero vector has no cosine; leave it out, or use metric='dot'."
        raise_invalid(parameter, "vectors of a length above 0", first_bad(norms, short), advice)
    return norms


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes that occur, and the index among them of each anchor and negative."""

    labels: NDArray[np.int64]  # (c,) ascending
    own: NDArray[np.int64]  # (n,) of the anchors
    theirs: NDArray[np.int64]  # (m,) of the negatives
    parents: NDArray[np.int64] | None  # the tree of classes, or None

    def depths(self) -> NDArray[np.int64] | None:
        """(c, c) the depths of the least common ancestors."""
        return None if self.parents is None else depths_of(self.parents, self.labels, self.labels)


def other_source(first: Source, other: Any, metric: str, budget: int) -> Source | None:
    """Return the scores of the other checkpoint, which must have as many anchors and negatives."""
    if other is None:
        return None
    if not isinstance(other, tuple | list) or len(other) != 2:
        raise_invalid("other", "a pair (anchors, negatives) of the other checkpoint", shown(other))
    second = source_of(other[0], other[1], metric, budget, where="other ")
    if (second.n, second.m) != (first.n, first.m):
        rule = f"of {first.n} anchors and {first.m} negatives, like the first"
        raise_invalid("other", rule, f"{second.n} x {second.m}")
    return second


def classes_of(source: Source, labels: Any, negative_labels: Any, hierarchy: Any) -> Classes | None:
    """Return the classes, or None without labels."""
    if labels is None and negative_labels is None:
        if hierarchy is not None:
            raise_invalid("hierarchy", "left out without labels", shown(hierarchy))
        return None
    if labels is None or negative_labels is None:
        given, lacking = ("negative_labels", "labels") if labels is None else ("labels", "negative_labels")
        raise_invalid(lacking, f"given with `{given}`", None)
    own = read_labels("labels", labels, source.n, "anchors")
    theirs = read_labels("negative_labels", negative_labels, source.m, "negatives")
    classes, places = np.unique(np.concatenate([own, theirs]), return_inverse=True)
    parents = None if hierarchy is None else read_hierarchy(hierarchy)
    if parents is not None:
        check_in_tree("labels", own, parents)
        check_in_tree("negative_labels", theirs, parents)
    return Classes(classes, places[: source.n], places[source.n :], parents)


def names_of(names: Any, classes: Classes | None) -> tuple[str, ...] | None:
    """Return the names of the classes."""
    if names is None:
        return None
    if classes is None:
        raise_invalid("names", "left out without labels", shown(names))
    if isinstance(names, str) or not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise_invalid("names", "a text for each class", shown(names))
    texts = tuple(names)
    if len(texts) <= classes.labels[-1]:
        raise_invalid("names", f"a text for each class up to {classes.labels[-1]}", f"{len(texts)} of them")
    return texts


def check_exclude(exclude: Any, source: Source) -> None:
    """Raise unless `exclude` is None, or a Positives within the anchors and negatives."""
    if exclude is None:
        return
    check_kind("exclude", exclude, Positives, "a Positives, or None")
    if exclude.n_anchors > source.n or exclude.n_items > source.m:
        rule = f"of at most {source.n} anchors and {source.m} items, the anchors and the negatives"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} x {exclude.n_items}")


def rows_of(budget: int, first: Source, second: Source | None, classes: Classes | None, bins: int) -> int:
    """Return how many anchors fit in a block, beside the memory for the whole study."""
    many, m = (1 if classes is None else len(classes.labels)), first.m
    fixed = first.fixed_bytes + 100 * m + 200 * first.n + 64 * many * many + 400 * bins
    # Scores twice, their order, a mask and tables of values, with a margin for memory not yet released.
    row = first.row_bytes + 120 * m + 128 * many + 64 * bins + 4096
    if second is not None:
        fixed, row = fixed + second.fixed_bytes, row + second.row_bytes + 16 * m
    rows = (budget - fixed) // row
    if rows < 1:
        need = f"at least {fixed + row} for {m} negatives and {many} class{'es' if many > 1 else ''}"
        raise_invalid("budget", need, budget)
    return int(min(rows, max(1, _CELLS // m)))


def kept_pairs(exclude: Positives | None, start: int, stop: int, m: int) -> Mask | None:
    """Return which pairs (rows, m) of a block count, or None if all do."""
    if exclude is None:
        return None
    last = min(stop, exclude.n_anchors)
    kept = np.ones((stop - start, m), np.bool_)
    if start < last:
        indptr = exclude.indptr[start : last + 1]
        rows = np.repeat(np.arange(last - start), np.diff(indptr))
        kept[rows, exclude.indices[indptr[0] : indptr[-1]]] = False
    return kept
