"""Mixed: slots from several samplers, by shares."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.rng import key_from
from naysay.samplers import Dynamic, Mixed, MoCHi, Static
from naysay.types import Negatives

COMPILING = settings(deadline=None)  # a first call compiles
N_ITEMS = 14
KNOWN = ns.Positives.from_pairs(
    [0, 0, 1, 2, *[3] * 14, *[4] * 12], [0, 5, 6, 7, *range(14), *range(12)], n_anchors=6, n_items=N_ITEMS
)
POOL = ns.pools.Everything(KNOWN)
AGAIN = ns.pools.Everything(KNOWN, distinct=False)


def score(anchors, ids):
    return ids * 1.0


class Fixed:
    """A sampler that answers with the first of some ids, and other arrays, whatever it is asked."""

    distinct = True

    def __init__(self, *ids, **arrays):
        self.ids, self.arrays = ids, arrays

    def sample(self, query, k, *, rng):
        width = int(np.max(k, initial=0))
        row = np.array((*self.ids, *[-1] * width), np.int64)[:width]
        ids = np.where(np.arange(width) < np.reshape(k, (-1, 1)), row, -1)
        arrays = {name: np.broadcast_to(value, (*ids.shape, *np.shape(value))) for name, value in self.arrays.items()}
        return Negatives(ids, **arrays, dropped={"odd": len(query)}).like(query)


def shared_in_loops(shares, counts, start):
    """Slots of each part, row by row."""
    whole = sum(shares)
    answer = []
    for row, count in enumerate(counts):
        edges = [0] + [
            math.floor(round(sum(shares[: p + 1]) / whole * count, 9) + start[row]) for p in range(len(shares))
        ]
        answer.append([after - before for before, after in itertools.pairwise(edges)])
    return answer


@pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")
@COMPILING
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=6),
    st.lists(st.sampled_from([0, 0.5, 1, 3]), min_size=3, max_size=3).filter(any),
    st.sampled_from(["drop", "keep"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_it_is_the_parts_side_by_side(rows, shares, duplicates, tensors, seed):
    counts = [count for _, count in rows]
    anchors = np.array([anchor for anchor, _ in rows], np.int64)
    parts = {"a": Static(POOL), "b": Static(AGAIN), "c": Dynamic(POOL, score, 4)}
    query = ns.Query(torch.tensor(anchors) if tensors else anchors)
    mixed = Mixed(parts, shares, duplicates=duplicates)
    taken = mixed.sample(query, np.array(counts, np.int64), rng=ns.rng_for(seed)).numpy()
    rng = ns.rng_for(seed)
    start = np.random.Generator(np.random.Philox(key=int(key_from(rng)))).random(len(rows))
    shared = shared_in_loops(shares, counts, start)
    answers = {}
    for part, sampler in enumerate(parts.values()):
        if sum(slots[part] for slots in shared):
            answers[part] = sampler.sample(ns.Query(anchors), np.array([s[part] for s in shared]), rng=rng).ids
    doubled = short = 0
    for row, count in enumerate(counts):
        assert sum(shared[row]) == count
        expected = []
        for part, ids in answers.items():
            found = [i for i in ids[row].tolist() if i >= 0]
            short += shared[row][part] - len(found)
            fresh = [i for i in found if duplicates == "keep" or i not in [e for e, p in expected if p < part]]
            doubled += len(found) - len(fresh)
            expected += [(i, part) for i in fresh]
        empty = [(-1, -1)] * (taken.shape[1] - len(expected))
        assert list(zip(taken.ids[row].tolist(), taken.source[row].tolist(), strict=True)) == expected + empty
    counted = {"exhausted": short, "duplicate": doubled}
    assert dict(taken.dropped) == {reason: count for reason, count in counted.items() if count}
    assert taken.source_names == ("a", "b", "c")
    assert taken.log_q is None


def test_shares_hold_on_average_where_they_do_not_divide_k():
    rows = 4000
    sampler = Mixed({"a": Fixed(*range(8)), "b": Fixed(*range(8, 14))}, (0.9, 0.1))
    taken = sampler.sample(ns.Query(np.full(rows, 5)), 4, rng=ns.rng_for(0))
    hard = np.count_nonzero(taken.source == 1, axis=1)
    assert set(hard.tolist()) == {0, 1}
    assert abs(hard.mean() - 0.4) < 6 * np.sqrt(0.24 / rows)
    assert (taken.ids >= 0).all()


def test_duplicates_are_left_out_or_kept():
    parts = {"a": Fixed(4, 4, 5), "b": Fixed(5, 6, 6)}
    query = ns.Query([0])
    taken = Mixed(parts, (1, 1)).sample(query, 6, rng=ns.rng_for(0))
    assert taken.ids.tolist() == [[4, 4, 5, 6, 6, -1]]  # what a part repeats by itself is its own
    assert taken.source.tolist() == [[0, 0, 0, 1, 1, -1]]
    assert dict(taken.dropped) == {"duplicate": 1, "odd": 2}
    taken = Mixed(parts, (1, 1), duplicates="keep").sample(query, 6, rng=ns.rng_for(0))
    assert taken.ids.tolist() == [[4, 4, 5, 5, 6, 6]]
    assert Mixed(parts, (1, 1)).distinct is True
    assert Mixed(parts, (1, 1), duplicates="keep").distinct is False
    assert Mixed({"a": Static(AGAIN)}, (1,)).distinct is False


def test_the_same_id_on_another_side_is_no_duplicate():
    parts = {"a": Fixed(4, side=np.int8(0)), "b": Fixed(4, side=np.int8(2)), "c": Fixed(4, side=np.int8(0))}
    taken = Mixed(parts, (1, 1, 1)).sample(ns.Query([[0, 1, 2]]), 3, rng=ns.rng_for(0))
    assert taken.ids.tolist() == [[4, 4, -1]]
    assert taken.side.tolist() == [[0, 2, -1]]


@pytest.mark.parametrize("tensors", [False, True])
def test_what_parts_say_and_do_not_say(tensors):
    said = {"weights": 0.5, "relation": np.int8(2), "suspicion": 0.25, "scores": 3.0}
    parts = {"a": Fixed(1, **said), "b": Fixed(2, 1, scores=1.0)}
    query = ns.Query(torch.tensor([0, 1]) if tensors else [0, 1])
    taken = Mixed(parts, (1, 2)).sample(query, 3, rng=ns.rng_for(0))
    assert isinstance(taken.weights, torch.Tensor) == tensors
    taken = taken.numpy()
    assert taken.ids.tolist() == [[1, 2, -1]] * 2
    assert taken.weights.tolist() == [[0.5, 1.0, 0.0]] * 2
    assert taken.relation.tolist() == [[2, 0, 0]] * 2
    assert taken.scores.tolist() == [[3.0, 1.0, 0.0]] * 2
    assert taken.suspicion is None


def test_mixed_vectors_stand_beside_those_of_the_memory():
    """MoCHi as the paper uses it: synthetic negatives beside the queue's own, of the same items."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((N_ITEMS, 3))
    memory = ns.pools.Memory(N_ITEMS)
    memory.push(np.arange(N_ITEMS), np.full(N_ITEMS, -1), vectors=vectors)
    parts = {"queue": Static(memory), "mixed": MoCHi(memory, None, 4)}
    query = ns.Query([0, 1], vectors=rng.standard_normal((2, 3)))
    taken = Mixed(parts, (N_ITEMS, 4)).sample(query, N_ITEMS + 4, rng=ns.rng_for(0))
    assert taken.dropped == {}
    assert np.array_equal(taken.vectors[:, :N_ITEMS], vectors[taken.ids[:, :N_ITEMS]])
    assert (taken.parents[:, :N_ITEMS] == -1).all()
    assert (taken.parents[:, N_ITEMS:, 0] == taken.ids[:, N_ITEMS:]).all()
    assert taken.scores is None
