"""The memory pool against a plain Python queue: pushes of any length, draws, states."""

from collections import Counter, deque

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay import NaysayError
from naysay.arrays import to_numpy
from naysay.pools import in_batch
from naysay.pools.memory import Memory

SIDE = 6  # anchors and items are one set of this size
pushes = st.lists(st.integers(0, 11), max_size=6)


def entries(count, start):
    """`count` entries whose ids and owners repeat, each with a vector that tells them apart."""
    serial = np.arange(start, start + count)
    return serial % SIDE, serial // 2 % SIDE, np.stack([serial + 1.0, -serial - 1.0], axis=1).astype(np.float32)


def filled(size, lengths, positives=None, distinct=True):
    """A memory and the plain queue that it should be."""
    memory, queue, start = Memory(size, positives, distinct=distinct), deque(maxlen=size), 0
    for count in lengths:
        ids, owners, vectors = entries(count, start)
        memory.push(ids, owners, vectors)
        queue.extend(zip(ids.tolist(), owners.tolist(), map(tuple, vectors.tolist()), strict=True))
        start += count
    return memory, queue


@given(st.integers(1, 7), pushes)
def test_it_is_a_plain_queue(size, lengths):
    memory, queue = filled(size, lengths)
    assert len(memory) == len(queue)
    assert memory.ids.tolist() == [entry[0] for entry in queue]
    assert memory.owners.tolist() == [entry[1] for entry in queue]
    assert (memory.vectors is None) == (len(queue) == 0)
    if queue:
        assert list(map(tuple, memory.vectors.tolist())) == [entry[2] for entry in queue]
        assert memory.vectors.dtype == np.float32


known_pairs = st.lists(st.tuples(st.integers(0, SIDE - 1), st.integers(0, SIDE - 1)), max_size=8)


@st.composite
def questions(draw):
    anchors = draw(st.lists(st.integers(0, SIDE - 1), max_size=5))
    size = st.lists(st.integers(0, SIDE - 1), min_size=len(anchors), max_size=len(anchors))
    items = draw(st.none() | size)
    counts = draw(st.lists(st.integers(0, 9), min_size=len(anchors), max_size=len(anchors)))
    return anchors, items, np.array(counts, np.int64)


def reason_of(entry, anchor, item, known):
    if item is not None and entry[0] == item:
        return "same item"
    if entry[1] == anchor:
        return "same anchor"
    return "known" if (anchor, entry[0]) in known else None


@given(st.integers(1, 9), pushes, known_pairs, known_pairs, questions(), st.booleans(), st.integers(0, 99))
def test_draws_against_plain_loops(size, lengths, pairs, ignored, question, distinct, seed):
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], SIDE, SIDE)
    if ignored:
        known = known.with_ignored([a for a, _ in ignored], [i for _, i in ignored])
    memory, queue = filled(size, lengths, known, distinct)
    anchors, items, counts = question
    query = ns.Query(np.array(anchors, np.int64), positives=None if items is None else np.array(items, np.int64))
    everything = memory.draw(query, rng=ns.rng_for(seed))
    drawn = memory.draw(query, counts, rng=ns.rng_for(seed))
    assert everything.shape == (len(anchors), len(queue))
    assert drawn.log_q is None
    reasons, missing = Counter(), 0
    for row, anchor in enumerate(anchors):
        item = None if items is None else items[row]
        why = [reason_of(entry, anchor, item, {*pairs, *ignored}) for entry in queue]
        assert everything.ids[row].tolist() == [-1 if w else e[0] for w, e in zip(why, queue, strict=True)]
        reasons.update(w for w in why if w)
        usable = [entry for w, entry in zip(why, queue, strict=True) if not w]
        full = min(counts[row], len({entry[0] for entry in usable})) if distinct else counts[row] * bool(usable)
        missing += counts[row] - full
        line = drawn.ids[row].tolist()
        assert line[full:] == [-1] * (len(line) - full)
        assert not distinct or len(set(line[:full])) == full
        if queue:
            got = list(zip(line, map(tuple, drawn.vectors[row].tolist()), strict=True))
            assert {(entry[0], entry[2]) for entry in usable}.issuperset(got[:full])
            assert all(vector == (0.0, 0.0) for _, vector in got[full:])
            assert np.array_equal(everything.vectors[row], memory.vectors)
        else:
            assert drawn.vectors is None
    assert everything.dropped == {name: reasons[name] for name in ("same item", "same anchor", "known")}
    assert drawn.dropped == ({"exhausted": missing} if missing else {})


@pytest.mark.parametrize("tries", [0, 1, 32])
@pytest.mark.parametrize("crowd", [0, 40])
def test_entries_are_drawn_uniformly(crowd, tries, monkeypatch):
    """Id 1 has two of the four entries. Trial, the list of all that may be used, and any mixture of both draw alike.

    A crowd of the anchor's own entries makes trial fail.
    """
    monkeypatch.setattr(in_batch, "TRIES", tries)
    memory = Memory(500)
    memory.push(np.full(crowd, 7), np.zeros(crowd, np.int64))
    memory.push([1, 1, 2, 3], [9, 8, 9, 9])
    rows = 6_000
    drawn = memory.draw(ns.Query(np.zeros(rows, np.int64)), 2, rng=ns.rng_for(5)).ids
    chances = {(1, 2): 0.25, (1, 3): 0.25, (2, 1): 1 / 6, (2, 3): 1 / 12, (3, 1): 1 / 6, (3, 2): 1 / 12}
    seen = Counter(map(tuple, drawn.tolist()))
    assert set(seen) == set(chances)
    assert chisquare([seen[pair] for pair in chances], rows * np.array(list(chances.values()))).pvalue > 1e-4


def test_fewer_distinct_entries_are_the_first_of_more(monkeypatch):
    """Also past a quarter of the entries, where they are listed."""
    monkeypatch.setattr(in_batch, "TRIES", 2)
    memory = Memory(300)
    memory.push(np.arange(300) % 150, np.arange(300) % 7 + 1)
    query = ns.Query(np.zeros(50, np.int64), positives=np.full(50, 3))
    few, many = (memory.draw(query, n, rng=ns.rng_for(0)).ids for n in (8, 300))
    assert np.array_equal(few, many[:, :8])
    assert (np.count_nonzero(many >= 0, axis=1) == 149).all()


def test_an_entry_of_nobody_is_for_all():
    memory = Memory(4)
    memory.push([0, 1], owners=[-1, -1])
    assert memory.draw(ns.Query([0]), rng=ns.rng_for(0)).ids.tolist() == [[0, 1]]


def test_it_starts_empty_and_says_so():
    memory = Memory(4)
    assert len(memory) == 0
    drawn = memory.draw(ns.Query([0, 1]), 3, rng=ns.rng_for(0))
    assert drawn.ids.tolist() == [[-1] * 3] * 2
    assert drawn.dropped == {"exhausted": 6}
    assert drawn.vectors is None
    assert memory.draw(ns.Query([0, 1]), rng=ns.rng_for(0)).shape == (2, 0)
    memory.push([], vectors=np.empty((0, 3)))  # which settles nothing
    memory.push([1])
    assert memory.vectors is None


@pytest.mark.parametrize("lengths", [[], [2], [5], [13], [3, 3, 3]])
@pytest.mark.parametrize("with_vectors", [True, False])
def test_a_restored_memory_goes_on_as_the_old_one(lengths, with_vectors):
    old, start = Memory(5), 0
    for count in lengths:
        ids, owners, vectors = entries(count, start)
        old.push(ids, owners, vectors if with_vectors else None)
        start += count
    state = old.state()
    assert all(isinstance(value, int | np.ndarray) for value in state.values())
    fresh = Memory(5)
    fresh.push([5, 5, 5], vectors=np.ones((3, 9)))  # which must go
    fresh.restore({name: np.asarray(value) for name, value in state.items()})  # as arrays, which is how files keep them
    query = ns.Query(np.arange(SIDE))
    for step in range(4):
        one, two = (memory.draw(query, 3, rng=ns.rng_for(0, step)) for memory in (old, fresh))
        assert np.array_equal(one.ids, two.ids)
        assert (one.vectors is None) == (two.vectors is None)
        assert one.vectors is None or np.array_equal(one.vectors, two.vectors)
        assert np.array_equal(old.ids, fresh.ids)
        ids, owners, vectors = entries(2, 50 + step)
        for memory in (old, fresh):
            memory.push(ids, owners, vectors if with_vectors else None)
    assert len(state["ids"]) == min(sum(lengths), 5)  # a copy: later pushes did not change it


def test_answers_are_copies():
    memory = Memory(3)
    memory.push([1, 2, 3], vectors=np.ones((3, 2), np.float32))
    everything, some = (memory.draw(ns.Query([0]), n, rng=ns.rng_for(0)) for n in (None, 3))
    state = memory.state()
    memory.push([4, 5, 6], vectors=np.zeros((3, 2), np.float32))
    assert everything.vectors.min() == some.vectors.min() == state["vectors"].min() == 1
    assert state["ids"].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        everything.vectors[0, 0, 0] = 5


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_vectors_keep_their_type(kind):
    memory = Memory(3)
    memory.push([1, 2], vectors=np.ones((2, 4), kind))
    assert memory.vectors.dtype == kind
    assert memory.draw(ns.Query([0]), 2, rng=ns.rng_for(0)).vectors.dtype == kind
    assert memory.draw(ns.Query([0]), 3, rng=ns.rng_for(0)).vectors.shape == (1, 3, 4)


def is_vectors(array):
    return isinstance(array, torch.Tensor) and array.is_floating_point()


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_pushed_tensors_stay_tensors(kind, monkeypatch):
    """Vectors of a device stay there: nothing on the way of a push or a draw turns them into NumPy."""
    memory, plain = Memory(5), Memory(5)
    with monkeypatch.context() as patched:
        patched.setattr("naysay.pools.memory.to_numpy", lambda array: None if is_vectors(array) else to_numpy(array))
        for start in (0, 3, 7):
            ids, owners, vectors = entries(4, start)
            memory.push(ids, owners, torch.tensor(vectors, dtype=kind))
            plain.push(ids, owners, vectors)
            memory.draw(ns.Query(torch.arange(SIDE)), 2, rng=ns.rng_for(0))
    state = memory.state()
    assert memory.vectors.dtype == kind
    assert torch.equal(memory.vectors.float(), torch.tensor(plain.vectors))
    for query in (ns.Query(torch.arange(SIDE)), ns.Query(np.arange(SIDE))):
        for n in (None, 3):
            drawn, wanted = (one.draw(query, n, rng=ns.rng_for(1)) for one in (memory, plain))
            assert np.array_equal(drawn.ids, wanted.ids)
            assert isinstance(drawn.vectors, torch.Tensor) == isinstance(query.anchors, torch.Tensor)
            assert np.array_equal(drawn.numpy().vectors, wanted.numpy().vectors)
            assert n is not None or drawn.vectors.shape == (SIDE, 5, 2)
    fresh = Memory(5)
    fresh.restore(state)  # arrays of NumPy, which has no bfloat16
    assert isinstance(fresh.vectors, np.ndarray)
    fresh.push([9], vectors=torch.ones((1, 2), dtype=kind))
    memory.push([9], vectors=torch.ones((1, 2), dtype=kind))
    assert torch.equal(fresh.vectors, memory.vectors)
    with pytest.raises(NaysayError, match=r"must be 2 x \w+, like the entries stored, got 2 x float64"):
        memory.push([9], vectors=torch.ones((1, 2), dtype=torch.float64))
    with pytest.raises(NaysayError, match=r"`vectors` must be finite, got nan at row 0"):
        memory.push([9], vectors=torch.full((1, 2), torch.nan, dtype=kind))
