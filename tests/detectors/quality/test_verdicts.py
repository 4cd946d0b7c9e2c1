"""judge_some: slots drawn at random, with all that stands beside them, and what the judge said."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.detectors import Labelled, Verdicts, evaluate, judge_some
from naysay.errors import NaysayError

WORLD = ns.planted_world(200, 100, per_anchor=10, noise=0.3)
QUERY = ns.Query(np.arange(200), positives=np.arange(200) % 7, vectors=WORLD.anchor_vectors)
DRAWN = ns.pools.Everything(WORLD.known).draw(QUERY, 10, rng=ns.rng_for(0))
DRAWN = replace(DRAWN, scores=WORLD.scores(QUERY.anchors, DRAWN.ids), vectors=WORLD.item_vectors[DRAWN.ids])


def test_each_row_is_a_slot_with_all_that_stands_beside_it():
    ids = DRAWN.ids.copy()
    ids[::2, 3:] = -1
    given = replace(DRAWN, ids=ids, dropped={"for some reason": 3})
    found = judge_some(QUERY, given, WORLD.is_false_negative, 300, rng=ns.rng_for(1))
    assert isinstance(found, Verdicts)
    assert found.negatives.shape == found.truth.shape == (300, 1)
    assert found.negatives.dropped == {}
    taken = set()
    for row in range(300):
        anchor, item = int(found.query.anchors[row]), int(found.negatives.ids[row, 0])
        slot = ids[anchor].tolist().index(item)
        taken.add((anchor, slot))
        assert found.query.positives[row] == anchor % 7
        assert np.array_equal(found.query.vectors[row], WORLD.anchor_vectors[anchor])
        assert found.negatives.scores[row, 0] == DRAWN.scores[anchor, slot]
        assert found.negatives.log_q[row, 0] == DRAWN.log_q[anchor, slot]
        assert np.array_equal(found.negatives.vectors[row, 0], WORLD.item_vectors[item])
        assert found.truth[row, 0] == WORLD.is_false_negative(np.array([anchor]), np.array([[item]]))[0, 0]
    assert len(taken) == 300  # without replacement


def test_fewer_than_asked_are_all_and_every_slot_is_as_likely():
    every = judge_some(QUERY, DRAWN, WORLD.is_false_negative, 10_000, rng=ns.rng_for(1))
    assert len(every.truth) == 2000
    counts = np.zeros(10, int)
    small = replace(DRAWN, ids=DRAWN.ids[:2], scores=None, vectors=None, log_q=None)
    for seed in range(600):
        found = judge_some(ns.Query([0, 1]), small, lambda _, ids: ids < 0, 5, rng=ns.rng_for(seed))
        for anchor, item in zip(found.query.anchors.tolist(), found.negatives.ids[:, 0].tolist(), strict=True):
            counts[small.ids[anchor].tolist().index(item)] += 1
    assert counts.sum() == 3000
    assert np.abs(counts - 300).max() < 5 * np.sqrt(300)


def test_torch_stays_torch_and_triples_keep_their_sides():
    inside = ns.Query(torch.arange(200))
    found = judge_some(inside, replace(DRAWN, vectors=None).to("cpu"), WORLD.is_false_negative, 40, rng=ns.rng_for(1))
    same = judge_some(QUERY, DRAWN, WORLD.is_false_negative, 40, rng=ns.rng_for(1))
    assert isinstance(found.negatives.ids, torch.Tensor)
    assert np.array_equal(found.query.anchors.numpy(), same.query.anchors)
    assert np.array_equal(found.negatives.scores.numpy(), same.negatives.scores)
    assert np.array_equal(found.truth, same.truth)
    triples = np.array([[0, 1, 2], [3, 0, 4]])
    negatives = ns.Negatives(np.array([[7, 8], [9, 6]]), side=np.array([[0, 2], [2, 0]], np.int8))
    seen = judge_some(ns.Query(triples), negatives, lambda triples, ids: triples[:, 0] == 3, 4, rng=ns.rng_for(0))
    for row in range(4):
        place = 0 if seen.query.anchors[row, 0] == 0 else 1
        slot = negatives.ids[place].tolist().index(seen.negatives.ids[row, 0])
        assert seen.negatives.side[row, 0] == negatives.side[place, slot]
        assert seen.truth[row, 0] == (place == 1)


def test_they_go_straight_into_fit_and_evaluate():
    first, second = (judge_some(QUERY, DRAWN, WORLD.is_false_negative, 900, rng=ns.rng_for(seed)) for seed in (1, 2))
    learned = Labelled(cost=10).fit(*first)
    assert learned.n == 900
    assert evaluate(learned, *second).recall > 0.5


def test_a_refusal_names_it_and_leaves_the_generator():
    rng = ns.rng_for(3)
    before = str(rng.bit_generator.state)
    for arguments, message in [
        ((QUERY, DRAWN, 3), r"`judge` must be a function judge\(anchors, ids\), got int"),
        ((QUERY, DRAWN, lambda a, ids: ids), r"`judge` must be a function that answers True or False for each of 100"),
        ((QUERY, replace(DRAWN, ids=0 * DRAWN.ids - 1), len), r"`negatives` must be at least one negative, got none"),
        ((ns.Query([0]), DRAWN, len), r"`negatives` must be of 1 rows"),
        ((QUERY, DRAWN, len, 0), r"`m` must be at least 1, got 0"),
    ]:
        with pytest.raises(NaysayError, match=r"^judge_some: " + message):
            judge_some(*arguments, rng=rng)
        assert str(rng.bit_generator.state) == before
