"""Backfill: what to do about anchors with fewer than k negatives, and what users are told about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_generator, check_one_of, check_whole, public, raise_invalid
from naysay.errors import NaysayError
from naysay.mining.candidates import Candidates, Mask, check_candidates, read_counts
from naysay.mining.judge import SUSPICIOUS, was_suspicious
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


def rows_of(known: Positives, rows: NDArray[np.int64]) -> Positives:
    """All that is known of some anchors, which are numbered from 0, as plain pairs."""
    starts, counts = known.indptr[rows], np.diff(known.indptr)[rows]
    anchors = np.repeat(np.arange(len(rows)), counts)
    places = np.arange(len(anchors)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
    return Positives.from_pairs(anchors, known.indices[places], len(rows), known.n_items)


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
    a repeat, s - c + j is taken. No draw is tried twice. A row with a smaller size than count gets all. O(m^2) per row.
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


def tally_of(candidates: Candidates, counts: NDArray[np.int64], depth: int) -> dict[str, int]:
    """Numbers of some anchors, which add up over parts.

    anchors, negatives   how many there are
    relaxed, random      negatives that fill rows up; random ones have no rank
    short, missing       anchors with fewer than k, and how many negatives they lack in all
    none                 anchors whose k is 0
    searched             how deep those that are short were searched, 0 if nothing deeper is left
    skipped              anchors whose search skipped suspected candidates

    `counts` is (n,) k of each anchor, `depth` that of the first search.
    """
    taken, rank = candidates.kept_by[candidates.kept], candidates.rank[candidates.kept]
    marks = {name: taken == place for place, name in enumerate(candidates.kept_names)}
    fills = {"relaxed": marks.get("relaxed", False), "random": marks.get("random", False) & (rank == 0)}
    negatives = np.count_nonzero(candidates.kept, axis=1)
    missing = counts - negatives
    skipped = candidates.outside.get(SUSPICIOUS, np.zeros(len(counts), np.int64))
    searched = 0
    if (missing > 0).any():
        full = (
            candidates.ids[:, depth - 1] >= 0 if candidates.ids.shape[1] >= depth else np.zeros(len(counts), np.bool_)
        )
        searched = (depth + skipped)[(missing > 0) & full].max(initial=0)
    return {
        "anchors": len(counts),
        "negatives": int(negatives.sum()),
        **{name: int(np.count_nonzero(chosen)) for name, chosen in fills.items()},
        "short": int((missing > 0).sum()),
        "missing": int(missing[missing > 0].sum()),
        "none": int((counts == 0).sum()),
        "searched": int(searched),
        "skipped": int((skipped > 0).sum()),
    }


def added(tallies: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The tally of all parts."""
    whole: dict[str, int] = {}
    for tally in tallies:
        for name, number in tally.items():
            before = whole.get(name, 0)
            whole[name] = max(before, number) if name == "searched" else before + number
    return whole


def deeper(tally: Mapping[str, int], n_items: int) -> int:
    """The depth that anchors which are short should be searched next, 0 if that cannot help."""
    return min(n_items, 4 * tally["searched"]) if 0 < tally["searched"] < n_items and tally["short"] else 0


def notes_of(tally: Mapping[str, int], n_items: int, *, again: bool = False, option: str = "depth=") -> tuple[str, ...]:
    """A sentence for each thing that users should know.

    `again`: whether an earlier result was judged again. `option`: how a user writes the depth of a search.
    """
    notes = [f"{tally[name]:,} negatives are {name}." for name in ("relaxed", "random") if tally[name]]
    if tally["short"]:
        depth = deeper(tally, n_items)
        advice = f" Search deeper: {option}{depth}." if depth else ""
        notes.append(f"{tally['short']:,} anchors are short, by {tally['missing']:,} negatives.{advice}")
    if tally["none"]:
        notes.append(f"k is 0 for {tally['none']:,} anchors.")
    if again and tally["skipped"]:
        notes.append(
            f"The search skipped suspected candidates of {tally['skipped']:,} anchors: these cannot come back."
        )
    return tuple(notes)
