"""Backfill: what to do about anchors with fewer than k negatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_generator, check_one_of, check_whole, public, raise_invalid
from naysay.errors import NaysayError
from naysay.mining._known import read_counts, rows_of
from naysay.mining.candidates import Candidates, Mask, check_candidates
from naysay.mining.judge import was_suspicious
from naysay.mining.rescore import ScorePairs
from naysay.mining.select import uniform
from naysay.positives import Positives
from naysay.rng import key_from

ON_SHORT = ("pad", "drop", "relax", "random", "raise")


@public
def backfill(
    candidates: Candidates,
    k: Any,
    on_short: str = "pad",
    *,
    known: Positives | None = None,
    score: ScorePairs | None = None,
    rng: np.random.Generator | None = None,
    first: int = 0,
) -> Candidates:
    """Fill rows that have fewer than k candidates left, by a named policy.

    A row that is still short then has nothing left: its corpus, or what a judge dropped, is used up. No id comes twice,
    and `shortfall` counts what is missing. Cost: a sort of the rows that are short.

    Args:
        candidates: What `select` returned.
        k: A number, or (n,) of them, as for `select`.
        on_short: The policy:
            "pad": leave slots empty;
            "drop": drop such anchors: their candidates go as "short anchor";
            "relax": take back what the judge dropped, the least suspicious first, then the lower score, then the
            lower id; marked "relaxed". Excluded candidates never come back;
            "random": add items of the whole corpus, uniformly, that are neither known nor candidates of the
            anchor; they fill new slots of the source "random", marked "random", with rank 0;
            "raise": raise an error.
        known: For "random": Positives of n anchors and all items.
        score: For "random": score(anchors (p,), ids (p,)) -> (p,), so that random items have scores like the others.
        rng: For "random".
        first: The number of the first row, if these are a part of more rows. Random items depend on it.

    Returns:
        The candidates; with "random", in more slots.

    Raises:
        NaysayError: If an argument of "random" is missing, or, with "raise", an anchor is short.

    Examples:
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[4, 2]]), scores=np.array([[0.9, 0.5]]))
        >>> dropped = Candidates.of(found).drop(np.array([[True, False]]), "suspicious")
        >>> left = backfill(dropped, 2, "relax")
        >>> left.ids[left.kept].tolist(), left.kept_names
        ([4, 2], ('relaxed',))
    """
    check_candidates(candidates)
    check_one_of("on_short", on_short, ON_SHORT)
    needed = {"known": known, "score": score, "rng": rng}
    for name, value in needed.items():
        if (value is None) == (on_short == "random"):
            rule = "given for 'random'" if value is None else f"left out for {on_short!r}"
            raise_invalid(name, rule, None if value is None else type(value).__name__)
    counts = read_counts(k, len(candidates))
    missing = shortfall(candidates, counts)
    short = missing > 0
    if not short.any() or on_short == "pad":
        return candidates
    if on_short == "raise":
        row = int(np.flatnonzero(short)[0])
        left = counts[row] - missing[row]
        message = (
            f"anchor {first + row} has {left} of {counts[row]} negatives ({short.sum()} such "
            f"anchor{'s' if short.sum() > 1 else ''}). Pass a smaller `k`, a larger `depth`, or another `on_short`."
        )
        raise NaysayError(message)
    if on_short == "drop":
        return candidates.drop(np.broadcast_to(short[:, None], candidates.ids.shape).copy(), "short anchor")
    if on_short == "relax":
        back = _least_suspicious(candidates, missing)
        return candidates.restored(back).marked(back, "relaxed")
    check_generator(rng)
    return _with_random(candidates, missing, needed, check_whole("first", first, 0))


def shortfall(candidates: Candidates, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) how many negatives are missing to k."""
    return np.asarray(np.maximum(counts - np.count_nonzero(candidates.kept, axis=1), 0))


def _least_suspicious(candidates: Candidates, missing: NDArray[np.int64]) -> Mask:
    """(n, m): the `missing` candidates of each row that a judge dropped with the least suspicion."""
    rows = np.flatnonzero(missing)
    mask = was_suspicious(candidates)[rows]
    order = np.argsort(candidates.ids[rows], axis=1, kind="stable")
    for values in (candidates.scores[rows], candidates.suspicion[rows]):  # the last key sorts first
        key = np.take_along_axis(np.where(mask, values, np.float32(np.inf)), order, axis=1)
        order = np.take_along_axis(order, np.argsort(key, axis=1, kind="stable"), axis=1)
    first = np.zeros(mask.shape, np.bool_)
    places = np.broadcast_to(np.arange(mask.shape[1]), mask.shape)
    np.put_along_axis(first, order, places < missing[rows, None], axis=1)
    chosen = np.zeros(candidates.ids.shape, np.bool_)
    chosen[rows] = first & mask
    return chosen


def _with_random(candidates: Candidates, missing: NDArray[np.int64], needed: dict[str, Any], first: int) -> Candidates:
    """Add slots with items that are neither candidates nor known pairs of the anchor."""
    known: Positives = needed["known"]
    if not isinstance(known, Positives) or known.n_anchors != len(candidates):
        got = known.n_anchors if isinstance(known, Positives) else type(known).__name__
        raise_invalid("known", f"Positives of {len(candidates)} anchors, like the candidates", got)
    rows = np.flatnonzero(missing)
    places, slots = np.nonzero(candidates.filled[rows])
    listed = Positives.from_pairs(places, candidates.ids[rows][places, slots], len(rows), known.n_items)
    barred = rows_of(known, rows).union(listed)
    free = known.n_items - barred.count(relation="any")
    ranks = distinct(key_from(needed["rng"]), rows + first, missing[rows], free)
    drawn, taken = np.nonzero(ranks >= 0)
    new = np.full((len(candidates), ranks.shape[1]), -1, np.int64)
    new[rows[drawn], taken] = barred.nth_negative(drawn, ranks[drawn, taken])
    scores = np.full(new.shape, -np.inf, np.float32)
    filled = new >= 0
    anchors = np.nonzero(filled)[0]
    if len(anchors):
        scores[filled] = np.asarray(needed["score"](anchors, new[filled]), np.float32)
    names = (*candidates.source_names, "random")
    empty = np.zeros(new.shape, np.int8)
    wider: dict[str, NDArray[Any]] = {
        "ids": new,
        "scores": scores,
        "rank": empty,
        "source": np.where(filled, np.int8(len(names) - 1), np.int8(-1)),
        "suspicion": empty,
        "why": empty,
        "kept_by": empty - np.int8(1),
    }
    added: dict[str, Any] = {
        name: np.concatenate([getattr(candidates, name), part.astype(getattr(candidates, name).dtype)], axis=1)
        for name, part in wider.items()
    }
    mark = np.concatenate([np.zeros(candidates.ids.shape, np.bool_), filled], axis=1)
    return replace(candidates, **added, source_names=names).marked(mark, "random")


def distinct(
    key: np.uint64, rows: NDArray[np.int64], counts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(r, m) for each row `counts` different whole numbers from 0 to its size - 1, uniformly; -1 beyond.

    Floyd's algorithm (Bentley and Floyd 1987): the j-th of c numbers below s is drawn below s - c + j + 1, and if it is
    a repeat, s - c + j is taken. No draw is tried twice. O(m^2) per row.

    Args:
        key: The random key.
        rows: (r,) the number of each row.
        counts: (r,) how many it needs; all there are, if there are fewer.
        sizes: (r,) what its numbers are below.
    """
    wanted = np.minimum(counts, sizes)
    found = np.full((len(rows), int(wanted.max(initial=0))), -1, np.int64)
    steps = np.broadcast_to(np.arange(found.shape[1]), found.shape)
    chances = uniform(key, steps, rows)
    for step in range(found.shape[1]):
        last = sizes - wanted + step
        drawn = np.minimum((chances[:, step] * (last + 1)).astype(np.int64), last)
        again = (found[:, :step] == drawn[:, None]).any(axis=1)
        found[:, step] = np.where(step < wanted, np.where(again, last, drawn), -1)
    return found
