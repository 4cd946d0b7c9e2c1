"""Ring: percentile intervals of a row's candidates, kept or removed."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.quantity.schedules import Linear
from naysay.samplers.ring import Ring

pytestmark = pytest.mark.filterwarnings("ignore:.*at least k:naysay.NaysayWarning")  # some rows are short here

COMPILING = settings(deadline=None)  # a first call compiles
N_ITEMS = 24
KNOWN = ns.Positives.from_pairs(
    [0, 0, 1, 2, *[3] * 24, *[4] * 22], [0, 5, 6, 7, *range(24), *range(22)], n_anchors=6, n_items=N_ITEMS
)
POOL = ns.pools.Everything(KNOWN)
TABLE = np.random.default_rng(0).standard_normal((6, N_ITEMS)).round(1)  # rounded: some scores are equal
EIGHTHS = st.integers(0, 8).map(lambda eighth: eighth / 8)


def score(anchors, ids):
    if isinstance(ids, np.ndarray):
        return TABLE[anchors[:, None], ids]
    return torch.tensor(TABLE)[anchors[:, None], ids]


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
    sampler = Ring(POOL, score, size, **{mode: tuple(ends)}, where=where)
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
    assert taken.dropped.get("outside the ring", 0) == cut
    assert taken.dropped.get("exhausted", 0) == (taken.ids < 0).sum()
    assert taken.log_q is None


@given(st.integers(1, 3000), st.lists(st.integers(1, 999), unique=True, max_size=5))
def test_intervals_that_meet_share_nothing_and_leave_nothing_out(count, cuts):
    """In thousandths, so that floating cuts are held against exact ones."""
    from naysay.samplers.ring import _cuts

    ends = [0, *sorted(cuts), 1000]
    places = [_cuts(count, end / 1000)[count] for end in ends]
    assert places == [(1000 - end) * count // 1000 for end in ends]
    assert places[0] == count
    assert places[-1] == 0
    assert places == sorted(places, reverse=True)


@pytest.mark.parametrize(("count", "hardest"), [(999, 0), (1000, 1), (1999, 1), (2000, 2)])
def test_a_thousandth_of_fewer_than_a_thousand_is_none(count, hardest):
    known = ns.Positives.from_pairs([0], [count], n_items=count + 1)
    sampler = Ring(ns.pools.Everything(known), by_id, count, remove=(0.999, 1.0))
    taken = sampler.sample(ns.Query([0]), count, rng=ns.rng_for(0))
    assert (taken.ids >= 0).sum() == count - hardest
    assert taken.ids.max() == count - 1 - hardest
    assert dict(taken.dropped) == ({"outside the ring": hardest, "exhausted": hardest} if hardest else {})


def test_the_five_percent_of_the_paper_and_ties_by_the_order_of_the_draw():
    known = ns.Positives.from_pairs([0], [100], n_items=101)
    pool = ns.pools.Everything(known)
    hard = Ring(pool, by_id, 100, keep=(0.95, 1.0)).sample(ns.Query([0]), 5, rng=ns.rng_for(0))
    assert sorted(hard.ids[0].tolist()) == [95, 96, 97, 98, 99]
    flat = Ring(pool, lambda anchors, ids: ids * 0.0, 40, keep=(0.9, 1.0))
    taken = flat.sample(ns.Query([0]), 4, rng=ns.rng_for(7))
    assert sorted(taken.ids[0].tolist()) == sorted(pool.draw(ns.Query([0]), 40, rng=ns.rng_for(7)).ids[0, :4].tolist())


@COMPILING
@given(
    st.integers(1, 12),
    st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted).filter(lambda ends: ends[0] < ends[1]),
    st.sampled_from(["keep", "remove"]),
)
def test_refill_draws_the_least_that_leaves_the_count(size, ends, mode):
    low, high = ends[0] / 100, ends[1] / 100
    if mode == "remove" and (low, high) == (0.0, 1.0):
        return
    sampler = Ring(POOL, by_id, size, **{mode: (low, high)}, refill=True)
    longer = sampler._settings(0)[0]

    def left(count):
        inside = len(inside_in_loops([0.0] * count, Fraction(ends[0], 100), Fraction(ends[1], 100)))
        return inside if mode == "keep" else count - inside

    assert left(longer) >= size
    assert all(left(count) < size for count in range(longer))


def test_removal_shrinks_the_row_or_refills_it():
    query = ns.Query([5, 5, 5])
    shrunk = Ring(POOL, score, 8, remove=(0.75, 1.0)).sample(query, 8, rng=ns.rng_for(0))
    assert ((shrunk.ids >= 0).sum(axis=1) == 6).all()
    assert dict(shrunk.dropped) == {"outside the ring": 6, "exhausted": 6}
    filled = Ring(POOL, score, 8, remove=(0.75, 1.0), refill=True).sample(query, 8, rng=ns.rng_for(0))
    assert (filled.ids >= 0).all()
    assert dict(filled.dropped) == {"outside the ring": 6}
    exact = Ring(POOL, score, 8, remove=(0.75, 1.0), on_short="raise")
    assert (exact.sample(query, 6, rng=ns.rng_for(0)).ids >= 0).all()
    with pytest.raises(
        NaysayError, match=r"Ring.sample: row 0 has 6 candidates left of the 8 requested \(3 such rows\)"
    ):
        exact.sample(query, 8, rng=ns.rng_for(0))


def test_the_choice_within_the_ring_is_uniform():
    """Six candidates in the ring, two taken: each comes in a third of the rows, whatever its score."""
    rows = 6000
    taken = Ring(POOL, by_id, 24, keep=(0.5, 0.75)).sample(ns.Query(np.full(rows, 5)), 2, rng=ns.rng_for(1))
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
    sampler = Ring(POOL, by_id, Linear(8, 24, 10), keep=interval)
    last = sampler.sample(ns.Query([5], step=10), 24, rng=ns.rng_for(0))
    assert sorted(last.ids[0, :6].tolist()) == list(range(12, 18))
    first = sampler.sample(ns.Query([5], step=0), 24, rng=ns.rng_for(0))
    assert (first.ids >= 0).sum() == 2
    assert set(first.ids[0, :2].tolist()) == set(sorted(drawn_by(ns.Query([5]), 8, ns.rng_for(0))[0].tolist())[:2])


@pytest.mark.parametrize("k", [4, 2.5, np.array([0, 1, 3, 4, 2])])
def test_torch_and_numpy_choose_the_same(k):
    anchors = np.array([0, 1, 2, 3, 4])
    sampler = Ring(POOL, score, 12, remove=(0.9, 1.0), where=lambda query, ids: ids > 3)
    plain = sampler.sample(ns.Query(anchors), k, rng=ns.rng_for(3))
    tensors = sampler.sample(ns.Query(torch.tensor(anchors)), k, rng=ns.rng_for(3))
    assert isinstance(tensors.ids, torch.Tensor)
    assert tensors.ids.tolist() == plain.ids.tolist()
    assert tensors.scores.tolist() == plain.scores.tolist()
    assert tensors.dropped == plain.dropped


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
    sampler = Ring(
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


def test_it_conforms_on_triples():
    ns.check_sampler(Ring(OF_TRIPLES, plausible, 12, keep=(0.25, 1.0)), OF_TRIPLES.known)


@pytest.mark.parametrize("anchors", [[], [1], [3]])
@pytest.mark.parametrize("k", [0, 3])
def test_no_row_one_row_and_a_row_that_knows_everything(anchors, k):
    taken = Ring(POOL, score, 8, keep=(0.0, 1.0)).sample(ns.Query(np.array(anchors, np.int64)), k, rng=ns.rng_for(0))
    assert taken.shape == (len(anchors), k)
    assert (taken.ids >= 0).sum() == (k if anchors == [1] else 0)


@pytest.mark.parametrize(
    "options", [{"keep": (0.25, 1.0)}, {"remove": (0.8, 1.0)}, {"keep": (0.5, 0.75), "refill": True}]
)
def test_it_conforms(options):
    ns.check_sampler(Ring(POOL, score, 16, **options), KNOWN)


def test_what_it_is_rejected_for():
    def refusal(call, *arguments, **named):
        with pytest.raises(NaysayError) as caught:
            call(*arguments, **named)
        return str(caught.value)

    given_one = "Ring: `keep` must be given, or `remove`, but not both, got "
    assert refusal(Ring, POOL, score, 8) == given_one + "neither. Write keep=(0.9, 1.0)."
    assert refusal(Ring, POOL, score, 8, keep=(0, 1), remove=(0, 1)) == given_one + "both. Write keep=(0.9, 1.0)."
    rule = "Ring: `keep` must be a pair (low, high) with 0 <= low < high <= 1, got "
    assert refusal(Ring, POOL, score, 8, keep=(0.5, 0.5)) == rule + "(0.5, 0.5). 1.0 is the hardest."
    assert refusal(Ring, POOL, score, 8, keep=(90, 100)) == rule + "(90, 100). 1.0 is the hardest."
    assert refusal(Ring, POOL, score, 8, keep=(float("nan"), 1)) == rule + "(nan, 1). 1.0 is the hardest."
    assert refusal(Ring, POOL, score, 8, remove=0.9).startswith("Ring: `remove` must be a pair (low, high)")
    assert refusal(Ring, POOL, score, 8, keep=("0", 1)) == rule + "('0', 1). 1.0 is the hardest."
    assert refusal(Ring, POOL, score, 0, keep=(0, 1)) == "Ring: `candidates` must be at least 1, got 0."
    assert refusal(Ring, POOL, 3, 8, keep=(0, 1)) == "Ring: `score` must be a function score(anchors, ids), got int."
    assert refusal(Ring, 3, score, 8, keep=(0, 1)).startswith("Ring: `pool` must be a pool")
    rule = "Ring: `where` must be None or a function where(query, ids), got int."
    assert refusal(Ring, POOL, score, 8, keep=(0, 1), where=3) == rule
    assert refusal(Ring, POOL, score, 8, keep=(0, 1), refill=1) == "Ring: `refill` must be True or False, got 1."
    rule = "Ring: `remove` must be an interval that leaves some candidates, to refill from, got (0.0, 1.0)."
    assert refusal(Ring, POOL, score, 8, remove=(0.0, 1.0), refill=True) == rule
    assert refusal(Ring, POOL, score, 8, keep=(0, 1), on_short="no").startswith("Ring: `on_short` must be one of")
    query, rng = ns.Query([0, 1]), ns.rng_for(0)
    assert refusal(Ring(POOL, score, 8, keep=(0, 1)).sample, [0], 1, rng=rng).startswith("Ring.sample: `query` must be")
    moving = Ring(POOL, score, 8, keep=lambda step: (1.0, 0.0))
    assert refusal(moving.sample, query, 1, rng=rng).startswith("Ring.sample: `keep` must be a pair (low, high)")
    for answer, got in [
        (np.ones((2, 8)), "(2, 8) float64."),
        (np.ones((2, 7), bool), "(2, 7) bool."),
    ]:
        masked = Ring(POOL, score, 8, keep=(0, 1), where=lambda query, ids, answer=answer: answer)
        rule = "Ring.sample: `where` must be a function that returns (2, 8) bool, got "
        assert refusal(masked.sample, query, 1, rng=rng) == rule + got
    masked = Ring(POOL, score, 8, keep=(0, 1), where=lambda query, ids: torch.ones(2, 8, dtype=torch.bool))
    rule = "Ring.sample: `where` must be a function that returns a NumPy array, like the query, got a Tensor."
    assert refusal(masked.sample, query, 1, rng=rng) == rule
