"""DistanceWeighted: 1 / q of the distance, both cutoffs, and a flat spread of distances on the sphere."""

import itertools
import math

import numpy as np
import pytest
import torch
from by_table import by
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import DistanceWeighted

pytestmark = pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")  # some rows are short here

COMPILING = settings(deadline=None, max_examples=30)  # a first call compiles
N_ANCHORS, N_ITEMS = 4, 12
TABLE = np.random.default_rng(0).uniform(-1, 1, (N_ANCHORS, N_ITEMS))
KNOWN = ns.Positives.from_pairs([0, 1, 2, 3], [0, 5, 3, 1], N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)


def weight(cosine, dim, cutoff, nonzero):
    """1 / q, in plain numbers."""
    distance = math.sqrt(2 - 2 * cosine)
    if distance >= nonzero:
        return 0.0
    distance = max(distance, cutoff)
    return 1 / (distance ** (dim - 2) * (1 - distance**2 / 4) ** ((dim - 3) / 2))


@COMPILING
@given(
    st.lists(st.integers(0, N_ANCHORS - 1), max_size=5),
    st.integers(2, 64),
    st.sampled_from([(0.5, 1.4), (0.1, 0.9), (1.0, 2.0)]),
    st.integers(0, N_ITEMS + 2),
    st.booleans(),
)
def test_only_what_is_near_enough_is_taken_and_all_of_it(anchors, dim, cutoffs, k, in_torch):
    ids = np.array(anchors, np.int64)
    query = ns.Query(torch.from_numpy(ids) if in_torch else ids)
    taken = DistanceWeighted(POOL, by(TABLE), N_ITEMS, dim, *cutoffs).sample(query, k, rng=ns.rng_for(0))
    assert isinstance(taken.ids, torch.Tensor) is in_torch
    taken = taken.numpy()
    missing = beyond = 0
    for row, anchor in enumerate(anchors):
        free = [item for item in range(N_ITEMS) if not KNOWN.contains([anchor], [item])[0]]
        near = {item for item in free if math.sqrt(2 - 2 * TABLE[anchor, item]) < cutoffs[1]}
        found = [item for item in taken.ids[row].tolist() if item >= 0]
        assert len(set(found)) == len(found) == min(k, len(near))
        assert set(found) <= near
        assert taken.scores[row].tolist() == [TABLE[anchor, i] for i in found] + [0.0] * (k - len(found))
        missing += max(min(k, len(free)) - len(near), 0)
        beyond += max(k - len(free), 0)
    assert taken.dropped == {name: n for name, n in (("exhausted", beyond), ("too far", missing)) if n}
    assert taken.log_q is None


def test_two_draws_follow_the_weights_without_repeats():
    table = np.array([[0.999, 0.95, 0.9, 0.7, 0.4, 0.1, -0.5]])
    known = ns.Positives.from_pairs([0], [0], 1, 7)
    rows, dim = 40_000, 6
    sampler = DistanceWeighted(ns.pools.Everything(known), by(table), 7, dim)
    taken = sampler.sample(ns.Query(np.zeros(rows, np.int64)), 2, rng=ns.rng_for(0))
    weights = [0.0, *(weight(cosine, dim, 0.5, 1.4) for cosine in table[0, 1:])]
    assert weights[1] == weights[2] > weights[3]  # 0.95 and 0.9 are nearer than the cutoff
    assert weights[6] == 0.0
    total, squares, cells = sum(weights), 0.0, 0
    for one, other in itertools.permutations(range(1, 6), 2):
        chance = weights[one] / total * weights[other] / (total - weights[one])
        seen = np.count_nonzero((taken.ids[:, 0] == one) & (taken.ids[:, 1] == other))
        squares += (seen - rows * chance) ** 2 / (rows * chance)
        cells += 1
    assert cells == 20
    assert squares < 65  # chi-square of 19 degrees at p = 6e-7


def test_distances_on_the_sphere_come_out_flat():
    """The paper's figure: uniform draws pile up at the square root of 2, weighted ones do not."""
    dim, n, rows = 4, 2000, 3000
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, dim))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    known = ns.Positives.from_pairs(np.arange(n), np.arange(n))

    def cosine(anchors, ids):
        return np.einsum("bd,bnd->bn", points[anchors], points[ids])

    query = ns.Query(rng.integers(0, n, rows))
    pool = ns.pools.Everything(known)
    taken = DistanceWeighted(pool, cosine, 400, dim).sample(query, 1, rng=ns.rng_for(0))
    distances = np.sqrt(2 - 2 * taken.scores[:, 0])
    inside = distances[distances >= 0.5]
    counts, _ = np.histogram(inside, np.linspace(0.5, 1.4, 7))
    assert counts.min() > 0.8 * len(inside) / 6
    assert counts.max() < 1.2 * len(inside) / 6
    plain = cosine(query.anchors, ns.samplers.Static(pool).sample(query, 1, rng=ns.rng_for(0)).ids)
    uniform, _ = np.histogram(np.sqrt(2 - 2 * plain), np.linspace(0.5, 1.4, 7))
    assert uniform[-1] > 3 * uniform[0]


def test_twins_and_opposites_do_not_break_it():
    table = np.array([[0.0, 1.0, 1.0005, -1.0, -1.0005, 0.5]])
    pool = ns.pools.Everything(ns.Positives.from_pairs([0], [0], 1, 6))
    taken = DistanceWeighted(pool, by(table), 6, 512, 0.5, 2.0).sample(ns.Query([0]), 5, rng=ns.rng_for(0))
    assert sorted(taken.ids[0].tolist()) == [-1, -1, 1, 2, 5]
    assert taken.dropped == {"too far": 2}
