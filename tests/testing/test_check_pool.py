"""Every promise of a pool has broken duplicates that `check_pool` names, and honest pools pass."""

import pickle
import random  # noqa: TID251 - a duplicate moves it
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.kernels.threads import threads
from naysay.pools import Corruption, Everything
from naysay.testing import PromiseBroken, check_pool, planted_world
from naysay.testing._trials import batches
from naysay.testing.pools import PROMISES
from naysay.types import anchor_ids, positive_ids

N_ITEMS = 30


def small_world():
    """40 anchors: one knows everything, one all but two items, some nothing; a few pairs are ignored."""
    rng = np.random.default_rng(1)
    anchors = np.concatenate([np.zeros(N_ITEMS), np.ones(N_ITEMS - 2), rng.integers(2, 36, 200)]).astype(int)
    items = np.concatenate([np.arange(N_ITEMS), np.arange(N_ITEMS - 2), rng.integers(0, N_ITEMS, 200)])
    known = ns.Positives.from_pairs(anchors, items, 40, N_ITEMS)
    return known.with_ignored([2, 3, 4, 5], [7, 7, 8, 9])


KNOWN = small_world()
WEIGHTS = np.arange(1.0, N_ITEMS + 1)


class Plain:
    """An honest pool; the duplicates change one thing each."""

    distinct = True

    def __init__(self, inner=None):
        self.inner = Everything(KNOWN) if inner is None else inner

    def draw(self, query, n, *, rng):
        return self.inner.draw(query, n, rng=rng)


class Counting(Plain):
    """Draws depend on how many there have been: state that is kept, and restored, in full."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def draw(self, query, n, *, rng):
        self.calls += 1
        return self.inner.draw(query, n, rng=ns.rng_for(int(rng.integers(1 << 32)), step=self.calls))

    def state(self):
        return {"calls": self.calls, "name": "counting", "table": np.arange(3)}

    def restore(self, state):
        self.calls = state["calls"]


class KeepsAnObject(Counting):
    def state(self):
        return {"calls": self.calls, "parts": object()}


class KeepsAState(Counting):
    def state(self):
        return {"calls": self.calls, "part": {"table": np.arange(3)}}


class KeepsNothing(Counting):
    def state(self):
        return {"calls": self.calls, "table": None}


class KeepsAList(Counting):
    def state(self):
        return [self.calls]

    def restore(self, state):
        self.calls = state[0]


class KeepsObjectArray(Counting):
    def state(self):
        return {"calls": self.calls, "array": np.array([None, {}])}


class KeepsOddKeys(Counting):
    def state(self):
        return {"calls": self.calls, 3: 1.0}


class ForgetsState(Counting):
    def restore(self, state):
        pass


class ForgetsObserved(Plain):
    """Learns from what it observes, and does not give it back."""

    seen = 0

    def draw(self, query, n, *, rng):
        return self.inner.draw(query, n, rng=ns.rng_for(int(rng.integers(1 << 32)), step=self.seen))

    def observe(self, query, negatives, *, positive_scores=None, vectors=None):
        self.seen += 1

    def state(self):
        return {}

    def restore(self, state):
        pass


class Refuses(Plain):
    def draw(self, query, n, *, rng):
        return Everything(KNOWN, on_short="raise").draw(query, n, rng=rng)


class TooWide(Plain):
    def draw(self, query, n, *, rng):
        return super().draw(query, np.asarray(n) + 1, rng=rng)


class NoEmptyBatch(Plain):
    def draw(self, query, n, *, rng):
        anchor_ids(query).min()
        return super().draw(query, n, rng=rng)


class BareArray(Plain):
    def draw(self, query, n, *, rng):
        return super().draw(query, n, rng=rng).ids


class PastTheEnd(Plain):
    def draw(self, query, n, *, rng):
        answer = super().draw(query, n, rng=rng)
        return replace(answer, ids=np.where(answer.ids == N_ITEMS - 1, N_ITEMS, answer.ids))


class BelowMinusOne(Plain):
    def draw(self, query, n, *, rng):
        answer = super().draw(query, n, rng=rng)
        return replace(answer, ids=np.where(answer.ids == -1, -2, answer.ids))


def knows_nothing():
    return Plain(Everything(ns.Positives.from_pairs([], [], 40, N_ITEMS)))


def forgets_ignored():
    anchors, items = KNOWN.pairs()
    positive = KNOWN.relation == 1
    return Plain(Everything(ns.Positives.from_pairs(anchors[positive], items[positive], 40, N_ITEMS)))


class CountsNothing(Plain):
    def draw(self, query, n, *, rng):
        return replace(super().draw(query, n, rng=rng), dropped={})


class CountsTooMuch(Plain):
    """Counts slots of shorter rows as well, which nobody asked for."""

    def draw(self, query, n, *, rng):
        answer = super().draw(query, n, rng=rng)
        return replace(answer, dropped={"exhausted": int((answer.ids < 0).sum())})


class OneNumberOnly(Plain):
    """Takes the largest of n for every row."""

    def draw(self, query, n, *, rng):
        return super().draw(query, int(np.max(n, initial=0)), rng=rng)


class OverwritesPositives(Plain):
    def draw(self, query, n, *, rng):
        answer = super().draw(query, n, rng=rng)
        query.positives[:] = 0
        return answer


class OverwritesSlots(Plain):
    def draw(self, query, n, *, rng):
        answer = super().draw(query, n, rng=rng)
        if np.ndim(n):
            n.sort()
            n[:] = n[::-1].copy()
        return answer


class OwnGenerator(Plain):
    def draw(self, query, n, *, rng):
        return super().draw(query, n, rng=np.random.default_rng())


class OwnCounts(Plain):
    """Counts something that changes from call to call."""

    calls = 0

    def draw(self, query, n, *, rng):
        self.calls += 1
        answer = super().draw(query, n, rng=rng)
        return replace(answer, dropped={**answer.dropped, "tries": self.calls})


class ByThreads(Plain):
    def draw(self, query, n, *, rng):
        return super().draw(query, n, rng=ns.rng_for(int(rng.integers(1 << 32)), step=threads()))


class FixedSeed(Plain):
    def draw(self, query, n, *, rng):
        return super().draw(query, n, rng=ns.rng_for(0))


class FixedSeedWithoutClaims(FixedSeed):
    def draw(self, query, n, *, rng):
        return replace(super().draw(query, n, rng=rng), log_q=None)


class Moves(Plain):
    def __init__(self, move):
        super().__init__()
        self.move = move

    def draw(self, query, n, *, rng):
        self.move()
        return super().draw(query, n, rng=rng)


class Claims(Plain):
    """An honest pool with another log_q."""

    def __init__(self, claim, inner=None):
        super().__init__(inner)
        self.claim = claim
        self.distinct = self.inner.distinct

    def draw(self, query, n, *, rng):
        answer = super().draw(query, n, rng=rng)
        log_q = np.where(answer.ids >= 0, self.claim(answer), 0.0)
        return replace(answer, log_q=log_q)


class ClaimsInEmptySlots(Plain):
    def draw(self, query, n, *, rng):
        answer = super().draw(query, n, rng=rng)
        return replace(answer, log_q=np.where(answer.ids >= 0, answer.log_q, -1.0))


def weighted(*, distinct):
    return Everything(KNOWN, WEIGHTS, distinct=distinct)


def at_first(claim):
    """The claim for a row's first slot, the truth for the others."""
    return lambda answer: np.where(np.arange(answer.shape[1]) == 0, claim(answer), answer.log_q)


def marginal(answer):
    """w_i / W_free, whatever came before in the row. The row's weights are known from its first slot."""
    first = answer.ids[:, :1]
    free = WEIGHTS[first] / np.exp(answer.log_q[:, :1])
    return np.log(WEIGHTS[answer.ids] / np.where(first >= 0, free, N_ITEMS**2))


TWINS = [
    ("state", KeepsAnObject, r"keeps a object at 'parts'; a state is a flat dictionary of arrays, numbers and strings"),
    ("state", KeepsAState, r"keeps a dict at 'part'; a state is a flat"),
    ("state", KeepsNothing, r"keeps a NoneType at 'table'; a state is a flat"),
    ("state", KeepsAList, r"keeps a list in place of a dictionary; a state is a flat"),
    ("state", KeepsObjectArray, r"keeps a ndarray at 'array'"),
    ("state", KeepsOddKeys, r"keeps the key 3; a state is a flat"),
    ("state", ForgetsState, r"gave other ids after restore\(state\(\)\)"),
    ("state", ForgetsObserved, r"gave other ids after restore\(state\(\)\)"),
    ("on_short", Refuses, "raised NaysayError where rows are to be padded: .* has 0 candidates left of the"),
    ("shape", TooWide, r"returned shape \(0, \d\) instead of \(0, \d\)"),
    ("shape", NoEmptyBatch, "raised ValueError: zero-size array"),
    ("shape", BareArray, "raised TypeError: the answer must be Negatives, not ndarray"),
    ("range", PastTheEnd, r"returned item 30 for anchor \d+, but an id is within -1 \.\.\. 29 \(\d+ such slots\)"),
    ("range", BelowMinusOne, r"returned item -2 for anchor 0, but an id is within -1 \.\.\. 29"),
    ("exclusion", knows_nothing, r"returned item \d+ for anchor \d+, which is known \(\d+ such slots\)"),
    ("exclusion", forgets_ignored, r"returned item [789] for anchor [2345], which is known \(\d+ such slots\)"),
    ("distinct", lambda: Plain(Everything(KNOWN, distinct=False)), r"item \d+ for anchor \d+ twice in its row \(\d+"),
    ("counted", CountsNothing, r"left \d+ of \d+ slots empty and counted dropped={}"),
    ("counted", CountsTooMuch, r"left \d+ of \d+ slots empty and counted dropped={'exhausted': \d+}"),
    ("counted", OneNumberOnly, "filled slots beyond the number that their row requests"),
    ("frozen", OverwritesPositives, "changed the positives it was given"),
    ("frozen", OverwritesSlots, "changed the slots it was given"),
    ("determinism", OwnGenerator, "gave other ids for an equal generator"),
    ("determinism", OwnCounts, "gave other dropped for an equal generator"),
    ("threads", ByThreads, "gave other ids with 2 threads than with 1"),
    ("randomness", FixedSeed, "gave the same ids for 32 different generators"),
    ("randomness", FixedSeedWithoutClaims, "gave the same ids for 32 different generators"),
    ("global_state", lambda: Moves(np.random.rand), "used the global generator of numpy.random"),
    ("global_state", lambda: Moves(random.random), "used the global generator of random"),
    ("global_state", lambda: Moves(lambda: torch.rand(1)), "used the global generator of torch"),
    ("log_q", lambda: Claims(lambda a: np.full(a.shape, np.nan)), "between nan and nan; it is finite and at most 0"),
    ("log_q", lambda: Claims(lambda a: -a.log_q), r"log_q between 0.0 and 3\.\d+; it is finite and at most 0"),
    ("log_q", ClaimsInEmptySlots, "gave a log_q other than 0 in an empty slot"),
    (
        "log_q",
        lambda: Claims(at_first(lambda a: np.full(a.shape, -np.log(N_ITEMS)))),
        r"for anchor 1 that its draws do not follow",
    ),
    (
        "log_q",
        lambda: Claims(at_first(lambda a: np.full(a.shape, -np.log(20))), weighted(distinct=True)),
        r"for anchor \d+ that its draws do not follow",
    ),
    (
        "log_q",
        lambda: Claims(lambda a: 0.5 * a.log_q, weighted(distinct=False)),
        r"for anchor \d+ that adds up to \d\.\d+ over \d+ outcomes",
    ),
    (
        "log_q",
        lambda: Claims(at_first(lambda a: -3.0 - a.ids.sum() % 7)),
        r"for anchor \d+ that has two values for one outcome",
    ),
    (
        "log_q",
        lambda: Claims(lambda a: np.broadcast_to(a.log_q[:, :1], a.shape)),  # the marginal of a uniform draw
        r"log_q of -0\.6931 to the last candidate of anchor 1, slot 1; it is 0 there",
    ),
    ("log_q", lambda: Claims(marginal, weighted(distinct=True)), r"to the last candidate of anchor 1, slot 1; it is 0"),
    (
        "log_q",
        lambda: Claims(lambda a: a.log_q * np.where(np.arange(a.shape[1]) == 1, 0.9, 1.0)),
        r"for anchor \d+, its first two slots together, that",
    ),
]


@pytest.mark.parametrize(("promise", "make", "message"), TWINS)
def test_a_broken_promise_is_named(promise, make, message):
    with pytest.raises(PromiseBroken, match=message) as caught:
        check_pool(make(), KNOWN)
    assert caught.value.promise == promise
    assert str(caught.value).startswith(f"`{promise}`: ")


def test_every_promise_has_a_broken_duplicate():
    assert {promise for promise, _, _ in TWINS} == set(PROMISES)


def test_the_twins_are_otherwise_honest():
    check_pool(Plain(), KNOWN)
    check_pool(Counting(), KNOWN)
    for distinct in (True, False):
        check_pool(Claims(lambda a: a.log_q, weighted(distinct=distinct)), KNOWN)


class LeavesSome(Plain):
    """An honest pool that leaves one candidate of each row unused and says so: its last slot had a choice."""

    def draw(self, query, n, *, rng):
        answer = super().draw(query, n, rng=rng)
        left = KNOWN.n_items - KNOWN.count(anchor_ids(query), relation="any") - 1
        cut = (np.arange(answer.shape[1]) >= left[:, None]) & (answer.ids >= 0)
        dropped = {**answer.dropped, "left": int(cut.sum())}
        return replace(answer, ids=np.where(cut, -1, answer.ids), log_q=np.where(cut, 0, answer.log_q), dropped=dropped)


def test_the_last_candidate_is_only_that_where_nothing_else_was_left_out():
    check_pool(LeavesSome(), KNOWN)


@pytest.mark.parametrize("choice", ["uniform", "bernoulli"])
def test_the_last_candidate_of_a_triple_is_the_last_of_all_sides(choice):
    triples = np.random.default_rng(0).integers(0, [6, 2, 6], (60, 3))
    pool, known = Corruption(triples, choice=choice), ns.Triples(triples)
    check_pool(pool, known)
    with pytest.raises(PromiseBroken, match=r"to the last candidate of anchor \[\d, \d, \d\], slot \d+; it is 0 there"):
        check_pool(Claims(lambda a: np.minimum(a.log_q, -0.01), pool), known)


PLANTED = planted_world(300, 120, per_anchor=10)


@pytest.mark.parametrize("known", [PLANTED.known, KNOWN, ns.Positives.from_pairs([0, 0, 1, 2], [0, 1, 1, 0], 4, 2)])
@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("by_weight", [True, False])
def test_everything_keeps_all_promises(known, distinct, by_weight):
    weights = np.arange(known.n_items) ** 2.0 if by_weight else None  # item 0 has weight 0: never drawn
    check_pool(Everything(known, weights, distinct), known)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 10**6), st.integers(1, 9))
def test_an_honest_pool_passes_in_any_world(n_anchors, n_items, seed, n):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, n_anchors * n_items + 1))
    known = ns.Positives.from_pairs(
        rng.integers(0, n_anchors, size), rng.integers(0, n_items, size), n_anchors, n_items
    )
    check_pool(Everything(known, distinct=bool(seed % 2)), known, n=n, seed=seed, anchors=np.arange(n_anchors))


class InBatch:
    """A pool that looks at the batch: the positives of other rows, less what is known of the row."""

    def draw(self, query, n, *, rng):
        items, anchors = positive_ids(query), anchor_ids(query)
        ids = np.full((len(query), int(np.max(n, initial=0))), -1)
        others = np.unique(items)
        key = np.where(self.excluded(anchors, others, items), 2.0, rng.random((len(query), len(others))))
        order = np.argsort(key, axis=1)[:, : ids.shape[1]]
        kept = (np.take_along_axis(key, order, axis=1) < 2) & (np.arange(order.shape[1]) < np.reshape(n, (-1, 1)))
        ids[:, : order.shape[1]] = np.where(kept, others[order], -1)
        asked = int(np.broadcast_to(n, len(query)).sum())
        return ns.Negatives(ids, dropped={"exhausted": asked - int((ids >= 0).sum())})

    def excluded(self, anchors, others, own):
        known = KNOWN.contains(anchors, np.tile(others, (len(anchors), 1)), relation="any")
        return known | (others == own[:, None])


class OwnPositive(InBatch):
    def excluded(self, anchors, others, own):
        return np.zeros((len(anchors), len(others)), bool)


def partner(anchors):
    return ns.Query(anchors, positives=(anchors * 7) % N_ITEMS)


def test_queries_carry_a_positive_of_each_anchor():
    made = batches(None, KNOWN, None, None, 0)
    query = made.mixed(500)
    assert len(query) == 500
    assert KNOWN.contains(query.anchors, query.positives, relation="positive").all()
    assert query.anchors[0] == 0
    assert query.anchors[1] == 1  # the two that run out come first
    check_pool(InBatch(), KNOWN, n=4)


def test_a_query_factory_dresses_the_anchors():
    check_pool(InBatch(), anchors=np.arange(40), query=partner, n=4)
    with pytest.raises(
        PromiseBroken, match=r"`shape`: InBatch.draw raised NaysayError: .*query.positives.*must be given"
    ):
        check_pool(InBatch(), anchors=np.arange(40))


def test_with_nothing_known_a_rows_own_positive_is_excluded():
    with pytest.raises(PromiseBroken, match=r"`exclusion`: OwnPositive.draw returned item"):
        check_pool(OwnPositive(), anchors=np.arange(40), query=partner, n=4)


class Corrupt:
    """Triples by brute force: every replacement of head or tail that is not known, in random order."""

    distinct = True

    def __init__(self, known, *, filtered=True):
        self.known, self.filtered, self.cache = known, filtered, {}

    def draw(self, query, n, *, rng):
        counts = np.broadcast_to(n, len(query))
        ids = np.full((len(query), int(np.max(n, initial=0))), -1)
        side = np.zeros(ids.shape, np.int8)
        for row, triple in enumerate(anchor_ids(query).tolist()):
            options = self.options(tuple(triple))
            for slot, place in enumerate(rng.permutation(len(options))[: counts[row]]):
                side[row, slot], ids[row, slot] = options[place]
        return ns.Negatives(ids, side=side, dropped={"exhausted": int(counts.sum() - (ids >= 0).sum())})

    def options(self, triple):
        if triple not in self.cache:
            replaced = [(s, e) for s in (0, 2) for e in range(self.known.n_entities) if triple[s] != e]
            if self.filtered:
                made = [tuple(e if part == s else triple[part] for part in range(3)) for s, e in replaced]
                replaced = [r for r, bad in zip(replaced, self.known.contains(made), strict=True) if not bad]
            self.cache[triple] = replaced
        return self.cache[triple]


def test_triples_are_driven_and_excluded_by_side():
    rng = np.random.default_rng(3)
    known = ns.Triples(np.stack([rng.integers(0, 5, 30), rng.integers(0, 2, 30), rng.integers(0, 5, 30)], 1))
    check_pool(Corrupt(known), known, n=3)
    with pytest.raises(
        PromiseBroken, match=r"`exclusion`: Corrupt.draw returned item \d for anchor \[\d, \d, \d\], which"
    ):
        check_pool(Corrupt(known, filtered=False), known, n=3)


def test_distinct_looks_at_the_side_too():
    known = ns.Triples([[0, 0, 1], [2, 0, 3]], n_entities=6)

    class SameIdBothSides(Corrupt):
        def options(self, triple):
            return [(0, 4), (2, 4), (0, 5), (2, 5)]

    class Twice(SameIdBothSides):
        def options(self, triple):
            return [(0, 4), (0, 4), (2, 5), (2, 4)]

    check_pool(SameIdBothSides(known), known, n=3)
    with pytest.raises(PromiseBroken, match=r"`distinct`: Twice.draw returned item 4 for anchor .* twice in its row"):
        check_pool(Twice(known), known, n=3)


def test_the_pool_and_the_threads_are_left_as_they_were():
    pool, before = Counting(), threads()
    pool.calls = 5
    try:
        ns.set_threads(3)
        check_pool(pool, KNOWN)
        assert (pool.calls, threads()) == (5, 3)
        with pytest.raises(PromiseBroken, match="threads"):
            check_pool(ByThreads(), KNOWN)
        assert threads() == 3
    finally:
        ns.set_threads(before)


def test_a_promise_that_is_not_made_is_not_held():
    check_pool(FixedSeed(), KNOWN, without=("randomness", "log_q"))
    with pytest.raises(ns.NaysayError, match=r"check_pool: `without` must be one of .* Did you mean 'randomness'"):
        check_pool(Plain(), KNOWN, without=("randomnes",))


def test_the_pools_own_positives_are_the_default():
    check_pool(Everything(KNOWN))


def test_the_exception_survives_pickling():
    broken = PromiseBroken("shape", "Mine.draw answered")
    again = pickle.loads(pickle.dumps(broken))
    assert isinstance(again, AssertionError)
    assert (again.promise, str(again)) == ("shape", "`shape`: Mine.draw answered")
