"""Merge: the candidates of several sources as one list for each anchor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import check_number, check_one_of, check_whole, public, raise_invalid, shown
from naysay.search.exact import Found

Ids = NDArray[np.int64]
_CELLS = 1 << 20  # candidates that are sorted at a time
_MAX_SOURCES = 127  # what an int8 can number


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """The candidates of each anchor, and where each was found, as `merge` returns them.

    Args:
        ids: (n, depth) int64; -1 empty, at the end of a row.
        scores: (n, depth) float32; -inf where empty. "rrf": the fused score; "best": the highest; "quota": that of
            the source whose place it takes, so scores are of different kinds.
        source: (n, depth) int8: which of `source_names` found it; -1 where empty. "rrf": where it ranks highest;
            "best": where it scores highest; "quota": whose place it takes. The first source, if several are equal.
        ranks: (n, depth, sources) int32 from 1: its rank in every source, 0 where that one did not find it.
        source_names: The sources, in the order given.
        short: {source: places of its quota that stayed empty}.
    """

    ids: Ids
    scores: NDArray[np.float32]
    source: NDArray[np.int8]
    ranks: NDArray[np.int32]
    source_names: tuple[str, ...]
    short: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """n, the number of anchors."""
        return len(self.ids)


@public
def merge(
    sources: Mapping[str, Found],
    depth: int | None = None,
    *,
    rule: str = "rrf",
    quotas: Mapping[str, int] | None = None,
    constant: float = 60.0,
) -> Merged:
    """Merge what several sources found for the same anchors.

    Rows of "rrf" and "best" are in the canonical order: score (as float32) descending, id ascending. Rows of "quota"
    are in the order of sources. Cormack, Clarke & Büttcher (SIGIR 2009). A sort of each row; no loop over anchors.

    Args:
        sources: {name: Found}, at most 127; a candidate that several found comes back once.
        depth: Candidates to keep of each anchor; with quotas it is their sum, and may be left out.
        rule: How to merge:
            "rrf": sum over sources of 1 / (constant + rank), rank from 1: needs no comparable scores;
            "best": the highest score that any source gives: for sources whose scores mean the same;
            "quota": each source in turn fills its places with its best candidates that no earlier one has taken, in the
            order of its ranks; places that it cannot fill stay empty and are counted in `short`.
        quotas: {name: places} of every source, only with "quota".
        constant: The constant of "rrf"; the larger, the less the first ranks weigh.

    Examples:
        >>> dense = Found(np.array([[4, 7]]), np.array([[0.9, 0.8]], np.float32))
        >>> words = Found(np.array([[7, 5]]), np.array([[11.0, 3.5]], np.float32))
        >>> merged = merge({"dense": dense, "words": words}, 3)
        >>> merged.ids.tolist(), merged.source.tolist(), merged.ranks[0, 0].tolist()
        ([[7, 4, 5]], [[1, 0, 1]], [2, 1])
    """
    check_one_of("rule", rule, ("rrf", "best", "quota"))
    names, n = _check_sources(sources)
    constant = check_number("constant", constant, at_least=0)
    places = _check_quotas(rule, quotas, names)
    if rule == "quota":
        wanted = sum(places)
        if depth is not None and check_whole("depth", depth, 1) != wanted:
            raise_invalid("depth", f"{wanted}, the sum of quotas, or left out", depth)
    else:
        wanted = check_whole("depth", depth, 1)
    empty = Found.empty(n, wanted)
    merged = Merged(
        ids=empty.ids,
        scores=empty.scores,
        source=np.full((n, wanted), -1, np.int8),
        ranks=np.zeros((n, wanted, len(names)), np.int32),
        source_names=names,
    )
    short = np.zeros(len(names), np.int64)
    step = max(1, _CELLS // max(1, sum(found.ids.shape[1] for found in sources.values())))
    for start in range(0, n, step):
        groups = _grouped([sources[name] for name in names], start, min(start + step, n))
        if rule == "quota":
            short += _by_quota(groups, places, merged, start)
        else:
            _by_score(groups, merged, start, constant=constant if rule == "rrf" else None)
    return replace(merged, short={name: int(count) for name, count in zip(names, short, strict=True) if count})


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """The distinct candidates of some anchors: (g,) rows and ids, ascending; (g, sources) ranks and scores.

    A source that did not find one has rank 0 and score -inf.
    """

    n: int
    rows: Ids
    ids: Ids
    ranks: NDArray[np.int32]
    scores: NDArray[np.float32]


def _grouped(sources: list[Found], start: int, stop: int) -> _Groups:
    """The candidates of the anchors from start to stop, each once."""
    parts = []
    for place, found in enumerate(sources):
        rows, columns = np.nonzero(found.ids[start:stop] >= 0)
        ids, scores = found.ids[start:stop][rows, columns], found.scores[start:stop][rows, columns]
        parts.append((rows, ids, np.full(len(rows), place), columns + 1, scores))
    rows, ids, owners, ranks, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((ids, rows))
    rows, ids, owners, ranks, scores = rows[order], ids[order], owners[order], ranks[order], scores[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]) | (ids[1:] != ids[:-1])
    group = np.cumsum(new) - 1
    shape = (int(new.sum()), len(sources))
    found_ranks, found_scores = np.zeros(shape, np.int32), np.full(shape, -np.inf, np.float32)
    found_ranks[group, owners], found_scores[group, owners] = ranks, scores
    return _Groups(stop - start, rows[new], ids[new], found_ranks, found_scores)


def _by_score(groups: _Groups, merged: Merged, start: int, *, constant: float | None) -> None:
    """The highest fused scores, or the highest scores if there is no constant."""
    if constant is None:
        score = groups.scores.max(axis=1, initial=-np.inf)
        source = groups.scores.argmax(axis=1)
    else:
        shares = np.where(groups.ranks > 0, 1.0 / (constant + np.maximum(groups.ranks, 1)), 0.0)
        score = _summed(shares).astype(np.float32)
        source = np.where(groups.ranks > 0, groups.ranks, np.iinfo(np.int32).max).argmin(axis=1)
    order = np.lexsort((groups.ids, -score, groups.rows))
    kept, slots = _first(groups, order, merged.ids.shape[1])
    _put(merged, groups, start, kept, slots, score[kept], source[kept])


def _by_quota(groups: _Groups, places: list[int], merged: Merged, start: int) -> Ids:
    """Each source in turn fills its places; how many stayed empty."""
    free, before = np.ones(len(groups.rows), bool), np.zeros(groups.n, np.int64)
    short = np.zeros(len(places), np.int64)
    for source, quota in enumerate(places):
        mine = np.flatnonzero(free & (groups.ranks[:, source] > 0))
        mine = mine[np.lexsort((groups.ranks[mine, source], groups.rows[mine]))]
        kept, slots = _first(groups, mine, quota)
        rows = groups.rows[kept]
        _put(merged, groups, start, kept, slots + before[rows], groups.scores[kept, source], np.full(len(kept), source))
        free[kept] = False
        taken = np.bincount(rows, minlength=groups.n)
        before += taken
        short[source] = quota * groups.n - taken.sum()
    return short


def _first(groups: _Groups, order: Ids, count: int) -> tuple[Ids, Ids]:
    """The first `count` of each row in an order by rows, and their places in it."""
    rows = groups.rows[order]
    slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
    return order[slots < count], slots[slots < count]


def _put(
    merged: Merged, groups: _Groups, start: int, kept: Ids, slots: Ids, scores: NDArray[np.float32], source: Ids
) -> None:
    """Write the kept candidates to their rows and slots."""
    rows = groups.rows[kept] + start
    merged.ids[rows, slots] = groups.ids[kept]
    merged.scores[rows, slots] = scores
    merged.source[rows, slots] = source
    merged.ranks[rows, slots] = groups.ranks[kept]


def _summed(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over sources in the order given, so that they do not depend on how NumPy adds."""
    total = np.zeros(len(shares))
    for source in range(shares.shape[1]):
        total += shares[:, source]
    return total


def _check_sources(sources: Mapping[str, Found]) -> tuple[tuple[str, ...], int]:
    """The names, and the number of anchors, which all sources share."""
    if not isinstance(sources, Mapping) or not 1 <= len(sources) <= _MAX_SOURCES:
        got = f"{len(sources)} of them" if isinstance(sources, Mapping) else type(sources).__name__
        raise_invalid("sources", f"1 to {_MAX_SOURCES} of {{name: Found}}", got)
    for name, found in sources.items():
        if not isinstance(name, str) or not isinstance(found, Found):
            raise_invalid("sources", "{name: Found}", f"{shown(name)}: {type(found).__name__}")
    sizes = {name: len(found) for name, found in sources.items()}
    if len({*sizes.values()}) > 1:
        raise_invalid("sources", "of the same anchors", ", ".join(f"{name} {size}" for name, size in sizes.items()))
    return tuple(sources), next(iter(sizes.values()))


def _check_quotas(rule: str, quotas: Mapping[str, int] | None, names: tuple[str, ...]) -> list[int]:
    """The places of each source, in their order."""
    if rule != "quota":
        if quotas is not None:
            raise_invalid("quotas", f"left out for the rule {rule!r}", shown(quotas))
        return []
    if not isinstance(quotas, Mapping) or {*quotas} != {*names}:
        raise_invalid("quotas", "{name: places} of " + ", ".join(map(repr, names)), shown(quotas))
    places = [check_whole(f"quotas[{name!r}]", quotas[name], 0) for name in names]
    if not sum(places):
        raise_invalid("quotas", "at least one place in all", shown(dict(quotas)))
    return places
