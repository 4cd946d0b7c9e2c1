"""Bank: one vector for each item, as it was when last seen."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import Bank, Static

COMPILING = settings(deadline=None)  # a first call compiles
N, D = 7, 3
KNOWN = ns.Positives.from_pairs(np.arange(N), np.arange(N))
POOL = ns.pools.Everything(KNOWN)
BATCHES = st.lists(st.lists(st.integers(0, N - 1), max_size=4), max_size=5)


def unit(vector):
    length = np.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


@COMPILING
@given(BATCHES, st.sampled_from([0.0, 0.5, 0.9]), st.booleans(), st.integers(0, 99))
def test_vectors_are_what_the_loops_keep(batches, momentum, tensors, seed):
    rng = np.random.default_rng(seed)
    bank, kept = Bank(POOL, N, momentum), {}
    for items in batches:
        features = rng.standard_normal((len(items), D))
        batch = np.array(items, np.int64)
        bank.observe(ns.Query(batch, positives=batch), None, vectors=torch.tensor(features) if tensors else features)
        fresh = {}
        for item, feature in zip(items, features, strict=True):  # of two rows of one item, the last stays
            new = unit(feature)
            old = kept.get(item)
            fresh[item] = (
                new if old is None else unit([momentum * o + (1 - momentum) * n for o, n in zip(old, new, strict=True)])
            )
        kept |= fresh
    assert np.flatnonzero(bank.seen).tolist() == sorted(kept)
    for item, vector in kept.items():
        assert bank.vectors[item] == pytest.approx(vector)
    anchors = np.arange(N)
    drawn = bank.sample(ns.Query(torch.tensor(anchors) if tensors else anchors), 3, rng=ns.rng_for(seed)).numpy()
    plain = Static(POOL).sample(ns.Query(anchors), 3, rng=ns.rng_for(seed))
    unseen = 0
    for row in range(N):
        expected = [i for i in plain.ids[row].tolist() if i in kept]
        unseen += 3 - len(expected)
        assert drawn.ids[row].tolist() == expected + [-1] * (3 - len(expected))
        for slot, item in enumerate(expected):
            assert drawn.vectors[row, slot] == pytest.approx(kept[item])
        assert not drawn.vectors[row, len(expected) :].any()
    assert dict(drawn.dropped) == ({"unseen": unseen} if unseen else {})
    assert (drawn.log_q is None) == (len(kept) < N)


def test_with_vectors_to_begin_with_it_is_the_static_draw():
    initial = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)
    bank = Bank(POOL, N, initial=initial)
    drawn = bank.sample(ns.Query([0, 1]), 4, rng=ns.rng_for(0))
    plain = Static(POOL).sample(ns.Query([0, 1]), 4, rng=ns.rng_for(0))
    assert np.array_equal(drawn.ids, plain.ids)
    assert np.array_equal(drawn.log_q, plain.log_q)
    assert drawn.vectors.dtype == np.float32
    assert np.linalg.norm(drawn.vectors, axis=2) == pytest.approx(np.ones((2, 4)))


def test_sides_move_with_their_ids():
    triples = np.array([[0, 0, 1], [2, 0, 3]])
    pool = ns.pools.Corruption(triples, n_entities=N)
    bank = Bank(pool, N)
    bank.observe(ns.Query([0, 1], positives=[5, 6]), None, vectors=np.eye(2))
    drawn = bank.sample(ns.Query(triples), 12, rng=ns.rng_for(0))
    plain = pool.draw(ns.Query(triples), 12, rng=ns.rng_for(0))
    for row in range(2):
        seen = [(i, s) for i, s in zip(plain.ids[row], plain.side[row], strict=True) if i in (5, 6)]
        found = list(zip(drawn.ids[row], drawn.side[row], strict=True))
        assert found == seen + [(-1, -1)] * (12 - len(seen))
