"""What samplers begin with: settings at a step, k of each row, and candidates of a pool."""

import numpy as np
import pytest

import naysay as ns

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
        lambda n: ns.samplers.PercentileRange(FEW_POOL, by_id, n, keep=(0.0, 1.0)),
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
