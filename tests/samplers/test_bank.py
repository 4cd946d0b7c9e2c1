"""Bank: one vector for each item, as it was when last seen."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Static
from naysay.samplers.bank import Bank

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


def test_state_goes_round():
    bank, other = Bank(POOL, N), Bank(POOL, N)
    query = ns.Query([2, 4], positives=[2, 4])
    bank.observe(query, None, vectors=np.eye(D)[:2])
    other.restore(bank.state())
    bank.observe(query, None, vectors=np.eye(D)[1:])
    assert other.vectors[2].tolist() == [1.0, 0.0, 0.0]
    assert bank.vectors[2].tolist() == pytest.approx([np.sqrt(0.5), np.sqrt(0.5), 0.0])


@pytest.mark.parametrize("anchors", [[], [1]])
@pytest.mark.parametrize("k", [0, 0.5, 3])
def test_no_row_and_one_row(anchors, k):
    drawn = Bank(POOL, N).sample(ns.Query(np.array(anchors, np.int64)), k, rng=ns.rng_for(0))
    assert drawn.ids.shape == drawn.vectors.shape[:2] == (len(anchors), np.ceil(k))
    assert (drawn.ids == -1).all()


def test_it_conforms():
    ns.check_sampler(Bank(POOL, N, initial=np.eye(N)), KNOWN)
    half = Bank(POOL, N)
    half.observe(ns.Query([0, 1, 2, 3], positives=[0, 1, 2, 3]), None, vectors=np.eye(4))
    ns.check_sampler(half, KNOWN)


def test_what_it_is_rejected_for():
    def refusal(call, *arguments, **named):
        with pytest.raises(NaysayError) as caught:
            call(*arguments, **named)
        return str(caught.value)

    assert refusal(Bank, 3, N).startswith("Bank: `pool` must be a pool")
    assert refusal(Bank, POOL, 0) == "Bank: `n_items` must be at least 1, got 0."
    assert refusal(Bank, POOL, N, 2) == "Bank: `momentum` must be a number at least 0 and at most 1, got 2."
    assert refusal(Bank, POOL, N, initial=np.eye(3)) == "Bank: `initial` must be of shape (7, d), got shape (3, 3)."
    whole = np.ones((N, 2), int)
    assert refusal(Bank, POOL, N, initial=whole) == "Bank: `initial` must be floating numbers, got dtype int64."
    broken = np.full((N, 2), np.nan)
    assert (
        refusal(Bank, POOL, N, initial=broken)
        == "Bank: `initial` must be finite, got nan at row 0, slot 0 (7 such rows)."
    )
    bank = Bank(POOL, N, initial=np.eye(N))
    query = ns.Query([0], positives=[0])
    assert refusal(bank.observe, query, None).startswith("Bank.observe: `vectors` must be given, got None. Pass the")
    rule = "Bank.observe: `vectors` must be of dimension 7, like those stored, got 2."
    assert refusal(bank.observe, query, None, vectors=np.eye(2)[:1]) == rule
    assert refusal(bank.observe, [0], None).startswith("Bank.observe: `query` must be a Query")
    far = ns.Query([0], positives=[9])
    rule = "Bank.observe: `positives` must be between 0 and 6 (7 items), got 9 at row 0 (1 such row)."
    assert refusal(bank.observe, far, None, vectors=np.eye(7)[:1]) == rule
    assert refusal(Bank(POOL, 3).sample, ns.Query([0]), 6, rng=ns.rng_for(0)).startswith(
        "Bank.sample: `pool` must be between -1 and 2 (3 items), got "
    )
    assert refusal(bank.restore, 3) == "Bank.restore: `state` must be what Bank.state returned, got 3."
    state = bank.state()
    rule = "Bank.restore: `seen` must be (7,) bool, got (7,) int64."
    assert refusal(bank.restore, {**state, "seen": np.ones(7, int)}) == rule
    rule = "Bank.restore: `vectors` must be of dimension 7, got 6."
    assert refusal(bank.restore, {**state, "vectors": np.eye(7, 6), "seen": np.ones(7, bool)}) == rule
    rule = "Bank.restore: `vectors` must be of length 1, or 0 for an item that was not seen, got 2.0 at row 0 "
    assert refusal(bank.restore, {"vectors": 2 * np.eye(7), "seen": np.ones(7, bool)}).startswith(rule)
    assert refusal(Bank(POOL, 3).restore, state) == "Bank.restore: `vectors` must be of shape (3, d), got shape (7, 7)."
