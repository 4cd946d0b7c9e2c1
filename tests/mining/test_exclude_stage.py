"""Exclude, and what is known: whatever the form it is given in, it never comes through, and is counted."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids

import naysay as ns
from naysay.detectors import Duplicates
from naysay.mining import exclude
from naysay.mining.problem import read_known

N, ITEMS = 4, 7
PAIRS = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, ITEMS - 1)), max_size=12)


def lists(seed):
    """A list of different items for each anchor, some shorter."""
    rng = np.random.default_rng(seed)
    ids = np.stack([rng.permutation(ITEMS) for _ in range(N)])
    ids[1, 4:] = -1
    return candidates_from(ids, np.zeros((N, ITEMS)))


@given(PAIRS, PAIRS, st.booleans(), st.integers(0, 50))
def test_as_in_loops(positives, ignored, same_ids, seed):
    found = lists(seed)
    known = ns.Positives.from_pairs(*(np.array(positives, int).reshape(-1, 2).T), N, ITEMS)
    if ignored:
        known = known.with_ignored(*np.array(ignored).T)
    left = exclude(found, known, same_ids=same_ids)
    check_counts(left)
    counts = {"positive": [0] * N, "anchor": [0] * N, "ignored": [0] * N}
    for row in range(N):
        kept = []
        for i in found.ids[row].tolist():
            if i < 0:
                continue
            if (row, i) in positives:
                counts["positive"][row] += 1
            elif same_ids and i == row:
                counts["anchor"][row] += 1
            elif (row, i) in ignored:
                counts["ignored"][row] += 1
            else:
                kept.append(i)
        assert kept_ids(left)[row] == kept
    assert {name: found.tolist() for name, found in left.dropped.items()} == {n: c for n, c in counts.items() if any(c)}


def test_twins_go_last():
    texts = ["Paris.", "paris", "Rome", "Oslo", "OSLO", "x", "y"]
    known = ns.Positives.from_pairs(range(N), [0, 2, 3, 5], N, ITEMS)
    duplicates = Duplicates(item_texts=texts, positives=known)
    left = exclude(lists(0), known, duplicates=duplicates)
    check_counts(left)
    assert {name: counts.tolist() for name, counts in left.dropped.items()} == {
        "positive": [1, int(2 in lists(0).ids[1]), 1, 1],
        "duplicate": [1, 0, 1, 0],
    }
    assert 1 not in kept_ids(left)[0]
    assert 4 not in kept_ids(left)[2]
    asked = exclude(lists(0), duplicates=Duplicates(item_texts=texts), query=ns.Query(range(N), positives=[0, 2, 3, 5]))
    assert asked.dropped["duplicate"].tolist() == [
        2,
        1,
        2,
        1,
    ]  # the positive itself is one, if nobody says that it is known


def test_nothing_to_exclude():
    found = lists(1)
    assert (exclude(found).kept == found.kept).all()
    empty = candidates_from(np.empty((0, 3), int), np.empty((0, 3)))
    assert len(exclude(empty, ns.Positives.from_pairs([], [], 0, 5), same_ids=True)) == 0


# ---- the forms of what is known -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        ns.Positives.from_pairs([0, 2], [1, 4], N, ITEMS),
        ns.Positives.from_pairs([0, 2], [1, 4]),  # smaller: the rest is unknown
        ([0, 2], [1, 4]),
        [np.array([0, 2]), np.array([1, 4])],
        (torch.tensor([2, 0]), torch.tensor([4, 1])),
        [1, -1, 4, -1],
        np.array([1, -1, 4, -1], np.int32),
        torch.tensor([1, -1, 4, -1]),
    ],
)
def test_every_form_says_the_same(given):
    known = read_known("positives", given, N, ITEMS)
    assert (known.n_anchors, known.n_items) == (N, ITEMS)
    assert [part.tolist() for part in known.pairs()] == [[0, 2], [1, 4]]


def test_two_queries_with_a_positive_each_are_not_pairs():
    assert read_known("positives", (3, 5), 2, ITEMS).pairs()[1].tolist() == [3, 5]
    assert len(read_known("positives", None, 2, ITEMS)) == 0
