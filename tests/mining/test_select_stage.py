"""Select: each way against plain loops; seeded, the same whatever else is in the row, and the rest is counted."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import candidates_from, check_counts, kept_ids
from scipy.stats import chi2

import naysay as ns
from naysay.mining import Reason, join, select
from naysay.mining.take import _Selection

N, M, ITEMS = 4, 8, 12
VECTORS = np.random.default_rng(0).integers(-2, 3, (ITEMS, 3)).astype(np.float32)
GROUPS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 0, 1])
WAYS = {
    "top": {},
    "random": {"rng": 0},
    "softmax": {"rng": 0, "temperature": 0.3},
    "spread": {},
    "groups": {"groups": GROUPS},
    "mmr": {"similar": lambda ids: VECTORS[ids], "mmr_lambda": 0.6},
}


def options(how, seed=0):
    return {name: ns.rng_for(seed) if name == "rng" else value for name, value in WAYS[how].items()}


def lists(seed, name="search", items=ITEMS, width=M):
    """Lists with equal scores, empty slots, and some dropped."""
    rng = np.random.default_rng(seed)
    ids = np.stack([rng.permutation(items)[:width] for _ in range(N)])
    ids[1, 5:] = -1
    ids[3] = -1
    return candidates_from(ids, rng.integers(0, 5, (N, width)) / 4, name)


def in_order(found, row):
    """The slots in play of a row, best first."""
    slots = np.flatnonzero(found.kept[row]).tolist()
    return sorted(slots, key=lambda slot: (-found.scores[row, slot], found.ids[row, slot]))


def plain(found, row, k, how, key):
    """The slots that are taken, in loops."""
    slots = in_order(found, row)
    ids = {slot: int(found.ids[row, slot]) for slot in slots}
    scores = {slot: float(found.scores[row, slot]) for slot in slots}
    if how == "top":
        return slots[:k]
    draws = _Selection(found, np.arange(len(found)), key, {}).uniform()[row]
    if how == "random":
        return sorted(slots, key=lambda slot: -draws[slot])[:k]
    if how == "softmax":
        noisy = {slot: scores[slot] / 0.3 - math.log(-math.log(draws[slot])) for slot in slots}
        return sorted(slots, key=lambda slot: -noisy[slot])[:k]
    if how == "spread":
        wanted = min(k, len(slots))
        return [slots[(2 * j + 1) * len(slots) // (2 * wanted)] for j in range(wanted)]
    turns = []  # groups
    for place, slot in enumerate(slots):
        before = sum(GROUPS[ids[other]] == GROUPS[ids[slot]] for other in slots[:place])
        turns.append((before, place, slot))
    return [slot for _, _, slot in sorted(turns)][:k]


@pytest.mark.parametrize("how", [how for how in WAYS if how != "mmr"])
@settings(max_examples=30)
@given(seed=st.integers(0, 100), k=st.integers(0, 10))
def test_as_in_loops(how, seed, k):
    found = lists(seed)
    found = found.drop(found.ids == 2, Reason.DUPLICATE)
    taken = select(found, k, how, **options(how, seed))
    check_counts(taken)
    key = ns.rng.key_from(ns.rng_for(seed))
    for row in range(N):
        chosen = plain(found, row, k, how, key)
        assert np.flatnonzero(taken.kept[row]).tolist() == sorted(chosen)
        assert taken.dropped.get("not selected", np.zeros(N))[row] == found.kept[row].sum() - len(chosen)
    assert (taken.kept_by[taken.kept] == 0).all()
    assert taken.kept_names[0] == how
    assert not taken.kept[found.ids == 2].any()


@settings(max_examples=60)
@given(seed=st.integers(0, 1000), k=st.integers(0, 8), mmr_lambda=st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_mmr_as_in_loops(seed, k, mmr_lambda):
    rng = np.random.default_rng(seed)
    space = rng.standard_normal((ITEMS, 5))
    found = candidates_from([rng.permutation(ITEMS)[:M] for _ in range(3)], rng.standard_normal((3, M)))
    found = found.drop(found.ids == 5, Reason.DUPLICATE)
    taken = select(found, k, "mmr", similar=lambda ids: space[ids], mmr_lambda=mmr_lambda)
    unit = space / np.linalg.norm(space, axis=1, keepdims=True)
    for row in range(3):
        slots, chosen = in_order(found, row), []
        for _ in range(min(k, len(slots))):

            def value(slot, chosen=tuple(chosen), row=row):
                i = found.ids[row, slot]
                close = max((unit[i] @ unit[found.ids[row, other]] for other in chosen), default=0.0)
                return mmr_lambda * float(found.scores[row, slot]) - (1 - mmr_lambda) * close

            chosen.append(max((slot for slot in slots if slot not in chosen), key=value))
        assert np.flatnonzero(taken.kept[row]).tolist() == sorted(chosen)


def test_one_k_for_each_anchor():
    found = lists(0)
    counts = np.array([2, 0, 5, 3])
    assert select(found, counts).kept.sum(axis=1).tolist() == [2, 0, 5, 0]


@pytest.mark.parametrize("how", ["random", "softmax"])
def test_a_seed_is_all_that_it_depends_on(how):
    found = lists(1)
    first = select(found, 3, how, **options(how))
    assert (select(found, 3, how, **options(how)).why == first.why).all()
    assert any((select(found, 3, how, **options(how, seed)).why != first.why).any() for seed in range(1, 5))
    turned = candidates_from(found.ids[:, ::-1], np.where(found.filled, found.scores, 0)[:, ::-1])
    again = select(turned, 3, how, **options(how))
    assert [sorted(row) for row in kept_ids(again)] == [sorted(row) for row in kept_ids(first)]


def frequencies(how, draws=4000, **given):
    """How often each ordered pair of the three items is taken, and each set."""
    found = candidates_from(np.tile([0, 1, 2], (draws, 1)), np.tile([0.6, 0.3, 0.0], (draws, 1)))
    taken = select(found, 2, how, rng=ns.rng_for(5), **given)
    return Counter(frozenset(row) for row in kept_ids(taken))


def chi_square(seen, chances, draws=4000):
    statistic = sum((seen[key] - draws * chance) ** 2 / (draws * chance) for key, chance in chances.items())
    return chi2.sf(statistic, len(chances) - 1)


def test_random_takes_each_set_as_often():
    assert chi_square(frequencies("random"), {frozenset(p): 1 / 3 for p in ((0, 1), (0, 2), (1, 2))}) > 1e-4


def test_softmax_takes_sets_in_proportion():
    weights = np.exp(np.array([0.6, 0.3, 0.0]) / 0.3)
    chances = Counter()
    for first, second in permutations(range(3), 2):
        chances[frozenset((first, second))] += (
            weights[first] / weights.sum() * weights[second] / (weights.sum() - weights[first])
        )
    assert sum(chances.values()) == pytest.approx(1)
    assert chi_square(frequencies("softmax", temperature=0.3), chances) > 1e-4
    assert chi_square(frequencies("random"), chances) < 1e-6  # the test can fail


@pytest.mark.parametrize("how", WAYS)
def test_quotas_take_so_many_of_each_source(how):
    one, two = lists(0, "dense"), lists(1, "words")
    found = join(one, two)
    taken = select(found, 5, how, quotas={"words": 2, "dense": 3}, **options(how))
    check_counts(taken)
    for place, most in ((0, 3), (1, 2)):
        mask = found.kept & (found.source == place)
        assert ((taken.kept & mask).sum(axis=1) == np.minimum(mask.sum(axis=1), most)).all()
    if how == "top":
        for row in range(N):
            own = [slot for slot in in_order(found, row) if found.source[row, slot] == 1][:2]
            assert set(own) == set(np.flatnonzero(taken.kept[row] & (found.source[row] == 1)).tolist())


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_nothing_to_select(how, shape):
    found = candidates_from(np.empty(shape, int), np.empty(shape))
    assert select(found, 2, how, **options(how)).ids.shape == shape


FOUND = lists(0)
