"""Copies among the negatives: each reason on a set made by hand."""

import numpy as np
import pytest
from plain_audit import a_set

import naysay as ns
from naysay.auditing._copies import NAMES, copies, counted, proven, with_near_vectors
from naysay.auditing._scored import by_vectors
from naysay.search import open_vectors

LONG = "the quick brown fox jumps over the lazy dog near the old river bank at dawn while it rains on the hills"


def test_each_reason_by_hand():
    corpus = ["Paris.", "paris", "capital of france?", "Rome", LONG, f"{LONG} today", "Lyon", "Nice"]
    found = a_set(
        [[1, 2, 3], [5, 6, 0], [7, 6, 4]],
        [(0, 0), (1, 4), (0, 6), (2, 6), (2, 7)],
        n_items=8,
        query_texts=["Capital of France", "fox", "south"],
        corpus_texts=corpus,
    )
    reasons = copies(found)
    told = [[NAMES[code] for code in row] for row in reasons.tolist()]
    assert told == [["same text", "anchor", "none"], ["near text", "none", "none"], ["positive", "positive", "none"]]
    assert counted(reasons) == {"positive": 2, "anchor": 1, "same text": 1, "near text": 1}
    assert proven(reasons).tolist() == [[True, True, False], [False] * 3, [True, True, False]]


def test_transitive_without_texts():
    found = a_set([[2, 3], [0, -1]], [(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4)
    reasons = copies(found)
    assert [[NAMES[code] for code in row] for row in reasons.tolist()] == [
        ["transitive", "none"],
        ["transitive", "none"],
    ]
    assert not proven(reasons).any()


@pytest.mark.parametrize("seed", range(3))
def test_near_vectors_agree_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    corpus = rng.normal(size=(40, 5))
    corpus[20:] = corpus[:20] + rng.normal(size=(20, 5)) * rng.choice([0.02, 0.15, 1.0], (20, 1))
    queries = rng.normal(size=(12, 5))
    pairs = [(row, row) for row in range(12)] + [(row, row + 1) for row in range(0, 12, 2)]
    found = a_set([[row + 20, (row + 1) % 20 + 20, 39] for row in range(12)], sorted(pairs), n_items=40)
    sides = [open_vectors(side) for side in (queries, corpus)]
    scored = by_vectors(found, *sides, "cosine", ns.rng_for(0))
    before = np.zeros(found.ids.shape, np.int8)
    before[0, 0] = 1
    after = with_near_vectors(before, found, scored, sides[1])
    unit = corpus / np.linalg.norm(corpus, axis=1, keepdims=True)
    for row in range(12):
        for slot, item in enumerate(found.ids[row].tolist()):
            near = any(unit[item] @ unit[other] >= 0.98 for anchor, other in pairs if anchor == row)
            expected = NAMES.index("near vector") if near else 0
            assert after[row, slot] == (1 if (row, slot) == (0, 0) else expected)
    assert (after == NAMES.index("near vector")).any()
