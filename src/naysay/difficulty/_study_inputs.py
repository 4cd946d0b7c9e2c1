"""What a study is handed beside vectors: another checkpoint, classes, names, pairs to leave out, and a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import raise_invalid, shown
from naysay.difficulty._inputs import check_in_tree, read_hierarchy, read_labels
from naysay.difficulty._ranked import Mask
from naysay.difficulty._sources import Source, source_of
from naysay.difficulty.hierarchy import depths_of
from naysay.positives import Positives

_CELLS = 1 << 19  # pairs of a block that are enough to keep threads busy; more would only leave the cache


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Classes as places among those that occur: of anchors (n,), of negatives (m,), and the tree or None."""

    labels: NDArray[np.int64]
    own: NDArray[np.int64]
    theirs: NDArray[np.int64]
    parents: NDArray[np.int64] | None

    def depths(self) -> NDArray[np.int64] | None:
        """(c, c) how deep the least common ancestors of classes are."""
        return None if self.parents is None else depths_of(self.parents, self.labels, self.labels)


def other_source(first: Source, other: Any, metric: str, budget: int) -> Source | None:
    """The other checkpoint, refused unless it is of as many anchors and negatives."""
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
    """Classes and depths, or None where no labels are given."""
    if labels is None and negative_labels is None:
        if hierarchy is not None:
            raise_invalid("hierarchy", "left out without labels", shown(hierarchy))
        return None
    if labels is None or negative_labels is None:
        given, lacking = ("negative_labels", "labels") if labels is None else ("labels", "negative_labels")
        raise_invalid(lacking, f"given, because {given} are", None)
    own = read_labels("labels", labels, source.n, "anchors")
    theirs = read_labels("negative_labels", negative_labels, source.m, "negatives")
    found, places = np.unique(np.concatenate([own, theirs]), return_inverse=True)
    parents = None if hierarchy is None else read_hierarchy(hierarchy)
    if parents is not None:
        check_in_tree("labels", own, parents)
        check_in_tree("negative_labels", theirs, parents)
    return Classes(found, places[: source.n], places[source.n :], parents)


def names_of(names: Any, classes: Classes | None) -> tuple[str, ...] | None:
    """What the classes are called."""
    if names is None:
        return None
    if classes is None:
        raise_invalid("names", "left out without labels", shown(names))
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise_invalid("names", "a text for each class", shown(names))
    if len(names) <= classes.labels[-1]:
        raise_invalid("names", f"a text for each class up to {classes.labels[-1]}", f"{len(names)} of them")
    return tuple(names)


def check_exclude(exclude: Any, source: Source) -> None:
    """Refuse anything but a Positives of anchors and negatives that there are."""
    if exclude is None:
        return
    if not isinstance(exclude, Positives):
        raise_invalid("exclude", "a Positives, or None", type(exclude).__name__)
    if exclude.n_anchors > source.n or exclude.n_items > source.m:
        rule = f"of at most {source.n} anchors and {source.m} items, the anchors and the negatives"
        raise_invalid("exclude", rule, f"{exclude.n_anchors} x {exclude.n_items}")


def rows_of(budget: int, first: Source, second: Source | None, classes: Classes | None, bins: int) -> int:
    """How many anchors fit in a block, beside what is held all the time."""
    many, m = (1 if classes is None else len(classes.labels)), first.m
    held = first.held + 100 * m + 200 * first.n + 64 * many * many + 400 * bins
    # Scores twice, their order, a mask and tables of values; and again what a thread has not let go of yet.
    row = first.row + 120 * m + 128 * many + 64 * bins + 4096
    if second is not None:
        held, row = held + second.held, row + second.row + 16 * m
    rows = (budget - held) // row
    if rows < 1:
        need = f"at least {held + row} for {m} negatives and {many} class{'es' if many > 1 else ''}"
        raise_invalid("budget", need, budget)
    return int(min(rows, max(1, _CELLS // m)))


def kept_pairs(exclude: Positives | None, start: int, stop: int, m: int) -> Mask | None:
    """(rows, m) which pairs of a block count, or None if all do."""
    if exclude is None:
        return None
    last = min(stop, exclude.n_anchors)
    kept = np.ones((stop - start, m), np.bool_)
    if start < last:
        indptr = exclude.indptr[start : last + 1]
        rows = np.repeat(np.arange(last - start), np.diff(indptr))
        kept[rows, exclude.indices[indptr[0] : indptr[-1]]] = False
    return kept
