"""NearPositive: the nearest of the positive, at random among them, below a limit, after a first stage."""

import math

import numpy as np
import pytest
import torch
from by_table import by
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import Dynamic, NearPositive

pytestmark = pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")  # some rows are short here

COMPILING = settings(deadline=None, max_examples=30)  # a first call compiles
N_ANCHORS, N_ITEMS = 4, 12
# Scores without ties: by the positive (items x items) and by the anchor.
ALIKE = np.random.default_rng(0).permutation(N_ITEMS * N_ITEMS).reshape(N_ITEMS, N_ITEMS) / 20.0
LIKED = np.random.default_rng(1).permutation(N_ANCHORS * N_ITEMS).reshape(N_ANCHORS, N_ITEMS) / 8.0
POSITIVES = {0: 0, 1: 5, 2: 3, 3: 1}
KNOWN = ns.Positives.from_pairs(list(POSITIVES), list(POSITIVES.values()), N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
QUERY = ns.Query([0, 1, 2, 3], positives=[0, 5, 3, 1])


@COMPILING
@given(
    st.lists(st.integers(0, N_ANCHORS - 1), max_size=5),
    st.sampled_from([None, 1.0, 3.5]),
    st.sampled_from([None, 4, 9]),
    st.integers(0, N_ITEMS + 2),
    st.booleans(),
)
def test_it_takes_what_the_loops_take(anchors, limit, shortlist, k, in_torch):
    if shortlist is not None:
        k = min(k, shortlist)
    ids = np.array(anchors, np.int64)
    positives = np.array([POSITIVES[anchor] for anchor in anchors], np.int64)
    query = ns.Query(*((torch.from_numpy(ids), torch.from_numpy(positives)) if in_torch else (ids, positives)))
    first = None if shortlist is None else by(LIKED)
    sampler = NearPositive(POOL, by(ALIKE), N_ITEMS, limit=limit, first=first, shortlist=shortlist)
    taken = sampler.sample(query, k, rng=ns.rng_for(0))
    assert isinstance(taken.ids, torch.Tensor) is in_torch
    taken = taken.numpy()
    missing = beyond = 0
    for row, anchor in enumerate(anchors):
        positive = POSITIVES[anchor]
        left = [item for item in range(N_ITEMS) if item != positive]
        if shortlist is not None:
            left = sorted(left, key=lambda item, anchor=anchor: -LIKED[anchor, item])[:shortlist]
        fit = [item for item in left if limit is None or ALIKE[positive, item] <= limit]
        fit.sort(key=lambda item, positive=positive: -ALIKE[positive, item])
        empty = max(k - len(fit), 0)
        assert taken.ids[row].tolist() == fit[:k] + [-1] * empty
        assert taken.scores[row].tolist() == [ALIKE[positive, item] for item in fit[:k]] + [0.0] * empty
        missing += max(min(k, len(left)) - len(fit), 0)
        beyond += max(k - len(left), 0)
    assert taken.dropped == {name: n for name, n in (("exhausted", beyond), ("too close", missing)) if n}
    assert taken.log_q is None
    assert taken.shape == (len(anchors), k)


TRIPLES = np.random.default_rng(2).integers(0, (N_ITEMS, 2, N_ITEMS), (30, 3))
TRIPLES = np.concatenate([TRIPLES, [[0, 0, tail] for tail in range(N_ITEMS)]])  # no tail is left for (0, 0)
PLAUSIBLE = np.random.default_rng(3).permutation(N_ITEMS * 2 * N_ITEMS).reshape(N_ITEMS, 2, N_ITEMS) / 8.0


def plausible(_, triples):
    table = PLAUSIBLE if isinstance(triples, np.ndarray) else torch.from_numpy(PLAUSIBLE)
    return table[triples[..., 0], triples[..., 1], triples[..., 2]]


@COMPILING
@given(
    st.lists(st.integers(0, len(TRIPLES) - 1), max_size=5),
    st.sampled_from([("head",), ("tail",), ("head", "tail")]),
    st.sampled_from([None, 3.5]),
    st.sampled_from([None, 5]),
    st.integers(0, 5),
    st.booleans(),
    st.integers(0, 99),
)
def test_of_triples_it_takes_what_is_like_the_entity_that_it_replaces(rows, sides, limit, shortlist, k, in_torch, seed):
    triples = TRIPLES[rows].reshape(-1, 3)
    query = ns.Query(torch.from_numpy(triples) if in_torch else triples)
    pool = ns.pools.Corruption(TRIPLES, sides=sides)
    first = None if shortlist is None else plausible
    sampler = NearPositive(pool, by(ALIKE), 9, limit=limit, first=first, shortlist=shortlist)
    taken = sampler.sample(query, k, rng=ns.rng_for(seed)).numpy()
    drawn = pool.draw(ns.Query(triples), 9, rng=ns.rng_for(seed))
    for row, triple in enumerate(triples.tolist()):
        left = [
            (side, item)
            for side, item in zip(drawn.side[row].tolist(), drawn.ids[row].tolist(), strict=True)
            if item >= 0
        ]
        if shortlist is not None:

            def whole(candidate, triple=triple):
                return tuple(candidate[1] if part == candidate[0] else triple[part] for part in range(3))

            left = sorted(left, key=lambda candidate: -PLAUSIBLE[whole(candidate)])[:shortlist]
        alike = {candidate: ALIKE[triple[candidate[0]], candidate[1]] for candidate in left}
        fit = [candidate for candidate in left if limit is None or alike[candidate] <= limit]
        fit = sorted(fit, key=lambda candidate: -alike[candidate])[:k]
        empty = k - len(fit)
        assert list(zip(taken.side[row].tolist(), taken.ids[row].tolist(), strict=True)) == fit + [(-1, -1)] * empty
        assert taken.scores[row].tolist() == [alike[candidate] for candidate in fit] + [0.0] * empty
    assert taken.shape == (len(rows), k)


@pytest.mark.parametrize("numbers", [{}, {"temperature": 0.3}, {"temperature": 4.0}, {"top_m": 5}])
def test_it_is_dynamic_with_the_positive_in_the_place_of_the_anchor(numbers):
    matched = by(ALIKE)
    near = NearPositive(POOL, matched, 8, **numbers).sample(QUERY, 3, rng=ns.rng_for(7))
    dynamic = Dynamic(POOL, lambda anchors, ids: matched(QUERY.positives, ids), 8, **numbers)
    same = dynamic.sample(QUERY, 3, rng=ns.rng_for(7))
    assert np.array_equal(near.ids, same.ids)
    assert np.array_equal(near.scores, same.scores)


def test_epsilon_truncation_is_uniform_over_the_nearest():
    epsilon, rows = 0.55, 20_000
    nearest = math.ceil((1 - epsilon) * (N_ITEMS - 1))
    query = ns.Query(np.zeros(rows, np.int64), positives=np.zeros(rows, np.int64))
    taken = NearPositive(POOL, by(ALIKE), N_ITEMS - 1, top_m=nearest).sample(query, 2, rng=ns.rng_for(0))
    expected = sorted(range(1, N_ITEMS), key=lambda item: -ALIKE[0, item])[:nearest]
    assert nearest == 5
    for slot in range(2):
        counts = np.bincount(taken.ids[:, slot], minlength=N_ITEMS)
        assert counts[expected].sum() == rows
        assert ((counts[expected] - rows / 5) ** 2 / (rows / 5)).sum() < 33.4  # 4 degrees, p = 1e-6
    assert (taken.ids[:, 0] != taken.ids[:, 1]).all()


def test_a_candidate_at_the_limit_stays():
    sampler = NearPositive(POOL, by(ALIKE), N_ITEMS, limit=float(ALIKE[0, 4]))
    assert sampler.sample(ns.Query([0], positives=[0]), 1, rng=ns.rng_for(0)).ids.tolist() == [[4]]
