"""The same generator gives the same draw: for any number of threads, in any place, in every release."""

import numpy as np
import pytest

import naysay as ns
from naysay.pools import Corruption, Everything, popularity

POSITIVES = ns.Positives.from_pairs(
    np.random.default_rng(0).integers(0, 500, 9000), np.random.default_rng(1).integers(0, 900, 9000), 500, 900
)
TRIPLES = np.random.default_rng(2).integers(0, [300, 6, 300], (5000, 3))
TYPES = [np.arange(relation, 300, 2) for relation in range(6)]

POOLS = {
    "uniform, distinct": Everything(POSITIVES),
    "uniform": Everything(POSITIVES, distinct=False),
    "weighted, distinct": Everything(POSITIVES, popularity(POSITIVES)),
    "weighted": Everything(POSITIVES, popularity(POSITIVES), distinct=False),
    "corruption": Corruption(TRIPLES),
    "corruption, independent": Corruption(TRIPLES, distinct=False),
    "bernoulli": Corruption(TRIPLES, choice="bernoulli"),
    "all three sides": Corruption(TRIPLES, sides=("head", "relation", "tail")),
    "observed types": Corruption(TRIPLES, domains="observed", ranges="observed"),
    "given types": Corruption(TRIPLES, domains=TYPES, ranges=TYPES, distinct=False),
}


def query_for(pool, rows):
    if isinstance(pool, Corruption):
        return ns.Query(TRIPLES[np.arange(rows) % len(TRIPLES)])
    return ns.Query(np.arange(rows) % 500)


@pytest.mark.parametrize("name", POOLS)
def test_threads_change_nothing(name):
    """With the same number of slots in all rows, and with another one in each; 4,000 rows are enough to be split."""
    pool, query = POOLS[name], query_for(POOLS[name], 4000)
    for n in (40, np.arange(4000) % 23):
        drawn = []
        for count in (1, 2, 4):
            ns.set_threads(count)
            drawn.append(pool.draw(query, n, rng=ns.rng_for(4)))
        for other in drawn[1:]:
            assert (drawn[0].ids == other.ids).all()
            assert (drawn[0].log_q == other.log_q).all()
            assert other.side is None or (drawn[0].side == other.side).all()
            assert drawn[0].dropped == other.dropped


@pytest.mark.parametrize("name", POOLS)
def test_one_number_is_taken_from_the_generator_and_no_global_one_moves(name):
    pool, rng, other = POOLS[name], ns.rng_for(1), ns.rng_for(1)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = pool.draw(query_for(pool, 20), 5, rng=rng).ids
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    other.integers(0, np.iinfo(np.uint64).max, dtype=np.uint64, endpoint=True)
    assert rng.integers(1 << 60) == other.integers(1 << 60)
    second = pool.draw(query_for(pool, 20), 5, rng=rng).ids
    assert (first != second).any()


@pytest.mark.parametrize("name", POOLS)
def test_a_pool_keeps_nothing_between_draws(name):
    pool = POOLS[name]
    first = pool.draw(query_for(pool, 30), 6, rng=ns.rng_for(9)).ids
    pool.draw(query_for(pool, 70), 50, rng=ns.rng_for(8))
    assert (pool.draw(query_for(pool, 30), 6, rng=ns.rng_for(9)).ids == first).all()


@pytest.mark.parametrize("name", POOLS)
def test_steps_ranks_and_workers_draw_differently(name):
    pool = POOLS[name]
    query = query_for(pool, 50)
    keys = [{}, {"step": 1}, {"rank": 1}, {"worker": 1}, {"step": 1, "rank": 1}]
    draws = [pool.draw(query, 8, rng=ns.rng_for(0, **key)).ids for key in keys]
    for i, one in enumerate(draws):
        for other in draws[:i]:
            assert (one == other).mean() < 0.5


def test_the_counter_scheme_in_plain_python():
    """What a row draws is SplitMix64 of (key, row, slot), so that any other program can repeat it."""
    word, golden_ratio = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def mixed(value):
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & word
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & word
        return value ^ (value >> 31)

    key = int(ns.rng_for(3).integers(0, word, dtype=np.uint64, endpoint=True))
    expected = []
    for row in range(5):
        state = mixed(key ^ mixed(row + golden_ratio))
        expected.append([(mixed((state + slot * golden_ratio) & word) * 1000) >> 64 for slot in range(40)])
    pool = Everything(ns.Positives.from_pairs([], [], 1, 1000), distinct=False)
    assert pool.draw(ns.Query(np.zeros(5, np.int64)), 40, rng=ns.rng_for(3)).ids.tolist() == expected


# ---- golden draws ---------------------------------------------------------------------------------------------------

# These ids are a promise: who resumes a run, or repeats one in a later release, gets the same negatives. If one of
# these tests fails, a change has moved every user's draws; it needs a reason, and a line in the changelog.

SMALL = ns.Positives.from_pairs([0, 0, 1, 2, 2, 2, 2], [1, 4, 0, 0, 1, 2, 3], n_anchors=4, n_items=12)
WEIGHTS = np.arange(1.0, 13.0)
KG = [[0, 0, 1], [0, 0, 2], [1, 0, 3], [2, 1, 4], [5, 1, 4], [6, 1, 4]]


def golden(pool, query, n):
    got = pool.draw(ns.Query(query), n, rng=ns.rng_for(0))
    return got.ids.tolist() if got.side is None else (got.ids.tolist(), got.side.tolist())


def test_golden_generator():
    assert ns.rng_for(0).integers(0, 1 << 32, 4).tolist() == GOLDEN["rng_for(0)"]
    assert ns.rng_for(7, step=3, rank=2, worker=1).integers(0, 1 << 32, 4).tolist() == GOLDEN["rng_for(7, 3, 2, 1)"]


def test_golden_uniform():
    assert golden(Everything(SMALL), [0, 1, 2, 3], 5) == GOLDEN["uniform, distinct"]
    assert golden(Everything(SMALL), [0, 1, 2, 3], 9) == GOLDEN["uniform, distinct, most"]
    assert golden(Everything(SMALL, distinct=False), [0, 1, 2, 3], 5) == GOLDEN["uniform"]


def test_golden_weighted():
    assert golden(Everything(SMALL, WEIGHTS), [0, 1, 2, 3], 5) == GOLDEN["weighted, distinct"]
    assert golden(Everything(SMALL, WEIGHTS[::-1] ** 3), [0, 1, 2, 3], 5) == GOLDEN["weighted, distinct, heavy"]
    assert golden(Everything(SMALL, WEIGHTS, distinct=False), [0, 1, 2, 3], 5) == GOLDEN["weighted"]


def test_golden_corruption():
    asked = [[0, 0, 1], [2, 1, 4], [3, 0, 3]]
    assert golden(Corruption(KG, n_entities=30), asked, 5) == GOLDEN["corruption"]
    assert golden(Corruption(KG, choice="bernoulli", n_entities=30), asked, 9) == GOLDEN["bernoulli"]
    typed = Corruption(KG, domains="observed", ranges="observed")
    assert golden(typed, asked, 3) == GOLDEN["observed types"]
    whole = Corruption(KG, sides=("head", "relation", "tail"), distinct=False)
    assert golden(whole, asked, 5) == GOLDEN["all three sides, independent"]


def test_golden_pairs():
    anchors, items = Everything(SMALL).draw_pairs(6, rng=ns.rng_for(0))
    assert [anchors.tolist(), items.tolist()] == GOLDEN["pairs"]


GOLDEN = {
    "rng_for(0)": [1209672367, 2645122835, 1545404107, 3170118965],
    "rng_for(7, 3, 2, 1)": [79653306, 2572735201, 2329013379, 3442523209],
    "uniform, distinct": [[2, 11, 7, 0, 10], [9, 2, 5, 6, 7], [4, 9, 8, 7, 10], [2, 0, 1, 7, 4]],
    "uniform, distinct, most": [
        [2, 11, 9, 5, 8, 7, 0, 6, 3],
        [9, 2, 4, 8, 1, 10, 3, 7, 11],
        [4, 9, 8, 7, 10, 6, 5, 11, -1],
        [2, 1, 3, 8, 6, 7, 10, 5, 0],
    ],
    "uniform": [[2, 11, 7, 0, 10], [9, 2, 2, 6, 7], [4, 8, 5, 4, 8], [2, 0, 1, 7, 4]],
    "weighted, distinct": [[2, 11, 6, 9, 10], [9, 2, 5, 6, 7], [9, 8, 5, 4, 11], [2, 9, 10, 7, 4]],
    "weighted, distinct, heavy": [[2, 0, 6, 7, 3], [1, 2, 5, 6, 4], [4, 6, 5, 8, 7], [2, 0, 5, 7, 3]],
    "weighted": [[2, 11, 6, 9, 10], [9, 9, 2, 6, 7], [9, 8, 5, 4, 8], [2, 9, 10, 7, 4]],
    "corruption": (
        [[12, 17, 20, 19, 10], [22, 7, 13, 9, 16], [11, 12, 28, 10, 11]],
        [[0, 2, 2, 0, 0], [2, 0, 0, 2, 2], [0, 2, 0, 0, 2]],
    ),
    "bernoulli": (
        [[12, 17, 20, 19, 10, 22, 23, 29, 12], [22, 7, 13, 9, 16, 10, 26, 25, 15], [11, 12, 28, 10, 11, 6, 13, 5, 29]],
        [[0, 2, 2, 0, 0, 0, 2, 2, 2], [2, 0, 0, 2, 2, 2, 0, 0, 2], [0, 2, 0, 0, 2, 0, 0, 0, 0]],
    ),
    "observed types": ([[1, 3, -1], [-1, -1, -1], [0, 1, 2]], [[0, 2, -1], [-1, -1, -1], [0, 2, 2]]),
    "all three sides, independent": (
        [[3, 4, 1, 4, 1], [5, 1, 3, 0, 0], [0, 2, 1, 2, 2]],
        [[0, 2, 1, 0, 1], [2, 0, 0, 1, 1], [0, 2, 1, 0, 2]],
    ),
    "pairs": [[3, 1, 3, 3, 2, 0], [8, 8, 7, 4, 7, 10]],
}
