"""Pools that were pickled, as for a spawned worker, and first draws from many threads at once."""

import pickle

import numpy as np
import pytest
from in_threads import in_threads

import naysay as ns
from naysay.kernels import corrupt, hops, lists, pagerank, uniform, weighted
from naysay.kernels.compile import FIRST_CALLS
from naysay.pools import Corruption, Everything, InBatch, KHop, Local, Memory, PageRank, Walks, popularity

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs(RNG.integers(0, 300, 6000), RNG.integers(0, 700, 6000), 300, 700)
TRIPLES = RNG.integers(0, [200, 4, 200], (3000, 3))
GRAPH = ns.Positives.from_edges(*RNG.integers(0, 60, (2, 150)), 60)
MEMORY = Memory(50, GRAPH)
MEMORY.push(np.arange(40))
ENTRIES = (lists.draw_entries, lists.all_entries)
# name: (a pool, the compiled loops that it draws with)
POOLS = {
    "uniform": (Everything(KNOWN), (uniform.draw,)),
    "weighted": (Everything(KNOWN, popularity(KNOWN), distinct=False), (weighted.draw,)),
    "corruption": (Corruption(TRIPLES, choice="bernoulli"), (corrupt.draw,)),
    "local": (Local(RNG.integers(0, 60, (60, 9)), GRAPH), (lists.draw_places,)),
    "positives": (Local(GRAPH), (lists.draw_places,)),
    "batch": (InBatch(GRAPH), ENTRIES),
    "bare batch": (InBatch(), ENTRIES),
    "memory": (MEMORY, ENTRIES),
    "hops": (KHop(GRAPH), (hops.draw_at_distance, hops.candidates)),
    "walks": (Walks(GRAPH), ()),
    "pagerank": (PageRank(GRAPH, (0.1, 0.9)), (pagerank.draw_ranks, pagerank.pagerank)),
}


@pytest.mark.parametrize("name", POOLS)
def test_a_pool_that_was_pickled_and_any_form_of_ids_need_no_new_compilation(name, monkeypatch):
    """Pickles forget that arrays were read-only, and ids come in slices; each form would cost seconds of compiling."""
    monkeypatch.setattr(FIRST_CALLS, "allowed", False)
    pool, loops = POOLS[name]
    anchors = TRIPLES[:8] if name == "corruption" else np.arange(8)
    positives = None if name == "corruption" else np.arange(8)[::-1].copy()
    sliced, locked = np.repeat(anchors, 2, axis=0)[::2], anchors.copy()
    locked.flags.writeable = False

    def answers(pool, anchors):
        query = ns.Query(anchors, positives=positives)
        yield pool.draw(query, 3, rng=ns.rng_for(0)).ids
        yield pool.draw(query, np.full(16, 3)[::2], rng=ns.rng_for(0)).ids
        if name in ("batch", "bare batch", "memory"):
            yield pool.draw(query, rng=ns.rng_for(0)).ids
        if name in ("hops", "pagerank"):
            yield pool.candidates(0)

    expected = list(answers(pool, anchors))
    compiled = [len(loop.signatures) for loop in loops]
    for made in (pool, pickle.loads(pickle.dumps(pool))):
        for form in (anchors, sliced, locked):
            assert all(np.array_equal(*pair) for pair in zip(answers(made, form), expected, strict=True))
    assert [len(loop.signatures) for loop in loops] == compiled


def test_the_first_draws_may_come_from_many_threads():
    """The pool of threads is made by whoever needs it first, also by several at once."""
    pool, query, answers = POOLS["uniform"][0], ns.Query(np.arange(6000) % 300), []
    expected = pool.draw(query, 20, rng=ns.rng_for(0)).ids

    def draw():
        answers.append(pool.draw(query, 20, rng=ns.rng_for(0)).ids)

    for _ in range(3):
        ns.set_threads(3)
        in_threads(*[draw] * 6)
    assert len(answers) == 18
    assert all((got == expected).all() for got in answers)
