"""Select: which candidates become negatives, by one of six methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from naysay._rows import frozen
from naysay.arrays import to_numpy
from naysay.checks import (
    as_array,
    check_number,
    check_one_of,
    check_range,
    check_whole,
    public,
    raise_invalid,
    shown,
    whole_numbers,
)
from naysay.kernels.relevance import marginal
from naysay.kernels.threads import in_rows
from naysay.mining.candidates import Candidates, Mask, canonical_order, check_candidates, read_counts
from naysay.rng import key_from

Ids = NDArray[np.int64]
# similar(ids (r, m)) -> (r, m, d): the vectors of items; anything for -1
Similar = Callable[[Ids], Any]
NOT_SELECTED = "not selected"
_NUMBERS = 1 << 24  # of vectors in memory at a time
# SplitMix64's output function
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEPS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST, _SPARE = np.uint64(31), np.uint64(11)


@public
def select(
    candidates: Candidates,
    k: Any,
    how: str = "top",
    *,
    rng: np.random.Generator | None = None,
    temperature: float | None = None,
    groups: Any = None,
    similar: Similar | None = None,
    balance: float | None = None,
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
            "mmr": one after another the highest of balance * score - (1 - balance) * similarity to the closest
            one taken.
        rng: For "random" and "softmax". One key is taken from it, and no row depends on another.
        temperature: For "softmax".
        groups: (n_items,) whole numbers, the group of each item, for "groups".
        similar: similar(ids (r, m)) -> (r, m, d): vectors, for "mmr".
        balance: From 0 to 1, 0.5 by default, for "mmr". Similarity is the cosine, so scores should be, too.
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
    options = {"rng": rng, "temperature": temperature, "groups": groups, "similar": similar, "balance": balance}
    check_method_options(how, options)
    counts = read_counts(k, len(candidates))
    rows = np.arange(check_whole("first", first, 0), first + len(candidates))
    task = _Selection(candidates, rows, np.uint64(0) if rng is None else key_from(rng), options)
    chosen = np.zeros(candidates.ids.shape, np.bool_)
    for mask, wanted in _parts(candidates, counts, quotas):
        chosen |= METHODS[how].choose(task, mask, wanted)
    return candidates.marked(chosen, how).drop(candidates.kept & ~chosen, NOT_SELECTED)


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
        return uniform(self.key, self.candidates.ids, self.rows)


def _top(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    return _first(task.order(mask), mask, counts)


def _random(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    return _first(_falling(task.uniform(), mask), mask, counts)


def _softmax(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    noise = -np.log(-np.log(task.uniform()))
    scaled = task.candidates.scores / float(task.options["temperature"])
    return _first(_falling(np.where(mask, scaled, 0) + noise, mask), mask, counts)


def _spread(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    order, filled = task.order(mask), np.count_nonzero(mask, axis=1)[:, None]
    wanted = np.minimum(counts[:, None], filled)
    steps = np.arange(int(wanted.max(initial=0)))
    places = (2 * steps + 1) * filled // np.maximum(2 * wanted, 1)
    row, step = np.nonzero(np.broadcast_to(steps, places.shape) < wanted)
    chosen = np.zeros(mask.shape, np.bool_)
    chosen[row, order[row, places[row, step]]] = True
    return chosen


def _groups(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    """The best of each group, then the second of each."""
    labels = whole_numbers("groups", to_numpy(task.options["groups"])).astype(np.int64)
    ids, order = task.candidates.ids, task.order(mask)
    check_range("candidates", ids, len(labels), "groups of items", least=-1)
    inside = np.take_along_axis(mask, order, axis=1)
    label = labels[np.take_along_axis(ids, order, axis=1)] if len(labels) else np.zeros(order.shape, np.int64)
    by_label = np.argsort(label, axis=1, kind="stable")
    ordered, counted = (np.take_along_axis(values, by_label, axis=1) for values in (label, inside))
    starts = np.ones(label.shape, np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # How many of the group come before, in the mask: the running count less the count where the group starts.
    running = np.cumsum(counted, axis=1, dtype=np.int64)
    before = running - counted.astype(np.int64)
    at_start = np.maximum.accumulate(np.where(starts, before, -1), axis=1)
    turn = np.empty(label.shape, np.int64)
    np.put_along_axis(turn, by_label, before - at_start, axis=1)
    turn = np.where(inside, turn, label.shape[1])
    return _first(np.take_along_axis(order, np.argsort(turn, axis=1, kind="stable"), axis=1), mask, counts)


def _relevance(task: _Selection, mask: Mask, counts: Ids) -> Mask:
    """Maximal marginal relevance, in blocks of rows."""
    chosen, filled = np.zeros(mask.shape, np.bool_), np.count_nonzero(mask, axis=1)
    width = int(filled.max(initial=0))
    if width == 0 or not counts.any():
        return chosen
    similar, balance = task.options["similar"], task.options["balance"]
    slots = task.order(mask)[:, :width]
    ids, scores = (np.take_along_axis(values, slots, 1) for values in (task.candidates.ids, task.candidates.scores))
    wanted = np.minimum(counts, filled)
    start, step = 0, 1
    while start < len(ids):
        block = slice(start, start + step)
        vectors = _vectors(similar, np.where(mask[np.arange(len(ids))[block, None], slots[block]], ids[block], 0))
        taken = np.zeros(ids[block].shape, np.bool_)
        steps = int(wanted[block].sum()) * width * vectors.shape[2]
        parts = (vectors, scores[block].astype(np.float64), filled[block], wanted[block])
        weight = 0.5 if balance is None else float(balance)
        in_rows(marginal, len(taken), steps, *map(frozen, parts), weight, taken)
        np.put_along_axis(chosen[block], slots[block], taken, axis=1)
        start, step = start + step, max(1, _NUMBERS // max(1, width * vectors.shape[2]))
    return chosen


def _vectors(similar: Similar, ids: Ids) -> NDArray[np.float64]:
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
    "mmr": _Method(_relevance, ("similar",), ("balance",)),
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
    if options.get("balance") is not None:
        check_number("balance", options["balance"], at_least=0, at_most=1)


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


def uniform(key: np.uint64, ids: Ids, rows: Ids) -> NDArray[np.float64]:
    """(n, m) random numbers in (0, 1), the hash of (key, row, id) by SplitMix64's output function (Steele et al. 2014).

    So a random choice does not depend on the number of candidates, on their order, or on how rows are split.
    """
    anchors = rows.astype(np.uint64)[:, None]
    bits = _mixed(_mixed(_mixed(anchors + _GOLDEN) ^ key) + ids.astype(np.uint64) * _GOLDEN)
    numbers: NDArray[np.float64] = ((bits >> _SPARE).astype(np.float64) + 0.5) * 2.0**-53
    return numbers


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection on 64 bits."""
    for shift, factor in _STEPS:
        values = (values ^ (values >> shift)) * factor
    return values ^ (values >> _LAST)


def _parts(candidates: Candidates, counts: Ids, quotas: Mapping[str, int] | None) -> list[tuple[Mask, Ids]]:
    """Which candidates are chosen from together, and how many of them in each row."""
    if quotas is None:
        return [(candidates.kept, counts)]
    check_quotas(quotas, candidates.source_names, counts)
    places = {name: candidates.source_names.index(name) for name in quotas}
    return [(candidates.kept & (candidates.source == places[name]), np.full(len(counts), number))
            for name, number in quotas.items()]  # fmt: skip


def _falling(priority: NDArray[np.float64], mask: Mask) -> Ids:
    """(n, m) slots by falling priority, those outside of the mask last."""
    return np.argsort(np.where(mask, -priority, np.inf), axis=1, kind="stable")


def _first(order: Ids, mask: Mask, counts: Ids) -> Mask:
    """(n, m): the first `counts` slots of each row's order that are in the mask, which come first."""
    chosen = np.zeros(mask.shape, np.bool_)
    np.put_along_axis(chosen, order, np.broadcast_to(np.arange(mask.shape[1]), mask.shape) < counts[:, None], axis=1)
    return chosen & mask
