"""Everything with times: a row excludes what was known at its time, and nothing that came later."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.pools import Everything

N_ANCHORS, N_ITEMS = 4, 7
ROWS = st.lists(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1), st.integers(0, 9)), min_size=1)


def positives_of(rows):
    anchors, items, _ = zip(*rows, strict=True)
    return ns.Positives.from_pairs(anchors, items, N_ANCHORS, N_ITEMS)


def known_at(rows, anchor, time):
    """In plain loops."""
    return {item for owner, item, since in rows if owner == anchor and since <= time}


@given(
    rows=ROWS,
    asked=st.lists(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(-1, 10)), max_size=6),
    weighted=st.booleans(),
    shift=st.sampled_from([0, 0.5]),
)
def test_a_row_draws_all_that_is_not_known_at_its_time(rows, asked, weighted, shift):
    times = [time + shift for _, _, time in rows]
    weights = np.arange(1.0, N_ITEMS + 1) if weighted else None
    pool = Everything(positives_of(rows), weights, times=(*zip(*[row[:2] for row in rows], strict=True), times))
    anchors, at = [anchor for anchor, _ in asked], [time + shift for _, time in asked]
    query = ns.Query(np.array(anchors, np.int64), times=np.array(at))
    found = pickle.loads(pickle.dumps(pool)).draw(query, N_ITEMS, rng=ns.rng_for(0))
    share = np.arange(1.0, N_ITEMS + 1) if weighted else np.ones(N_ITEMS)
    for row, (anchor, time) in enumerate(asked):
        free = [*set(range(N_ITEMS)) - known_at(rows, anchor, time)]
        drawn = found.ids[row][found.ids[row] >= 0]
        assert sorted(drawn.tolist()) == sorted(free)
        if len(drawn):
            assert found.log_q[row, 0] == pytest.approx(np.log(share[drawn[0]] / share[free].sum()))
    whole = pool.draw(ns.Query(query.anchors), N_ITEMS, rng=ns.rng_for(0))  # without times all is known
    for row, anchor in enumerate(anchors):
        assert not known_at(rows, anchor, 99) & set(whole.ids[row].tolist())


def test_dates_names_ignored_pairs_and_torch():
    torch = pytest.importorskip("torch")
    users, items, days = ["ann", "ann", "bob"], ["x", "y", "z"], ["2024-01-01", "2024-03-01", "2024-02-01"]
    known = ns.Positives.from_pairs(users, items).with_ignored(["ann"], ["z"])  # which has no time: always known
    pool = Everything(known, times=(users, items, np.array(days, "datetime64[D]")))
    at = np.array(["2024-02-15T12:00", "2024-03-01"], "datetime64[m]")
    assert pool.draw(ns.Query([0, 0], times=at), 3, rng=ns.rng_for(0)).ids.tolist() == [[1, -1, -1], [-1, -1, -1]]
    plain = Everything(known, times=(users, items, [1, 3, 2]))
    query = ns.Query(torch.tensor([0]), times=torch.tensor([2]))
    assert ns.samplers.Static(plain).sample(query, 1, rng=ns.rng_for(0)).ids.tolist() == [[1]]
    batch = ns.data.Batch(query, ns.Negatives(torch.tensor([[1]])))
    assert batch.to("cpu").query.times.tolist() == [2]


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0]])
def test_the_probability_of_ids_is_that_at_the_time_of_the_row(weights):
    known = ns.Positives.from_pairs([0, 0, 1], [1, 2, 1], 2, 4)
    pool = Everything(known, weights, times=([0, 0, 1], [1, 2, 1], [5, 7, 6]))
    share = np.ones(4) if weights is None else np.array(weights)
    query = ns.Query([0, 0, 0, 1], times=[4, 5, 7, 6])
    for row, taken in enumerate(((), (1,), (1, 2), (1,))):
        free = np.array([item not in taken for item in range(4)])
        found = np.exp(pool.log_chance(query, np.tile(np.arange(4), (4, 1)))[row])
        np.testing.assert_allclose(found, np.where(free, share, 0) / share[free].sum())
    all_known = np.exp(pool.log_chance(ns.Query([0]), [[0, 1, 2, 3]])[0])
    np.testing.assert_allclose(all_known, share * [1, 0, 0, 1] / share[[0, 3]].sum())
