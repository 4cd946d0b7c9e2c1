"""check_pool: what everything that draws candidates promises."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any

from numpy.typing import ArrayLike

from naysay.checks import check_whole, public, raise_invalid
from naysay.testing import _draws as draws
from naysay.testing._trials import Batches, Known, MakeQuery, Trial, batches
from naysay.testing.promises import Promises, check_promises
from naysay.types import Negatives, Pool, Stateful

# The widest draw that makes rows run out; a wider one would take too long.
_WIDEST = 4096

PROMISES = draws.PROMISES


@public
def check_pool(
    pool: Pool,
    positives: Known | None = None,
    *,
    anchors: ArrayLike | None = None,
    n: int = 8,
    seed: int = 0,
    query: MakeQuery | None = None,
    without: Collection[str] = (),
) -> None:
    """Raise PromiseBroken if `pool` breaks a promise of a pool.

    state         state() is a flat dictionary of arrays, numbers and strings; after restore the next draw is the same
    on_short      a row with nothing left is padded, without an exception
    shape         (B, n) for B = 0, 1 and many
    range         ids within -1 ... n_items - 1
    exclusion     no positive and no ignored pair is returned; with nothing known, not the row's own positive
    distinct      where pool.distinct is True, no id (with a side: no side and id) twice in a row
    counted       requested slots that stay empty are counted in dropped; slots beyond a row's n are -1, not counted
    frozen        the query's arrays are not changed
    determinism   an equal generator gives an equal answer
    threads       1, 2 and 4 threads give equal answers
    randomness    another generator gives another answer, where there is a choice
    global_state  the global generators of NumPy, Python and torch are not used
    log_q         None, or finite, at most 0, and the frequencies of the first slot, and of the first two together,
                  follow it (chi-square tests, p > 1e-8); 0 for the last candidate of a distinct row that ran out

    Use few items, and an anchor for which nearly all of them are known: then rows run out, and a wrong log_q shows in
    few draws. It makes about 2,000 draws of 8 rows if there is a log_q, and some dozens if not.

    Args:
        pool: Anything with draw(query, n, *, rng) -> Negatives, made to pad short rows.
        positives: What the pool must never return: Positives or Triples; by default `pool.positives`. Queries are made
            of its pairs, each anchor with one of its positives, or of its triples.
        anchors: (A,) or (A, 3), the rows to make queries of instead.
        n: The number of candidates per row.
        seed: Of the queries and generators.
        query: query(anchors) -> Query, for pools that need more than the anchors.
        without: Names of promises that this pool does not make, e.g. "randomness" if it has no choice.

    Examples:
        >>> import naysay as ns
        >>> check_pool(ns.pools.Everything(ns.Positives.from_pairs([0, 0, 1], [0, 1, 2], n_items=9)))
    """
    if not isinstance(pool, Pool):
        raise_invalid("pool", "an object with draw(query, n, *, rng)", f"a {type(pool).__name__}")
    made = batches(pool, positives, anchors, query, seed)
    trial = trial_of("pool", pool, pool.draw, made, ("n", n), widest=_WIDEST)
    run(f"{type(pool).__name__}.draw", PROMISES, trial, without)


def trial_of(
    name: str,
    part: Any,
    call: Callable[..., Negatives],
    made: Batches,
    slots: tuple[str, int],
    *,
    widest: int,
) -> Trial:
    """The trial of a pool or sampler. `widest` limits the number of slots that makes rows run out."""
    wanted = check_whole(*slots, 1)
    if getattr(part, "on_short", "pad") == "raise":
        raise_invalid(name, "made with on_short='pad'", "on_short='raise'")
    more = (made.n_candidates or 0) + 3
    max_slots = more if wanted < more <= widest else wanted
    saved = copy.deepcopy(part.state()) if isinstance(part, Stateful) else None
    return Trial(part, call, made, wanted, max_slots, made.seed, saved)


def run(label: str, promises: Promises[Trial], trial: Trial, without: Collection[str]) -> None:
    """Check the promises, and restore the part's state afterwards."""
    try:
        check_promises(label, promises, trial, without)
    finally:
        trial.rewind()
