"""Exclude, and what is known: whatever the form it is given in, it never comes through, and is counted."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids

import naysay as ns
from naysay.detectors import Duplicates, RankWindow
from naysay.errors import NaysayError
from naysay.mining._known import known_of, read_known, read_own
from naysay.mining._task import kinds_of, one_each
from naysay.mining.backfill import rows_of
from naysay.mining.exclude import exclude

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
    assert exclude(found) is found
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


def test_kinds_have_one_reason_each():
    own = read_own(True, ITEMS, ITEMS)
    known = known_of(([0, 1], [0, 3]), ([0, 2, 3], [5, 2, 3]), own, ITEMS, ITEMS)
    pairs = list(zip(*(part.tolist() for part in known.pairs()), strict=True))
    kinds = {
        name: [pair for pair, one in zip(pairs, mask, strict=True) if one]
        for name, mask in kinds_of(known, own).items()
    }
    assert kinds["positive"] == [(0, 0), (1, 3)]  # a positive that is the anchor is a positive
    assert kinds["anchor"] == [(i, i) for i in range(1, ITEMS)]
    assert kinds["ignored"] == [(0, 5)]
    assert kinds_of(known, None)["anchor"].sum() == 0


def test_the_first_positive_of_each():
    assert one_each(ns.Positives.from_pairs([1, 0, 0], [4, 5, 2], 2, 6)).tolist() == [2, 4]
    assert one_each(ns.Positives.from_pairs([1], [4], 2, 6)) is None
    ignored = ns.Positives.from_pairs([0], [1], 2, 6).with_ignored([1], [0])
    assert one_each(ignored) is None


def test_the_rows_of_some():
    known = ns.Positives.from_pairs([0, 1, 1, 3], [1, 2, 3, 4], 4, 6).with_ignored([3], [0])
    part = rows_of(known, np.array([3, 0, 2]))
    assert [side.tolist() for side in part.pairs()] == [[0, 0, 1], [0, 4, 1]]
    assert part.n_anchors == 3


KNOWN = ns.Positives.from_pairs([0], [1], N, ITEMS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exclude([1]), r"^exclude: `candidates` must be a Candidates, got list\."),
        (
            lambda: exclude(lists(0), same_ids=1),
            r"^exclude: `same_ids` must be True or False, or \(\d,\) the item of each row, got 1\.$",
        ),
        (lambda: exclude(lists(0), [1]), r"^exclude: `known` must be Positives, got list\.$"),
        (
            lambda: exclude(lists(0), ns.Positives.from_pairs([0], [1], 3, ITEMS)),
            r"`known` must be of 4 anchors.*got 3",
        ),
        (lambda: exclude(lists(0), ns.Positives.from_pairs([0], [1], N, 3)), r"must be of more than 6 items.*got 3"),
        (
            lambda: exclude(lists(0), duplicates="paris"),
            r"^exclude: `duplicates` must be a detector with a method susp.*'paris'",
        ),
        (
            lambda: exclude(lists(0), duplicates=RankWindow(3)),
            r"that does not rank the candidates that are left, got RankWindow. Use win",
        ),
        (
            lambda: exclude(lists(0), duplicates=Duplicates(positives=KNOWN), query=ns.Query([0])),
            r"exclude: `query` must be of the same length as the others, got query 1, candidates 4",
        ),
        (
            lambda: exclude(lists(0), duplicates=Duplicates(positives=KNOWN), query=3),
            r"`query` must be a Query, or None, got int",
        ),
        (
            lambda: read_known("ignore", ns.Positives.from_pairs([4], [0]), N, ITEMS),
            r"^`ignore` must be of at most 4 anchors, like queries, got 5\.$",
        ),
        (
            lambda: read_known("positives", ns.Positives.from_pairs([0], [7]), N, ITEMS),
            r"must be of at most 7 items, like corpus, got 8",
        ),
        (lambda: read_known("positives", ([0], [1, 2]), N, ITEMS), r"of one length, got 1 anchors and 2 items"),
        (
            lambda: read_known("positives", ([9], [1]), N, ITEMS),
            r"between 0 and 3 \(4 queries\), got 9 at row 0",
        ),
        (lambda: read_known("positives", ([0], [-1]), N, ITEMS), r"between 0 and 6 \(7 corpus rows\), got -1"),
        (
            lambda: read_known("positives", [1, 2, 7, 0], N, ITEMS),
            r"between -1 and 6 .*got 7 at row 2 \(1 such",
        ),
        (
            lambda: read_known("positives", [1, 2, 3], N, ITEMS),
            r"or \(4,\) the one of each query, got shape \(3,\)",
        ),
        (lambda: read_known("positives", "text", N, ITEMS), r"two arrays \(anchors, items\), .* got 'text'"),
        (lambda: read_known("positives", [0.5] * 4, N, ITEMS), r"got shape \(4,\) float64"),
        (
            lambda: read_own(True, N, ITEMS),
            r"left out unless queries are the 7 corpus rows, got 4",
        ),
        (lambda: read_own("yes", N, N), r"`same_ids` must be True, \(4,\) the corpus row .* got 'yes'"),
    ],
)
def test_errors(call, message):
    with pytest.raises(NaysayError, match=message):
        call()
