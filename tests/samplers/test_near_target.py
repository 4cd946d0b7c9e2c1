"""NearTarget: by loops, golden values of SimANS and AHNS, and what it refuses."""

from itertools import permutations

import numpy as np
import pytest
import torch
from by_table import by
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay.samplers import NearTarget

pytestmark = pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")  # some rows are short here

KNOWN = ns.Positives.from_pairs([0, 0, 1, 2], [0, 1, 2, 3], 3, 9)
POOL = ns.pools.Everything(KNOWN)
TABLE = np.random.default_rng(0).standard_normal((3, 9))
S, S_P = np.array([0.9, 0.7, 0.5, 0.2]), 0.8  # the golden scores of the specification


by_table = by(TABLE)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=5), st.floats(-2, 2), st.integers(1, 9), st.booleans())
def test_the_nearest_to_the_target_by_loops(rows, shift, k, as_torch):
    anchors, positives = np.array([0, 0, 1, 2])[rows], np.array([0, 1, 2, 3])[rows]
    query = ns.Query(*(torch.from_numpy(part) if as_torch else part for part in (anchors, positives)), step=2)
    sampler = NearTarget(POOL, by_table, 9, lambda own, step: own + shift * step)
    drawn = sampler.sample(query, k, rng=ns.rng_for(0)).numpy()
    for row, (anchor, positive) in enumerate(zip(anchors.tolist(), positives.tolist(), strict=True)):
        wanted = TABLE[anchor, positive] + shift * 2
        free = [item for item in range(9) if not KNOWN.contains([anchor], [item])[0]]
        best = sorted(free, key=lambda item: abs(TABLE[anchor, item] - wanted))[:k]
        assert drawn.ids[row].tolist() == best + [-1] * (k - len(best))
        np.testing.assert_allclose(drawn.scores[row, : len(best)], TABLE[anchor, best])
    assert drawn.log_q is None


def golden(target, **how):
    """A sampler over four items with the golden scores, and the positive as item 4."""
    scores = np.append(S, S_P)
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [4], 1, 5))
    return NearTarget(pool, lambda anchors, ids: scores[ids], 4, target, **how)


@pytest.mark.parametrize(
    ("sharpness", "shift", "chances"),
    [
        (0.5, 0.0, [0.2631, 0.2631, 0.2528, 0.2209]),
        (10, 0.0, [0.4033, 0.4033, 0.1812, 0.0122]),
        (10, -0.1, [0.2767, 0.4128, 0.2767, 0.0339]),
    ],
)
def test_golden_values_of_simans(sharpness, shift, chances):
    rows = 20_000
    query = ns.Query(np.zeros(rows, int), positives=np.full(rows, 4))
    sampler = golden(lambda own, step: own + shift, sharpness=sharpness)
    weight = np.exp(-sharpness * (S - S_P - shift) ** 2)
    np.testing.assert_allclose(weight / weight.sum(), chances, atol=6e-5)
    first = sampler.sample(query, 1, rng=ns.rng_for(0)).ids[:, 0]
    assert chisquare(np.bincount(first, minlength=4), rows * weight / weight.sum()).pvalue > 1e-5
    seen = dict.fromkeys(permutations(range(4), 2), 0)
    for pair in sampler.sample(query, 2, rng=ns.rng_for(1)).ids.tolist():
        seen[tuple(pair)] += 1
    total = weight.sum()
    expected = [rows * weight[a] / total * weight[b] / (total - weight[a]) for a, b in seen]
    assert chisquare(list(seen.values()), expected).pvalue > 1e-5


def test_golden_value_of_ahns():
    """A sure positive has an easy negative: the target is 0.1 / (0.8 + 1) = 0.0556."""
    targets = []

    def target(own, step):
        targets.append(0.1 / (own + 1.0))
        return targets[-1]

    drawn = golden(target).sample(ns.Query([0], positives=[4]), 1, rng=ns.rng_for(0))
    assert targets[0][0] == pytest.approx(0.0556, abs=5e-5)
    assert drawn.ids.tolist() == [[3]]
