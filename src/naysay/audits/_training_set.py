"""What is audited: the negatives of a training set, whatever its source, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, raise_invalid, shown, with_parameter
from naysay.detectors.calibrated import one_per_anchor
from naysay.files import check_file
from naysay.formats.read_negatives import TrainingFile, read_file
from naysay.mining.mine import Mined
from naysay.mining.options import MiningOptions
from naysay.mining.problem import Problem, checked_problem, read_known
from naysay.places import Place, Url, as_place, local
from naysay.positives import POSITIVE, Positives
from naysay.search.vectors import Vectors, as_vectors
from naysay.tables import batches, column_names

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Anchors, their positives and their negatives."""

    name: str  # the path, or "mined negatives"
    path: Place | None
    format: str | None
    ids: Ids  # (n, k) int64, -1 empty: the distinct negatives of each anchor
    scores: Scores | None  # (n, k) float32, NaN where there is none; or None
    positives: Positives
    positive_scores: Scores | None  # (pairs,) float32 beside positives.pairs(), NaN where there is none; or None
    query_names: list[str] | None = None  # the ids of the anchors, or else their texts
    corpus_names: list[str] | None = None
    query_texts: list[str] | None = None
    corpus_texts: list[str] | None = None
    duplicates: int = 0  # slots that repeat a negative of the same anchor and positive
    problem: Problem | None = None  # what was mined, if it is known

    @property
    def k(self) -> int:
        """Negatives per anchor: the median over anchors that have some."""
        counts = np.count_nonzero(self.ids >= 0, axis=1)
        return int(np.median(counts[counts > 0]))

    def query_label(self, row: int) -> str:
        """The text of an anchor, or else its name, or else its row number."""
        return _label(row, self.query_texts, self.query_names)

    def corpus_label(self, row: int) -> str:
        """The same of a document."""
        return _label(row, self.corpus_texts, self.corpus_names)


def _label(row: int, texts: list[str] | None, names: list[str] | None) -> str:
    labels = texts or names
    return f"row {row}" if labels is None else str(labels[row])


def training_set(given: Any, format: str | None) -> TrainingSet:
    """Return a file in any format of `read_negatives`, a `TrainingFile`, or `Mined` as a TrainingSet."""
    if isinstance(given, TrainingSet):
        return given
    if isinstance(given, str | Path | Url):
        place = as_place("negatives", given)
        with local("negatives", place) as path:
            result = replace(_of_file(read_file(path, format)), name=str(place), path=place)
    elif format is not None:
        raise_invalid("format", "left out where the negatives are not a file", repr(format))
    elif isinstance(given, TrainingFile):
        result = _of_file(given)
    elif isinstance(given, Mined):
        result = _of_mined(given)
    else:
        rule = "the path of a training file, a TrainingFile or Mined"
        raise_invalid("negatives", rule, f"a {type(given).__name__}")
    if not (result.ids >= 0).any():
        raise_invalid("negatives", "at least one negative", f"none in {result.name}")
    return result


def _of_file(read: TrainingFile) -> TrainingSet:
    return TrainingSet(
        name=str(read.path),
        path=read.path,
        format=read.format,
        ids=read.ids,
        scores=read.scores,
        positives=read.positives,
        positive_scores=read.positive_scores,
        query_names=read.query_ids or read.query_texts,
        corpus_names=read.corpus_ids or read.corpus_texts,
        query_texts=read.query_texts,
        corpus_texts=read.corpus_texts,
        duplicates=read.duplicates,
    )


def _of_mined(mined: Mined) -> TrainingSet:
    """Return mined negatives with their scores. Pairs to ignore are not positives."""
    known, scores = mined.known, mined.known_scores
    if known.relation is not None:
        anchors, items = known.pairs()
        kept = known.relation == POSITIVE
        known = Positives.from_pairs(anchors[kept], items[kept], known.n_anchors, known.n_items)
        scores = None if scores is None else scores[kept]
    return TrainingSet(
        name="mined negatives",
        path=None,
        format=None,
        ids=mined.ids,
        scores=np.where(mined.mask, mined.scores, np.float32(np.nan)),
        positives=known,
        positive_scores=scores,
        problem=mined.problem,
    )


# ---- Scores ----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class SetScores:
    """Scores beside the ids of a `TrainingSet`; NaN where there is none."""

    negatives: Scores  # (n, k)
    positives: Scores  # (pairs,) beside positives.pairs()
    anchors: Ids  # (pairs,) the anchor of each positive
    one_each: Ids  # places of one scored positive of each anchor that has some, drawn at random

    @staticmethod
    def of(negatives: Scores, positives: Scores, anchors: Ids, rng: np.random.Generator) -> SetScores:
        """The scores, and one positive of each anchor."""
        scored = np.flatnonzero(~np.isnan(positives))
        one_each = scored[one_per_anchor(anchors[scored], rng=rng)] if len(scored) else scored
        return SetScores(negatives, positives, anchors, one_each)

    @property
    def filled(self) -> NDArray[np.bool_]:
        """(n, k): slots with a score."""
        return ~np.isnan(self.negatives)

    @property
    def one_positive_each(self) -> Scores:
        """One score of a positive for each anchor that has some."""
        return self.positives[self.one_each]


def scores_by_problem(given: TrainingSet, problem: Problem, rng: np.random.Generator) -> SetScores:
    """Score all pairs of the set. O(d) per pair."""
    anchors, slots = np.nonzero(given.ids >= 0)
    negatives = np.full(given.ids.shape, np.nan, np.float32)
    negatives[anchors, slots] = problem.score(anchors, given.ids[anchors, slots])
    pair_anchors, pair_items = given.positives.pairs()
    return SetScores.of(negatives, problem.score(pair_anchors, pair_items), pair_anchors, rng)


def scores_as_given(
    given: TrainingSet, scores: Any, positive_scores: Any, rng: np.random.Generator
) -> SetScores | None:
    """Return the caller's scores, or else those of the set; None if the negatives have none."""
    anchors, _ = given.positives.pairs()
    if scores is None and positive_scores is not None:
        raise_invalid("positive_scores", "given along with `scores`", "no scores")
    negatives, positives = given.scores, given.positive_scores
    if scores is not None:
        negatives, positives = _as_scores("scores", scores, given.ids >= 0), None
    if positive_scores is not None:
        positives = _as_scores("positive_scores", positive_scores, np.ones(len(anchors), np.bool_))
    if negatives is None:
        return None
    negatives = np.where(given.ids >= 0, negatives, np.float32(np.nan))
    positives = np.full(len(anchors), np.nan, np.float32) if positives is None else positives
    for name, values in (("scores", negatives), ("positive_scores", positives)):
        check_all(name, values, ~np.isinf(values), "finite")
    return None if np.isnan(negatives).all() else SetScores.of(negatives, positives, anchors, rng)


def _as_scores(parameter: str, values: Any, filled: NDArray[np.bool_]) -> Scores:
    """Return a user's scores as float32; they must be finite where there is a pair."""
    array = as_array(parameter, to_numpy(values))
    if array.shape != filled.shape:
        raise_invalid(parameter, f"of shape {filled.shape}, like the set", f"shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    check_all(parameter, array, np.isfinite(array.astype(np.float64)) | ~filled, "finite")
    return array.astype(np.float32)


# ---- Vectors ---------------------------------------------------------------------------------------------------------


def problem_of(
    given: TrainingSet,
    query_vectors: Any,
    corpus_vectors: Any,
    query_ids: Any,
    corpus_ids: Any,
    *,
    metric: str,
    seed: int,
) -> Problem:
    """The set with vectors, in its order, as what `mine` is asked."""
    left, right = as_vectors("query_vectors", query_vectors), as_vectors("corpus_vectors", corpus_vectors)
    if left.width != right.width:
        raise_invalid("query_vectors", f"of width {right.width}, like `corpus_vectors`", left.width)
    left = in_order(left, rows_of("query", given.positives.n_anchors, given.query_names, query_ids, left))
    right = in_order(right, rows_of("corpus", given.positives.n_items, given.corpus_names, corpus_ids, right))
    known = read_known("negatives", given.positives, left.n, right.n)
    options = MiningOptions(metric=metric, judge=None, seed=seed)
    with with_parameter("query_vectors", "queries"), with_parameter("corpus_vectors", "corpus"):
        problem = checked_problem(left, right, known, None, min(given.k, right.n), {}, options)
        problem = problem.with_exact_search()
        return problem.with_known_scores(problem.score_known())


def rows_of(side: str, size: int, names: list[str] | None, given: Any, vectors: Vectors) -> Ids:
    """Return (size,) the row of the vectors that belongs to each query, or document, of the set.

    `names` are those of the set, None if it has row numbers; `given` are those of the vectors' rows, or a file of them
    (`read_names`), None if row i is number i of the set.
    """
    if given is None:
        named = names is not None
        if vectors.n < size or (named and vectors.n != size):
            rule = f"of {'' if named else 'at least '}{size} rows, like the set"
            advice = f"Pass `{side}_ids`, the name of each row." if named else ""
            raise_invalid(f"{side}_vectors", rule, vectors.n, advice)
        return np.arange(size)
    parameter = f"{side}_ids"
    if isinstance(given, str | Path | Url):
        with local(parameter, given) as path:
            given = read_names(parameter, path)
    if isinstance(given, bytes) or not isinstance(given, Sequence | np.ndarray) or getattr(given, "ndim", 1) != 1:
        raise_invalid(parameter, "a list of names, or a file of them", shown(given))
    if names is None:
        raise_invalid(parameter, "left out where the set has row numbers", f"{len(given)} names")
    if len(given) != vectors.n:
        raise_invalid(parameter, f"{vectors.n} names, one for each row of `{side}_vectors`", len(given))
    row_of_name = {name: row for row, name in enumerate(map(str, given))}
    rows = np.fromiter((row_of_name.get(name, -1) for name in names), np.int64, size)
    if (rows < 0).any():
        first = int(np.argmax(rows < 0))
        got = f"none for {shown(names[first])} ({int((rows < 0).sum())} such names)"
        raise_invalid(parameter, "names of all rows of the set", got)
    return rows


def read_names(parameter: str, path: Path) -> list[str]:
    """Return the lines of a .txt file, or the only column of a .parquet, .jsonl, .csv or .tsv file."""
    if path.suffix.lower() != ".txt":
        columns = column_names(parameter, path)
        if len(columns) != 1:
            raise_invalid(parameter, "a file with one column", f"{len(columns)} in {str(path)!r}")
        return [str(value) for (values,) in batches(parameter, path, columns) for value in values]
    check_file(parameter, path)
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


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
