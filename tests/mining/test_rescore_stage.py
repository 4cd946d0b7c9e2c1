"""Rescore: batched, bounded, never asked about what is not in play."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids

import naysay as ns
from naysay.mining import Reason, rescore

N, M, ITEMS = 3, 5, 9


class Model:
    """A score for each pair; it remembers what it was asked."""

    def __init__(self, seed=0):
        self.table = np.random.default_rng(seed).integers(0, 9, (N, ITEMS)) / 8
        self.calls = []

    def __call__(self, anchors, ids):
        assert len(anchors) == len(ids) > 0
        assert (ids >= 0).all()
        self.calls.append(list(zip(anchors.tolist(), ids.tolist(), strict=True)))
        return self.table[anchors, ids]

    @property
    def asked(self):
        return [pair for call in self.calls for pair in call]


def lists(seed):
    rng = np.random.default_rng(seed)
    ids = np.stack([rng.permutation(ITEMS)[:M] for _ in range(N)])
    ids[2, 2:] = -1
    return candidates_from(ids, rng.integers(0, 4, (N, M)) / 4)


@given(
    st.integers(0, 30),
    st.none() | st.integers(0, 20),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, ITEMS - 1)), max_size=4, unique=True),
)
def test_as_in_loops(seed, more, batch, pairs):
    found = lists(seed).drop(lists(seed).ids == 4, Reason.DUPLICATE)
    model = Model(seed)
    budget = None if more is None else more + len(pairs)
    positives = tuple(np.array(pairs, int).reshape(-1, 2).T)
    left = rescore(found, model, positives=positives, budget=budget, batch=batch)
    check_counts(left)
    turns = []
    for row in range(N):
        slots = [slot for slot in range(M) if found.ids[row, slot] >= 0 and found.ids[row, slot] != 4]
        slots.sort(key=lambda slot, row=row: (-found.scores[row, slot], found.ids[row, slot]))
        turns += [(turn, row, slot) for turn, slot in enumerate(slots)]
    wanted = [(row, slot) for _, row, slot in sorted(turns)]
    afforded = wanted if more is None else wanted[:more]
    assert model.asked == [*pairs, *((row, int(found.ids[row, slot])) for row, slot in afforded)]
    assert all(len(call) == batch for call in model.calls[:-1])  # across anchors, not one call an anchor
    assert sorted(zip(*(part.tolist() for part in np.nonzero(left.kept)), strict=True)) == sorted(afforded)
    for row, slot in afforded:
        assert left.scores[row, slot] == np.float32(model.table[row, found.ids[row, slot]])
    assert int(sum(left.dropped.get("not rescored", [0]))) == len(wanted) - len(afforded)
    for row in range(N):
        own = [model.table[pair] for pair in pairs if pair[0] == row]
        assert left.positive_scores[row] == np.float32(min(own)) if own else np.isnan(left.positive_scores[row])
    assert (left.rank == found.rank).all()


def test_positives_of_either_form_and_tensors():
    known = ns.Positives.from_pairs([0, 0, 1], [1, 2, 3], N, ITEMS).with_ignored([2], [0])
    model = Model()
    left = rescore(lists(0), model, positives=known)
    assert model.asked[:3] == [(0, 1), (0, 2), (1, 3)]  # what is ignored is not scored
    assert np.isnan(left.positive_scores[2])
    column = rescore(lists(0), lambda anchors, ids: torch.from_numpy(model.table[anchors, ids])[:, None])
    assert (column.scores == left.scores).all()
    empty = candidates_from(np.empty((0, 2), int), np.empty((0, 2)))
    assert len(rescore(empty, model)) == 0
    assert kept_ids(rescore(lists(0), model, budget=0)) == [[], [], []]


def broken(anchors, ids):
    raise RuntimeError("no device")


def ids_as_text(ids):
    return ids.astype(str)
