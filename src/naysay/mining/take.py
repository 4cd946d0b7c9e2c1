"""Which candidates become negatives: `across_anchors` (sees all anchors), `select`, and `backfill` for short rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_generator,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.errors import NaysayError
from naysay.kernels.greedy import capped
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
    check_candidates,
    read_counts,
)
from naysay.mining.rescore import ScorePairs
from naysay.pools.everything import Everything
from naysay.positives import Positives
from naysay.rng import key_from, rng_for
from naysay.types import Query

# vectors_of(ids (r, m)) -> (r, m, d): the vectors of items; anything for -1
VectorsOf = Callable[[Ids], Any]
ON_SHORT = ("pad", "drop", "relax", "random", "raise")
_NUMBERS = 1 << 24  # of vectors in memory at a time
# SplitMix64's output function
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST, _SPARE = np.uint64(31), np.uint64(11)


def across_anchors(candidates: Candidates, counts: Ids, max_per_item: int | None) -> Candidates:
    """The stage that sees all anchors: no item becomes the negative of more than `max_per_item` of them.

    Pairs are taken greedily, the highest scores first; of equal scores, the lower anchor, then the lower id. A pair is
    passed over if its anchor has k negatives, or its item has `max_per_item` anchors: only then it is dropped, and the
    anchor goes on to its next candidate. So `select` by "top" takes what was taken here.
    """
    if max_per_item is None:
        return candidates
    return candidates.drop(
        too_frequent(candidates.ids, candidates.scores, candidates.kept, counts, max_per_item), Reason.TOO_FREQUENT
    )


def too_frequent(ids: Ids, scores: NDArray[np.float32], kept: Mask, counts: Ids, max_per_item: int) -> Mask:
    """(n, m): the candidates that `across_anchors` drops, from the arrays of all anchors."""
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
    found = np.zeros(ids.shape, np.bool_)
    found[rows[order[passed_over]], slots[order[passed_over]]] = True
    return found


@public
def select(
    candidates: Candidates,
    k: Any,
    how: str = "top",
    *,
    rng: np.random.Generator | None = None,
    temperature: float | None = None,
    groups: Any = None,
    similar: VectorsOf | None = None,
    mmr_lambda: float | None = None,
    quotas: Mapping[str, int] | None = None,
    first: int = 0,
) -> Candidates:
    """Take k of the candidates that are left; drop the others as "not selected".

    Of equal scores, the lower id comes first. A row with fewer than k keeps them all; see `backfill`. What is taken is
    marked with `how`. Cost: a sort of each row; "mmr": k m d a row.

    Gumbel's trick for softmax draws: Vieira 2014; MMR: Carbonell and Goldstein. The Use of MMR. SIGIR 1998.

    Args:
        candidates: What was found.
        k: A number, or (n,) of them.
        how: The method:
            "top": the k highest scores;
            "random": k of all, uniformly;
            "softmax": k without repeats, drawn one after another in proportion to exp(score / temperature);
            "spread": evenly over the ranks that are left: of M in order those at floor((2 j + 1) M / (2 k));
            "groups": the best of each group, then the second of each, and so on: diverse by cluster;
            "mmr": one after another the highest of mmr_lambda * score - (1 - mmr_lambda) * similarity to the closest
            one taken.
        rng: For "random" and "softmax". One key is taken from it, and no row depends on another.
        temperature: For "softmax".
        groups: (n_items,) whole numbers, the group of each item, for "groups".
        similar: similar(ids (r, m)) -> (r, m, d): vectors, for "mmr".
        mmr_lambda: From 0 to 1, 0.5 by default, for "mmr". Similarity is the cosine, so scores should be, too.
        quotas: {source name: number}: so many of each source, chosen by `how` within it. They add up to k.
        first: The number of the first row, if these are a part of more rows. Random choices depend on it.

    Returns:
        The candidates, of which k or fewer are left in each row.

    Examples:
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7, 9]]), scores=np.array([[0.9, 0.5, 0.1, 0.0]]))
        >>> taken = select(Candidates.of(found), 2, "spread")
        >>> taken.ids[taken.kept].tolist(), taken.dropped["not selected"].tolist()
        ([2, 9], [2])
    """
    check_candidates(candidates)
    check_one_of("how", how, tuple(METHODS))
    options = {
        "rng": rng,
        "temperature": temperature,
        "groups": groups,
        "similar": similar,
        "mmr_lambda": mmr_lambda,
    }
    check_method_options(how, options)
    counts = read_counts(k, len(candidates))
    rows = np.arange(check_whole("first", first, 0), first + len(candidates))
    if groups is not None:
        options["groups"] = whole_numbers("groups", to_numpy(groups)).astype(np.int64)
        check_range("candidates", candidates.ids, len(options["groups"]), "groups of items", least=-1)
    if quotas is not None:
        check_quotas(quotas, candidates.source_names, counts)
    return selected(candidates, counts, how, rows, options, quotas)


def selected(
    candidates: Candidates,
    counts: Ids,
    how: str,
    rows: Ids,
    options: Mapping[str, Any],
    quotas: Mapping[str, int] | None = None,
) -> Candidates:
    """The same as `select`, with arguments that were checked; `rows` are the numbers of the anchors."""
    rng = options.get("rng")
    task = _Selection(candidates, rows, np.uint64(0) if rng is None else key_from(rng), options)
    chosen = np.zeros(candidates.ids.shape, np.bool_)
    if quotas is None:
        chosen = METHODS[how].choose(task, candidates.kept, counts)
    else:
        for name, number in quotas.items():
            from_source = candidates.kept & (candidates.source == candidates.source_names.index(name))
            chosen |= METHODS[how].choose(task, from_source, np.full(len(counts), number))
    named = replace(candidates, kept_names=(how, *candidates.kept_names[1:]))
    return named.marked(chosen, SELECTED).drop(~chosen, Reason.NOT_SELECTED)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Selection:
    """What a method chooses from."""

    candidates: Candidates
    rows: Ids  # their numbers, on which random choices depend
    key: np.uint64
    options: Mapping[str, Any]

    def order(self, mask: Mask) -> Ids:
        return canonical_order(self.candidates, mask)

    def uniform(self) -> NDArray[np.float64]:
        """(n, m) random numbers in (0, 1): the hash of (key, row, id) by SplitMix64's output function.

        So a random choice does not depend on the number of candidates, on their order, or on how rows are split.
        """
        anchors = self.rows.astype(np.uint64)[:, None]
        bits = _mixed(_mixed(_mixed(anchors + _GOLDEN) ^ self.key) + self.candidates.ids.astype(np.uint64) * _GOLDEN)
        numbers: NDArray[np.float64] = ((bits >> _SPARE).astype(np.float64) + 0.5) * 2.0**-53
        return numbers


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection on 64 bits."""
    for shift, factor in _STEPS:
        values = (values ^ (values >> shift)) * factor
    return values ^ (values >> _LAST)


def _top(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    return _first(task.order(mask), mask, counts)


def _random(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    return _first(_falling(task.uniform(), mask), mask, counts)


def _softmax(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    noise = -np.log(-np.log(task.uniform()))
    scaled = task.candidates.scores / float(task.options["temperature"])
    return _first(_falling(np.where(mask, scaled, 0) + noise, mask), mask, counts)


def _spread(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    order = task.order(mask)
    filled = np.count_nonzero(mask, axis=1)[:, None]
    wanted = np.minimum(counts[:, None], filled)
    steps = np.arange(int(wanted.max(initial=0)))
    places = (2 * steps + 1) * filled // np.maximum(2 * wanted, 1)
    row, step = np.nonzero(np.broadcast_to(steps, places.shape) < wanted)
    chosen = np.zeros(mask.shape, np.bool_)
    chosen[row, order[row, places[row, step]]] = True
    return chosen


def _groups(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    """The best of each group, then the second of each."""
    labels, ids, order = task.options["groups"], task.candidates.ids, task.order(mask)
    inside = np.take_along_axis(mask, order, axis=1)
    label = labels[np.take_along_axis(ids, order, axis=1)] if len(labels) else np.zeros(order.shape, np.int64)
    by_label = np.argsort(label, axis=1, kind="stable")
    ordered, counted = (np.take_along_axis(values, by_label, axis=1) for values in (label, inside))
    starts = np.ones(label.shape, np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # How many of the group come before, in the mask: the running count less the count where the group starts.
    before: Ids = np.cumsum(counted, axis=1, dtype=np.int64) - counted.astype(np.int64)
    at_start = np.maximum.accumulate(np.where(starts, before, -1), axis=1)
    turn = np.empty(label.shape, np.int64)
    np.put_along_axis(turn, by_label, before - at_start, axis=1)
    turn = np.where(inside, turn, mask.shape[1])
    return _first(np.take_along_axis(order, np.argsort(turn, axis=1, kind="stable"), axis=1), mask, counts)


def _relevance(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    """Maximal marginal relevance, in blocks of rows."""
    chosen, filled = np.zeros(mask.shape, np.bool_), np.count_nonzero(mask, axis=1)
    width = int(filled.max(initial=0))
    if width == 0 or not counts.any():
        return chosen
    given = task.options.get("mmr_lambda")
    weight = 0.5 if given is None else float(given)
    slots = task.order(mask)[:, :width]
    ids = np.take_along_axis(np.where(mask, task.candidates.ids, 0), slots, axis=1)
    scores = np.take_along_axis(task.candidates.scores, slots, axis=1).astype(np.float64)
    wanted = np.minimum(counts, filled)
    start, step = 0, 1  # one row first, which shows how many numbers a vector has
    while start < len(ids):
        block = slice(start, start + step)
        vectors = _unit_vectors(task.options["similar"], ids[block])
        taken = np.zeros(ids[block].shape, np.bool_)
        steps = int(wanted[block].sum()) * width * vectors.shape[2]
        parts = (vectors, scores[block], filled[block], wanted[block])
        in_rows(marginal, len(taken), steps, *map(frozen, parts), weight, taken)
        np.put_along_axis(chosen[block], slots[block], taken, axis=1)
        start, step = start + step, max(1, _NUMBERS // max(1, width * vectors.shape[2]))
    return chosen


def _unit_vectors(similar: VectorsOf, ids: Ids) -> NDArray[np.float64]:
    """(r, m, d) float64 vectors of unit length; a zero vector stays, and is similar to nothing."""
    vectors = as_array("similar", to_numpy(similar(ids)))
    if vectors.ndim != 3 or vectors.shape[:2] != ids.shape or vectors.dtype.kind not in "iuf":
        rule = f"a function that answers with vectors of shape ({ids.shape[0]}, {ids.shape[1]}, d)"
        raise_invalid("similar", rule, f"shape {vectors.shape} {vectors.dtype}")
    vectors = vectors.astype(np.float64)
    if not np.isfinite(vectors).all():
        raise_invalid("similar", "a function that answers with finite vectors", "NaN or infinity")
    length = np.sqrt((vectors * vectors).sum(axis=2, keepdims=True))
    return np.ascontiguousarray(vectors / np.where(length > 0, length, 1.0))


class _Method(NamedTuple):
    """choose(selection, mask (n, m), how many (n,)) -> (n, m), and the options that it needs or may have."""

    choose: Callable[[_Selection, Mask, Ids], Mask]
    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


METHODS = {
    "top": _Method(_top),
    "random": _Method(_random, ("rng",)),
    "softmax": _Method(_softmax, ("rng", "temperature")),
    "spread": _Method(_spread),
    "groups": _Method(_groups, ("groups",)),
    "mmr": _Method(_relevance, ("similar",), ("mmr_lambda",)),
}


def check_method_options(how: str, options: Mapping[str, Any]) -> None:
    """Raise if an option of the method is missing or invalid, or if one is given that it does not have."""
    method = METHODS[how]
    for name, value in options.items():
        if value is None and name in method.needs:
            raise_invalid(name, f"given for {how!r}", None)
        if value is not None and name not in (*method.needs, *method.may):
            users = [repr(other) for other, each in METHODS.items() if name in (*each.needs, *each.may)]
            raise_invalid(name, f"left out for {how!r}", shown(value), f"It is for {' and '.join(users)}.")
    if options.get("temperature") is not None:
        check_number("temperature", options["temperature"], above=0, finite=True)
    if options.get("mmr_lambda") is not None:
        check_number("mmr_lambda", options["mmr_lambda"], at_least=0, at_most=1)


def check_quotas(quotas: Any, names: tuple[str, ...], counts: Ids) -> None:
    """Raise unless quotas are {source: number} and add up to k."""
    if not isinstance(quotas, Mapping) or not quotas:
        raise_invalid("quotas", "a dictionary {source name: number}", shown(quotas))
    for name, number in quotas.items():
        check_one_of("quotas", name, names)
        check_whole("quotas", number, 0)
    total = sum(quotas.values())
    if (counts != total).any():
        raise_invalid("quotas", f"{int(counts[counts != total][0])} in all, like `k`", total)


def _falling(priority: NDArray[np.float64], mask: Mask) -> Ids:
    """(n, m) slots by falling priority, those outside of the mask last."""
    return np.argsort(np.where(mask, -priority, np.inf), axis=1, kind="stable")


def _first(order: Ids, mask: Mask, counts: Ids) -> Mask:
    """(n, m): the first `counts` slots of each row's order that are in the mask, which come first."""
    chosen = np.zeros(mask.shape, np.bool_)
    np.put_along_axis(chosen, order, np.broadcast_to(np.arange(mask.shape[1]), mask.shape) < counts[:, None], axis=1)
    return chosen & mask


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

    A row that is still short then has nothing left: its corpus, or what a judge dropped, is used up. No id comes twice.
    Cost: a sort of the rows that are short; "random": a draw for each of them.

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
        >>> dropped = Candidates.of(found).drop(np.array([[True, False]]), Reason.SUSPICIOUS)
        >>> left = backfill(dropped, 2, "relax")
        >>> left.ids[left.kept].tolist(), left.kept_names[left.kept_by[0, 0]]
        ([4, 2], 'relaxed')
    """
    check_candidates(candidates)
    check_one_of("on_short", on_short, ON_SHORT)
    needed = {"known": known, "score": score, "rng": rng}
    for name, value in needed.items():
        if (value is None) == (on_short == "random"):
            rule = "given for 'random'" if value is None else f"left out for {on_short!r}"
            raise_invalid(name, rule, None if value is None else type(value).__name__)
    counts = read_counts(k, len(candidates))
    rows = np.arange(check_whole("first", first, 0), first + len(candidates))
    if known is None or score is None or rng is None:
        return filled_up(candidates, counts, on_short, rows)
    if not isinstance(known, Positives) or known.n_anchors != len(candidates):
        got = known.n_anchors if isinstance(known, Positives) else type(known).__name__
        raise_invalid("known", f"Positives of {len(candidates)} anchors, like the candidates", got)
    check_generator(rng)
    return with_random(candidates, counts, rows, known, score, rng)


def filled_up(candidates: Candidates, counts: Ids, on_short: str, rows: Ids) -> Candidates:
    """The same as `backfill` for all policies but "random"; `rows` are the numbers of the anchors."""
    missing = shortfall(candidates, counts)
    short = missing > 0
    if not short.any() or on_short == "pad":
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


def shortfall(candidates: Candidates, counts: Ids) -> Ids:
    """(n,) how many negatives are missing to k."""
    return np.asarray(np.maximum(counts - np.count_nonzero(candidates.kept, axis=1), 0))


def _least_suspicious(candidates: Candidates, missing: Ids) -> Mask:
    """(n, m): the `missing` candidates of each row that a judge dropped with the least suspicion."""
    suspicious = candidates.dropped_for(Reason.SUSPICIOUS)
    order = np.argsort(candidates.ids, axis=1, kind="stable")
    for values in (candidates.scores, candidates.suspicion):  # the last key sorts first
        key = np.take_along_axis(np.where(suspicious, values, np.float32(np.inf)), order, axis=1)
        order = np.take_along_axis(order, np.argsort(key, axis=1, kind="stable"), axis=1)
    return _first(order, suspicious, missing)


def with_random(
    candidates: Candidates, counts: Ids, rows: Ids, known: Positives, score: ScorePairs, rng: np.random.Generator
) -> Candidates:
    """Add slots with random items that are neither candidates nor known pairs of the anchor."""
    missing = shortfall(candidates, counts)
    key = int(key_from(rng))
    drawn = np.full((len(candidates), int(missing.max(initial=0))), -1, np.int64)
    for row in np.flatnonzero(missing):
        listed = candidates.ids[row][candidates.ids[row] >= 0]
        barred = np.union1d(known.indices[known.indptr[row] : known.indptr[row + 1]], listed)
        pool = Everything(Positives.from_pairs(np.zeros(len(barred), np.int64), barred, 1, known.n_items))
        # A generator of its own for each anchor: what it gets does not depend on the others that are short.
        own = pool.draw(Query(np.zeros(1, np.int64)), int(missing[row]), rng=rng_for(key, int(rows[row]))).ids[0]
        drawn[row, : len(own)] = own
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
    negatives = np.count_nonzero(candidates.kept, axis=1)
    missing = np.maximum(counts - negatives, 0)
    searched = 0
    if depth is not None and candidates.ids.shape[1] >= depth:
        stopped = (missing > 0) & (candidates.ids[:, depth - 1] >= 0)
        searched = depth if stopped.any() else 0
    return {
        "anchors": len(counts),
        "negatives": int(negatives.sum()),
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
        for name, number in tally.items():
            before = whole.get(name, 0)
            whole[name] = max(before, number) if name == "searched" else before + number
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
