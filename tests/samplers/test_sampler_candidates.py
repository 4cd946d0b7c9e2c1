"""What samplers begin with: settings at a step, k of each row, and candidates of a pool."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers._candidates import candidates_of, interval_at, number_at, wanted_slots, whole_at


@pytest.mark.parametrize(
    ("setting", "value", "bounds"),
    [(whole_at, 3, {}), (number_at, 0.5, {"at_least": 0}), (interval_at, (0.25, 1.0), {})],
)
def test_a_setting_is_a_value_or_a_function_of_the_step(setting, value, bounds):
    assert setting("name", value, None, **bounds) == value
    assert setting("name", value, 7, **bounds) == value
    assert setting("name", lambda step: value if step == 7 else "wrong", 7, **bounds) == value
    assert setting("name", lambda step: "wrong", None, **bounds) is None  # not called without a step
    for step in (None, 7):
        with pytest.raises(NaysayError, match=r"^`name` must be "):
            setting("name", None, step, **bounds)
    with pytest.raises(NaysayError, match=r"^`name` must be "):
        setting("name", lambda step: None, 7, **bounds)


def test_an_optional_setting_may_be_none():
    for setting in (whole_at, number_at):
        assert setting("name", None, None, optional=True) is None
        assert setting("name", lambda step: None, 3, optional=True) is None
        with pytest.raises(NaysayError, match=r"^`name` must be "):
            setting("name", "text", None, optional=True)


def test_k_is_limited_by_name():
    rng = ns.rng_for(0)
    assert wanted_slots(3, 2, rng, top_m=3, shortlist=None)[1] == 3
    with pytest.raises(NaysayError, match=r"^`k` must be at most `shortlist`, 2, got 2\.5\.$"):
        wanted_slots(2.5, 4, rng, top_m=None, shortlist=2)


def test_candidates_come_in_the_querys_type():
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=5))
    assert type(candidates_of(pool, ns.Query([0]), 3, ns.rng_for(0)).ids) is np.ndarray
    assert isinstance(candidates_of(pool, ns.Query(torch.tensor([0])), 3, ns.rng_for(0)).ids, torch.Tensor)
    with pytest.raises(NaysayError, match=r"^`candidates` must be at least 1, got 0\.$"):
        candidates_of(pool, ns.Query([0]), 0, ns.rng_for(0))
    with pytest.raises(NaysayError, match=r"^`query` must be a Query, got list\. Write naysay"):
        candidates_of(pool, [0], 3, ns.rng_for(0))


def test_the_slots_of_each_row():
    asked = [(3, 2, [3, 3], 3), (0, 0, [], 0), (2, 0, [], 2), ([1, 4], 2, [1, 4], 4), (2.0, 1, [2], 2)]
    for k, rows, counts, width in asked:
        found, widest = wanted_slots(k, rows, ns.rng_for(0))
        assert (found.tolist(), widest) == (counts, width)
    assert wanted_slots(2.5, 0, ns.rng_for(0))[1] == 3
    seen = {tuple(wanted_slots(torch.tensor(0.5), 1, ns.rng_for(seed))[0]) for seed in range(30)}
    assert seen == {(0,), (1,)}


# ---- too few candidates ---------------------------------------------------------------------------------------------

FEW_KNOWN = ns.Positives.from_pairs(np.arange(6), np.arange(6), 6, 40)
FEW_POOL = ns.pools.Everything(FEW_KNOWN)


def by_id(anchors, ids):
    return np.sin(ids * 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: ns.samplers.Dynamic(FEW_POOL, by_id, n),
        lambda n: ns.samplers.DistanceWeighted(FEW_POOL, by_id, n, 8),
        lambda n: ns.samplers.NearPositive(FEW_POOL, by_id, n),
        lambda n: ns.samplers.NearTarget(FEW_POOL, by_id, n, lambda scores, step: scores),
        lambda n: ns.samplers.Ring(FEW_POOL, by_id, n, keep=(0.0, 1.0)),
        lambda n: ns.samplers.Ring(FEW_POOL, by_id, n, keep=(0.5, 1.0), refill=True),
        lambda n: ns.samplers.SemiHard(FEW_POOL, by_id, n, 9.0),
        lambda n: ns.samplers.Warp(FEW_POOL, by_id, n, margin=9.0),
    ],
)
def test_too_few_candidates_for_k_are_warned_of_once(make):
    query = ns.Query(np.arange(6), positives=np.arange(6))
    sampler = make(4)
    with pytest.warns(ns.NaysayWarning, match="candidates|trials") as warned:
        short = sampler.sample(query, 8, rng=ns.rng_for(0))
    assert (len(warned), warned[0].filename) == (1, __file__)
    assert (short.ids < 0).sum() >= 24
    sampler.sample(query, 8, rng=ns.rng_for(1))  # a second warning would be an error here
    make(8).sample(query, 8, rng=ns.rng_for(0))
