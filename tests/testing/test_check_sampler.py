"""Every promise of a sampler has broken duplicates that `check_sampler` names, and honest samplers pass."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_check_pool import KNOWN, TWINS, Counting, Plain, weighted

import naysay as ns
from naysay.pools import Everything
from naysay.testing import PromiseBroken, check_sampler, planted_world, samplers
from naysay.testing.samplers import PROMISES
from naysay.types import anchor_ids


class Mine:
    """The least that a user writes: a pool's draws, with k realised, in the array type of the query."""

    def __init__(self, pool):
        self.pool = pool

    def sample(self, query, k, *, rng):
        return self.pool.draw(query, realised(k, len(query), rng), rng=rng).like(query)


def realised(k, size, rng):
    if not isinstance(k, float):
        return k
    return math.floor(k) + (rng.random(size) < k % 1).astype(np.int64)


class Twin(Mine):
    """A pool's duplicate as a sampler: what the pool says of itself, the sampler says."""

    def __getattr__(self, name):
        if name in ("distinct", "state", "restore", "observe"):
            return getattr(self.pool, name)
        raise AttributeError(name)


class RoundsUp(Mine):
    def sample(self, query, k, *, rng):
        return super().sample(query, math.ceil(k) if isinstance(k, float) else k, rng=rng)


class RoundsDown(Mine):
    def sample(self, query, k, *, rng):
        return super().sample(query, math.floor(k) if isinstance(k, float) else k, rng=rng)


class WholeNumbersOnly(Mine):
    def sample(self, query, k, *, rng):
        return self.pool.draw(query, k, rng=rng).like(query)


class OneForAll(Mine):
    def sample(self, query, k, *, rng):
        return super().sample(query, k if isinstance(k, float) else int(np.max(k)), rng=rng)


class AlwaysWide(Mine):
    """Pads rows of (B,) ints to one more slot than the widest."""

    def sample(self, query, k, *, rng):
        answer = super().sample(query, k, rng=rng)
        if np.ndim(k) == 0:
            return answer
        ids = np.concatenate([answer.ids, np.full((len(query), 1), -1)], axis=1)
        return replace(answer, ids=ids, log_q=None)


class AlwaysNumpy(Mine):
    def sample(self, query, k, *, rng):
        return self.pool.draw(query, realised(k, len(query), rng), rng=rng)


class AlwaysTorch(AlwaysNumpy):
    def sample(self, query, k, *, rng):
        return super().sample(query, k, rng=rng).to("cpu")


class HalfTorch(Mine):
    """Forgets to convert log_q."""

    def sample(self, query, k, *, rng):
        plain = self.pool.draw(query, realised(k, len(query), rng), rng=rng)
        return replace(plain.like(query), log_q=plain.log_q)


OWN_TWINS = [
    ("k", RoundsUp, r"gave \d\.\d+ negatives a row for k = 3.5, with dropped="),
    ("k", RoundsDown, r"returned shape \(1024, 3\) for k = 3.5 and 1024 rows"),
    ("k", WholeNumbersOnly, "raised NaysayError: .* must be a whole number, got 3.5"),
    ("k", OneForAll, r"filled slots beyond .* their row requests \(\d+ such slots\), with k of shape \(B,\)"),
    ("k", AlwaysWide, r"returned 5 slots where the widest row requests 4, with k of shape \(B,\)"),
    ("arrays", AlwaysNumpy, "answered a torch query with ids that is not a tensor on its device"),
    ("arrays", AlwaysTorch, "answered a NumPy query with ids that is not a NumPy array"),
    ("arrays", HalfTorch, "answered a torch query with log_q that is not a tensor on its device"),
]


@pytest.mark.parametrize(("promise", "make", "message"), OWN_TWINS)
def test_a_broken_promise_is_named(promise, make, message):
    with pytest.raises(PromiseBroken, match=rf"^`{promise}`: {make.__name__}.sample {message}"):
        check_sampler(make(Everything(KNOWN)), KNOWN)


@pytest.mark.parametrize("promise", sorted({promise for promise, _, _ in TWINS}))
def test_what_a_pool_promises_a_sampler_promises_too(promise):
    # k comes before what a pool says about slots for each row
    expected = {promise, "k"} if promise == "counted" else {promise}
    for name, make, _ in TWINS:
        if name == promise:
            with pytest.raises(PromiseBroken) as caught:
                check_sampler(Twin(make()), KNOWN)
            assert caught.value.promise in expected


def test_every_promise_has_a_broken_duplicate():
    assert {promise for promise, _, _ in (*TWINS, *OWN_TWINS)} == set(PROMISES)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("by_weight", [True, False])
def test_a_users_sampler_keeps_all_promises(distinct, by_weight):
    world = planted_world(200, 90, per_anchor=8)
    for known in (world.known, KNOWN):
        weights = np.arange(1.0, known.n_items + 1) if by_weight else None
        check_sampler(Mine(Everything(known, weights, distinct)), known)


def test_the_twins_are_otherwise_honest():
    for pool in (Plain(), Counting(), Plain(weighted(distinct=True))):
        check_sampler(Twin(pool), KNOWN)


class Nearest:
    """The k best by score, no chance in it: it reads the query's vectors, scores, and drops by a rule of its own."""

    def __init__(self, world, floor=-1.0):
        self.world, self.floor = world, floor

    def sample(self, query, k, *, rng):
        slots = realised(k, len(query), rng)
        counts, width = np.broadcast_to(slots, len(query)), int(np.max(slots, initial=0))
        scores = np.asarray(query.vectors) @ self.world.item_vectors.T
        anchors = anchor_ids(query)
        known = self.world.known.contains(anchors, np.tile(np.arange(scores.shape[1]), (len(anchors), 1)))
        scores = np.where(known | (scores < self.floor), -np.inf, scores)
        ids = np.argsort(-scores, axis=1, kind="stable")[:, :width]
        best = np.take_along_axis(scores, ids, axis=1)
        ids[~np.isfinite(best) | (np.arange(ids.shape[1]) >= counts[:, None])] = -1
        dropped = {"below the floor": int(((scores == -np.inf) & ~known).sum())}
        return ns.Negatives(ids, scores=np.where(ids >= 0, best, 0.0), dropped=dropped).like(query)


def test_other_reasons_for_empty_slots_count_and_vectors_come_from_the_factory():
    world = planted_world(60, 40, per_anchor=8)

    def query(anchors):
        return ns.Query(anchors, vectors=world.anchor_vectors[anchors])

    for floor in (-1.0, 0.6):
        check_sampler(Nearest(world, floor), world.known, query=query, without=("randomness",))
    with pytest.raises(
        PromiseBroken, match=r"`randomness`: Nearest.sample gave the same ids for 32 different generators"
    ):
        check_sampler(Nearest(world), world.known, query=query)


def test_without_torch_only_numpy_is_asked_for(monkeypatch):
    monkeypatch.setattr(samplers.importlib.util, "find_spec", lambda name: None)
    check_sampler(AlwaysNumpy(Everything(KNOWN)), KNOWN)


def test_torch_anchors_are_taken_as_rows():
    check_sampler(Mine(Everything(KNOWN)), KNOWN, anchors=torch.arange(40))


def test_testing_does_not_import_torch():
    import subprocess

    code = (
        "import sys, naysay as ns; known = ns.Positives.from_pairs([0, 0, 1], [0, 1, 2], n_items=5);"
        "ns.check_pool(ns.pools.Everything(known), known); ns.planted_world(20, 30, per_anchor=3);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
