"""SemiHard: the band between the positive and the margin, and what a row does that has too few in it."""

import numpy as np
import pytest
import torch
from by_table import by
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.samplers import SemiHard

pytestmark = pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")  # some rows are short here

COMPILING = settings(deadline=None, max_examples=30)  # a first call compiles
N_ANCHORS, N_ITEMS = 4, 12
# Scores from a short grid, so that ties with the positive and with the ends of the band come up.
TABLE = np.random.default_rng(0).integers(0, 9, (N_ANCHORS, N_ITEMS)) / 4.0


def world(pairs=((0, 0), (1, 5), (2, 3), (3, 1)), **settings):
    known = ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], N_ANCHORS, N_ITEMS)
    return known, ns.pools.Everything(known, **settings)


KNOWN, POOL = world()


def in_loops(table, anchor, positive, margin, otherwise, k):
    """The hardest of the band, then what `otherwise` says, as scores in order: ids may tie."""
    free = [item for item in range(N_ITEMS) if not KNOWN.contains([anchor], [item])[0]]
    top = table[anchor, positive]
    band, easier, others = [], [], []
    for item in free:
        value = table[anchor, item]
        if top - margin < value < top:
            band.append(value)
        else:
            others.append(value)
            if value < top:
                easier.append(value)
    rest = {"pad": [], "easy": easier, "hardest": others}[otherwise]
    return (sorted(band, reverse=True) + sorted(rest, reverse=True))[:k], len(band), len(free)


@COMPILING
@given(
    st.lists(st.integers(0, N_ANCHORS - 1), max_size=5),
    st.sampled_from([0.25, 0.6, 1.0, np.inf]),
    st.sampled_from(["pad", "easy", "hardest"]),
    st.integers(0, N_ITEMS + 2),
    st.booleans(),
)
def test_it_takes_what_the_loops_take(anchors, margin, otherwise, k, in_torch):
    positives = [{0: 0, 1: 5, 2: 3, 3: 1}[anchor] for anchor in anchors]
    array = (
        (lambda values: torch.tensor(values, dtype=torch.int64))
        if in_torch
        else (lambda values: np.array(values, np.int64))
    )
    query = ns.Query(array(anchors), positives=array(positives))
    sampler = SemiHard(POOL, by(TABLE), N_ITEMS, margin, otherwise=otherwise)
    taken = sampler.sample(query, k, rng=ns.rng_for(0))
    assert isinstance(taken.ids, torch.Tensor) is in_torch
    taken = taken.numpy()
    assert taken.shape == taken.scores.shape == (len(anchors), k)
    assert taken.log_q is None
    unfit = beyond = 0
    for row, (anchor, positive) in enumerate(zip(anchors, positives, strict=True)):
        expected, in_band, free = in_loops(TABLE, anchor, positive, margin, otherwise, k)
        ids = taken.ids[row]
        assert ids[len(expected) :].tolist() == [-1] * (k - len(expected))
        assert TABLE[anchor, ids[: len(expected)]].tolist() == expected
        assert taken.scores[row].tolist() == expected + [0.0] * (k - len(expected))
        unfit += max(min(k, free) - in_band, 0)
        beyond += max(k - free, 0)
    assert taken.dropped.get("not semi-hard", 0) == unfit
    assert taken.dropped.get("exhausted", 0) == beyond
    assert set(taken.dropped) <= {"not semi-hard", "exhausted"}


def test_random_is_uniform_over_the_band_and_hardest_is_not():
    rows = 20_000
    query = ns.Query(np.zeros(rows, np.int64), positives=np.zeros(rows, np.int64))
    table = np.tile(np.array([2.0, 3.0, *[1.9 - i / 10 for i in range(5)], *[0.5] * 5]), (N_ANCHORS, 1))
    taken = SemiHard(POOL, by(table), N_ITEMS, 1.0, choose="random").sample(query, 2, rng=ns.rng_for(3))
    for slot in range(2):
        counts = np.bincount(taken.ids[:, slot], minlength=N_ITEMS)
        assert counts[[0, 1, *range(7, N_ITEMS)]].sum() == 0
        squares = ((counts[2:7] - rows / 5) ** 2 / (rows / 5)).sum()
        assert squares < 33.4  # chi-square of 4 degrees at p = 1e-6
    assert (taken.ids[:, 0] != taken.ids[:, 1]).all()
    hardest = SemiHard(POOL, by(table), N_ITEMS, 1.0).sample(query, 2, rng=ns.rng_for(3))
    assert (hardest.ids == [2, 3]).all()


def test_a_triple_is_its_own_positive():
    rng = np.random.default_rng(0)
    heads, relations, tails = (rng.integers(0, size, 60) for size in (20, 3, 20))
    triples = np.stack([heads, relations, tails], axis=1)
    known = ns.Triples(triples, 20, 3)
    values = rng.permutation(20 * 3 * 20).reshape(20, 3, 20) / 400.0

    def score(asked, corrupted):
        table = torch.from_numpy(values) if isinstance(corrupted, torch.Tensor) else values
        return table[corrupted[:, :, 0], corrupted[:, :, 1], corrupted[:, :, 2]]

    sampler = SemiHard(ns.pools.Corruption(known), score, 16, 1.0)
    taken = sampler.sample(ns.Query(triples[:32]), 3, rng=ns.rng_for(0))
    assert taken.mask.sum() > 40
    for triple, ids, sides, found in zip(triples[:32], taken.ids, taken.side, taken.scores, strict=True):
        for item, side, value in zip(ids, sides, found, strict=True):
            if item >= 0:
                other = triple.copy()
                other[side] = item
                assert values[tuple(other)] == value
                assert values[tuple(triple)] - 1.0 < value < values[tuple(triple)]
    ns.check_sampler(sampler, known, k=3)
