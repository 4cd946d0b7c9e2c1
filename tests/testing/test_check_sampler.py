"""Samplers that break each promise are named by `check_sampler`, and honest samplers pass."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_check_pool import BROKEN, KNOWN, Counting, weighted

import naysay as ns
from naysay.pools import Everything
from naysay.testing import PromiseBroken, check_sampler, planted_world, samplers
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


class AsSampler(Mine):
    """A pool as a sampler: what the pool says of itself, the sampler says."""

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


@pytest.mark.parametrize(
    ("promise", "make"),
    [
        ("k", RoundsUp),
        ("k", RoundsDown),
        ("k", WholeNumbersOnly),
        ("k", OneForAll),
        ("k", AlwaysWide),
        ("arrays", AlwaysNumpy),
        ("arrays", AlwaysTorch),
        ("arrays", HalfTorch),
    ],
)
def test_a_broken_promise_is_named(promise, make):
    with pytest.raises(PromiseBroken) as caught:
        check_sampler(make(Everything(KNOWN)), KNOWN)
    assert caught.value.promise == promise


@pytest.mark.parametrize("promise", sorted({promise for promise, _ in BROKEN}))
def test_what_a_pool_promises_a_sampler_promises_too(promise):
    make = next(make for name, make in BROKEN if name == promise)
    with pytest.raises(PromiseBroken) as caught:
        check_sampler(AsSampler(make()), KNOWN)
    # k comes before what a pool promises about slots for each row
    assert caught.value.promise == ("k" if promise == "counted" else promise)


def test_honest_samplers_pass():
    check_sampler(Mine(Everything(KNOWN, distinct=False)), KNOWN, anchors=torch.arange(40))
    check_sampler(AsSampler(Counting()), KNOWN)
    check_sampler(AsSampler(weighted(distinct=True)), KNOWN)


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
    with pytest.raises(PromiseBroken, match="randomness"):
        check_sampler(Nearest(world), world.known, query=query)


def test_without_torch_only_numpy_is_asked_for(monkeypatch):
    monkeypatch.setattr(samplers.importlib.util, "find_spec", lambda name: None)
    check_sampler(AlwaysNumpy(Everything(KNOWN)), KNOWN)


def test_testing_does_not_import_torch():
    code = (
        "import sys, naysay as ns; known = ns.Positives.from_pairs([0, 0, 1], [0, 1, 2], n_items=5);"
        "ns.check_pool(ns.pools.Everything(known), known); ns.planted_world(20, 30, per_anchor=3);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
