"""Cached with a history: the deviation of a negative's probability over epochs (SRNS), by loops and by hand."""

import numpy as np
import pytest
import torch
from cache_tables import put
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Cached

KNOWN = ns.Positives.from_pairs([0, 0, 1, 2], [0, 1, 2, 3], 3, 9)
POOL = ns.pools.Everything(KNOWN)
QUERY = ns.Query([0, 0, 1, 2], positives=[0, 1, 2, 3])


class Model:
    """Scores that are set by the test, in the array type that is asked."""

    def __init__(self, table):
        self.table = table

    def __call__(self, anchors, ids):
        table = self.table if isinstance(ids, np.ndarray) else torch.from_numpy(self.table)
        return table[anchors[:, None], ids]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(1, 6), st.sampled_from([0.0, 0.5, 4.0]), st.integers(0, 99), st.booleans())
def test_the_choice_is_what_loops_say(history, epochs, bonus, seed, as_torch):
    rng, model = np.random.default_rng(seed), Model(np.zeros((3, 9)))
    sampler = Cached(POOL, model, 4, 2, choose="top", history=history, bonus=bonus, seed=seed)
    tables, cached_in = [], []
    query = QUERY if not as_torch else ns.Query(torch.tensor(QUERY.anchors), positives=torch.tensor(QUERY.positives))
    for epoch in range(epochs):
        model.table = rng.standard_normal((3, 9))
        tables.append(model.table)
        sampler.observe(query)
        cached_in.append([set(row) for row in sampler.cache.tolist()])
        if epoch + 1 < epochs:
            sampler.update()
    model.table = rng.standard_normal((3, 9))
    drawn = sampler.sample(query, 1, rng=ns.rng_for(0)).numpy()
    for row, (anchor, positive) in enumerate(zip(QUERY.anchors.tolist(), QUERY.positives.tolist(), strict=True)):
        value = {}
        for item in cached_in[-1][anchor]:
            past = []
            for epoch in reversed(range(max(0, epochs - history), epochs)):
                if item not in cached_in[epoch][anchor]:
                    break  # it entered later, and its score was not recorded before
                past.append(sigmoid(tables[epoch][anchor, item] - tables[epoch][anchor, positive]))
            spread = np.std(past) if len(past) > 1 else 0.0
            value[item] = sigmoid(model.table[anchor, item] - model.table[anchor, positive]) + bonus * spread
        best = max(value.values())
        assert value[drawn.ids[row, 0]] == pytest.approx(best, abs=1e-6)
        assert drawn.scores[row, 0] == pytest.approx(model.table[anchor, drawn.ids[row, 0]])


def test_the_bonus_prefers_what_varies_and_without_it_the_highest_is_taken():
    """Items 4 and 5 score alike now; 5 did not before."""
    model = Model(np.zeros((3, 9)))
    chosen = {}
    for bonus in (0.0, 1.0, lambda step: 1.0 * (step >= 10)):
        sampler = Cached(ns.pools.Local([[4, 5]] * 3, KNOWN), model, 2, 2, choose="top")
        with pytest.raises(NaysayError, match="`history` must be 0 unless the pool has `positives`"):
            Cached(sampler.pool, model, 2, 2, choose="top", history=2)
        sampler = Cached(POOL, model, 2, 2, choose="top", history=4, bonus=bonus)
        put(sampler, range(3), [[4, 5]] * 3)
        model.table = np.full((3, 9), -9.0)
        for epoch in range(4):
            model.table[:, 4], model.table[:, 5] = 0.1, 0.0 if epoch % 2 else -3.0
            model.table[np.arange(3), [0, 2, 3]] = 0.0
            sampler.observe(QUERY)
            sampler.update()
        for step in (0, 10):
            chosen[str(bonus)[:4], step] = sampler.sample(
                ns.Query(QUERY.anchors, positives=QUERY.positives, step=step), 1, rng=ns.rng_for(0)
            ).ids[0, 0]
    assert chosen == {("0.0", 0): 4, ("0.0", 10): 4, ("1.0", 0): 5, ("1.0", 10): 5, ("<fun", 0): 4, ("<fun", 10): 5}


def test_a_state_loses_what_became_known_with_its_scores():
    model = Model(np.random.default_rng(0).standard_normal((3, 9)))
    old = Cached(POOL, model, 3, 3, choose="top", history=2, bonus=1.0)
    put(old, range(3), [[4, 5, 6]] * 3)
    old.observe(QUERY)
    table = old.state()["table"]
    gone = int(table[0, 0])
    more = ns.Positives.from_pairs([0, 0, 1, 2, 0], [0, 1, 2, 3, gone], 3, 9)
    fresh = Cached(ns.pools.Everything(more), model, 3, 3, choose="top", history=2, bonus=1.0)
    with pytest.raises(NaysayError, match=r"^Cached.restore: `positive_scores` must be numbers of shape"):
        fresh.restore(old.state())
    state = {**old.state(), "positive_scores": np.full((5, 2), np.nan)}
    fresh.restore(state)
    after = fresh.state()
    assert after["table"][0].tolist() == [*table[0, 1:].tolist(), -1]
    np.testing.assert_array_equal(after["scores"][0, :2], old.state()["scores"][0, 1:])
    assert np.isnan(after["scores"][0, 2]).all()


def test_given_scores_of_positives_are_used_and_checked():
    sampler = Cached(POOL, Model(np.zeros((3, 9))), 2, 2, choose="top", history=2)
    sampler.observe(QUERY, positive_scores=torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True))
    assert sampler.state()["positive_scores"][:, 0].tolist() == [1, 2, 3, 4]
    with pytest.raises(
        NaysayError, match=r"^Cached.observe: `positive_scores` must be of shape \(4,\), got shape \(3,"
    ):
        sampler.observe(QUERY, positive_scores=np.zeros(3))
    with pytest.raises(NaysayError, match=r"^Cached.observe: `query.positives` must be given"):
        sampler.observe(ns.Query([0]))


def test_a_positive_that_is_not_known_has_no_deviation():
    model = Model(np.random.default_rng(0).standard_normal((3, 9)))
    sampler = Cached(POOL, model, 3, 3, choose="top", history=2, bonus=100.0)
    other = ns.Query([0], positives=[8])
    for _ in range(3):
        sampler.observe(other)
        model.table = model.table * -1.5
        sampler.update()
    ids = [item for item in sampler.cache[0].tolist() if item != 8]
    best = max(ids, key=lambda item: model.table[0, item])
    assert sampler.sample(other, 1, rng=ns.rng_for(0)).ids.tolist() == [[best]]
