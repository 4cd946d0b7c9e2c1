"""PercentileRange: percentile intervals of a row's candidates, kept or removed."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from by_table import by
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.quantity.schedules import Linear
from naysay.samplers import PercentileRange

pytestmark = pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")  # some rows are short here

COMPILING = settings(deadline=None)  # a first call compiles
N_ITEMS = 24
KNOWN = ns.Positives.from_pairs(
    [0, 0, 1, 2, *[3] * 24, *[4] * 22], [0, 5, 6, 7, *range(24), *range(22)], n_anchors=6, n_items=N_ITEMS
)
POOL = ns.pools.Everything(KNOWN)
TABLE = np.random.default_rng(0).standard_normal((6, N_ITEMS)).round(1)  # rounded: some scores are equal
EIGHTHS = st.integers(0, 8).map(lambda eighth: eighth / 8)


score = by(TABLE)


def by_id(anchors, ids):
    return ids * 1.0


def inside_in_loops(scores, low, high):
    """Slots of a row's candidates within the interval, by the rule, in exact arithmetic."""
    slots = sorted(range(len(scores)), key=lambda slot: (-scores[slot], slot))
    first = int((1 - Fraction(high)) * len(slots))
    end = int((1 - Fraction(low)) * len(slots))
    return set(slots[first:end])


def drawn_by(query, n, rng):
    """What the pool draws for the sampler, which asks it first."""
    return POOL.draw(query, n, rng=rng).ids


@COMPILING
@given(
    st.lists(st.integers(0, 5), max_size=6),
    st.integers(1, 30),
    st.tuples(EIGHTHS, EIGHTHS).map(sorted).filter(lambda ends: ends[0] < ends[1]),
    st.sampled_from(["keep", "remove"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_all_of_the_interval_and_nothing_else(anchors, size, ends, mode, masked, seed):
    """Asked for as many as were drawn, it gives exactly what the loops leave."""
    query = ns.Query(np.array(anchors, np.int64))
    where = (lambda query, ids: ids % 2 == query.anchors[:, None] % 2) if masked else None
    sampler = PercentileRange(POOL, score, size, **{mode: tuple(ends)}, where=where)
    taken = sampler.sample(query, size, rng=ns.rng_for(seed))
    candidates = drawn_by(query, size, ns.rng_for(seed))
    cut = 0
    for row, anchor in enumerate(anchors):
        ids = [i for i in candidates[row].tolist() if i >= 0]
        inside = {ids[s] for s in inside_in_loops([TABLE[anchor, i] for i in ids], *ends)}
        if masked:
            inside = {i for i in inside if i % 2 == anchor % 2}
        left = inside if mode == "keep" else set(ids) - inside
        cut += len(ids) - len(left)
        found = taken.ids[row]
        assert sorted(found[found >= 0].tolist()) == sorted(left)
        assert (found[: len(left)] >= 0).all()
        assert taken.scores[row, : len(left)].tolist() == [TABLE[anchor, i] for i in found[: len(left)]]
    assert taken.dropped.get("outside the range", 0) == cut
    assert taken.dropped.get("exhausted", 0) == (taken.ids < 0).sum()
    assert taken.log_q is None


@pytest.mark.parametrize(("count", "hardest"), [(999, 0), (1000, 1), (1999, 1), (2000, 2)])
def test_a_thousandth_of_fewer_than_a_thousand_is_none(count, hardest):
    known = ns.Positives.from_pairs([0], [count], n_items=count + 1)
    sampler = PercentileRange(ns.pools.Everything(known), by_id, count, remove=(0.999, 1.0))
    taken = sampler.sample(ns.Query([0]), count, rng=ns.rng_for(0))
    assert (taken.ids >= 0).sum() == count - hardest
    assert taken.ids.max() == count - 1 - hardest
    assert dict(taken.dropped) == ({"outside the range": hardest, "exhausted": hardest} if hardest else {})


def test_the_choice_within_the_ring_is_uniform():
    """Six candidates in the ring, two taken: each comes in a third of the rows, whatever its score."""
    rows = 6000
    taken = PercentileRange(POOL, by_id, 24, keep=(0.5, 0.75)).sample(ns.Query(np.full(rows, 5)), 2, rng=ns.rng_for(1))
    counts = np.bincount(taken.ids.ravel(), minlength=N_ITEMS)
    assert np.flatnonzero(counts).tolist() == list(range(12, 18))
    assert (taken.ids[:, 0] != taken.ids[:, 1]).all()
    # 5 degrees of freedom, scaled by the variance of draws without repeats; 45 is beyond p = 1e-8
    assert ((counts[12:18] - rows / 3) ** 2).sum() / (rows / 3 * (1 - 1 / 3)) * 5 / 6 < 45


@pytest.mark.parametrize(
    "interval",
    [lambda step: (0.5, 0.75) if step else (0.0, 0.25), (Linear(0.0, 0.5, 10), Linear(0.25, 0.75, 10))],
)
def test_the_interval_moves_with_the_step(interval):
    sampler = PercentileRange(POOL, by_id, Linear(8, 24, 10), keep=interval)
    last = sampler.sample(ns.Query([5], step=10), 24, rng=ns.rng_for(0))
    assert sorted(last.ids[0, :6].tolist()) == list(range(12, 18))
    first = sampler.sample(ns.Query([5], step=0), 24, rng=ns.rng_for(0))
    assert (first.ids >= 0).sum() == 2
    assert set(first.ids[0, :2].tolist()) == set(sorted(drawn_by(ns.Query([5]), 8, ns.rng_for(0))[0].tolist())[:2])


TRIPLES = np.concatenate(
    [np.random.default_rng(2).integers(0, (9, 3, 9), (20, 3)), [[0, 0, tail] for tail in range(9)]]
)
OF_TRIPLES = ns.pools.Corruption(TRIPLES, sides=("head", "relation", "tail"))
PLAUSIBLE = np.random.default_rng(3).permutation(9 * 3 * 9).reshape(9, 3, 9) / 8.0  # no two alike


def plausible(_, triples):
    table = PLAUSIBLE if isinstance(triples, np.ndarray) else torch.from_numpy(PLAUSIBLE)
    return table[triples[..., 0], triples[..., 1], triples[..., 2]]


@COMPILING
@given(
    st.lists(st.integers(0, len(TRIPLES) - 1), max_size=5),
    st.integers(1, 24),
    st.tuples(EIGHTHS, EIGHTHS).map(sorted).filter(lambda ends: ends[0] < ends[1]),
    st.sampled_from(["keep", "remove"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_of_triples_the_corrupted_ones_are_ranked_and_masked(rows, size, ends, mode, in_torch, seed):
    triples = TRIPLES[rows].reshape(-1, 3)
    query = ns.Query(torch.from_numpy(triples) if in_torch else triples)
    sampler = PercentileRange(
        OF_TRIPLES, plausible, size, **{mode: tuple(ends)}, where=lambda query, triples: triples.sum(-1) % 2 == 0
    )
    taken = sampler.sample(query, size, rng=ns.rng_for(seed)).numpy()
    drawn = OF_TRIPLES.draw(ns.Query(triples), size, rng=ns.rng_for(seed))
    for row, triple in enumerate(triples.tolist()):
        made = []
        for item, side in zip(drawn.ids[row].tolist(), drawn.side[row].tolist(), strict=True):
            if item >= 0:
                made.append((side, tuple(item if part == side else triple[part] for part in range(3))))
        inside = inside_in_loops([PLAUSIBLE[parts] for _, parts in made], *ends)
        inside = {slot for slot in inside if sum(made[slot][1]) % 2 == 0}
        left = [slot for slot in range(len(made)) if (slot in inside) == (mode == "keep")]
        found = {}
        for item, side, value in zip(taken.ids[row], taken.side[row], taken.scores[row], strict=True):
            if item >= 0:
                found[int(side), tuple(int(item) if part == side else triple[part] for part in range(3))] = value
        assert found == {made[slot]: PLAUSIBLE[made[slot][1]] for slot in left}
        assert (taken.side[row] >= 0).tolist() == (taken.ids[row] >= 0).tolist()
