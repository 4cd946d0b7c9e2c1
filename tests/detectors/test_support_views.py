"""SupportViews against plain loops, where its vectors come from, and a world whose false negatives are known."""

import math
from dataclasses import replace

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from naysay.detectors import SupportViews

RNG = np.random.default_rng(0)
VIEWS = RNG.standard_normal((6, 3, 4))
ITEMS = RNG.standard_normal((9, 4))


def embed(ids):
    return torch.from_numpy(ITEMS)[ids] if torch.is_tensor(ids) else ITEMS[ids]


def cosine(one, other):
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def by_loops(views, items, anchors, ids, top, threshold, aggregate):
    """The docstring's formulas, slot by slot."""
    answer = []
    for anchor, row in zip(anchors, ids, strict=True):
        scores = []
        for item in row:
            seen = [cosine(view, items[item]) for view in views[anchor]] if item >= 0 else [0.0]
            scores.append(max(seen) if aggregate == "max" else sum(seen) / len(seen))
        order = sorted((slot for slot in range(len(row)) if row[slot] >= 0), key=lambda slot: (-scores[slot], slot))
        first = order if top is None else order[:top]
        values = []
        for slot, item in enumerate(row):
            s = scores[slot]
            value = (s + 1) / (2 * (threshold + 1)) if s < threshold else 0.5 + (s - threshold) / (2 * (1 - threshold))
            values.append(0.0 if item < 0 else value if slot in first else min(value, 0.49))
        answer.append(values)
    return np.array(answer).reshape(len(anchors), -1)


def question(rows=6, width=7, seed=1):
    ids = np.random.default_rng(seed).integers(-1, 9, (rows, width))
    return ns.Query(np.arange(rows)), ns.Negatives(ids)


@given(
    st.integers(1, 6),
    st.integers(1, 9),
    st.none() | st.integers(1, 10),
    st.sampled_from([-1.0, -0.5, 0.0, 0.3, 0.7, 0.99]),
    st.sampled_from(["max", "mean"]),
    st.integers(0, 99),
)
def test_it_is_what_loops_give(rows, width, top, threshold, aggregate, seed):
    query, negatives = question(rows, width, seed)
    detector = SupportViews(VIEWS, embed, top=top, threshold=threshold, aggregate=aggregate)
    found = detector.suspicion(query, negatives)
    expected = by_loops(VIEWS, ITEMS, range(rows), negatives.ids.tolist(), top, threshold, aggregate)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    flagged = found >= 0.5
    assert (detector.scores(query, negatives)[flagged] >= threshold).all()
    assert (flagged.sum(axis=1) <= (width if top is None else top)).all()


# ---- where vectors come from ----------------------------------------------------------------------------


def test_vectors_that_the_negatives_carry_serve_as_well():
    query, negatives = question()
    carried = replace(negatives, vectors=np.where(negatives.ids[..., None] >= 0, ITEMS[negatives.ids], np.nan))
    expected = SupportViews(VIEWS, embed, top=3).suspicion(query, negatives)
    np.testing.assert_allclose(SupportViews(VIEWS, top=3).suspicion(query, carried), expected, atol=1e-15)


def test_vectors_that_all_rows_share_serve_as_well():
    ids = np.broadcast_to(np.array([3, -1, 5, 0]), (6, 4)).copy()
    ids[2, 0] = -1
    vectors = np.where(np.array([3, -1, 5, 0])[:, None] >= 0, ITEMS[[3, 0, 5, 0]], 0.0)
    query, carried = ns.Query(np.arange(6)), ns.Negatives(ids, vectors=np.broadcast_to(vectors, (6, 4, 4)))
    expected = SupportViews(VIEWS, embed).suspicion(query, ns.Negatives(ids))
    np.testing.assert_allclose(SupportViews(VIEWS).suspicion(query, carried), expected, atol=1e-15)


def test_embed_is_asked_once_for_each_id_and_never_for_an_empty_slot():
    query, negatives = question()
    asked = []

    def counting(ids):
        asked.append(ids.tolist())
        return ITEMS[ids]

    SupportViews(VIEWS, counting).suspicion(query, negatives)
    assert asked == [sorted({i for row in negatives.ids.tolist() for i in row if i >= 0})]
