"""Label a random sample of the negatives: to estimate how many are false, or to learn from the labels."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_whole, public, raise_invalid
from naysay.detectors._pairs import OfPairs, slot_pairs
from naysay.detectors._slots import check_query_and_negatives, like, query_rows
from naysay.detectors.rate import CONFIDENCE, RateEstimate, check_confidence, exact_interval
from naysay.rng import key_from, rng_for
from naysay.types import Negatives, Query

Judge = OfPairs  # judge(anchors (m,), ids (m,)) -> (m,) bool: whether the pair is a false negative


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class PairLabels:
    """Labelled negatives, in the form that `Labelled.fit` and `evaluate` take. `judge_some` makes it.

    It can be unpacked: `detector.fit(*labels)`, `evaluate(detector, *labels)`.

    Args:
        query: The rows with a labelled slot.
        negatives: (B, K) their slots; slots without a label are empty.
        truth: (B, K) bool: whether a slot holds a false negative.
        n: The number of labels.
    """

    query: Query
    negatives: Negatives
    truth: NDArray[np.bool_]
    n: int

    def __iter__(self) -> Iterator[Any]:
        """The query, the negatives and the truth."""
        return iter((self.query, self.negatives, self.truth))


@public
def judge_some(
    query: Query, negatives: Negatives, judge: Judge, m: int = 100, *, rng: np.random.Generator
) -> PairLabels:
    """Label m random negatives, without replacement; all of them if there are fewer.

    Fit a detector to the labels with `Labelled().fit(*labels)`, and evaluate it on labels of other anchors. The slots
    of an anchor stay in one row, because they tend to be right or wrong together.

    Args:
        query: The query of the negatives.
        negatives: What a sampler or a policy returned. Slots of `mask` count.
        judge: judge(anchors (m,), ids (m,)) -> (m,) bool, True for a false negative: a person, a cross-encoder, a
            language model. It is called once, in NumPy. For triples it gets (m, 3) and (m, 3): the triples and the
            corrupted triples.
        m: The number of negatives to label.
        rng: The generator of the draw. After an error it has not moved, so the next call draws the same.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=200, n_items=100)
        >>> query = ns.Query(np.arange(200))
        >>> drawn = ns.pools.Everything(world.known).draw(query, 10, rng=ns.rng_for(0))
        >>> labels = judge_some(query, drawn, world.is_false_negative, 50, rng=ns.rng_for(1))
        >>> labels.n, int(labels.truth.sum()), labels.negatives.shape == (len(labels.query), 10)
        (50, 5, True)
    """
    return _label(query, negatives, judge, m, rng)


@public
def spot_check(
    query: Query,
    negatives: Negatives,
    judge: Judge,
    m: int = 100,
    *,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> RateEstimate:
    """Estimate the share of false negatives from m random negatives that a judge labels.

    The interval is Clopper and Pearson's: exact for independent draws, slightly too wide for draws without replacement.
    It is about these negatives, however similar those of one anchor are, and needs none of the assumptions of
    `false_negative_rate`. To show a rate below 1 % takes about 300 labels without a false negative:
    (1 - 0.01)^300 < 0.05. `judge_some` returns the labels themselves.

    Args:
        query: As for `judge_some`, like `negatives`, `judge`, `m` and `rng`.
        negatives: What a sampler or a policy returned.
        judge: judge(anchors (m,), ids (m,)) -> (m,) bool, True for a false negative.
        m: The number of negatives to label, all slots equally likely.
        rng: The generator of the draw.
        confidence: The confidence of the interval.

    Examples:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=200, n_items=100)
        >>> query = ns.Query(np.arange(200))
        >>> drawn = ns.pools.Everything(world.known).draw(query, 10, rng=ns.rng_for(0))
        >>> share = spot_check(query, drawn, world.is_false_negative, rng=ns.rng_for(1))
        >>> share.n, share.low < world.false_negative_rate(query.anchors, drawn.ids) < share.high
        (100, True)
    """
    level = check_confidence(confidence)
    labels = _label(query, negatives, judge, m, rng)
    n, hits = labels.n, int(labels.truth.sum())
    everything = n == np.count_nonzero(to_numpy(negatives.mask))
    low, high = (hits / n, hits / n) if everything else exact_interval(hits, n, level)
    notes = ("all negatives were labelled, so the share is exact",) if everything else ()
    return RateEstimate("false negatives", hits / n, low, high, level, n, ("the judge is right",), notes)


def _label(query: Query, negatives: Negatives, judge: Judge, m: Any, rng: np.random.Generator) -> PairLabels:
    """Draw and label m slots."""
    check_query_and_negatives(query, negatives)
    if not callable(judge):
        raise_invalid("judge", "a function judge(anchors, ids)", type(judge).__name__)
    wanted = check_whole("m", m, 1)
    filled = np.flatnonzero(np.asarray(to_numpy(negatives.mask)).ravel())
    if len(filled) == 0:
        raise_invalid("negatives", "at least one negative", "none")
    n, moved = min(wanted, len(filled)), deepcopy(rng)
    drawn = rng_for(int(key_from(moved))).choice(filled, n, replace=False)
    rows, slots = np.divmod(drawn, negatives.shape[1])
    labels = as_array("judge", to_numpy(judge(*slot_pairs(query, negatives, rows, slots))))
    if labels.shape != (n,) or labels.dtype != bool:
        rule = f"a function that returns True or False for each of {n} pairs"
        raise_invalid("judge", rule, f"{labels.dtype} of shape {labels.shape}")
    rng.bit_generator.state = moved.bit_generator.state
    kept, place = np.unique(rows, return_inverse=True)
    truth, labelled = (np.zeros((len(kept), negatives.shape[1]), bool) for _ in range(2))
    truth[place, slots], labelled[place, slots] = labels, True
    values = {part.name: getattr(negatives, part.name) for part in fields(negatives)}
    taken = {name: value[kept] for name, value in values.items() if hasattr(value, "dtype")}
    ids = like(np.where(labelled, to_numpy(taken.pop("ids")), -1), negatives.ids)
    return PairLabels(query_rows(query, kept), replace(negatives, ids=ids, **taken, dropped={}), truth, n)
