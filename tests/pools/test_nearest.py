"""Nearest against a plain search: what is excluded, from which ranks, with which vectors, and when they change."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from in_threads import in_threads

import naysay as ns
from naysay.pools import Nearest, Refresh

N_ANCHORS, N_ITEMS, WIDTH = 4, 9, 3
RNG = np.random.default_rng(0)
ITEMS = RNG.integers(-3, 4, (N_ITEMS, WIDTH)) + 0.5  # with equal scores, exact in float32
QUERIES = RNG.integers(-3, 4, (N_ANCHORS, WIDTH)) + 0.5
PAIRS = [(0, 0), (0, 3), (1, 5), *((2, item) for item in range(8)), *((3, item) for item in range(9))]
KNOWN = ns.Positives.from_pairs([a for a, _ in PAIRS], [i for _, i in PAIRS], N_ANCHORS, N_ITEMS)


def ranked(vector, items, out, metric):
    """The free items, best first, of equal scores the lower id first."""
    score = {}
    for item in range(len(items)):
        if item not in out:
            dot = float(items[item] @ vector)
            size = np.sqrt(float(items[item] @ items[item]) * float(vector @ vector))
            distance = np.sqrt(float(((items[item] - vector) ** 2).sum()))
            score[item] = np.float32({"dot": dot, "cosine": dot / size, "l2": -distance}[metric])
    return sorted(score, key=lambda item: (-score[item], item))


@given(
    st.lists(st.integers(0, 3), max_size=5),
    st.integers(1, 10),
    st.integers(0, 4),
    st.sampled_from(["cosine", "dot", "l2"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_the_candidates_are_those_of_a_plain_search(anchors, depth, low, metric, with_known, own, as_torch):
    low = min(low, depth - 1)
    pool = Nearest(ITEMS, depth, KNOWN if with_known else None, window=(low, depth), metric=metric)
    positives = np.array([8] * len(anchors)) if own else None
    vectors = RNG.permutation(QUERIES)[np.array(anchors, int)]  # of this step: other than the stored ones
    given_vectors = torch.tensor(vectors, requires_grad=True) if as_torch else vectors
    query = ns.Query(np.array(anchors, int), positives=positives, vectors=given_vectors)
    drawn = pool.draw(query, depth, rng=ns.rng_for(1))
    missing = 0
    for row, anchor in enumerate(anchors):
        out = {item for a, item in PAIRS if with_known and a == anchor} | ({8} if own else set())
        expected = ranked(vectors[row], ITEMS, out, metric)[low:depth]
        line = drawn.ids[row].tolist()
        assert sorted(line[: len(expected)]) == sorted(expected)
        assert line[len(expected) :] == [-1] * (depth - len(expected))
        missing += depth - len(expected)
        logs = [-np.log(len(expected) - slot) for slot in range(len(expected))] + [0] * (depth - len(expected))
        np.testing.assert_allclose(drawn.log_q[row], logs, atol=1e-12)
    assert drawn.dropped == ({"exhausted": missing} if missing else {})


def test_what_is_given_is_copied():
    """A model that is trained in place changes its weights, which must not change the snapshot."""
    weights, anchors = torch.tensor(ITEMS), torch.tensor(QUERIES)
    pool = Nearest(weights, 3, queries=anchors)
    first = pool.draw(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids
    weights.mul_(-1)
    anchors.mul_(-1)
    assert np.array_equal(pool.draw(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids, first)
    pool.update(weights, anchors)
    assert np.array_equal(pool.draw(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids, first)  # both turned round
    pool.update(-weights)
    assert not np.array_equal(pool.draw(ns.Query([0, 1]), 3, rng=ns.rng_for(0)).ids, first)


def test_a_restored_pool_goes_on_as_the_old_one(tmp_path):
    old, fresh = (Nearest(ITEMS, 4, KNOWN, queries=QUERIES) for _ in range(2))
    old.update(ITEMS[::-1], age=2)
    old.observe(None, None)
    np.savez(tmp_path / "state.npz", **old.state())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        fresh.restore(state)
    assert fresh.age == old.age == 3
    one, two = (pool.draw(ns.Query([0, 1]), 3, rng=ns.rng_for(4)) for pool in (old, fresh))
    assert np.array_equal(one.ids, two.ids)


def test_no_draw_mixes_old_vectors_with_new_ones():
    """Candidates are the even or the odd items, in turns; one of each is wrong."""
    sides = [np.where(np.arange(400)[:, None] % 2 == parity, [1.0, 0.0], [-1.0, 0.1]) for parity in (0, 1)]
    pool = Nearest(sides[0], 150, metric="dot")
    query = ns.Query(np.arange(16), vectors=np.tile([1.0, 0.0], (16, 1)))

    def update():
        for step in range(60):
            pool.update(sides[step % 2], age=step % 2)

    def draw():
        for step in range(20):
            ids = pool.draw(query, 20, rng=ns.rng_for(0, step)).ids
            assert len(np.unique(ids % 2)) == 1

    def save():
        for _ in range(20):
            state = pool.state()
            assert (state["vectors"][0, 0] < 0) == state["age"] % 2

    in_threads(update, draw, save)


def test_all_positives_of_a_query_are_out():
    """ANCE's code keeps one positive per query, the last; the others can be mined."""
    known = ns.Positives.from_pairs([0, 0, 0], [1, 4, 7], 1, 9)
    pool = Nearest(np.ones((9, 2)), 6, known)
    drawn = pool.draw(ns.Query([0] * 50, vectors=np.ones((50, 2))), 6, rng=ns.rng_for(0))
    assert set(drawn.ids.ravel().tolist()) == {0, 2, 3, 5, 6, 8}
    assert drawn.dropped == {}


# ---- refresh --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "lag"), [(3, 0), (3, 2), (5, 4), (2, 5)])
def test_a_lag_makes_the_swap_deterministic(every, lag):
    """By loops: a snapshot when the vectors are `every` steps old, the swap `lag` steps later."""
    pool, model = Nearest(np.full((2, 1), 1.0), 1), [0]
    refresh = Refresh(pool, lambda: model[0], lambda step: np.full((2, 1), 1.0 + step), every, lag=lag)
    made, age, running = 0, 0, None
    for step in range(1, 40):
        model[0] = step
        refresh.observe(None, None)
        age += 1
        if running is None and age >= every:
            running = step
        if running is not None and step - running >= lag:
            made, age, running = running, step - running, None
        assert pool.vectors[0, 0] == 1.0 + made
        assert pool.age == age
    assert refresh.updates > 3


def test_training_goes_on_while_vectors_are_made():
    go, pool = threading.Event(), Nearest(np.ones((2, 1)), 1)

    def encode(copied):
        assert go.wait(60)
        return copied, np.full((1, 1), 2.0)

    refresh = Refresh(pool, lambda: np.full((2, 1), 7.0), encode, every=2)
    for step in range(10):  # none of these steps waits
        refresh.observe(None, None)
        assert pool.age == step + 1
    assert refresh._running is not None
    running = refresh._running
    go.set()
    running.result(60)
    refresh.observe(None, None)
    assert pool.vectors[0, 0] == 7.0
    assert pool.age == 9  # steps since the snapshot, which was taken at age 2
    assert pool.draw(ns.Query([0]), 1, rng=ns.rng_for(0)).shape == (1, 1)  # with the new vectors of anchors


def test_what_the_encoder_raises_comes_out_of_the_loop_and_the_next_one_starts():
    pool, fails = Nearest(np.ones((2, 1)), 1), [True]

    def encode(_):
        if fails[0]:
            message = "no memory"
            raise RuntimeError(message)
        return np.full((2, 1), 5.0)

    refresh = Refresh(pool, lambda: None, encode, every=1, lag=1)
    refresh.observe(None, None)
    with pytest.raises(RuntimeError, match="no memory"):
        refresh.observe(None, None)
    fails[0] = False
    refresh.observe(None, None)
    refresh.observe(None, None)
    assert pool.vectors[0, 0] == 5.0
