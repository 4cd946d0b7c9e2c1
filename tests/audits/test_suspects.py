"""Suspected negatives: copies by hand, the score threshold, and the worst rows against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_audit import a_set, scores_of

import naysay as ns
from naysay.audits._false_share import CorpusSample
from naysay.audits._training_set import scores_as_given, scores_by_vectors, training_set
from naysay.audits.suspects import (
    COPIES,
    PROVEN,
    copies,
    count_reasons,
    is_proven,
    score_threshold,
    with_near_vectors,
    worst_rows,
)
from naysay.detectors import choose_thresholds
from naysay.detectors.duplicates import REASONS
from naysay.search import open_vectors

WORLD = ns.planted_world(40, 60, per_anchor=6, known_share=0.5)
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
    names = [[REASONS[code] for code in row] for row in reasons.tolist()]
    assert names == [["same text", "anchor", "none"], ["near text", "none", "none"], ["positive", "positive", "none"]]
    assert count_reasons(reasons) == {"positive": 2, "anchor": 1, "same text": 1, "near text": 1}
    assert is_proven(reasons).tolist() == [[True, True, False], [False] * 3, [True, True, False]]


def test_transitive_without_texts():
    found = a_set([[2, 3], [0, -1]], [(0, 0), (0, 1), (1, 1), (1, 2)], n_items=4)
    reasons = copies(found)
    assert [[REASONS[code] for code in row] for row in reasons.tolist()] == [
        ["transitive", "none"],
        ["transitive", "none"],
    ]
    assert not is_proven(reasons).any()


@pytest.mark.parametrize("seed", range(3))
def test_near_vectors_agree_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    corpus = rng.normal(size=(40, 5))
    corpus[20:] = corpus[:20] + rng.normal(size=(20, 5)) * rng.choice([0.02, 0.15, 1.0], (20, 1))
    queries = rng.normal(size=(12, 5))
    pairs = [(row, row) for row in range(12)] + [(row, row + 1) for row in range(0, 12, 2)]
    found = a_set([[row + 20, (row + 1) % 20 + 20, 39] for row in range(12)], sorted(pairs), n_items=40)
    sides = [open_vectors(side) for side in (queries, corpus)]
    scores = scores_by_vectors(found, *sides, "cosine", ns.rng_for(0))
    before = np.zeros(found.ids.shape, np.int8)
    before[0, 0] = 1
    after = with_near_vectors(before, found, scores, sides[1])
    unit = corpus / np.linalg.norm(corpus, axis=1, keepdims=True)
    for row in range(12):
        for slot, item in enumerate(found.ids[row].tolist()):
            near = any(unit[item] @ unit[other] >= 0.98 for anchor, other in pairs if anchor == row)
            expected = REASONS.index("near vector") if near else 0
            assert after[row, slot] == (1 if (row, slot) == (0, 0) else expected)
    assert (after == REASONS.index("near vector")).any()


# ---- the threshold --------------------------------------------------------------------------------------------------


def test_a_calibrated_threshold_rests_on_one_positive_of_each_anchor():
    mined = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 4, judge=None)
    scores = scores_as_given(training_set(mined, None), None, None, ns.rng_for(0))
    assert scores.anchors[scores.one_each].tolist() == list(range(40))
    assert len(scores.positives) == 120
    again = [
        scores_as_given(training_set(mined, None), None, None, ns.rng_for(seed)).one_each.tolist() for seed in range(5)
    ]
    assert len({*map(tuple, again)}) == 5  # taken at random
    found = score_threshold(scores, None, 0.05, None)
    second = sorted(scores.positives[scores.one_each].tolist())[1]  # number floor(0.05 * 41) = 2 from below
    assert dict(found.suggested) == {"calibrated": second}
    assert found.value == np.inf  # a bound on the recall of a filter is no reason to suspect
    assert found.rule == "No negative is suspected by its score: how many are false cannot be told."


def test_the_shares_are_those_of_uniform_pairs_known_ones_included():
    rng = np.random.default_rng(0)
    table = rng.normal(0, 1, (50, 200)).astype(np.float32)
    free = rng.random((50, 200)) < 0.7
    sample = CorpusSample(np.arange(50), table, free, np.ones(50, np.float32), 200)
    scores = scores_of(rng.normal(0, 1, (50, 2)), rng.normal(2, 1, 10), np.arange(10))
    found = score_threshold(scores, sample, 0.05, None)
    plain = choose_thresholds(table[free], n_positives=int((~free).sum()))
    assert dict(found.suggested) == {"low": plain.low, "high": plain.high}
    assert found.value == plain.high


def test_an_estimate_sets_the_threshold():
    scores = scores_of(np.zeros((30, 2)), np.arange(30.0), np.arange(30))
    found = score_threshold(scores, None, 0.05, 0.75)
    assert (found.value, found.suggested["half false"]) == (0.75, 0.75)
    assert found.rule == "Score 0.75 or higher: at least half of these negatives are false by estimate."
    none = score_threshold(scores, None, 0.05, np.inf)
    assert (none.value, "half false" in none.suggested) == (np.inf, False)
    assert none.rule.startswith("No negative is suspected by its score")


# ---- the worst rows -------------------------------------------------------------------------------------------------


def plain_worst(found, scores, reasons, threshold, top):
    """[(anchor, negative)] by loops: kinds take turns, each with its best anchor that no other has taken."""
    queues = {kind: [] for kind in (*PROVEN, *COPIES, "score", "none")}
    for row in range(len(found.ids)):
        for kind, queue in queues.items():
            slots = []
            for slot, item in enumerate(found.ids[row].tolist()):
                score = -math.inf if scores is None else float(scores.negatives[row, slot])
                score = -math.inf if math.isnan(score) else score
                reason = REASONS[int(reasons[row, slot])]
                reason = "score" if reason == "none" and score >= threshold else reason
                if item >= 0 and reason == kind and (kind != "none" or score > -math.inf):
                    slots.append((-score, slot))
            if slots:
                score, slot = min(slots)
                queue.append((score, row, int(found.ids[row, slot])))
    last = sorted(queues.pop("none"))
    taken, listed = set(), {kind: [] for kind in queues}
    waiting = {kind: sorted(queue) for kind, queue in queues.items()}
    while any(waiting.values()) and len(taken) < top:
        for kind, queue in waiting.items():
            while queue and queue[0][1] in taken:
                queue.pop(0)
            if queue and len(taken) < top:
                _, row, item = queue.pop(0)
                taken.add(row)
                listed[kind].append((row, item))
    every = [place for places in listed.values() for place in places]
    return every + [(row, item) for _, row, item in last if row not in taken][: top - len(every)]


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 4), st.integers(0, 6), st.booleans())
def test_the_order_agrees_with_plain_loops(seed, n, k, top, with_scores):
    rng = np.random.default_rng(seed)
    ids = np.where(rng.random((n, k)) < 0.2, -1, rng.permuted(np.tile(np.arange(9), (n, 1)), axis=1)[:, :k])
    reasons = np.where(ids >= 0, rng.integers(0, len(REASONS), (n, k)) * (rng.random((n, k)) < 0.3), 0).astype(np.int8)
    found = a_set(ids, [(0, 0)], n_items=9)
    scores = np.where((ids < 0) | (rng.random((n, k)) < 0.2), np.nan, rng.normal(0, 1, (n, k)).round(1))
    scores = scores_of(scores, [0.5], [0]) if with_scores else None
    listed = [(each.anchor, each.negative) for each in worst_rows(found, scores, reasons, 1.0, top)]
    assert listed == plain_worst(found, scores, reasons, 1.0, top)


def test_what_is_shown():
    found = a_set([[1, 2], [2, -1]], [(0, 0)], n_items=3, query_texts=["a?", "b?"], corpus_texts=["x", "y", "z"])
    scores = scores_of([[0.9, 0.2], [0.3, np.nan]], [0.8], [0])
    reasons = np.array([[0, 0], [REASONS.index("same text"), 0]], np.int8)
    first, second = worst_rows(found, scores, reasons, 0.7, 5)
    assert (first.reason, first.anchor_text, first.positive, first.positive_text) == ("same text", "b?", -1, "")
    assert math.isnan(first.positive_score)
    assert (second.reason, second.negative_text, second.positive_text) == ("score", "y", "x")
    assert (round(second.score, 3), round(second.positive_score, 3)) == (0.9, 0.8)
    (plain, *_) = worst_rows(a_set([[1, 2], [2, -1]], [(0, 0)], n_items=3), scores, reasons * 0, 0.95, 5)
    assert (plain.reason, plain.anchor_text, plain.negative_text) == ("none", "row 0", "row 1")
