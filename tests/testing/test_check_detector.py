"""Detectors that break each promise are named by `check_detector`, and an honest one passes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.arrays import to_numpy
from naysay.pools import Everything
from naysay.testing import PromiseBroken, check_detector, planted_world

WORLD = planted_world(80, 60, per_anchor=6)


def question():
    anchors = np.arange(32)
    query = ns.Query(anchors, vectors=WORLD.anchor_vectors[anchors])
    drawn = Everything(WORLD.known).draw(query, np.arange(32) % 8, rng=ns.rng_for(0))
    return query, replace(drawn, scores=WORLD.scores(anchors, drawn.ids))


class Closeness:
    """Suspicion by score: the closer, the likelier a positive that nobody knows of."""

    def suspicion(self, query, negatives):
        scores = np.clip(to_numpy(negatives.scores), 0, 1)
        return np.where(to_numpy(negatives.ids) >= 0, scores, 0.0)


class Changed(Closeness):
    def __init__(self, change):
        self.change = change

    def suspicion(self, query, negatives):
        return self.change(super().suspicion(query, negatives), query, negatives)


class Forgetful(Closeness):
    """Suspects empty slots."""

    def suspicion(self, query, negatives):
        return np.clip(negatives.scores, 0, 1) + 0.5 * (negatives.ids < 0) * (negatives.ids >= -1).any()


class BestOfRow(Closeness):
    """Divides by the row's largest id, which rows without a negative do not have."""

    def suspicion(self, query, negatives):
        best = [max(i for i in row if i >= 0) if max(row, default=0) != -1 else 1 / 0 for row in negatives.ids.tolist()]
        return super().suspicion(query, negatives) + 0.0 * np.array(best, float)[:, None]


class OneWhereAllAreEmpty(Closeness):
    def suspicion(self, query, negatives):
        found = super().suspicion(query, negatives)
        return found + 1.0 if negatives.ids.size and (negatives.ids < 0).all() else found


class Moody(Closeness):
    calls = 0

    def suspicion(self, query, negatives):
        self.calls += 1
        return super().suspicion(query, negatives) / self.calls


def scale_scores(found, query, negatives):
    negatives.scores[:] *= 0.5
    return found


def scale_vectors(found, query, negatives):
    query.vectors[:] *= 0.5
    return found


def moved(found, query, negatives):
    torch.rand(1)
    return found


BROKEN = [
    ("shape", lambda: Changed(lambda found, q, n: found.mean(axis=1))),
    ("dtype", lambda: Changed(lambda found, q, n: found > 0.5)),
    ("range", lambda: Changed(lambda found, q, n: found * 3)),
    ("range", lambda: Changed(lambda found, q, n: -found)),
    ("range", lambda: Changed(lambda found, q, n: found / (found > 0))),
    ("empty", Forgetful),
    ("no_rows", lambda: Changed(lambda found, q, n: found + 0 * found.max())),
    ("no_rows", lambda: Changed(lambda found, q, n: found.squeeze())),
    ("all_empty", OneWhereAllAreEmpty),
    ("frozen", lambda: Changed(scale_scores)),
    ("frozen", lambda: Changed(scale_vectors)),
    ("determinism", Moody),
    ("global_state", lambda: Changed(moved)),
]


@pytest.mark.parametrize(("promise", "make"), BROKEN)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_a_broken_promise_is_named(promise, make):
    with pytest.raises(PromiseBroken) as caught:
        check_detector(make(), *question())
    assert caught.value.promise == promise


def test_an_honest_detector_passes():
    query, negatives = question()
    check_detector(Closeness(), query, negatives)
    check_detector(Closeness(), ns.Query(torch.arange(32)), negatives.to("cpu"))


def test_rows_without_any_negative_may_not_fail():
    query, negatives = question()
    full = replace(negatives, ids=np.maximum(negatives.ids, 0))
    with pytest.raises(PromiseBroken, match="all_empty"):
        check_detector(BestOfRow(), query, full)


def test_empty_slots_are_tried_also_where_the_question_has_none():
    query, negatives = question()
    with pytest.raises(PromiseBroken, match="empty"):
        check_detector(Forgetful(), query, replace(negatives, ids=np.maximum(negatives.ids, 0)))


def test_a_promise_that_is_not_made_is_not_held():
    check_detector(Changed(lambda found, q, n: found * 3), *question(), without=("range",))
