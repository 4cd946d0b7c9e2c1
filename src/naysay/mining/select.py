"""Select: which candidates become negatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_one_of, check_whole, public, raise_invalid, shown
from naysay.mining import _diverse as diverse
from naysay.mining._counts import read_counts
from naysay.mining._draws import uniform
from naysay.mining.candidates import Candidates, Mask, canonical_order, check_candidates
from naysay.rng import key_from
from naysay.samplers._numbers import check_number

HOW = ("top", "random", "softmax", "spread", "groups", "mmr")
_NEEDS = {"random": ("rng",), "softmax": ("rng", "temperature"), "groups": ("groups",), "mmr": ("similar",)}
_MAY = {"mmr": ("balance",)}
NOT_SELECTED = "not selected"


@public
def select(
    candidates: Candidates,
    k: Any,
    how: str = "top",
    *,
    rng: np.random.Generator | None = None,
    temperature: float | None = None,
    groups: Any = None,
    similar: diverse.Similar | None = None,
    balance: float | None = None,
    quotas: Mapping[str, int] | None = None,
    first: int = 0,
) -> Candidates:
    """Take k of the candidates in play; the others are dropped as "not selected".

    Equal scores go by id, the lower first. A row with fewer than k keeps them all; `backfill` says what then. What is
    taken is marked with `how`. Cost: a sort of each row; "mmr": k m d a row.

    Gumbel's trick for softmax draws: Vieira 2014; MMR: Carbonell and Goldstein. The Use of MMR. SIGIR 1998.

    Args:
        k: A number, or (n,) of them.
        how: "top" the k highest scores "random" k of all in play, each as likely "softmax" k without repeats, one
            after another with chances in proportion to exp(score / temperature) "spread" evenly over the ranks that
            are left: of M in order those at floor((2 j + 1) M / (2 k)) "groups" the best of each group, then the
            second of each, and so on: diverse by cluster "mmr" one after another the highest of balance * score -
            (1 - balance) * the closest one taken.
        rng: For "random" and "softmax"; one key is taken from it, and nothing depends on other rows.
        groups: (n_items,) whole numbers, the group of each item; of one group at most one more than of another.
        similar: Similar(ids (r, m)) -> (r, m, d): vectors, for "mmr".
        balance: From 0 to 1, 0.5 by default, for "mmr". Score and closeness should be of one kind: cosine is taken.
        quotas: {source name: how many}: so many of each source, chosen by `how` among its own. Their sum is k.
        first: The number of the first row, where these are a part of more rows: random choices go by it.

    Example:
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7, 9]]), scores=np.array([[0.9, 0.5, 0.1, 0.0]]))
        >>> taken = select(Candidates.of(found), 2, "spread")
        >>> taken.ids[taken.kept].tolist(), taken.dropped["not selected"].tolist()
        ([2, 9], [2])
    """
    check_candidates(candidates)
    check_one_of("how", how, HOW)
    options = {"rng": rng, "temperature": temperature, "groups": groups, "similar": similar, "balance": balance}
    check_options(how, options)
    counts = read_counts(k, len(candidates))
    parts = _parts(candidates, counts, quotas)
    key = np.uint64(0) if rng is None else key_from(rng)
    rows = np.arange(check_whole("first", first, 0), first + len(candidates))
    warmth = 1.0 if temperature is None else check_temperature(temperature)
    chosen = np.zeros(candidates.ids.shape, np.bool_)
    for mask, wanted in parts:
        if how == "top":
            chosen |= _first(canonical_order(candidates, mask), mask, wanted)
        elif how == "random":
            chosen |= _first(_falling(uniform(key, candidates.ids, rows), mask), mask, wanted)
        elif how == "softmax":
            noise = -np.log(-np.log(uniform(key, candidates.ids, rows)))
            chosen |= _first(_falling(np.where(mask, candidates.scores / warmth, 0) + noise, mask), mask, wanted)
        elif how == "spread":
            chosen |= _spread(canonical_order(candidates, mask), mask, wanted)
        elif how == "groups":
            order = diverse.by_groups(candidates, canonical_order(candidates, mask), mask, groups)
            chosen |= _first(order, mask, wanted)
        elif similar is not None:
            weight = 0.5 if balance is None else float(balance)
            chosen |= diverse.by_relevance(candidates, canonical_order(candidates, mask), mask, wanted, similar, weight)
    return candidates.marked(chosen, how).drop(candidates.kept & ~chosen, NOT_SELECTED)


def check_options(how: str, options: Mapping[str, Any]) -> None:
    """Refuse an option that is missing, and one that could not act."""
    for name, value in options.items():
        needed = name in _NEEDS.get(how, ())
        if value is None and needed:
            raise_invalid(name, f"given for {how!r}", None)
        if value is not None and not needed and name not in _MAY.get(how, ()):
            users = [other for other in HOW if name in (*_NEEDS.get(other, ()), *_MAY.get(other, ()))]
            raise_invalid(name, f"left out for {how!r}", shown(value), f"It is for {' and '.join(map(repr, users))}.")
    if options.get("balance") is not None:
        check_number("balance", options["balance"], "a number from 0 to 1", lambda number: 0 <= number <= 1)


def check_temperature(temperature: Any) -> float:
    """A finite number above 0."""
    return check_number("temperature", temperature, "a number above 0", lambda number: 0 < number < np.inf)


def _parts(
    candidates: Candidates, counts: NDArray[np.int64], quotas: Mapping[str, int] | None
) -> list[tuple[Mask, NDArray[np.int64]]]:
    """Which candidates are chosen among one another, and how many of them in each row."""
    if quotas is None:
        return [(candidates.kept, counts)]
    check_quotas(quotas, candidates.source_names, counts)
    places = {name: candidates.source_names.index(name) for name in quotas}
    return [
        (candidates.kept & (candidates.source == places[name]), np.full(len(counts), most))
        for name, most in quotas.items()
    ]


def check_quotas(quotas: Any, names: tuple[str, ...], counts: NDArray[np.int64]) -> None:
    """Refuse quotas that are not {source: count}, or that do not add up to k."""
    if not isinstance(quotas, Mapping) or not quotas:
        raise_invalid("quotas", "a dictionary {source name: how many}", shown(quotas))
    for name, most in quotas.items():
        check_one_of("quotas", name, names)
        check_whole("quotas", most, 0)
    total = sum(quotas.values())
    if (counts != total).any():
        raise_invalid("quotas", f"{int(counts[counts != total][0])} in all, like `k`", total)


def _falling(priority: NDArray[np.float64], mask: Mask) -> NDArray[np.int64]:
    """(n, m) slots by falling priority, those outside of the mask last."""
    return np.argsort(np.where(mask, -priority, np.inf), axis=1, kind="stable")


def _first(order: NDArray[np.int64], mask: Mask, counts: NDArray[np.int64]) -> Mask:
    """(n, m): the first `counts` slots of each row's order that are in the mask, which stand first."""
    chosen = np.zeros(mask.shape, np.bool_)
    np.put_along_axis(chosen, order, np.broadcast_to(np.arange(mask.shape[1]), mask.shape) < counts[:, None], axis=1)
    return chosen & mask


def _spread(order: NDArray[np.int64], mask: Mask, counts: NDArray[np.int64]) -> Mask:
    """(n, m): slots at even distances in the order."""
    there = np.count_nonzero(mask, axis=1)[:, None]
    wanted = np.minimum(counts[:, None], there)
    steps = np.arange(int(wanted.max(initial=0)))
    places = (2 * steps + 1) * there // np.maximum(2 * wanted, 1)
    row, step = np.nonzero(np.broadcast_to(steps, places.shape) < wanted)
    chosen = np.zeros(mask.shape, np.bool_)
    chosen[row, order[row, places[row, step]]] = True
    return chosen
