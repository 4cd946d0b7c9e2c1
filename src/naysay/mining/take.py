"""Which candidates become negatives: `across_anchors` (sees all anchors), `select`, and `backfill` for short rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.checks import check_number, check_one_of, check_whole, raise_invalid, shown
from naysay.errors import NaysayError
from naysay.kernels.compile import in_python
from naysay.kernels.greedy import capped
from naysay.kernels.random import number, row_state
from naysay.kernels.relevance import marginal
from naysay.kernels.threads import in_rows
from naysay.mining.candidates import (
    RANDOM,
    RANDOM_SOURCE,
    RELAXED,
    SELECTED,
    SLOTS,
    Candidates,
    Ids,
    Mask,
    Reason,
    canonical_order,
)
from naysay.mining.rescore import ScorePairs
from naysay.positives import Positives

ON_SHORT = ("pad", "drop", "relax", "random", "raise")
_NUMBERS = 1 << 24  # of vectors in memory at a time
_UNUSED_BITS = np.uint64(11)  # of 64, in a float64 from 0 to 1


# ---- all anchors ----------------------------------------------------------------------------------------------------


def across_anchors(candidates: Candidates, counts: Ids, max_per_item: int | None) -> Candidates:
    """The stage that sees all anchors: no item becomes the negative of more than `max_per_item` of them."""
    if max_per_item is None:
        return candidates
    too_many = too_frequent(candidates.ids, candidates.scores, candidates.kept, counts, max_per_item)
    return candidates.drop(too_many, Reason.TOO_FREQUENT)


def too_frequent(ids: Ids, scores: NDArray[np.float32], kept: Mask, counts: Ids, max_per_item: int) -> Mask:
    """(n, m): the candidates that `across_anchors` drops, from the arrays of all anchors.

    Pairs are taken greedily, the highest scores first; of equal scores, the lower anchor, then the lower id. A pair is
    passed over if its anchor has k negatives, or its item has `max_per_item` anchors: only then it is dropped, and the
    anchor goes on to its next candidate. So `select` by "top" takes what was taken here.
    """
    rows, slots = np.nonzero(kept)
    items = ids[rows, slots]
    order = np.lexsort((items, rows, -scores[rows, slots]))
    passed_over = np.zeros(len(order), np.bool_)
    capped(
        frozen(rows[order]),
        frozen(items[order]),
        frozen(counts),
        max_per_item,
        np.zeros(len(ids), np.int64),
        np.zeros(int(items.max(initial=-1)) + 1, np.int64),
        passed_over,
    )
    dropped = np.zeros(ids.shape, np.bool_)
    dropped[rows[order[passed_over]], slots[order[passed_over]]] = True
    return dropped


# ---- select ---------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """How candidates are selected."""

    method: str  # of METHODS
    key: np.uint64  # of random choices
    temperature: float | None = None
    groups: Ids | None = None  # (n_items,) the group of each item
    vectors_of: Callable[[Ids], NDArray[Any]] | None = None  # vectors_of(ids (r, m)) -> (r, m, d), for "mmr"
    mmr_lambda: float | None = None
    quotas: Mapping[str, int] | None = None  # {source: number}


def select(candidates: Candidates, counts: Ids, how: Selection, rows: Ids) -> Candidates:
    """Take `counts` (n,) of the candidates that are left, and drop the others as "not selected".

    Of equal scores, the lower id comes first. A row with too few keeps them all. What is taken is marked with the
    method. `rows` are the numbers of the anchors: random choices depend on them, and not on how rows are split.
    """
    choose = METHODS[how.method].choose
    if how.quotas is None:
        chosen = choose(how, candidates, candidates.kept, counts, rows)
    else:
        chosen = np.zeros(candidates.ids.shape, np.bool_)
        for name, count in how.quotas.items():
            from_source = candidates.kept & (candidates.source == candidates.source_names.index(name))
            chosen |= choose(how, candidates, from_source, np.full(len(counts), count), rows)
    named = replace(candidates, kept_names=(how.method, *candidates.kept_names[1:]))
    return named.marked(chosen, SELECTED).drop(~chosen, Reason.NOT_SELECTED)


# A method chooses (n, m) candidates: choose(how, candidates, mask (n, m), counts (n,), rows (n,))
_Choose = Callable[[Selection, Candidates, Mask, Ids, Ids], Mask]


def _top(how: Selection, candidates: Candidates, mask: Mask, counts: Ids, rows: Ids) -> Mask:
    """The k highest scores."""
    return _first(canonical_order(candidates, mask), mask, counts)


def _random(how: Selection, candidates: Candidates, mask: Mask, counts: Ids, rows: Ids) -> Mask:
    """K of all, uniformly."""
    return _first(_falling(_uniform(how.key, rows, candidates.ids), mask), mask, counts)


def _softmax(how: Selection, candidates: Candidates, mask: Mask, counts: Ids, rows: Ids) -> Mask:
    """K without repeats, drawn one after another in proportion to exp(score / temperature): Gumbel's trick.

    Vieira. Gumbel-max trick and weighted reservoir sampling. 2014.
    """
    noise = -np.log(-np.log(_uniform(how.key, rows, candidates.ids)))
    scaled = candidates.scores / float(how.temperature or 1.0)
    return _first(_falling(np.where(mask, scaled, 0) + noise, mask), mask, counts)


def _spread(how: Selection, candidates: Candidates, mask: Mask, counts: Ids, rows: Ids) -> Mask:
    """Evenly over the ranks that are left: of M in order those at floor((2 j + 1) M / (2 k))."""
    order = canonical_order(candidates, mask)
    filled = np.count_nonzero(mask, axis=1)[:, None]
    wanted = np.minimum(counts[:, None], filled)
    steps = np.arange(int(wanted.max(initial=0)))
    places = (2 * steps + 1) * filled // np.maximum(2 * wanted, 1)
    row, step = np.nonzero(np.broadcast_to(steps, places.shape) < wanted)
    chosen = np.zeros(mask.shape, np.bool_)
    chosen[row, order[row, places[row, step]]] = True
    return chosen


def _groups(how: Selection, candidates: Candidates, mask: Mask, counts: Ids, rows: Ids) -> Mask:
    """The best of each group, then the second of each, and so on."""
    if how.groups is None or not len(how.groups):
        return np.zeros(mask.shape, np.bool_)
    order = canonical_order(candidates, mask)
    in_mask = np.take_along_axis(mask, order, axis=1)
    label = how.groups[np.take_along_axis(candidates.ids, order, axis=1)]
    by_label = np.argsort(label, axis=1, kind="stable")
    ordered, counted = (np.take_along_axis(values, by_label, axis=1) for values in (label, in_mask))
    starts = np.ones(label.shape, np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # How many of the group come before, in the mask: the running count less the count where the group starts.
    before: Ids = np.cumsum(counted, axis=1, dtype=np.int64) - counted.astype(np.int64)
    at_start = np.maximum.accumulate(np.where(starts, before, -1), axis=1)
    turn = np.empty(label.shape, np.int64)
    np.put_along_axis(turn, by_label, before - at_start, axis=1)
    turn = np.where(in_mask, turn, mask.shape[1])
    return _first(np.take_along_axis(order, np.argsort(turn, axis=1, kind="stable"), axis=1), mask, counts)


def _relevance(how: Selection, candidates: Candidates, mask: Mask, counts: Ids, rows: Ids) -> Mask:
    """Maximal marginal relevance: Carbonell and Goldstein. The Use of MMR. SIGIR 1998.

    One after another the highest of mmr_lambda * score - (1 - mmr_lambda) * cosine to the closest one taken.
    """
    chosen, filled = np.zeros(mask.shape, np.bool_), np.count_nonzero(mask, axis=1)
    width = int(filled.max(initial=0))
    if how.vectors_of is None or width == 0 or not counts.any():
        return chosen
    weight = 0.5 if how.mmr_lambda is None else float(how.mmr_lambda)
    slots = canonical_order(candidates, mask)[:, :width]
    ids = np.take_along_axis(np.where(mask, candidates.ids, 0), slots, axis=1)
    scores = np.take_along_axis(candidates.scores, slots, axis=1).astype(np.float64)
    wanted = np.minimum(counts, filled)
    start, step = 0, 1  # one row first, which shows how many numbers a vector has
    while start < len(ids):
        block = slice(start, start + step)
        vectors = _unit(how.vectors_of(ids[block]).astype(np.float64))
        taken = np.zeros(ids[block].shape, np.bool_)
        n_steps = int(wanted[block].sum()) * width * vectors.shape[2]
        parts = (vectors, scores[block], filled[block], wanted[block])
        in_rows(marginal, len(taken), n_steps, *map(frozen, parts), weight, taken)
        np.put_along_axis(chosen[block], slots[block], taken, axis=1)
        start, step = start + step, max(1, _NUMBERS // max(1, width * vectors.shape[2]))
    return chosen


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors of unit length; a zero vector stays, and is similar to nothing."""
    length = np.sqrt((vectors * vectors).sum(axis=2, keepdims=True))
    return np.ascontiguousarray(vectors / np.where(length > 0, length, 1.0))


def _uniform(key: np.uint64, rows: Ids, numbers: Ids) -> NDArray[np.float64]:
    """(n, m) random numbers in (0, 1), each by (key, row, number) alone, as in compiled loops.

    So a random choice does not depend on the number of candidates, on their order, or on how rows are split.
    """
    bits = in_python(number)(in_python(row_state)(key, rows[:, None]), numbers)
    uniform: NDArray[np.float64] = ((bits >> _UNUSED_BITS).astype(np.float64) + 0.5) * 2.0**-53
    return uniform


def _falling(priority: NDArray[np.float64], mask: Mask) -> Ids:
    """(n, m) slots by falling priority, those outside of the mask last."""
    return np.argsort(np.where(mask, -priority, np.inf), axis=1, kind="stable")


def _first(order: Ids, mask: Mask, counts: Ids) -> Mask:
    """(n, m): the first `counts` slots of each row's order that are in the mask, which come first."""
    chosen = np.zeros(mask.shape, np.bool_)
    np.put_along_axis(chosen, order, np.broadcast_to(np.arange(mask.shape[1]), mask.shape) < counts[:, None], axis=1)
    return chosen & mask


class _Method(NamedTuple):
    choose: _Choose
    needs: str = ""  # the option that must be given
    takes: str = ""  # the option that may be given


METHODS = {
    "top": _Method(_top),
    "random": _Method(_random),
    "softmax": _Method(_softmax, needs="temperature"),
    "spread": _Method(_spread),
    "groups": _Method(_groups, needs="groups"),
    "mmr": _Method(_relevance, takes="mmr_lambda"),
}


def check_method_options(method: str, options: Mapping[str, Any]) -> None:
    """Raise if an option of the method is missing or invalid, or if one is given that it does not have."""
    for name, value in options.items():
        if value is None and name == METHODS[method].needs:
            raise_invalid(name, f"given for {method!r}", None)
        if value is not None and name not in METHODS[method]:
            users = [repr(other) for other, each in METHODS.items() if name in each]
            raise_invalid(name, f"left out for {method!r}", shown(value), f"It is for {' and '.join(users)}.")
    if options.get("temperature") is not None:
        check_number("temperature", options["temperature"], above=0, finite=True)
    if options.get("mmr_lambda") is not None:
        check_number("mmr_lambda", options["mmr_lambda"], at_least=0, at_most=1)


def check_quotas(quotas: Any, names: tuple[str, ...], counts: Ids) -> None:
    """Raise unless quotas are {source: number} and add up to k."""
    if not isinstance(quotas, Mapping) or not quotas:
        raise_invalid("quotas", "a dictionary {source name: number}", shown(quotas))
    for name, count in quotas.items():
        check_one_of("quotas", name, names)
        check_whole("quotas", count, 0)
    total = sum(quotas.values())
    if (counts != total).any():
        raise_invalid("quotas", f"{int(counts[counts != total][0])} in all, like `k`", total)


# ---- rows that are short --------------------------------------------------------------------------------------------


def shortfall(candidates: Candidates, counts: Ids) -> Ids:
    """(n,) how many negatives are missing to k."""
    return np.asarray(np.maximum(counts - np.count_nonzero(candidates.kept, axis=1), 0))


def backfill(candidates: Candidates, counts: Ids, on_short: str, rows: Ids) -> Candidates:
    """What `on_short` says of rows with fewer than k negatives; "random" is `with_random`.

    "relax" takes back what the judge dropped, the least suspicious first, then the lower score, then the lower id.
    """
    missing = shortfall(candidates, counts)
    short = missing > 0
    if on_short == "pad" or not short.any():
        return candidates
    if on_short == "drop":
        return candidates.drop(np.broadcast_to(short[:, None], candidates.ids.shape), Reason.SHORT_ANCHOR)
    if on_short == "relax":
        back = _least_suspicious(candidates, missing)
        return candidates.restored(back).marked(back, RELAXED)
    row = int(np.flatnonzero(short)[0])
    message = (
        f"anchor {rows[row]} has {counts[row] - missing[row]} of {counts[row]} negatives ({short.sum()} such "
        f"anchor{'s' if short.sum() > 1 else ''}). Pass a smaller `k`, a larger `depth`, or another `on_short`."
    )
    raise NaysayError(message)


def _least_suspicious(candidates: Candidates, missing: Ids) -> Mask:
    """(n, m): the `missing` candidates of each row that a judge dropped with the least suspicion."""
    suspicious = candidates.dropped_for(Reason.SUSPICIOUS)
    order = np.argsort(candidates.ids, axis=1, kind="stable")
    for values in (candidates.scores, candidates.suspicion):  # the last key sorts first
        by_value = np.take_along_axis(np.where(suspicious, values, np.float32(np.inf)), order, axis=1)
        order = np.take_along_axis(order, np.argsort(by_value, axis=1, kind="stable"), axis=1)
    return _first(order, suspicious, missing)


def with_random(
    candidates: Candidates,
    counts: Ids,
    rows: Ids,
    known_of: Callable[[Ids], Positives],
    score: ScorePairs,
    key: np.uint64,
) -> Candidates:
    """Fill short rows with random items that are neither candidates nor known pairs of the anchor.

    They fill new slots of the source "random", marked "random", with rank 0. known_of(anchors) are the known pairs of
    some anchors, numbered from 0, and score(rows (p,), ids (p,)) gives the scores of items.
    """
    missing = shortfall(candidates, counts)
    short = np.flatnonzero(missing)
    drawn = np.full((len(candidates), int(missing.max(initial=0))), -1, np.int64)
    drawn[short] = _random_items(candidates.ids[short], known_of(rows[short]), missing[short], rows[short], key)
    filled = drawn >= 0
    scores = np.full(drawn.shape, -np.inf, np.float32)
    if filled.any():
        scores[filled] = np.asarray(score(np.nonzero(filled)[0], drawn[filled]), np.float32)
    names = (*candidates.source_names, RANDOM_SOURCE)
    added: dict[str, Any] = {name: np.full(drawn.shape, empty, kind) for name, (kind, empty) in SLOTS.items()}
    added |= {"ids": drawn, "scores": scores}
    added["source"] = np.where(filled, np.int8(len(names) - 1), np.int8(-1))
    added["kept_by"] = np.where(filled, np.int8(RANDOM), np.int8(-1))
    slots: dict[str, Any] = {
        name: np.concatenate([getattr(candidates, name), part], axis=1) for name, part in added.items()
    }
    return replace(candidates, **slots, source_names=names)


def _random_items(listed: Ids, known: Positives, missing: Ids, rows: Ids, key: np.uint64) -> Ids:
    """(s, m) `missing` (s,) different items of each row, uniformly of those that are neither listed nor known.

    Floyd's sampling of ranks without repeats, a slot of all rows at a time: slot j draws a rank up to free - wanted +
    j, and takes that last rank if the one drawn is taken. (Bentley and Floyd. A Sample of Brilliance. 1987.)
    """
    known_row, known_item = known.pairs()
    listed_row, slot = np.nonzero(listed >= 0)
    barred = Positives.from_pairs(
        np.concatenate([known_row, listed_row]),
        np.concatenate([known_item, listed[listed_row, slot]]),
        len(rows),
        known.n_items,
    )
    free = known.n_items - barred.count()
    wanted = np.minimum(missing, free)
    width = int(missing.max(initial=0))
    uniform = _uniform(key, rows, np.arange(width)[None])
    ranks = np.full((len(rows), width), -1, np.int64)
    for turn in range(width):
        last = free - wanted + turn
        rank = (uniform[:, turn] * (last + 1)).astype(np.int64)
        is_taken = (ranks == rank[:, None]).any(axis=1)
        ranks[:, turn] = np.where(turn < wanted, np.where(is_taken, last, rank), -1)
    items = np.full(ranks.shape, -1, np.int64)
    row, slot = np.nonzero(ranks >= 0)
    items[row, slot] = barred.nth_negative(row, ranks[row, slot])
    return items


# ---- what came out --------------------------------------------------------------------------------------------------


def slots_of(candidates: Candidates, width: int) -> dict[str, NDArray[Any]]:
    """(n, k) arrays of the negatives, in order: the selected, then the relaxed, then the random ones."""
    kept = candidates.kept & (candidates.kept_by >= 0)
    order = canonical_order(candidates, kept)
    turn = np.where(kept, candidates.kept_by, RANDOM + 1)
    order = np.take_along_axis(order, np.argsort(np.take_along_axis(turn, order, 1), axis=1, kind="stable"), 1)
    order = order[:, :width]
    filled = np.take_along_axis(kept, order, axis=1)
    slots = {}
    for name, (kind, empty) in SLOTS.items():
        wide = np.full((len(candidates), width), empty, kind)
        values = np.take_along_axis(getattr(candidates, name), order, axis=1)
        wide[:, : order.shape[1]] = np.where(filled, values, kind(empty))
        slots[name] = wide
    return slots


def tally_of(candidates: Candidates, counts: Ids, depth: int | None) -> dict[str, int]:
    """Numbers of some anchors, which add up over parts.

    anchors, negatives   how many there are
    relaxed, random      negatives that fill rows up
    short, missing       anchors with fewer than k, and how many negatives they lack in all
    none                 anchors whose k is 0
    searched             how deep those that are short were searched, 0 if nothing deeper is left

    `counts` is (n,) k of each anchor. `depth` is how deep the anchors were searched; None where that was deep enough.
    """
    taken_by = candidates.kept_by[candidates.kept]
    missing = shortfall(candidates, counts)
    searched = 0
    if depth is not None and candidates.ids.shape[1] >= depth:
        stopped = (missing > 0) & (candidates.ids[:, depth - 1] >= 0)
        searched = depth if stopped.any() else 0
    return {
        "anchors": len(counts),
        "negatives": int(np.count_nonzero(candidates.kept)),
        "relaxed": int(np.count_nonzero(taken_by == RELAXED)),
        "random": int(np.count_nonzero(taken_by == RANDOM)),
        "short": int((missing > 0).sum()),
        "missing": int(missing.sum()),
        "none": int((counts == 0).sum()),
        "searched": searched,
    }


def added(tallies: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The tally of all parts."""
    whole: dict[str, int] = {}
    for tally in tallies:
        for name, count in tally.items():
            before = whole.get(name, 0)
            whole[name] = max(before, count) if name == "searched" else before + count
    return whole


def deeper(tally: Mapping[str, int], n_items: int) -> int:
    """The depth that anchors which are short should be searched next, 0 if that cannot help."""
    return min(n_items, 4 * tally["searched"]) if 0 < tally["searched"] < n_items and tally["short"] else 0


def notes_of(tally: Mapping[str, int], n_items: int, *, option: str = "depth=") -> tuple[str, ...]:
    """A sentence for each thing that users should know; `option` is how a user writes the depth of a search."""
    notes = [f"{tally[name]:,} negatives are {name}." for name in ("relaxed", "random") if tally[name]]
    if tally["short"]:
        depth = deeper(tally, n_items)
        advice = f" Search deeper: {option}{depth}." if depth else ""
        notes.append(f"{tally['short']:,} anchors are short, by {tally['missing']:,} negatives.{advice}")
    if tally["none"]:
        notes.append(f"k is 0 for {tally['none']:,} anchors.")
    return tuple(notes)
