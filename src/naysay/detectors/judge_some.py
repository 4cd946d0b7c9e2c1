"""Some of the negatives, drawn at random, and what a judge says of them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import as_array, check_whole, public, raise_invalid
from naysay.detectors._asked_pairs import OfPairs, slot_pairs
from naysay.detectors._slots import check_asked, query_rows
from naysay.rng import key_from, rng_for
from naysay.types import Negatives, Query

# judge(anchors (m,), ids (m,)) -> (m,) bool: whether the pair is a positive after all
Judge = OfPairs


@final
@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What was judged, in the form in which detectors are asked, fitted and evaluated.

    It can be unpacked, to be handed on: `detector.fit(*verdicts)`, `evaluate(detector, *verdicts)`.

    Args:
        query: The rows of which something was judged.
        negatives: (B, K) their slots; those that were not judged are empty.
        truth: (B, K) bool: whether a slot holds a false negative.
        n: How many were judged.
    """

    query: Query
    negatives: Negatives
    truth: NDArray[np.bool_]
    n: int

    def __iter__(self) -> Iterator[Any]:
        """The query, the negatives and the truth."""
        return iter((self.query, self.negatives, self.truth))


@public
def judge_some(query: Query, negatives: Negatives, judge: Judge, m: int = 100, *, rng: np.random.Generator) -> Verdicts:
    """Have m of the negatives judged, drawn without replacement, all as likely; all of them if there are fewer.

    `Labelled().fit(*verdicts)` learns from them. `evaluate(detector, *others)`, by verdicts on other anchors, says how
    well; slots of an anchor stay in its row, because they are right or wrong together.

    Args:
        query: A sampler's question and answer, or what is left of it after a policy: slots of `mask` count.
        negatives: A sampler's question and answer, or what is left of it after a policy: slots of `mask` count.
        judge: Judge(anchors (m,), ids (m,)) -> (m,) bool, True for a false negative: a person, a cross-encoder, a
            language model. It is asked once, in NumPy. Of triples it gets (m, 3) and (m, 3), as they are and as
            they are corrupted.
        m: How many.
        rng: Draws them; a refusal leaves it where it was, so that the same are drawn when it is mended.

    Example:
        >>> import naysay as ns
        >>> world = ns.planted_world(n_anchors=200, n_items=100)
        >>> query = ns.Query(np.arange(200))
        >>> drawn = ns.pools.Everything(world.known).draw(query, 10, rng=ns.rng_for(0))
        >>> found = judge_some(query, drawn, world.is_false_negative, 50, rng=ns.rng_for(1))
        >>> found.n, int(found.truth.sum()), found.negatives.shape == (len(found.query), 10)
        (50, 5, True)
    """
    return verdicts(query, negatives, judge, m, rng)


def verdicts(query: Query, negatives: Negatives, judge: Judge, m: Any, rng: np.random.Generator) -> Verdicts:
    """`judge_some` in another's name."""
    check_asked(query, negatives)
    if not callable(judge):
        raise_invalid("judge", "a function judge(anchors, ids)", type(judge).__name__)
    wanted = check_whole("m", m, 1)
    filled = np.flatnonzero(np.asarray(to_numpy(negatives.mask)).ravel())
    if len(filled) == 0:
        raise_invalid("negatives", "at least one negative", "none")
    n, moved = min(wanted, len(filled)), deepcopy(rng)
    drawn = rng_for(int(key_from(moved))).choice(filled, n, replace=False)
    rows, slots = np.divmod(drawn, negatives.shape[1])
    said = as_array("judge", to_numpy(judge(*slot_pairs(query, negatives, rows, slots))))
    if said.shape != (n,) or said.dtype != bool:
        rule = f"a function that answers True or False for each of {n} pairs"
        raise_invalid("judge", rule, f"{said.dtype} of shape {said.shape}")
    rng.bit_generator.state = moved.bit_generator.state
    kept, place = np.unique(rows, return_inverse=True)
    truth, judged = (np.zeros((len(kept), negatives.shape[1]), bool) for _ in range(2))
    truth[place, slots], judged[place, slots] = said, True
    given = {part.name: getattr(negatives, part.name) for part in fields(negatives)}
    taken = {name: value[kept] for name, value in given.items() if hasattr(value, "dtype")}
    ids = np.where(judged, to_numpy(taken.pop("ids")), -1)
    ids = to_torch(ids, negatives.ids.device) if is_torch(negatives.ids) else ids
    return Verdicts(query_rows(query, kept), replace(negatives, ids=ids, **taken, dropped={}), truth, n)
