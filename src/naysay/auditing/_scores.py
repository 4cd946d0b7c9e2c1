"""The scores of a training set: from vectors, which are matched to its rows by name, or as given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.auditing._training_set import Ids, TrainingSet, read_names
from naysay.checks import as_array, first_bad, raise_invalid, shown
from naysay.detectors.hold_out import one_per_anchor
from naysay.kernels.threads import threads
from naysay.search._scores import METRICS, pair_scores, survey
from naysay.search.vectors import Vectors, as_vectors

Scores = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetScores:
    """Scores beside the ids of a `TrainingSet`.

    Args:
        negatives: (n, k) float32; NaN where the slot is empty or has no score.
        positives: (pairs,) float32 beside positives.pairs(); NaN where there is none.
        anchors: (pairs,) the anchor of each positive.
        one_each: Places of one scored positive of each anchor that has some, drawn at random.
    """

    negatives: Scores
    positives: Scores
    anchors: Ids
    one_each: Ids

    @property
    def filled(self) -> NDArray[np.bool_]:
        """(n, k): slots with a score."""
        return ~np.isnan(self.negatives)


def scores_by_vectors(
    given: TrainingSet, queries: Vectors, corpus: Vectors, metric: str, rng: np.random.Generator
) -> SetScores:
    """Score all pairs of the set. O(d) per pair."""
    anchors, slots = np.nonzero(given.ids >= 0)
    negatives = np.full(given.ids.shape, np.nan, np.float32)
    negatives[anchors, slots] = pair_scores(queries, corpus, anchors, given.ids[anchors, slots], metric)
    pair_anchors, pair_items = given.positives.pairs()
    return _set_scores(negatives, pair_scores(queries, corpus, pair_anchors, pair_items, metric), pair_anchors, rng)


def scores_as_given(
    given: TrainingSet, scores: Any, positive_scores: Any, rng: np.random.Generator
) -> SetScores | None:
    """Return the caller's scores, or else those of the set; None if the negatives have none."""
    anchors, _ = given.positives.pairs()
    if scores is None:
        negatives, positives = given.scores, given.positive_scores
        if positive_scores is not None:
            raise_invalid("positive_scores", "given along with `scores`", "no scores")
    else:
        negatives = _read("scores", scores, given.ids.shape, given.ids >= 0)
        every = np.ones(len(anchors), np.bool_)
        positives = None if positive_scores is None else _read("positive_scores", positive_scores, anchors.shape, every)
    if negatives is None:
        return None
    negatives = np.where(given.ids >= 0, negatives, np.float32(np.nan))
    for name, values in (("scores", negatives), ("positive_scores", positives)):
        if values is not None and np.isinf(values).any():
            raise_invalid(name, "finite", first_bad(values, np.isinf(values)))
    if np.isnan(negatives).all():
        return None
    unknown = np.full(len(anchors), np.nan, np.float32)
    return _set_scores(negatives, unknown if positives is None else positives, anchors, rng)


def _read(parameter: str, values: Any, shape: tuple[int, ...], filled: NDArray[np.bool_]) -> Scores:
    """Return a user's scores as float32; they must be finite where there is a pair."""
    array = as_array(parameter, to_numpy(values))
    if array.shape != shape:
        raise_invalid(parameter, f"of shape {shape}, like the set", f"shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    bad = ~np.isfinite(array.astype(np.float64)) & filled
    if bad.any():
        first = array if array.ndim == 1 else array[np.arange(len(bad)), bad.argmax(axis=1)]
        raise_invalid(parameter, "finite", first_bad(first, bad))
    return array.astype(np.float32)


def _set_scores(negatives: Scores, positives: Scores, anchors: Ids, rng: np.random.Generator) -> SetScores:
    scored = np.flatnonzero(~np.isnan(positives))
    one = scored[one_per_anchor(anchors[scored], rng=rng)] if len(scored) else scored
    return SetScores(negatives, positives, anchors, one)


def vectors_of(
    given: TrainingSet, queries: Any, corpus: Any, query_ids: Any, corpus_ids: Any, metric: str
) -> tuple[Vectors, Vectors]:
    """Return the vectors of both sides in the order of the set."""
    left, right = checked_vectors("query_vectors", queries, metric), checked_vectors("corpus_vectors", corpus, metric)
    if left.width != right.width:
        raise_invalid("query_vectors", f"of width {right.width}, like `corpus_vectors`", left.width)
    rows = rows_of("query", given.positives.n_anchors, given.query_names, query_ids, left)
    items = rows_of("corpus", given.positives.n_items, given.corpus_names, corpus_ids, right)
    return in_order(left, rows), in_order(right, items)


def checked_vectors(parameter: str, given: Any, metric: str) -> Vectors:
    """Open vectors and check in one pass that each has a score."""
    vectors = given if isinstance(given, Vectors) else as_vectors(parameter, given)
    survey(parameter, vectors, METRICS[metric], threads())
    return vectors


def rows_of(side: str, size: int, names: list[str] | None, given: Any, vectors: Vectors) -> Ids:
    """Return (size,) the row of the vectors that belongs to each query, or document, of the set.

    Args:
        side: "query" or "corpus".
        size: Queries, or documents, of the set.
        names: Their names in the set; None if it has row numbers.
        given: The names of the vectors' rows, or a file of them (`read_names`); None: row i is number i of the set.
        vectors: The vectors.
    """
    if given is None:
        named = names is not None
        if vectors.n < size or (named and vectors.n != size):
            rule = f"of {'' if named else 'at least '}{size} rows, like the set"
            advice = f"Pass `{side}_ids`, the name of each row." if named else ""
            raise_invalid(f"{side}_vectors", rule, vectors.n, advice)
        return np.arange(size)
    parameter = f"{side}_ids"
    if isinstance(given, str | Path):
        given = read_names(parameter, Path(given))
    if names is None:
        raise_invalid(parameter, "left out where the set has row numbers", f"{len(given)} names")
    if isinstance(given, bytes) or not isinstance(given, Sequence | np.ndarray):
        raise_invalid(parameter, "a list of names, or a file of them", shown(given))
    if len(given) != vectors.n:
        raise_invalid(parameter, f"{vectors.n} names, one for each row of `{side}_vectors`", len(given))
    row_of_name = {name: row for row, name in enumerate(map(str, given))}
    rows = np.fromiter((row_of_name.get(name, -1) for name in names), np.int64, size)
    if (rows < 0).any():
        first = int(np.argmax(rows < 0))
        got = f"none for {shown(names[first])} ({int((rows < 0).sum())} such names)"
        raise_invalid(parameter, "names of all rows of the set", got)
    return rows


def in_order(vectors: Vectors, rows: Ids) -> Vectors:
    """Return the vectors with row i being rows[i], and rows that are not in `rows` last."""
    if len(rows) == vectors.n and (rows == np.arange(len(rows))).all():
        return vectors
    order = np.concatenate([rows, np.setdiff1d(np.arange(vectors.n), rows)])

    def take(ids: Ids) -> Any:
        wanted, places = np.unique(order[ids], return_inverse=True)
        return np.asarray(vectors.take(wanted))[places.reshape(-1)]

    def read(start: int, stop: int) -> Any:
        return take(np.arange(start, min(stop, len(order))))

    return Vectors(len(order), vectors.width, vectors.dtype, read, take)
