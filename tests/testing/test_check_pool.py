"""Pools that break each promise are named by `check_pool`, and honest pools pass."""

import pickle
import random  # noqa: TID251 - a pool moves it
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.kernels.threads import threads
from naysay.pools import Corruption, Everything
from naysay.testing import PromiseBroken, check_pool
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
    """An honest pool; the broken ones change one thing each."""

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


class Keeps(Counting):
    """Counting, with another state."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def state(self):
        return self.kept

    def restore(self, state):
        self.calls = 0


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


class NoEmptyBatch(Plain):
    def draw(self, query, n, *, rng):
        anchor_ids(query).min()
        return super().draw(query, n, rng=rng)


class Changed(Plain):
    """An honest pool whose answer is changed: change(answer)."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def draw(self, query, n, *, rng):
        return self.change(super().draw(query, n, rng=rng))


class Asked(Plain):
    """An honest pool that is asked something else: another(query, n, rng) -> (n, rng)."""

    def __init__(self, another):
        super().__init__()
        self.another = another

    def draw(self, query, n, *, rng):
        n, rng = self.another(query, n, rng)
        return super().draw(query, n, rng=rng)


def by_number(number):
    """A pool whose draws depend on a number that is read at each call."""
    return Asked(lambda query, n, rng: (n, ns.rng_for(int(rng.integers(1 << 32)), step=number())))


def moves(move):
    """A pool that calls a function at each draw."""

    def another(query, n, rng):
        move()
        return n, rng

    return Asked(another)


def with_ids(change):
    return Changed(lambda answer: replace(answer, ids=change(answer.ids)))


def knows_nothing():
    return Plain(Everything(ns.Positives.from_pairs([], [], 40, N_ITEMS)))


def forgets_ignored():
    anchors, items = KNOWN.pairs()
    positive = KNOWN.relation == 1
    return Plain(Everything(ns.Positives.from_pairs(anchors[positive], items[positive], 40, N_ITEMS)))


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


class OwnCounts(Plain):
    """Counts something that changes from call to call."""

    calls = 0

    def draw(self, query, n, *, rng):
        self.calls += 1
        answer = super().draw(query, n, rng=rng)
        return replace(answer, dropped={**answer.dropped, "tries": self.calls})


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


def uniform_at_first(n):
    return at_first(lambda answer: np.full(answer.shape, -np.log(n)))


def empty_count(answer):
    """The count of all empty slots, also of those that their row did not request."""
    return replace(answer, dropped={"exhausted": int((answer.ids < 0).sum())})


FIXED_SEED = Asked(lambda query, n, rng: (n, ns.rng_for(0)))
BROKEN = [
    ("state", lambda: Keeps({"parts": object()})),
    ("state", lambda: Keeps({"part": {"table": np.arange(3)}})),
    ("state", lambda: Keeps({"table": None})),
    ("state", lambda: Keeps([0])),
    ("state", lambda: Keeps({"array": np.array([None, {}])})),
    ("state", lambda: Keeps({3: 1.0})),
    ("state", ForgetsState),
    ("state", ForgetsObserved),
    ("on_short", Refuses),
    ("shape", lambda: Asked(lambda query, n, rng: (np.asarray(n) + 1, rng))),
    ("shape", NoEmptyBatch),
    ("shape", lambda: Changed(lambda answer: answer.ids)),
    ("range", lambda: with_ids(lambda ids: np.where(ids == N_ITEMS - 1, N_ITEMS, ids))),
    ("range", lambda: with_ids(lambda ids: np.where(ids == -1, -2, ids))),
    ("exclusion", knows_nothing),
    ("exclusion", forgets_ignored),
    ("distinct", lambda: Plain(Everything(KNOWN, distinct=False))),
    ("counted", lambda: Changed(lambda answer: replace(answer, dropped={}))),
    ("counted", lambda: Changed(empty_count)),
    ("counted", lambda: Asked(lambda query, n, rng: (int(np.max(n, initial=0)), rng))),
    ("frozen", OverwritesPositives),
    ("frozen", OverwritesSlots),
    ("determinism", lambda: Asked(lambda query, n, rng: (n, np.random.default_rng()))),
    ("determinism", OwnCounts),
    ("threads", lambda: by_number(threads)),
    ("randomness", lambda: FIXED_SEED),
    ("global_state", lambda: moves(np.random.rand)),
    ("global_state", lambda: moves(random.random)),
    ("global_state", lambda: moves(lambda: torch.rand(1))),
    ("log_q", lambda: Claims(lambda answer: np.full(answer.shape, np.nan))),
    ("log_q", lambda: Claims(lambda answer: -answer.log_q)),
    ("log_q", lambda: Changed(lambda a: replace(a, log_q=np.where(a.ids >= 0, a.log_q, -1.0)))),
    ("log_q", lambda: Claims(uniform_at_first(N_ITEMS))),
    ("log_q", lambda: Claims(uniform_at_first(20), weighted(distinct=True))),
    ("log_q", lambda: Claims(lambda answer: 0.5 * answer.log_q, weighted(distinct=False))),
    ("log_q", lambda: Claims(at_first(lambda answer: -3.0 - answer.ids.sum() % 7))),  # two values for one outcome
    ("log_q", lambda: Claims(lambda a: np.broadcast_to(a.log_q[:, :1], a.shape))),  # the marginal of a uniform draw
    ("log_q", lambda: Claims(marginal, weighted(distinct=True))),
    ("log_q", lambda: Claims(lambda a: a.log_q * np.where(np.arange(a.shape[1]) == 1, 0.9, 1.0))),
]


@pytest.mark.parametrize(("promise", "make"), BROKEN)
def test_a_broken_promise_is_named(promise, make):
    with pytest.raises(PromiseBroken) as caught:
        check_pool(make(), KNOWN)
    assert caught.value.promise == promise
    assert str(caught.value).startswith(f"`{promise}`: ")


def test_honest_pools_pass():
    check_pool(Plain(), KNOWN)
    check_pool(Counting(), KNOWN)
    check_pool(Everything(KNOWN))  # the pool's own positives are the default
    check_pool(Claims(lambda answer: answer.log_q, weighted(distinct=True)), KNOWN)


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


def test_the_last_candidate_of_a_triple_is_the_last_of_all_sides():
    triples = np.random.default_rng(0).integers(0, [6, 2, 6], (60, 3))
    pool, known = Corruption(triples, choice="bernoulli"), ns.Triples(triples)
    check_pool(pool, known)
    with pytest.raises(PromiseBroken, match="log_q"):
        check_pool(Claims(lambda answer: np.minimum(answer.log_q, -0.01), pool), known)


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 10**6), st.integers(1, 9))
def test_an_honest_pool_passes_in_any_world(n_anchors, n_items, seed, n):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, n_anchors * n_items + 1))
    anchors, items = rng.integers(0, n_anchors, size), rng.integers(0, n_items, size)
    known = ns.Positives.from_pairs(anchors, items, n_anchors, n_items)
    weights = np.arange(n_items) ** 2.0 if seed % 3 else None  # item 0 has weight 0: never drawn
    pool = Everything(known, weights, distinct=bool(seed % 2))
    check_pool(pool, known, n=n, seed=seed, anchors=np.arange(n_anchors))


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


def test_queries_are_made_of_pairs_or_by_a_function():
    check_pool(InBatch(), KNOWN, n=4)
    check_pool(InBatch(), anchors=np.arange(40), query=partner, n=4)
    with pytest.raises(PromiseBroken, match="shape"):  # without positives
        check_pool(InBatch(), anchors=np.arange(40))


def test_with_nothing_known_a_rows_own_positive_is_excluded():
    with pytest.raises(PromiseBroken, match="exclusion"):
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
    with pytest.raises(PromiseBroken, match="exclusion"):
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
    with pytest.raises(PromiseBroken, match="distinct"):
        check_pool(Twice(known), known, n=3)


def test_the_pool_and_the_threads_are_left_as_they_were():
    pool, before = Counting(), threads()
    pool.calls = 5
    try:
        ns.set_threads(3)
        check_pool(pool, KNOWN)
        assert (pool.calls, threads()) == (5, 3)
        with pytest.raises(PromiseBroken, match="threads"):
            check_pool(by_number(threads), KNOWN)
        assert threads() == 3
    finally:
        ns.set_threads(before)


def test_a_promise_that_is_not_made_is_not_held():
    check_pool(FIXED_SEED, KNOWN, without=("randomness", "log_q"))
    with pytest.raises(ns.NaysayError) as caught:
        check_pool(Plain(), KNOWN, without=("randomnes",))
    assert caught.value.parameter == "without"


def test_the_exception_survives_pickling():
    broken = PromiseBroken("shape", "Mine.draw answered")
    again = pickle.loads(pickle.dumps(broken))
    assert isinstance(again, AssertionError)
    assert (again.promise, str(again)) == ("shape", "`shape`: Mine.draw answered")
