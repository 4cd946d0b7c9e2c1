"""The worst rows: their order against plain loops, and what is shown of them."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_audit import a_set, scored_of

from naysay.auditing._copies import NAMES, PROVEN
from naysay.auditing.worst import worst


def plain_worst(found, scored, reasons, top):
    """[(anchor, negative)] by loops: the best slot of each anchor, then the anchors in order."""
    best = []
    for row in range(len(found.ids)):
        slots = []
        for slot, item in enumerate(found.ids[row].tolist()):
            code = int(reasons[row, slot])
            level = 0 if code == 0 else 2 if code in PROVEN else 1
            score = -math.inf if scored is None else float(scored.negatives[row, slot])
            score = -math.inf if math.isnan(score) else score
            if item >= 0 and (level or score > -math.inf):
                slots.append((-level, -score, slot))
        if slots:
            level, score, slot = min(slots)
            best.append((level, score, row, int(found.ids[row, slot])))
    return [(row, item) for _, _, row, item in sorted(best)[:top]]


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 4), st.integers(0, 6), st.booleans())
def test_the_order_agrees_with_plain_loops(seed, n, k, top, with_scores):
    rng = np.random.default_rng(seed)
    ids = np.where(rng.random((n, k)) < 0.2, -1, rng.permuted(np.tile(np.arange(9), (n, 1)), axis=1)[:, :k])
    reasons = np.where(ids >= 0, rng.integers(0, len(NAMES), (n, k)) * (rng.random((n, k)) < 0.3), 0).astype(np.int8)
    found = a_set(ids, [(0, 0)], n_items=9)
    scores = np.where((ids < 0) | (rng.random((n, k)) < 0.2), np.nan, rng.normal(0, 1, (n, k)).round(1))
    scored = scored_of(scores, [0.5], [0]) if with_scores else None
    told = [(each.anchor, each.negative) for each in worst(found, scored, reasons, 1.0, top)]
    assert told == plain_worst(found, scored, reasons, top)


def test_what_is_shown():
    found = a_set([[1, 2], [2, -1]], [(0, 0)], n_items=3, query_texts=["a?", "b?"], corpus_texts=["x", "y", "z"])
    scored = scored_of([[0.9, 0.2], [0.3, np.nan]], [0.8], [0])
    reasons = np.array([[0, 0], [NAMES.index("same text"), 0]], np.int8)
    first, second = worst(found, scored, reasons, 0.7, 5)
    assert (first.reason, first.anchor_text, first.positive, first.positive_text) == ("same text", "b?", -1, "")
    assert math.isnan(first.positive_score)
    assert (second.reason, second.negative_text, second.positive_text) == ("score", "y", "x")
    assert (round(second.score, 3), round(second.positive_score, 3)) == (0.9, 0.8)
    (plain, *_) = worst(a_set([[1, 2], [2, -1]], [(0, 0)], n_items=3), scored, reasons * 0, 0.95, 5)
    assert (plain.reason, plain.anchor_text, plain.negative_text) == ("none", "row 0", "row 1")
