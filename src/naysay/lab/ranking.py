"""Recall, NDCG, MRR, Hits and AUC of a model's ranking: exact, in blocks of rows, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy
from naysay.checks import (
    as_array,
    check_all,
    check_bool,
    check_exact,
    check_kind,
    check_one_of,
    check_range,
    check_whole,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.kernels.ranks import count_above
from naysay.kernels.threads import in_rows
from naysay.positives import Positives
from naysay.text import short_repr
from naysay.types import Array

TIES = {"mean": 0.5, "optimistic": 0.0, "pessimistic": 1.0}
_MEMORY = 1 << 26  # bytes of scores that are held at a time

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
ScoreRows = Callable[[Ids], Array]  # scores(anchors (b,)) -> (b, n_items)


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The rank of each wanted item, and the measures that follow from the ranks.

    A list is an anchor with all its wanted items, or with `alone` a single wanted pair. Measures are means over lists.

    Attributes:
        anchors: (pairs,) the anchor of each wanted pair.
        items: (pairs,) the item of each wanted pair.
        ranks: (pairs,) its rank, from 1; a half where ties are counted half.
        areas: (pairs,) the share of the negatives that it scores above, ties half; NaN if there are no negatives.
        lists: (pairs,) the list that each pair belongs to, from 0, ascending.

    Example: see `ranking`.
    """

    anchors: Ids
    items: Ids
    ranks: Floats
    areas: Floats
    lists: Ids

    __repr__ = short_repr

    def recall(self, n: int) -> float:
        """The share of a list's wanted items that rank in the first `n`."""
        return self._mean(self.ranks <= check_whole("n", n, 1), 1 / self._wanted())

    def ndcg(self, n: int) -> float:
        """The sum of 1 / log2(rank + 1) over what ranks in the first `n`, divided by the largest possible sum."""
        first = check_whole("n", n, 1)
        wanted = self._wanted()
        longest = min(first, int(wanted.max()))  # no list has a larger sum than that of so many terms
        ideal = np.cumsum(1 / np.log2(np.arange(2, longest + 2)))
        found = np.where(self.ranks <= first, 1 / np.log2(self.ranks + 1), 0.0)
        return self._mean(found, 1 / ideal[np.minimum(wanted, longest) - 1])

    def hits(self, n: int) -> float:
        """The share of lists with a wanted item in the first `n`."""
        return float((self._best() <= check_whole("n", n, 1)).mean())

    @property
    def mrr(self) -> float:
        """The mean of 1 / rank of a list's highest wanted item."""
        return float((1 / self._best()).mean())

    @property
    def auc(self) -> float:
        """The mean AUC of the lists: how often a wanted item scores above a negative, ties half; NaN without any."""
        return self._mean(self.areas, 1 / self._wanted())

    def _wanted(self) -> Ids:
        """(lists,) the number of wanted items."""
        return np.bincount(self.lists)

    def _best(self) -> Floats:
        """(lists,) the highest rank."""
        return np.asarray(np.minimum.reduceat(self.ranks, np.flatnonzero(np.diff(self.lists, prepend=-1))))

    def _mean(self, values: NDArray[Any], scale: Floats) -> float:
        """The mean over lists of the sum of values of a list, times its scale."""
        return float((np.bincount(self.lists, values) * scale).mean())


@public
def ranking(
    scores: Array | ScoreRows,
    wanted: Positives,
    *,
    items: Array | None = None,
    known: Positives | None = None,
    candidates: Array | None = None,
    alone: bool = False,
    ties: str = "mean",
) -> Ranking:
    """Rank the wanted items of each anchor among all items that are not known.

    It is exact: no top list is cut. Scores are made and counted in blocks of rows of 64 MB, only for anchors that want
    something, in one pass over a row. A rank is 1, plus the negatives that score higher, plus the wanted items of the
    same anchor that score higher (of equal ones, those with a smaller id), plus the share of tied negatives that `ties`
    says. A negative is an item that is neither wanted nor known.

    Args:
        scores: (n, m) for all anchors and items, higher is better; or the anchors' vectors (n, d) if `items` is given,
            whose products are the scores; or a function scores(anchors (b,)) -> (b, m). NumPy or torch.
        wanted: The pairs to be found, n anchors x m items, such as a test split.
        items: (m, d) the items' vectors.
        known: Pairs that are left out, such as the training split ("filtered"). A pair that is also wanted is wanted.
        candidates: (n, c) the only items each anchor's wanted items are ranked against ("sampled"), -1 for an empty
            slot; those that are known or wanted are left out. By default all items. A sampled figure is higher than
            the exact one, and can order models differently.
        alone: Whether each wanted pair is a list of its own, without the other wanted items of its anchor. That is the
            filtered MRR and Hits@n of knowledge graphs.
        ties: How many of the negatives with an equal score count as higher: "mean" half of them, "optimistic" none,
            "pessimistic" all. A constant score then has the measures of a random order, the best, or the worst.

    Returns:
        The ranks: `recall(n)`, `ndcg(n)`, `hits(n)`, `mrr`, `auc`.

    Raises:
        NaysayError: If nothing is wanted, shapes do not fit, or a score is NaN.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> scores = np.array([[0.9, 0.8, 0.7, 0.1], [0.5, 0.5, 0.5, 0.5]])
        >>> wanted = ns.Positives.from_pairs([0, 1], [2, 0], n_items=4)
        >>> known = ns.Positives.from_pairs([0], [0], n_anchors=2, n_items=4)
        >>> found = ns.lab.ranking(scores, wanted, known=known)
        >>> found.ranks.tolist(), found.recall(2), found.auc
        ([2.0, 2.5], 0.5, 0.5)
    """
    check_kind("wanted", wanted, Positives, "a Positives")
    check_bool("alone", alone)
    check_one_of("ties", ties, tuple(TIES))
    excluded = Positives.from_pairs([], [], wanted.n_anchors, wanted.n_items) if known is None else known
    check_kind("known", excluded, Positives, "a Positives, or None")
    if not len(wanted):
        raise_invalid("wanted", "at least one pair", "none")
    if wanted.relation is not None:
        raise_invalid("wanted", "without ignored pairs", "some", "Ignore them in `known`.")
    if (excluded.n_anchors, excluded.n_items) != (wanted.n_anchors, wanted.n_items):
        rule = f"of {wanted.n_anchors} anchors and {wanted.n_items} items, like `wanted`"
        raise_invalid("known", rule, f"{excluded.n_anchors} and {excluded.n_items}")
    candidate_ids = _candidates(candidates, wanted)
    anchors, items_wanted = wanted.pairs()
    above, equal, free, earlier = (np.zeros(len(anchors), np.int64) for _ in range(4))
    for rows, block in _blocks(scores, items, wanted):
        first = wanted.indptr[rows]
        chosen = np.zeros((len(rows), 0), np.int64) if candidate_ids is None else candidate_ids[rows]
        arguments = (wanted.indptr, wanted.indices, excluded.indptr, excluded.indices, chosen, first)
        in_rows(count_above, len(rows), block.size, block, rows, *arguments, above, equal, free)
        if not alone:
            _count_earlier(block, rows, wanted, earlier)
    ranks = 1.0 + above + earlier + TIES[ties] * equal
    with np.errstate(invalid="ignore"):
        areas = 1 - (above + 0.5 * equal) / np.where(free > 0, free, np.nan)
    lists = np.arange(len(anchors)) if alone else np.unique(anchors, return_inverse=True)[1].reshape(-1)
    return Ranking(anchors, items_wanted, ranks, areas, lists)


def _blocks(scores: Any, items: Any, wanted: Positives) -> Iterator[tuple[Ids, NDArray[Any]]]:
    """(anchors (b,), scores (b, m)) of all anchors that want something."""
    score_rows = _score_rows(scores, items, wanted)
    rows = np.flatnonzero(np.diff(wanted.indptr))
    size = max(1, _MEMORY // (4 * wanted.n_items))
    for first in range(0, len(rows), size):
        chosen = rows[first : first + size]
        block = as_array("scores", to_numpy(score_rows(chosen)))
        if block.shape != (len(chosen), wanted.n_items):
            rule = f"of shape {(len(chosen), wanted.n_items)} for {len(chosen)} anchors"
            raise_invalid("scores", rule, f"shape {block.shape}")
        if block.dtype.kind not in "iuf":
            raise_invalid("scores", "numbers", f"dtype {block.dtype}")
        check_exact("scores", block)
        if block.dtype.kind == "f":
            check_all("scores", block, ~np.isnan(block), "a number")
        kind = block.dtype if block.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        yield chosen, np.ascontiguousarray(block, kind)


def _score_rows(scores: Any, items: Any, wanted: Positives) -> ScoreRows:
    """The function that scores some anchors against all items."""
    if callable(scores):
        if items is not None:
            raise_invalid("items", "left out where `scores` is a function", type(items).__name__)
        return lambda rows: scores(rows)
    given = scores if is_torch(scores) else as_array("scores", scores)
    if given.ndim != 2 or len(given) != wanted.n_anchors:
        raise_invalid("scores", f"of {wanted.n_anchors} rows, one for each anchor", f"shape {tuple(given.shape)}")
    if items is None:
        return lambda rows: given[rows]
    others = items if is_torch(items) else as_array("items", items)
    if is_torch(given) != is_torch(others):
        given, others = to_numpy(given), to_numpy(others)
    if others.ndim != 2 or tuple(others.shape) != (wanted.n_items, given.shape[1]):
        raise_invalid("items", f"of shape {(wanted.n_items, given.shape[1])}", f"shape {tuple(others.shape)}")
    return lambda rows: given[rows] @ others.T


def _candidates(candidates: Any, wanted: Positives) -> Ids | None:
    if candidates is None:
        return None
    ids = whole_numbers("candidates", to_numpy(candidates), "(n, c)").astype(np.int64)
    if len(ids) != wanted.n_anchors or not ids.shape[1]:
        raise_invalid("candidates", f"of shape ({wanted.n_anchors}, c), c at least 1", f"shape {ids.shape}")
    check_range("candidates", ids, wanted.n_items, "items", least=-1)
    return ids


def _count_earlier(block: NDArray[Any], rows: Ids, wanted: Positives, earlier: Ids) -> None:
    """earlier[pair] = the wanted items of its anchor that score higher, or the same with a smaller id."""
    counts = np.diff(wanted.indptr)[rows]
    pairs = np.repeat(wanted.indptr[rows] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    row = np.repeat(np.arange(len(rows)), counts)
    order = np.lexsort((pairs, -block[row, wanted.indices[pairs]], row))
    earlier[pairs[order]] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
