"""What detectors share: checked slots, scores and pairs, suspicion by a threshold, and the truth about slots.

A detector checks what it gets in `suspicion`. Those that mining makes also have `unchecked_suspicion`, and
`suspicion_of_made` asks for that: a query and negatives that naysay made are not checked again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import Floats, is_torch, to_numpy, to_torch, without_gradients
from naysay.checks import (
    as_array,
    check_all,
    check_exact,
    check_kind,
    check_number,
    check_range,
    is_number,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.errors import NaysayError
from naysay.types import Array, Detector, Negatives, Query, anchor_ids, check_query

# (B, K) bool; or truth(anchors (B,), ids (B, K)) -> (B, K) bool; or the class of each sample (n_samples,)
Truth = NDArray[Any] | Callable[[NDArray[np.int64], NDArray[np.int64]], Any] | Any
# of_pairs(anchors (n,), ids (n,)) -> (n,) or (n, f);  for triples of_pairs(triples (n, 3), corrupted (n, 3))
OfPairs = Callable[[Array, Array], Any]
Sides = tuple[NDArray[np.int64], NDArray[np.int64]]

# Every detector maps its own threshold to this suspicion. Policies act on slots at or above it by default.
SUSPICION_THRESHOLD = 0.5
UNDER = float(np.nextafter(np.float32(SUSPICION_THRESHOLD), np.float32(0)))  # below it, also if read in 32 bits
_MAX_DISTANCE = 1e300  # the difference of two finite scores may be infinite, and infinity has no ratio


def check_query_and_negatives(query: Any, negatives: Any) -> None:
    """Raise unless these are a query, and negatives with as many rows."""
    check_query(query)
    check_kind("negatives", negatives, Negatives, "Negatives", "Pass what a sampler returned.")
    if isinstance(query, Query) and len(query) != negatives.shape[0]:
        raise_invalid("negatives", f"of {len(query)} rows, like the query", f"{negatives.shape[0]} rows")


def check_scored(query: Any, negatives: Any) -> None:
    """The same, and that all filled slots have a finite score."""
    check_query_and_negatives(query, negatives)
    if negatives.scores is None:
        advice = "Use a sampler that scores, or pass dataclasses.replace(negatives, scores=...)."
        raise_invalid("negatives.scores", "given", None, advice)
    scores = np.asarray(to_numpy(negatives.scores))
    check_exact("negatives.scores", scores)
    check_all("negatives.scores", scores, np.isfinite(scores) | ~filled_slots(negatives), "finite")


def query_anchors(query: Query, size: int | None = None, what: str = "anchors", advice: str = "") -> NDArray[np.int64]:
    """(B,) the anchors, checked to be below `size`. Triples raise an error."""
    anchors = anchor_ids(query)
    if anchors.ndim != 1:
        raise_invalid("query.anchors", "of shape (B,)", f"shape {anchors.shape}", advice)
    if size is not None:
        check_range("query.anchors", anchors, size, what)
    return anchors


def one_of_each(anchors: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """(m,) the position of one random pair of each anchor, by anchor; of pairs with these anchors (n,), unchecked."""
    order = rng.permutation(len(anchors))
    _, first = np.unique(anchors[order], return_index=True)
    return order[first]


def filled_slots(negatives: Negatives) -> NDArray[np.bool_]:
    """(B, K): slots that hold an id, whatever their relation."""
    return np.asarray(to_numpy(negatives.ids)) >= 0


def slot_scores(negatives: Negatives) -> Floats:
    """(B, K) the scores of the slots as float64, 0 where a slot is empty."""
    return np.where(filled_slots(negatives), np.asarray(to_numpy(negatives.scores), np.float64), 0.0)


def as_scores(parameter: str, values: Any, *dimensions: int) -> Floats:
    """`values` as finite float64 with one of these numbers of dimensions, or with any if none is given."""
    return masked_scores(parameter, values, None, *dimensions)[0]


def masked_scores(parameter: str, values: Any, mask: Any, *dimensions: int) -> tuple[Floats, NDArray[np.bool_]]:
    """The same, and which of them count, by a mask or all; those must be finite."""
    array = as_array(parameter, to_numpy(values))
    if dimensions and array.ndim not in dimensions:
        shapes = " or ".join(("()", "(n,)", "(B, n)")[size] for size in dimensions)
        raise_invalid(parameter, f"of shape {shapes}", f"shape {array.shape}")
    if array.size and array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    check_exact(parameter, array)
    scores = array.astype(np.float64)
    counted = np.ones(scores.shape, bool) if mask is None else as_flags("mask", mask, scores.shape)
    check_all(parameter, scores, np.isfinite(scores) | ~counted, "finite")
    return scores, counted


def finite_scores(parameter: str, values: Any, *dimensions: int) -> Floats:
    """The same, at least one; (n,) if no dimensions are given."""
    scores = as_scores(parameter, values, *dimensions or (1,))
    if len(scores) == 0:
        raise_invalid(parameter, "at least one score", "none")
    return scores


def rounded(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Thresholds in the precision of the scores, to the nearest: as NumPy and torch compare an array with a number."""
    with np.errstate(over="ignore"):  # beyond the largest float16 comes infinity, which no score reaches
        return np.asarray(values, np.float64).astype(dtype)


def in_precision_of(scores: Any, thresholds: Any) -> Floats:
    """The same as float64, for scores that were converted to it. Whole numbers are exact, and nothing is rounded."""
    precision = np.asarray(to_numpy(scores)).dtype
    return rounded(thresholds, precision if precision.kind == "f" else np.dtype(np.float64)).astype(np.float64)


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Two finite numbers, the lower first."""
    pair = isinstance(bounds, tuple | list) and len(bounds) == 2 and all(map(is_number, bounds))
    if not pair or not -np.inf < bounds[0] < bounds[1] < np.inf:
        raise_invalid("bounds", "two finite numbers, the lower first", shown(bounds))
    return float(bounds[0]), float(bounds[1])


def as_flags(parameter: str, values: Any, shape: tuple[int, ...], advice: str = "") -> NDArray[np.bool_]:
    """True or False for each of the slots or scores, in this shape."""
    flags = as_array(parameter, to_numpy(values))
    if flags.shape != shape or flags.dtype != bool:
        raise_invalid(parameter, f"True or False of shape {shape}", f"{flags.dtype} of shape {flags.shape}", advice)
    return flags


def as_suspicion(values: NDArray[Any], negatives: Negatives) -> Array:
    """(B, K) values as suspicion: 0 where a slot is empty, in the array type and on the device of the negatives."""
    return like(np.where(filled_slots(negatives), values, 0.0), negatives.ids)


def like(values: NDArray[Any], given: Array) -> Array:
    """`values` in the array type and on the device of `given`."""
    return to_torch(values, given.device) if is_torch(given) else values


def by_distance(scores: Floats, threshold: Floats) -> Floats:
    """Suspicion by the distance of a score from its threshold: 0.5 + 0.5 d / (1 + |d|), d = score - threshold.

    A score above the threshold gets at least 0.5. One equal to it gets the largest number below 0.5. To move the
    threshold by d later, use 0.5 + 0.5 d / (1 + |d|) in place of 0.5. Shapes broadcast.
    """
    with np.errstate(over="ignore"):
        distance = np.clip(scores - threshold, -_MAX_DISTANCE, _MAX_DISTANCE)
    return on_its_side(0.5 + 0.5 * distance / (1 + np.abs(distance)), scores > threshold)


def by_log_odds(log_odds: Floats, flagged: NDArray[np.bool_]) -> Floats:
    """Suspicion 1 / (1 + exp(-log_odds)), on the side of 0.5 that `flagged` says."""
    return on_its_side(0.5 + 0.5 * np.tanh(0.5 * log_odds), flagged)


def by_probability(values: Floats, threshold: float, power: int = 1) -> Floats:
    """Suspicion s with logit s = power (logit v - logit threshold), for v in [0, 1]: 0.5 at the threshold."""
    above, below = (values * (1 - threshold)) ** power, ((1 - values) * threshold) ** power
    return on_its_side(above / (above + below), values >= threshold)


def on_its_side(suspicion: Floats, flagged: NDArray[np.bool_]) -> Floats:
    """Suspicion clipped to at least 0.5 where `flagged` and below 0.5 elsewhere, whatever rounding does."""
    return np.where(flagged, np.clip(suspicion, SUSPICION_THRESHOLD, 1.0), np.clip(suspicion, 0.0, UNDER))


def is_detector(part: object) -> TypeGuard[Detector]:
    """Whether an object has the method suspicion(query, negatives). `Negatives` have an array of that name."""
    return isinstance(part, Detector) and not isinstance(part, type) and callable(part.suspicion)


def threshold_of(detector: object) -> float:
    """The suspicion from which a detector flags a slot: its own `suspicion_threshold`, else 0.5."""
    own = getattr(detector, "suspicion_threshold", SUSPICION_THRESHOLD)
    return check_number("suspicion_threshold", own, at_least=0, at_most=1)


def check_threshold(threshold: Any) -> float:
    """A suspicion above 0: at 0 everything would be flagged, empty slots too."""
    return check_number("threshold", threshold, above=0, at_most=1)


def check_confidence(confidence: Any) -> float:
    """The confidence of an interval, between 0 and 1."""
    return check_number("confidence", confidence, above=0, below=1)


def suspicion_of(parameter: str, detector: object, query: Query, negatives: Negatives) -> Floats:
    """Return the suspicion of a detector as (B, K) float64. Errors name `parameter`."""
    if not is_detector(detector):
        raise_invalid(parameter, "an object with suspicion(query, negatives)", shown(detector))
    suspicion = np.asarray(to_numpy(detector.suspicion(query, negatives)))
    rule = f"a detector that returns numbers from 0 to 1 of shape {negatives.shape}"
    if suspicion.shape != negatives.shape or suspicion.dtype.kind not in "iuf":
        raise_invalid(parameter, rule, f"shape {suspicion.shape} {suspicion.dtype}")
    check_all(parameter, suspicion, (suspicion >= 0) & (suspicion <= 1), rule)
    return suspicion.astype(np.float64)


def suspicion_of_made(parameter: str, detector: object, query: Query, negatives: Negatives) -> Floats:
    """The same for a query and negatives that naysay made: its own detectors do not check them."""
    unchecked = getattr(detector, "unchecked_suspicion", None)
    return suspicion_of(parameter, detector, query, negatives) if unchecked is None else unchecked(query, negatives)


class SlotTruth(NamedTuple):
    """(B, K) whether a slot holds a false negative, and whether that is known: it is filled, with known classes."""

    false: NDArray[np.bool_]
    known: NDArray[np.bool_]


def slot_truth(query: Query, negatives: Negatives, truth: Truth) -> SlotTruth:
    """Return the truth about each slot, in whichever of the three forms it was given."""
    filled, ids = filled_slots(negatives), np.asarray(to_numpy(negatives.ids))
    if callable(truth) and not filled.any():
        return SlotTruth(filled, filled)
    given = truth(anchor_ids(query), np.maximum(ids, 0)) if callable(truth) else truth
    table = as_array("truth", to_numpy(given))
    if table.ndim != 1 or callable(truth):
        advice = "Or pass the class of each sample, (n_samples,) whole numbers."
        return SlotTruth(as_flags("truth", table, filled.shape, advice) & filled, filled)
    classes = whole_numbers("truth", table, "(n_samples,)")
    anchors = query_anchors(query, len(classes), "labels", "For triples, pass a table or a function as `truth`.")
    check_range("negatives.ids", ids, len(classes), "labels", least=-1)
    own = classes[anchors][:, None]
    theirs = classes[np.maximum(ids, 0)] if len(classes) else np.full(ids.shape, -1)
    known = filled & (own >= 0) & (theirs >= 0)
    return SlotTruth((own == theirs) & known, known)


# ---- pairs for users' functions -------------------------------------------------------------------------


def slot_pairs(query: Query, negatives: Negatives, rows: NDArray[np.intp], slots: NDArray[np.intp]) -> Sides:
    """The anchors and ids of some slots, (S,) each; for triples the triples and corrupted triples, (S, 3) each."""
    anchors, ids = anchor_ids(query)[rows], np.asarray(to_numpy(negatives.ids))[rows, slots].astype(np.int64)
    if anchors.ndim == 1:
        return anchors, ids
    if negatives.side is None:
        raise_invalid("negatives.side", "given with triples", None)
    corrupted = anchors.copy()
    corrupted[np.arange(len(ids)), np.asarray(to_numpy(negatives.side))[rows, slots]] = ids
    return anchors, corrupted


def numbers_of(parameter: str, function: OfPairs, query: Query, sides: Sides, rule: str) -> Floats:
    """Call a user's function with pairs in the array type of the query, without gradients; return float64."""
    arguments = [like(np.ascontiguousarray(side), query.anchors) for side in sides]
    try:
        with without_gradients(query.anchors):
            output = function(*arguments)
    except Exception as error:
        ends = f"from {pair_name(sides, 0)} to {pair_name(sides, -1)}"
        message = f"`{parameter}` must be {rule}, got {type(error).__name__}: {error}, {ends}."
        raise NaysayError(message) from error
    if isinstance(output, np.ndarray) and output.dtype == np.float64:
        return output
    numbers = as_array(parameter, to_numpy(output))
    if numbers.dtype.kind not in "biuf":
        raise_invalid(parameter, rule, f"{shown(output)}, from {pair_name(sides, 0)} on")
    check_exact(parameter, numbers)
    return numbers.astype(np.float64)


def check_each(parameter: str, sides: Sides, values: Floats, good: NDArray[np.bool_], rule: str) -> None:
    """Raise unless all rows of values (n,) or (n, f) are good: with the first bad value, its pair, and the count."""
    bad = ~good.reshape(len(good), -1)
    if bad.any():
        rows = bad.any(axis=1)
        first = int(rows.argmax())
        value = values.reshape(bad.shape)[first][bad[first]][0]
        raise_invalid(parameter, rule, f"{value} for {pair_name(sides, first)} ({rows.sum()} such)")


def pair_name(sides: Sides, place: int) -> str:
    """One pair, for a message."""
    anchor, item = (side[place].tolist() for side in sides)
    return f"triple {anchor} corrupted to {item}" if sides[0].ndim == 2 else f"anchor {anchor}, id {item}"


def check_function(parameter: str, function: object, rule: str = "a function from ids to vectors") -> None:
    """Raise unless `function` is None or callable."""
    if function is not None and not callable(function):
        raise_invalid(parameter, rule, type(function).__name__)
