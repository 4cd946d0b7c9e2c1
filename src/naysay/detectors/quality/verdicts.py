"""Some of the negatives, drawn at random, and what a judge says of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_whole, refuse
from naysay.detectors.slots import check_asked
from naysay.rng import key_from, rng_for
from naysay.types import Negatives, Query

# judge(anchors (m,), ids (m,)) -> (m,) bool: whether the pair is a positive after all; of triples, anchors are (m, 3)
Judge = Callable[[NDArray[np.int64], NDArray[np.int64]], Any]


class Verdicts(NamedTuple):
    """What was judged, in the form in which detectors are asked, fitted and evaluated: a row for each.

    query       the anchors (m,), with positives and vectors if there are any
    negatives   (m, 1) the slots, with their scores, vectors and sides if there are any
    truth       (m, 1) bool: False for a true negative, True for a false one
    """

    query: Query
    negatives: Negatives
    truth: NDArray[np.bool_]


def judge_some(query: Query, negatives: Negatives, judge: Judge, m: int = 100, *, rng: np.random.Generator) -> Verdicts:
    """Have m of the negatives judged, drawn without replacement, all as likely; all of them if there are fewer.

    query, negatives   a sampler's question and answer, or what is left of it after a policy: slots of `mask` count
    judge              judge(anchors (m,), ids (m,)) -> (m,) bool, True for a false negative: a person, a cross-encoder,
                       a language model. It is asked once, in NumPy
    m                  how many
    rng                draws them; a refusal leaves it where it was, so that the same are drawn when it is mended

    `Labelled().fit(*verdicts)` learns from them, and `evaluate(detector, *others)` by others says how well.

    >>> import naysay as ns
    >>> world = ns.planted_world(n_anchors=200, n_items=100)
    >>> query = ns.Query(np.arange(200))
    >>> drawn = ns.pools.Everything(world.known).draw(query, 10, rng=ns.rng_for(0))
    >>> found = judge_some(query, drawn, world.is_false_negative, 50, rng=ns.rng_for(1))
    >>> found.negatives.shape, int(found.truth.sum())
    ((50, 1), 5)
    """
    return verdicts("judge_some", query, negatives, judge, m, rng)


def verdicts(
    owner: str, query: Query, negatives: Negatives, judge: Judge, m: Any, rng: np.random.Generator
) -> Verdicts:
    """`judge_some` in another's name."""
    check_asked(owner, query, negatives)
    if not callable(judge):
        refuse(owner, "judge", "a function judge(anchors, ids)", type(judge).__name__)
    wanted = check_whole(owner, "m", m, 1)
    filled = np.flatnonzero(np.asarray(to_numpy(negatives.mask)).ravel())
    if len(filled) == 0:
        refuse(owner, "negatives", "at least one negative", "none")
    n, moved = min(wanted, len(filled)), deepcopy(rng)
    drawn = rng_for(int(key_from(owner, moved))).choice(filled, n, replace=False)
    rows, slots = np.divmod(drawn, negatives.shape[1])
    ids = np.asarray(to_numpy(negatives.ids))[rows, slots]
    said = as_array(owner, "judge", to_numpy(judge(query.ids(owner)[rows], ids)))
    if said.shape != (n,) or said.dtype != bool:
        rule = f"a function that answers True or False for each of {n} pairs"
        refuse(owner, "judge", rule, f"{said.dtype} of shape {said.shape}")
    rng.bit_generator.state = moved.bit_generator.state
    given = {part.name: getattr(negatives, part.name) for part in fields(negatives)}
    taken = {name: value[rows, slots][:, None] for name, value in given.items() if hasattr(value, "dtype")}
    return Verdicts(query_rows(query, rows), replace(negatives, **taken, dropped={}), said[:, None])


def query_rows(query: Query, chosen: NDArray[Any]) -> Query:
    """The query of some rows."""
    parts = {name: getattr(query, name) for name in ("anchors", "positives", "vectors")}
    return replace(query, **{name: part[chosen] for name, part in parts.items() if part is not None})
