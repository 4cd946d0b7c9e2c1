"""Corruption against an oracle in plain loops: what may come, how often, with which log_q, and when a row ends."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay.kernels import uniform
from naysay.pools import Corruption
from tests.pools.corruption_oracle import (
    ASKED,
    NAMES,
    SETTINGS,
    Oracle,
    codes,
    fits,
    pool_and_oracle,
    worlds,
)


def draw(pool, triples, n, seed=0):
    return pool.draw(ns.Query(np.asarray(triples, np.int64).reshape(-1, 3)), n, rng=ns.rng_for(seed))


# ---- laws on small worlds -------------------------------------------------------------------------------------------


@given(worlds(), st.booleans(), st.sampled_from([32, 2, 1, 0]), st.data())
def test_every_row_of_every_small_world(world, distinct, tries, data):
    """Exclusion, the triple's own part, distinctness as (side, id), the length of each row, and log_q slot by slot."""
    train, known, sides, choice, domains, ranges, n_entities, n_relations, asked = world
    oracle = Oracle(train, known, sides, choice, domains, ranges, n_entities, n_relations)
    pool = Corruption(
        train,
        known,
        sides=sides,
        choice=choice,
        domains=domains,
        ranges=ranges,
        n_entities=n_entities,
        n_relations=n_relations,
        distinct=distinct,
    )
    width = st.integers(0, 20)
    n = data.draw(width | st.lists(width, min_size=len(asked), max_size=len(asked)), "n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uniform, "TRIES", tries)
        got = draw(pool, asked, n, data.draw(st.integers(0, 9), "seed"))
    wanted = [n] * len(asked) if isinstance(n, int) else n
    assert got.ids.shape == (len(asked), max(wanted, default=n if isinstance(n, int) else 0))
    for row, triple in enumerate(asked):
        candidates = {(side, item) for side, items in oracle.candidates(triple).items() for item in items}
        pairs = list(zip(got.side[row].tolist(), got.ids[row].tolist(), strict=True))
        length = min(wanted[row], len(candidates)) if distinct else wanted[row] * bool(candidates)
        assert pairs[length:] == [(-1, -1)] * (len(pairs) - length)
        assert set(pairs[:length]) <= candidates
        if distinct:
            assert len(set(pairs[:length])) == length
            if wanted[row] >= len(candidates):
                assert set(pairs[:length]) == candidates
        for slot, (side, item) in enumerate(pairs):
            claim = got.log_q[row, slot]
            if slot >= length:
                assert claim == 0.0
                continue
            expected = oracle.probability(triple, side, item, set(pairs[:slot]) if distinct else ())
            assert claim == pytest.approx(math.log(expected), abs=1e-9)
    missing = sum(wanted) - int((got.ids >= 0).sum())
    assert dict(got.dropped) == ({"exhausted": missing} if missing else {})
    changed = pool.corrupted(ns.Query(np.array(asked, np.int64).reshape(-1, 3)), got)
    for row, slot in np.ndindex(got.ids.shape):
        side, item = got.side[row, slot], got.ids[row, slot]
        expected = [-1, -1, -1] if item < 0 else [*asked[row][:side], item, *asked[row][side + 1 :]]
        assert changed[row, slot].tolist() == expected


# ---- frequencies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "independent"])
@pytest.mark.parametrize("tries", [32, 0])
def test_frequencies_are_those_of_the_oracle(name, distinct, tries, monkeypatch):
    """The first slot of distinct rows, all slots of independent ones; n = 2 leaves most sides to trial, not decks."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    pool, oracle = pool_and_oracle(name, distinct)
    rows, n = (4000, 2) if distinct else (800, 5)
    for triple in ASKED:
        got = draw(pool, [triple] * rows, n, seed=31)
        cells = [(side, item) for side, items in oracle.candidates(triple).items() for item in items]
        if not cells:
            assert (got.ids == -1).all()
            assert got.dropped == {"exhausted": rows * n}
            continue
        expected = np.zeros(72)
        for side, item in cells:
            expected[3 * item + side] = oracle.probability(triple, side, item)
        seen = codes(got)[:, :1] if distinct else codes(got)
        observed = np.bincount(seen.ravel(), minlength=72)
        assert fits(observed, expected) > 1e-5, triple
        first = got.log_q[:, :1] if distinct else got.log_q
        assert np.abs(np.exp(first) - expected[seen]).max() < 1e-12


@pytest.mark.parametrize("name", ["head and tail", "all three", "bernoulli", "given"])
@pytest.mark.parametrize("n", [2])
@pytest.mark.parametrize("tries", [32, 0])
def test_every_ordered_row_of_a_triple_with_few_candidates(name, n, tries, monkeypatch):
    """Brute force over all rows: their probability, their frequency, and exp of the sum of their log_q."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    train = [(0, 0, 1), (0, 0, 2), (1, 0, 2), (3, 1, 4), (4, 1, 3), (0, 1, 1)]
    chosen = {"sides": ("head", "tail"), "choice": "uniform", "domains": None, "ranges": None, **SETTINGS[name]}
    if name == "given":
        chosen |= {"domains": [[0, 1, 2, 3], [0]], "ranges": [[0, 1, 3], [4]]}
    pool = Corruption(train, n_entities=5, n_relations=2, **chosen)
    oracle = Oracle(train, [], n_entities=5, n_relations=2, **chosen)
    triple = (0, 0, 2)
    cells = [(side, item) for side, items in oracle.candidates(triple).items() for item in items]
    rows = list(itertools.permutations(cells, n))
    got = draw(pool, [triple] * 20_000, n, seed=7)
    keys = (codes(got) * 100 ** np.arange(n)).sum(axis=1)
    claimed = np.exp(got.log_q.sum(axis=1))
    observed, expected = [], []
    for row in rows:
        mine = keys == sum((3 * item + side) * 100**slot for slot, (side, item) in enumerate(row))
        steps = [oracle.probability(triple, *pair, set(row[:slot])) for slot, pair in enumerate(row)]
        observed.append(int(mine.sum()))
        expected.append(math.prod(steps))
        assert np.abs(claimed[mine] - math.prod(steps)).max(initial=0) < 1e-9
    assert sum(observed) == 20_000
    assert fits(observed, expected) > 1e-5


def test_no_known_triple_in_many_corruptions():
    """15,000 entities, 237 relations, 100,000 triples in three splits, by keys that share no code with Triples."""
    rng = np.random.default_rng(2)
    sizes = np.array([15_000, 237, 15_000])
    triples = (sizes * rng.uniform(size=(104_000, 3)) ** np.array([3, 2, 3])).astype(np.int64)
    train, valid, test = np.split(triples, [90_000, 97_000])
    keys = np.unique((triples[:, 0] * 237 + triples[:, 1]) * 15_000 + triples[:, 2])
    tails = np.bincount(np.unique(keys) // 15_000)
    assert tails.max() > 200  # hubs
    asked = train[rng.permutation(90_000)[:600]]
    for settings_ in ({}, {"choice": "bernoulli", "domains": "observed", "ranges": "observed"}):
        pool = Corruption(train, (valid, test), n_entities=15_000, n_relations=237, **settings_)
        query = ns.Query(asked)
        got = pool.draw(query, 200, rng=ns.rng_for(0))
        changed = pool.corrupted(query, got)[got.ids >= 0]
        drawn = (changed[:, 0] * 237 + changed[:, 1]) * 15_000 + changed[:, 2]
        drawn.sort()
        assert len(drawn) > 90_000
        assert not (keys[np.minimum(np.searchsorted(keys, drawn), len(keys) - 1)] == drawn).any()
        own = np.take_along_axis(asked, np.where(got.side < 0, 0, got.side).astype(np.int64), axis=1)
        assert (got.ids != own).all()
        ordered = np.sort(codes(got), axis=1)
        assert not ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any()


# ---- what the class promises in words -------------------------------------------------------------------------------


def test_each_negative_draws_its_own_side():
    """The number of heads among 16 negatives is binomial, row by row, in the first half of a batch as in the second."""
    train = np.random.default_rng(0).integers(0, [500, 5, 500], (3000, 3))
    for distinct in (True, False):
        got = draw(Corruption(train, n_entities=500, n_relations=5, distinct=distinct), train, 16)
        for part in (got.side[:1500], got.side[1500:]):
            heads = np.bincount((part == 0).sum(axis=1), minlength=17)
            expected = stats.binom.pmf(np.arange(17), 16, 0.5) * 1500
            pooled = [slice(0, 5), *(slice(i, i + 1) for i in range(5, 12)), slice(12, 17)]
            wanted = [expected[cells].sum() for cells in pooled]
            assert stats.chisquare([heads[cells].sum() for cells in pooled], wanted).pvalue > 1e-4


def test_bernoulli_of_a_one_to_many_relation_is_exact():
    """4.16: one head with four tails, tph = 4 and hpt = 1: the head goes with 4 / 5. An unseen relation: with 1 / 2."""
    train = [[0, 0, tail] for tail in (1, 2, 3, 4)]
    pool = Corruption(train, choice="bernoulli", n_entities=50, n_relations=2)
    assert pool.chance == pytest.approx(np.array([[0.8, 0.2], [0.5, 0.5]]), abs=1e-15)
    for relation, head in ((0, 0.8), (1, 0.5)):
        got = draw(pool, [[0, relation, 1]] * 5000, 4)
        heads = int((got.side == 0).sum())
        assert stats.binomtest(heads, 20_000, head).pvalue > 1e-4
        first = np.where(got.side[:, 0] == 0, head / 49, (1 - head) / (46 if relation == 0 else 49))
        assert np.abs(np.exp(got.log_q[:, 0]) - first).max() < 1e-12


def test_known_only_filters_and_neither_moves_chances_nor_types():
    """Held-out triples must not leak into the side's chance nor into observed types."""
    train, held_out = [[0, 0, 1], [2, 0, 3]], [[0, 0, 4], [0, 0, 5], [0, 0, 6]]
    pool = Corruption(train, held_out, choice="bernoulli", domains="observed", ranges="observed")
    assert pool.chance.tolist() == [[0.5, 0.5]]
    got = draw(pool, [[0, 0, 1]], 9)
    assert {(s, i) for s, i in zip(got.side[0].tolist(), got.ids[0].tolist(), strict=True) if i >= 0} == {
        (0, 2),
        (2, 3),
    }
    alone = draw(Corruption(train, [[2, 0, 1]], domains="observed", ranges="observed"), [[0, 0, 1]], 9)
    assert sorted(zip(alone.side[0].tolist(), alone.ids[0].tolist(), strict=True))[-1:] == [(2, 3)]
    assert alone.dropped == {"exhausted": 8}


@pytest.mark.parametrize(
    "known",
    [
        [[0, 0, 2], [0, 0, 3]],
        [(0, 0, 2), (0, 0, 3)],
        np.array([[0, 0, 2], [0, 0, 3]]),
        ns.Triples([[0, 0, 2], [0, 0, 3]]),
        ([[0, 0, 2]], [[0, 0, 3]]),
        [np.array([[0, 0, 2]]), ns.Triples([[0, 0, 3]]), np.empty((0, 3), np.int64)],
    ],
    ids=["lists", "tuples", "array", "Triples", "splits", "mixed splits"],
)
def test_forms_of_known(known):
    pool = Corruption([[0, 0, 1]], known, sides=("tail",))
    got = draw(pool, [[0, 0, 1]], 4)
    assert got.ids[0].tolist() == [0, -1, -1, -1]
    for nothing in (None, [], ()):
        free = draw(Corruption([[0, 0, 1]], nothing, sides=("tail",), n_entities=4), [[0, 0, 1]], 4)
        assert sorted(free.ids[0].tolist()) == [-1, 0, 2, 3]


def test_an_unknown_triples_own_part_never_comes_back():
    pool = Corruption(np.empty((0, 3), np.int64), sides=NAMES, n_entities=3, n_relations=2)
    got = draw(pool, [[1, 1, 2]] * 50, 9)
    for row in range(50):
        pairs = {(s, i) for s, i in zip(got.side[row].tolist(), got.ids[row].tolist(), strict=True) if i >= 0}
        assert pairs == {(0, 0), (0, 2), (1, 0), (2, 0), (2, 1)}


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("tries", [32, 0])
def test_the_first_8_are_the_same_for_8_and_80(distinct, tries, monkeypatch):
    """Where each side has at least twice the candidates that are asked for. The exception is below."""
    monkeypatch.setattr(uniform, "TRIES", tries)
    rng = np.random.default_rng(12)
    train = np.unique(rng.integers(0, [400, 3, 400], (9000, 3)), axis=0)
    for chosen in ({}, {"choice": "bernoulli"}, {"ranges": [range(300), range(50, 400), range(400)]}):
        if "ranges" in chosen:
            chosen = {"ranges": [list(part) for part in chosen["ranges"]]}
        pool = Corruption(train, n_entities=400, n_relations=3, distinct=distinct, **chosen)
        narrow = draw(pool, train[:200], 8)
        for n in (9, 33, 80):
            wide = draw(pool, train[:200], n)
            assert (codes(wide)[:, :8] == codes(narrow)).all()
            assert np.abs(wide.log_q[:, :8] - narrow.log_q).max() < 1e-12
