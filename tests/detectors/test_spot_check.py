"""judge_some: slots drawn at random, in their rows, and what the judge said of them."""

from dataclasses import replace

import numpy as np
import torch

import naysay as ns
from naysay.detectors import Labelled, PairLabels, evaluate, judge_some

WORLD = ns.planted_world(200, 100, per_anchor=10, noise=0.3)
QUERY = ns.Query(np.arange(200), positives=np.arange(200) % 7, vectors=WORLD.anchor_vectors)
DRAWN = ns.pools.Everything(WORLD.known).draw(QUERY, 10, rng=ns.rng_for(0))
DRAWN = replace(DRAWN, scores=WORLD.scores(QUERY.anchors, DRAWN.ids), vectors=WORLD.item_vectors[DRAWN.ids])


def test_judged_slots_stay_in_their_rows_with_all_that_stands_beside_them():
    ids = DRAWN.ids.copy()
    ids[::2, 3:] = -1
    given = replace(DRAWN, ids=ids, dropped={"for some reason": 3})
    asked = []

    def judge(anchors, items):
        asked.extend(zip(anchors.tolist(), items.tolist(), strict=True))
        return WORLD.is_false_negative(anchors, items[:, None])[:, 0]

    found = judge_some(QUERY, given, judge, 300, rng=ns.rng_for(1))
    assert isinstance(found, PairLabels)
    assert found.n == len(asked) == len(set(asked)) == 300  # without replacement
    assert found.negatives.dropped == {}
    rows = found.query.anchors.tolist()
    assert rows == sorted({anchor for anchor, _ in asked})
    assert found.truth.shape == found.negatives.shape == (len(rows), 10)
    for place, anchor in enumerate(rows):
        assert found.query.positives[place] == anchor % 7
        assert np.array_equal(found.query.vectors[place], WORLD.anchor_vectors[anchor])
        for slot in range(10):
            if (anchor, ids[anchor, slot]) not in asked:
                assert found.negatives.ids[place, slot] == -1
                assert not found.truth[place, slot]
                continue
            item = found.negatives.ids[place, slot]
            assert item == ids[anchor, slot]
            assert found.truth[place, slot] == WORLD.is_false_negative(np.array([anchor]), np.array([[item]]))[0, 0]
            assert found.negatives.scores[place, slot] == DRAWN.scores[anchor, slot]
            assert np.array_equal(found.negatives.vectors[place, slot], WORLD.item_vectors[item])


def test_fewer_than_asked_are_all_and_every_slot_is_as_likely():
    every = judge_some(QUERY, DRAWN, WORLD.is_false_negative, 10_000, rng=ns.rng_for(1))
    assert every.n == 2000
    assert np.array_equal(every.truth, WORLD.is_false_negative(QUERY.anchors, DRAWN.ids))
    small = replace(DRAWN, ids=DRAWN.ids[:2], scores=None, vectors=None, log_q=None)
    counts = np.zeros((2, 10), int)
    for seed in range(600):
        found = judge_some(ns.Query([0, 1]), small, lambda _, ids: ids < 0, 5, rng=ns.rng_for(seed))
        counts[found.query.anchors] += found.negatives.ids >= 0
    assert counts.sum() == 3000
    assert np.abs(counts - 150).max() < 5 * np.sqrt(150)


def test_torch_stays_torch():
    inside = ns.Query(torch.arange(200))
    found = judge_some(inside, replace(DRAWN, vectors=None).to("cpu"), WORLD.is_false_negative, 40, rng=ns.rng_for(1))
    same = judge_some(QUERY, DRAWN, WORLD.is_false_negative, 40, rng=ns.rng_for(1))
    assert isinstance(found.negatives.ids, torch.Tensor)
    assert np.array_equal(found.query.anchors.numpy(), same.query.anchors)
    assert np.array_equal(found.negatives.ids.numpy(), same.negatives.ids)
    assert np.array_equal(found.truth, same.truth)


def test_of_triples_the_judge_sees_what_was_corrupted():
    triples = np.array([[0, 1, 2], [3, 0, 4]])
    negatives = ns.Negatives(np.array([[5, 5], [9, 6]]), side=np.array([[0, 2], [2, 0]], np.int8))
    seen = []

    def judge(given, corrupted):
        seen.extend(zip(given.tolist(), corrupted.tolist(), strict=True))
        return corrupted[:, 0] == 5

    found = judge_some(ns.Query(triples), negatives, judge, 4, rng=ns.rng_for(0))
    pairs = {(tuple(given), tuple(corrupted)) for given, corrupted in seen}
    assert pairs == {
        ((0, 1, 2), (5, 1, 2)),
        ((0, 1, 2), (0, 1, 5)),
        ((3, 0, 4), (3, 0, 9)),
        ((3, 0, 4), (6, 0, 4)),
    }
    assert found.truth.tolist() == [[True, False], [False, False]]
    assert np.array_equal(found.negatives.side, negatives.side)


def test_they_go_straight_into_fit_and_evaluate_where_a_row_is_an_anchor():
    first, second = (
        judge_some(
            ns.Query(rows),
            ns.Negatives(DRAWN.ids[rows], scores=DRAWN.scores[rows]),
            WORLD.is_false_negative,
            700,
            rng=ns.rng_for(1),
        )
        for rows in (np.arange(100), np.arange(100, 200))
    )
    learned = Labelled(cost=10).fit(*first)
    assert learned.n == 700
    rates = evaluate(learned, *second)
    assert rates.recall > 0.5
    assert rates.slots == 700
    assert rates.anchors == len(second.query) <= 100
