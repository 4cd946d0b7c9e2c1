"""check_pool: what everything that draws candidates promises, (B,) in, (B, n) out, nothing known."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay.arrays import to_numpy
from naysay.checks import check_whole, public, raise_invalid
from naysay.errors import NaysayError
from naysay.kernels.threads import set_threads, threads
from naysay.rng import rng_for
from naysay.testing._frequencies import log_q
from naysay.testing._trials import LARGE, MANY, Batches, Known, MakeQuery, Trial, batches, differs, equal, place_keys
from naysay.testing.promises import Promises, check_promises, named, used_generator
from naysay.types import Negatives, Pool, Query, Stateful, anchor_ids

_WIDEST = 4096  # slots of the widest draw that makes rows run out; a wider one would take too long
_TRIES = 32  # generators, of which one must give another answer
_EXHAUSTED = "exhausted"


def on_short(trial: Trial) -> Iterator[str]:
    """A row with nothing left is padded with -1, without an exception."""
    try:
        trial.ask(trial.batches.roomiest())
    except Exception:
        # A user's part may raise anything. If it fails where nothing is short, the promise `shape` reports it.
        return
    for slots in (trial.slots, trial.max_slots):
        try:
            trial.ask(trial.batches.emptiest(), slots)
        except Exception as error:
            yield f"raised {type(error).__name__} where rows are to be padded: {error}"


def shape(trial: Trial) -> Iterator[str]:
    """(B,) in, (B, n) out, for B = 0, 1 and many."""
    for size in (0, 1, MANY):
        answer = trial.ask(trial.batches.mixed(size))
        if answer.shape != (size, trial.slots):
            yield f"returned shape {answer.shape} instead of ({size}, {trial.slots})"


def range_(trial: Trial) -> Iterator[str]:
    """Ids are from 0 to n_items - 1, or -1 in an empty slot."""
    for query, drawn in trial.answers():
        limits = trial.batches.limits(drawn)
        bad = drawn.ids < -1
        if limits is not None:
            bad |= drawn.ids >= limits
        if bad.any():
            allowed = "not below -1" if limits is None else f"within -1 ... {limits[bad][0] - 1}"
            yield f"returned {_first(query, drawn, bad)}, but an id is {allowed} ({_slots(bad)})"


def exclusion(trial: Trial) -> Iterator[str]:
    """A known pair, positive or ignored, is never returned."""
    for query, drawn in trial.answers():
        bad = trial.batches.forbidden(query, drawn)
        if bad.any():
            yield f"returned {_first(query, drawn, bad)}, which is known ({_slots(bad)})"


def distinct(trial: Trial) -> Iterator[str]:
    """A part with `distinct = True` returns an id, or a (side, id), at most once in a row."""
    if getattr(trial.part, "distinct", None) is not True:
        return
    for query, drawn in trial.answers():
        keys = place_keys(drawn)
        order = np.argsort(keys, axis=1, kind="stable")
        ordered = np.take_along_axis(keys, order, axis=1)
        again = np.zeros(drawn.shape, bool)
        np.put_along_axis(again, order[:, 1:], (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0), axis=1)
        if again.any():
            yield f"returned {_first(query, drawn, again)} twice in its row ({_slots(again)})"


def counted(trial: Trial) -> Iterator[str]:
    """Requested slots that stay empty are counted in `dropped`; slots beyond a row's number are -1, not counted."""
    uneven: tuple[Query, Any] = trial.batches.mixed(MANY), trial.uneven()
    for query, slots in (*trial.questions(), uneven):
        answer = trial.ask(query, copy.copy(slots))
        complaint = layout(answer, slots)
        if complaint is not None:
            yield complaint
        asked = int(np.broadcast_to(slots, len(query)).sum())
        empty = asked - int(np.count_nonzero(to_numpy(answer.ids) >= 0))
        # Other reasons may count candidates that left no slot empty, so their sum is a bound.
        if not answer.dropped.get(_EXHAUSTED, 0) <= empty <= sum(answer.dropped.values()):
            yield f"left {empty} of {asked} slots empty and counted dropped={dict(answer.dropped)}"


def layout(answer: Negatives, slots: Any) -> str | None:
    """What is wrong with the form of an answer to `slots`, one number or one for each row."""
    rows, width = answer.shape
    widest = int(np.max(slots, initial=0))
    if width != widest:
        return f"returned {width} slots where the widest row requests {widest}"
    beyond = np.arange(width) >= np.broadcast_to(slots, rows)[:, None]
    used = beyond & (to_numpy(answer.ids) != -1)
    return f"filled slots beyond the number that their row requests ({_slots(used)})" if used.any() else None


def frozen(trial: Trial) -> Iterator[str]:
    """The query and the slots are left as they were."""
    query, slots = trial.batches.mixed(MANY), trial.uneven()
    given = {"anchors": query.anchors, "positives": query.positives, "vectors": query.vectors, "slots": slots}
    before = copy.deepcopy(given)
    trial.ask(query)
    trial.ask(query, slots)
    changed = [name for name, value in given.items() if not equal(before[name], value)]
    if changed:
        yield f"changed the {changed[0]} it was given"


def determinism(trial: Trial) -> Iterator[str]:
    """An equal generator gives an equal answer."""
    query = trial.batches.mixed(MANY)
    difference = differs(trial.ask(query), trial.ask(query))
    if difference is not None:
        yield f"gave other {difference} for an equal generator"


def threads_(trial: Trial) -> Iterator[str]:
    """The number of threads changes nothing."""
    query, slots = trial.batches.mixed(LARGE), max(trial.slots, min(trial.max_slots, 16))
    before, answers = threads(), []
    try:
        for count in (1, 2, 4):
            set_threads(count)
            answers.append(trial.ask(query, slots))
    finally:
        set_threads(before)
    for count, answer in zip((2, 4), answers[1:], strict=True):
        difference = differs(answers[0], answer)
        if difference is not None:
            yield f"gave other {difference} with {count} threads than with 1"


def randomness(trial: Trial) -> Iterator[str]:
    """Another generator gives another answer, where there is a choice."""
    query = trial.batches.mixed(MANY)
    first = trial.ask(query).numpy()
    filled = first.ids >= 0
    if first.log_q is None:
        choice = bool(filled.any()) and trial.batches.has_choice(query, trial.slots)
    else:
        choice = bool((first.log_q[filled] < -1e-9).any())
    if not choice:
        return
    keys = place_keys(first)
    for step in range(1, _TRIES):
        if not equal(keys, place_keys(trial.ask(query, step=step))):
            return
    yield f"gave the same ids for {_TRIES} different generators"


def global_state(trial: Trial) -> Iterator[str]:
    """No global generator is used."""
    query = trial.batches.mixed(MANY)
    return used_generator(lambda: trial.ask(query))


def _first(query: Query, drawn: Negatives, bad: NDArray[np.bool_]) -> str:
    """'item 7 for anchor 3': the first wrong slot."""
    row, slot = np.argwhere(bad)[0]
    return f"item {drawn.ids[row, slot]} for anchor {anchor_ids(query)[row].tolist()}"


def _slots(bad: NDArray[np.bool_]) -> str:
    count = int(np.count_nonzero(bad))
    return f"{count} such slot{'s' if count > 1 else ''}"


def state(trial: Trial) -> Iterator[str]:
    """A flat dictionary of arrays, numbers and strings, and all of it: restored, the next draw is the same."""
    if trial.saved is None:
        return
    strange = _strange(trial.saved)
    if strange is not None:
        yield f"keeps {strange}; a state is a flat dictionary of arrays, numbers and strings"
    query = trial.batches.mixed(MANY)
    first = trial.ask(query)
    for step in range(1, 4):  # change its state by drawing and observing
        drawn = trial.call(query, trial.slots, rng=rng_for(trial.seed, step))
        if hasattr(trial.part, "observe"):
            with suppress(NaysayError):  # it needs scores or vectors, which are not known here
                trial.part.observe(query, drawn)
    difference = differs(first, trial.ask(query))
    if difference is not None:
        yield f"gave other {difference} after restore(state())"


def _strange(state: Any) -> str | None:
    """What in a state `np.savez(file, **state)` could not write down without pickle, or None."""
    if not isinstance(state, dict):
        return f"a {type(state).__name__} in place of a dictionary"
    for key, value in state.items():
        if not isinstance(key, str):
            return f"the key {key!r}"
        plain = to_numpy(value)
        number = isinstance(plain, bool | int | float | str | np.generic)
        if not number and not (isinstance(plain, np.ndarray) and plain.dtype.kind != "O"):
            return f"a {type(value).__name__} at {key!r}"
    return None


PROMISES: Promises[Trial] = named(
    state,
    on_short,
    shape,
    range_,
    exclusion,
    distinct,
    counted,
    frozen,
    determinism,
    threads_,
    randomness,
    global_state,
    log_q,
)


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
