"""Static: what the pool draws is what is taken."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.rng import key_from
from naysay.samplers import Static
from naysay.types import Sampler

COMPILING = settings(deadline=None)  # a first call compiles
PAIRS = [(0, 0), (0, 1), (1, 5), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]
KNOWN = ns.Positives.from_pairs([a for a, _ in PAIRS], [i for _, i in PAIRS], 4, 6)


def equal(one, other):
    return (
        np.array_equal(one.ids, other.ids) and np.array_equal(one.log_q, other.log_q) and one.dropped == other.dropped
    )


@COMPILING
@given(st.lists(st.integers(0, 3), max_size=8), st.integers(0, 7), st.integers(0, 2**32), st.booleans())
def test_it_answers_as_its_pool_does(anchors, k, seed, distinct):
    pool, query = ns.pools.Everything(KNOWN, distinct=distinct), ns.Query(anchors)
    taken = Static(pool).sample(query, k, rng=ns.rng_for(seed))
    assert taken.shape == (len(anchors), k)
    assert equal(taken, pool.draw(query, k, rng=ns.rng_for(seed)))
    for anchor, row in zip(anchors, taken.ids.tolist(), strict=True):
        found = [item for item in row if item >= 0]
        assert all((anchor, item) not in PAIRS for item in found)
        if distinct:
            free = 6 - sum(a == anchor for a, _ in PAIRS)
            assert len(set(found)) == len(found) == min(k, free)


@COMPILING
@example([(0, 0.0), (0, 1.0)], 0)  # one slot, which a row does not use
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5)), max_size=8), st.integers(0, 2**32))
def test_a_k_for_each_row(rows, seed):
    anchors, ks = [a for a, _ in rows], np.array([k for _, k in rows])
    taken = Static(ns.pools.Everything(KNOWN, distinct=False)).sample(ns.Query(anchors), ks, rng=ns.rng_for(seed))
    used = (taken.ids >= 0).sum(axis=1)
    for k, count, row in zip(ks, used, taken.ids, strict=True):
        assert count in (np.floor(k), np.ceil(k))
        assert (row[:count] >= 0).all()
        assert (row[count:] == -1).all()
    assert taken.shape[1] == max(used, default=0)  # K is the largest
    assert taken.dropped == {}  # what was not asked for is not dropped
    assert (taken.log_q[taken.ids < 0] == 0).all()


@pytest.mark.parametrize("k", [0.25, 2.5, np.float32(2.5), torch.tensor(2.5)])
@pytest.mark.parametrize("anchors", [[], [3]])
def test_the_width_of_a_fraction_is_its_ceiling(anchors, k):
    width, seen = int(np.ceil(float(k))), set()
    for seed in range(40):
        taken = Static(ns.pools.Everything(KNOWN)).sample(ns.Query(anchors), k, rng=ns.rng_for(seed))
        assert taken.shape == taken.log_q.shape == (len(anchors), width)
        assert taken.dropped == {}
        assert (taken.log_q[taken.ids < 0] == 0).all()
        seen |= set((taken.ids >= 0).sum(axis=1).tolist())
    assert seen == ({width - 1, width} if anchors else set())
    tensors = Static(ns.pools.Everything(KNOWN)).sample(ns.Query(torch.tensor(anchors)), k, rng=ns.rng_for(0))
    assert tensors.shape == (len(anchors), width)


def test_slots_that_chance_left_out_are_empty_throughout():
    pool = ns.pools.Corruption([[0, 0, 1], [1, 0, 2], [2, 0, 3]])
    memory = ns.pools.Memory(4)
    memory.push([1, 2, 3], vectors=np.ones((3, 2)))
    triples, items = ns.Query([[0, 0, 1]]), ns.Query([0])
    seen = set()
    for seed in range(20):
        made = Static(pool).sample(triples, 1.5, rng=ns.rng_for(seed))
        kept = Static(memory).sample(items, 1.5, rng=ns.rng_for(seed))
        assert (made.side[made.ids < 0] == -1).all()
        assert pool.corrupted(triples, made)[made.ids < 0].tolist() in ([], [[-1, -1, -1]])
        assert kept.vectors.shape == (1, 2, 2)
        assert kept.vectors[0].tolist() == [[1.0, 1.0] if item >= 0 else [0.0, 0.0] for item in kept.ids[0]]
        seen.add(int((kept.ids >= 0).sum()))
    assert seen == {1, 2}


def test_a_whole_k_takes_one_key_and_a_float_two():
    for k, keys in ((3, 1), ([3, 1], 1), (2.5, 2)):
        rng, counted = ns.rng_for(0), ns.rng_for(0)
        Static(ns.pools.Everything(KNOWN)).sample(ns.Query([0, 1]), k, rng=rng)
        for _ in range(keys):
            key_from(counted)
        assert rng.bit_generator.random_raw() == counted.bit_generator.random_raw()


def test_any_object_with_draw_is_a_pool():
    class Mine:
        def draw(self, query, n, *, rng):
            return ns.Negatives(np.full((len(query), n), 7))

        def __repr__(self):
            return "Mine()"

    sampler = Static(Mine())
    assert isinstance(sampler, Sampler)
    assert sampler.sample(ns.Query([0]), 2, rng=ns.rng_for(0)).ids.tolist() == [[7, 7]]
    assert sampler.distinct is None  # nobody says
    assert repr(sampler) == "Static(pool=Mine())"
