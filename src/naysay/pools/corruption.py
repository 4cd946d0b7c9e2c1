"""Corruption: replace one part of a triple so that the result is not known to be true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._rows import frozen, refrozen
from naysay._slots import corrupted_triples, like_query
from naysay.arrays import to_numpy
from naysay.checks import check_kind, check_one_of, check_range, public, raise_invalid, shown, whole_numbers
from naysay.kernels import corrupt, uniform
from naysay.kernels.threads import draw_in_rows
from naysay.pools._slots import check_settings, logs, shortfall, shown_settings, slot_counts, triples_of
from naysay.positives import Positives
from naysay.rng import key_from
from naysay.triples import SideIndex, Triples
from naysay.types import HEAD, RELATION, SIDES, TAIL, Array, Negatives, Query

_CHOICES = ("uniform", "bernoulli")


@final
@public
class Corruption:
    """Negatives of (head, relation, tail): another head, relation or tail, never one that makes a known triple.

    The side is drawn for each negative, from the sides that still have a candidate. The answer has `side` (B, K) and
    the ids that replace that part; the triple's own part is never returned, even if the triple is not known.
    log_q = log P(side) + log P(id | side), for distinct rows given the earlier slots.

    Bordes et al. Translating Embeddings. NIPS 2013 (uniform). Wang et al. AAAI 2014 (Bernoulli). Krompass et al. ISWC
    2015 (types). Typed candidates are mostly plausible, so the exact filter matters most there. Cost: O(log keys) per
    row and side, then O(1) per draw, but a pass over a relation's list if most of it is known; 5 bytes per known triple
    and side, 8 per key.

    Args:
        triples: The training triples, (n, 3) or Triples; side chances and observed types come from these alone.
        known: Further triples to filter against (validation, test): Triples, an array, or a sequence of them.
        sides: Which parts may be replaced, of "head", "relation", "tail".
        choice: "uniform": all sides with equal probability. "bernoulli": the head by tph / (tph + hpt) of the relation
            (TransH), which makes fewer false negatives in one-to-many relations; 0.5 for a relation without training
            triples. If "relation" is one of the sides, it keeps its equal share.
        domains: Candidates for heads, by relation: None (all entities), "observed" (heads seen with the relation in
            training), or a sequence of one array per relation.
        ranges: The same for tails.
        n_entities: The number of entities, by default the largest id plus one.
        n_relations: The number of relations, by default the largest id plus one.
        distinct: Whether a (side, id) comes at most once in a row.
        on_short: "pad" leaves -1 where nothing is left to draw and counts it in `dropped`; "raise" raises NaysayError.

    Examples:
        >>> import naysay as ns
        >>> pool = Corruption([[0, 0, 1], [0, 0, 2]], sides=("tail",), n_entities=4)
        >>> pool.draw(ns.Query([[0, 0, 1]]), 2, rng=ns.rng_for(0)).ids.tolist()[0].count(3)
        1
    """

    def __init__(
        self,
        triples: Triples | ArrayLike,
        known: Triples | ArrayLike | Sequence[Any] | None = None,
        *,
        sides: Sequence[str] = ("head", "tail"),
        choice: str = "uniform",
        domains: Any = None,
        ranges: Any = None,
        n_entities: int | None = None,
        n_relations: int | None = None,
        distinct: bool = True,
        on_short: str = "pad",
    ) -> None:
        """Index the known triples by side: O(n log n)."""
        check_one_of("choice", choice, _CHOICES)
        named = isinstance(sides, tuple | list) and all(isinstance(side, str) for side in sides)
        if not named or not sides or len(set(sides)) != len(sides):
            raise_invalid("sides", "a sequence of different parts", shown(sides), 'For example ("head", "tail").')
        for side in sides:
            check_one_of("sides", side, SIDES)
        train = triples if isinstance(triples, Triples) else Triples(triples, n_entities, n_relations)
        everything = train.union(*_split_up(known))
        entities = everything.n_entities if n_entities is None else n_entities
        relations = everything.n_relations if n_relations is None else n_relations
        everything = everything._resized(entities, relations)
        if everything.n_entities == 0:
            raise_invalid("triples", "of at least one entity", "none")
        train = train._resized(entities, relations)
        self.known = everything
        self.distinct, self.on_short = check_settings(distinct, on_short)
        self.sides = tuple(sorted(SIDES.index(side) for side in sides))
        self.chance = _chances(train, self.sides, choice)
        self._index = everything.index(self.sides)
        sizes = {HEAD: everything.n_entities, RELATION: everything.n_relations, TAIL: everything.n_entities}
        self._sizes = np.array([sizes[side] for side in self.sides])
        self.choice = choice
        self._shown = [given if given is None or isinstance(given, str) else "given" for given in (domains, ranges)]
        self._lists = _listed(train, self._index, domains, ranges)
        self._train, self._typed = train, (domains, ranges)

    def one_side(self, side: str) -> Corruption:
        """Return the same pool for one of its sides: every draw replaces that part."""
        check_one_of("side", side, [SIDES[each] for each in self.sides])
        domains = self._typed[0] if side == "head" else None
        ranges = self._typed[1] if side == "tail" else None
        made: dict[str, Any] = {"domains": domains, "ranges": ranges, "distinct": self.distinct}
        return Corruption(self._train, self.known, sides=(side,), on_short=self.on_short, **made)

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, n) replacements for a query of triples (B, 3), with `side` and `log_q`."""
        triples = triples_of(query, self.known)
        counts, width = slot_counts(n, len(triples))
        key = key_from(rng)
        ids = np.empty((len(triples), width), np.int64)
        side, chance = np.empty(ids.shape, np.int8), np.empty(ids.shape)
        # One array type for all inputs, so that the loops are compiled once.
        triples, counts = (frozen(np.ascontiguousarray(part)) for part in (triples, counts))
        how, parts = (key, uniform.TRIES, not self.distinct), (np.array(self.sides), self._sizes, self.chance)
        queries = (triples, counts, self._index.rows(triples))
        inputs = (how, queries, parts, self._index.known._rows, self._lists, (ids, side, chance))
        draw_in_rows(corrupt.draw, len(ids), 2 * ids.size, *inputs)
        return Negatives(ids, side=side, log_q=logs(chance), dropped=shortfall(self.on_short, ids, counts))

    def draw_triples(self, query: Query, n: Any, *, rng: np.random.Generator) -> Array:
        """(B, n, 3) corrupted triples in the query's array type: `corrupted(query, draw(query, n, rng=rng))`."""
        return self.corrupted(query, self.draw(query, n, rng=rng))

    def corrupted(self, query: Query, negatives: Negatives) -> Array:
        """(B, K, 3) the corrupted triples in the query's array type, on its device; (-1, -1, -1) in empty slots."""
        given = triples_of(query, self.known)
        advice = "Pass what Corruption.draw returned for this query."
        check_kind("negatives", negatives, Negatives, "a Negatives", advice)
        if negatives.side is None:
            raise_invalid("negatives.side", "given", None, advice)
        if len(negatives.ids) != len(given):
            raise_invalid("negatives", f"of {len(given)} rows, like the query", len(negatives.ids), advice)
        made = negatives.like(query)
        triples = corrupted_triples(like_query(given, query), made.ids, made.side)
        triples[made.ids < 0] = -1
        return triples

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"_lists": refrozen(state["_lists"])})

    def __repr__(self) -> str:
        settings = {"sides": tuple(SIDES[side] for side in self.sides), "choice": self.choice}
        return shown_settings(self, self.known, **settings, domains=self._shown[0], ranges=self._shown[1])


def _listed(train: Triples, index: SideIndex, domains: Any, ranges: Any) -> tuple[Any, ...]:
    """How many candidates each known row covers, and candidates by side and relation as one CSR, with the longest list.

    A side that is open to all entities has -1 for its first offset.
    """
    given = {HEAD: ("domains", domains), TAIL: ("ranges", ranges), RELATION: ("relation", None)}
    for side in (HEAD, TAIL):
        if side not in index.sides and given[side][1] is not None:
            advice = f"Add {SIDES[side]!r} to sides, or leave it out."
            raise_invalid(given[side][0], f"None while the {SIDES[side]} is not replaced", "a value", advice)
    known = index.known
    covered = np.diff(known.indptr)
    starts = np.full((len(index.sides), train.n_relations + 1), -1, np.int64)
    parts: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    longest = total = 0
    for s, side in enumerate(index.sides):
        found = _candidate_lists(*given[side], train, side)
        if found is None:
            continue
        pointer, entities = found
        first, relations = index.firsts[s], index.keys[s] % train.n_relations
        rows = ((known.indptr[first:], known.indices), pointer, entities, covered[first:])
        draw_in_rows(corrupt.count_listed_known, len(relations), 8 * len(known), relations, *rows)
        starts[s] = pointer + total
        total += len(entities)
        longest = max(longest, int(np.diff(pointer).max(initial=0)))
        parts.append(entities.astype(np.int32))
    return *map(frozen, (covered, starts, np.concatenate(parts))), longest


def _candidate_lists(
    parameter: str, given: Any, triples: Triples, side: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
    """The candidates of a side for each relation, as CSR: None for all entities, "observed", or a list per relation."""
    if given is None:
        return None
    if not isinstance(given, list | tuple | np.ndarray) or (isinstance(given, np.ndarray) and given.ndim == 0):
        if not isinstance(given, str) or given != "observed":
            raise_invalid(parameter, 'None, "observed", or one array of entities for each relation', shown(given))
        seen = Positives.from_pairs(
            triples.array[:, RELATION], triples.array[:, side], triples.n_relations, triples.n_entities
        )
    else:
        if len(given) != triples.n_relations:
            raise_invalid(parameter, f"of one array for each of the {triples.n_relations} relations", len(given))
        arrays = [whole_numbers(parameter, to_numpy(part)) for part in given]
        entities = np.concatenate([np.empty(0, np.int64), *arrays])
        check_range(parameter, entities, triples.n_entities, "entities")
        relations = np.repeat(np.arange(len(arrays)), [len(part) for part in arrays])
        seen = Positives.from_pairs(relations, entities, triples.n_relations, triples.n_entities)
    return seen.indptr, seen.indices


def _chances(train: Triples, sides: tuple[int, ...], choice: str) -> NDArray[np.float64]:
    """(n_relations, sides): how likely each side is to be replaced."""
    chance = np.full((train.n_relations, len(sides)), 1.0 / len(sides))
    if choice == "bernoulli" and HEAD in sides and TAIL in sides:
        both = 2.0 / len(sides)
        chance[:, sides.index(HEAD)] = both * train.head_chance
        chance[:, sides.index(TAIL)] = both * (1.0 - train.head_chance)
    elif choice == "bernoulli":
        advice = 'It chooses between the two: pass sides=("head", "tail").'
        raise_invalid("choice", '"uniform" unless head and tail are both replaced', repr(choice), advice)
    return chance


def _split_up(known: Any) -> list[Any]:
    """`known` as a list of parts: one array or Triples is a list of one."""
    if known is None:
        return []
    if isinstance(known, Triples) or (hasattr(known, "shape") and known.ndim == 2):
        return [known]
    if not isinstance(known, tuple | list):
        raise_invalid("known", "Triples, an array (n, 3), or a sequence of them", shown(known))
    return [known] if known and np.ndim(known[0]) == 1 else list(known)
