"""Suspected negatives: each reason by hand, near vectors against plain loops, and the rows to review first."""

import math

import numpy as np
import pytest
from small_sets import a_set

import naysay as ns

LONG = "the quick brown fox jumps over the lazy dog near the old river bank at dawn while it rains on the hills"


def test_each_reason_by_hand():
    corpus = ["Paris.", "paris", "capital of france?", "Rome", LONG, f"{LONG} today", "Lyon", "Nice"]
    found = ns.audit(
        a_set(
            [[1, 2, 3], [5, 6, 0], [7, 6, 4]],
            [(0, 0), (0, 6), (1, 4), (2, 6), (2, 7)],
            n_items=8,
            query_texts=["Capital of France", "fox", "south"],
            corpus_texts=corpus,
        ),
        top=3,
    )
    assert found.suspected_by == {"positive": 2, "anchor": 1, "same text": 1, "near text": 1}
    assert (found.proven, found.suspected) == (4, 5)
    assert found.changes == {"known elsewhere": 2, "own text": 1, "duplicate": 2}
    assert [(each.anchor_text, each.negative_text, each.reason) for each in found.worst] == [
        ("south", "Nice", "positive"),
        ("Capital of France", "capital of france?", "anchor"),
        ("fox", f"{LONG} today", "near text"),
    ]


def test_transitive_without_texts():
    found = ns.audit(a_set([[2, 3], [0, -1]], [(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4))
    assert (found.suspected_by, found.proven) == ({"transitive": 2}, 0)


@pytest.mark.parametrize("seed", range(3))
def test_near_vectors_agree_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    corpus = rng.normal(size=(40, 5)).astype(np.float32)
    corpus[20:] = corpus[:20] + rng.normal(size=(20, 5)) * rng.choice([0.02, 0.15, 1.0], (20, 1))
    pairs = sorted([(row, row) for row in range(12)] + [(row, row + 1) for row in range(0, 12, 2)])
    ids = [[row + 20, (row + 1) % 20 + 20, 39] for row in range(12)]
    vectors = {"query_vectors": rng.normal(size=(12, 5)).astype(np.float32), "corpus_vectors": corpus}
    found = ns.audit(a_set(ids, pairs, n_items=40), **vectors)
    unit = corpus / np.linalg.norm(corpus, axis=1, keepdims=True)
    near = sum(
        any(unit[item] @ unit[other] >= 0.98 for anchor, other in pairs if anchor == row)
        for row in range(12)
        for item in ids[row]
    )
    assert near > 0
    assert found.suspected_by["near vector"] == near


def test_the_worst_rows_show_each_kind_of_finding_and_an_anchor_once():
    """30 anchors whose negative is the text of a positive must not hide the three other kinds."""
    n = 60
    queries = [f"question number {row} of the set" for row in range(n)]
    documents = [f"answer number {row} that belongs to question {row}, said once" for row in range(n)]
    others = [f"something else, number {row}, about another matter" for row in range(n)]
    corpus = [*documents, *(text.upper() for text in documents), *others]
    ids = 2 * n + (np.arange(n)[:, None] + np.array([1, 2])) % n
    ids[:30, 0] = n + np.arange(30)  # the positive in capitals
    corpus[2 * n + 41] = queries[40]
    ids[40, 0] = 2 * n + 41  # the anchor itself
    ids[51, 0] = 50  # a positive of anchor 50, which shares the positive of anchor 51
    pairs = sorted([*((row, row) for row in range(n)), (50, 51)])
    found = ns.audit(a_set(ids, pairs, n_items=3 * n, query_texts=queries, corpus_texts=corpus), top=10)
    kinds = [each.reason for each in found.worst]
    assert (kinds.count("anchor"), kinds.count("transitive"), kinds.count("same text")) == (1, 1, 8)
    assert len({each.anchor for each in found.worst}) == 10


def test_a_worst_row_has_its_scores_and_texts():
    given = a_set([[1, 2], [2, -1]], [(0, 0)], n_items=3, query_texts=["a?", "b?"], corpus_texts=["x", "y", "z"])
    first, second = ns.audit(given, scores=[[0.9, 0.2], [0.3, 0]], positive_scores=[0.8], top=5).worst
    assert (first.reason, first.anchor_text, first.positive_text, first.negative_text) == ("none", "a?", "x", "y")
    assert (round(first.score, 3), round(first.positive_score, 3)) == (0.9, 0.8)
    assert (second.positive, second.positive_text, math.isnan(second.positive_score)) == (-1, "", True)
