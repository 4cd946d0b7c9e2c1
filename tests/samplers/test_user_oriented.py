"""UserOriented: the same draw, with weights in proportion to what an anchor is known to like."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Static, UserOriented

COMPILING = settings(deadline=None)  # a first call compiles
N_ANCHORS, N_ITEMS = 5, 8
PAIRS = st.sets(st.tuples(st.integers(0, N_ANCHORS - 1), st.integers(0, N_ITEMS - 1)), min_size=1)


def made(pairs):
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], N_ANCHORS, N_ITEMS)
    return known, ns.pools.Everything(known)


@COMPILING
@given(PAIRS, st.lists(st.integers(0, N_ANCHORS - 1), max_size=9), st.integers(0, 9))
def test_weights_are_counts_over_their_mean(pairs, anchors, k):
    known, pool = made(pairs)
    query = ns.Query(anchors)
    taken = UserOriented(pool, known).sample(query, k, rng=ns.rng_for(0))
    plain = Static(pool).sample(query, k, rng=ns.rng_for(0))
    assert np.array_equal(taken.ids, plain.ids)
    assert np.array_equal(taken.log_q, plain.log_q)
    assert taken.dropped == plain.dropped
    counts = [sum(a == anchor for a, _ in pairs) for anchor in range(N_ANCHORS)]
    mean = sum(counts) / sum(count > 0 for count in counts)
    assert taken.weights.shape == (len(anchors), k)
    for row, anchor in enumerate(anchors):
        expected = [counts[anchor] / mean if item >= 0 else 0.0 for item in taken.ids[row].tolist()]
        assert taken.weights[row].tolist() == pytest.approx(expected)


def test_the_mean_weight_of_anchors_with_positives_is_one():
    known, pool = made([(0, 0), (0, 1), (0, 2), (1, 0), (3, 7)])
    taken = UserOriented(pool, known).sample(ns.Query([0, 1, 3, 4]), 1, rng=ns.rng_for(0))
    assert taken.weights[:3].mean() == pytest.approx(1.0)
    assert taken.weights[:, 0].tolist() == pytest.approx([1.8, 0.6, 0.6, 0.0])


def test_ignored_pairs_are_not_liked():
    known, _ = made([(0, 0), (1, 0)])
    known = known.with_ignored([1, 1, 1], [1, 2, 3])
    taken = UserOriented(ns.pools.Everything(known), known).sample(ns.Query([0, 1]), 1, rng=ns.rng_for(0))
    assert taken.weights.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("k", [3, 2.5, np.array([1, 3])])
def test_torch_in_torch_out(k):
    known, pool = made([(0, 0), (0, 1), (1, 0)])
    tensors = UserOriented(pool, known).sample(ns.Query(torch.tensor([0, 1])), k, rng=ns.rng_for(0))
    plain = UserOriented(pool, known).sample(ns.Query([0, 1]), k, rng=ns.rng_for(0))
    for name in ("ids", "weights", "log_q"):
        assert isinstance(getattr(tensors, name), torch.Tensor)
        assert type(getattr(plain, name)) is np.ndarray
        assert getattr(tensors, name).tolist() == getattr(plain, name).tolist()


@pytest.mark.parametrize("anchors", [[], [1]])
@pytest.mark.parametrize("k", [0, 4, 3.5])
def test_no_row_and_one_row(anchors, k):
    known, pool = made([(0, 0)])
    for seed in range(5):
        taken = UserOriented(pool, known).sample(ns.Query(anchors), k, rng=ns.rng_for(seed))
        assert taken.shape == taken.weights.shape == (len(anchors), np.ceil(k))


def test_it_knows_whether_rows_are_distinct():
    known, pool = made([(0, 0)])
    assert UserOriented(pool, known).distinct is True
    assert UserOriented(ns.pools.Everything(known, distinct=False), known).distinct is False


def test_the_sampler_rejects():
    known, pool = made([(0, 0)])

    def refusal(call, *arguments, **named):
        with pytest.raises(NaysayError) as caught:
            call(*arguments, **named)
        return str(caught.value)

    rule = "UserOriented: `pool` must be a pool, with a method draw(query, n, *, rng), got Positives."
    assert refusal(UserOriented, known, known) == rule
    assert refusal(UserOriented, type(pool), known).endswith(
        ", got the class Everything. Make one first, and pass that."
    )
    assert refusal(UserOriented, pool, [1]) == "UserOriented: `positives` must be a Positives, got list."
    empty = ns.Positives.from_pairs([], [], 3, 3)
    assert refusal(UserOriented, pool, empty) == "UserOriented: `positives` must be of at least one pair, got none."
    sampler = UserOriented(pool, known)
    rule = "UserOriented.sample: `anchors` must be between 0 and 4 (5 anchors), got 5 at row 0 (1 such row)."
    assert refusal(sampler.sample, ns.Query([5]), 1, rng=ns.rng_for(0)) == rule
    rule = "UserOriented.sample: `query.anchors` must be of shape (B,), got triples."
    assert refusal(sampler.sample, ns.Query([[0, 1, 2]]), 1, rng=ns.rng_for(0)) == rule
    assert refusal(sampler.sample, ns.Query([0]), -1, rng=ns.rng_for(0)).startswith("UserOriented.sample: `k` must")
