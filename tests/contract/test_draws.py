"""Pools: what may be drawn, how much of it, and that nothing known ever comes back."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import naysay as ns
from tests.contract import oracles

EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4), (6, 7)]
GRAPH = ns.Positives.from_edges(*np.array(EDGES).T, 9)
NODES = np.arange(9)
TRIPLES = np.array([[0, 0, 1], [0, 0, 2], [1, 1, 0], [2, 0, 3], [3, 1, 3]])


def draw(pool, anchors, n, seed=0, **query):
    return pool.draw(ns.Query(np.asarray(anchors, np.int64), **query), n, rng=ns.rng_for(seed))


def as_positives(rows, n_items):
    pairs = [(anchor, item) for anchor, items in enumerate(rows) for item in items]
    return ns.Positives.from_pairs([a for a, _ in pairs], [i for _, i in pairs], len(rows), n_items)


def memory_of(positives=None, **settings):
    memory = ns.pools.Memory(6, positives, **settings)
    memory.push([8, 7, 6, 5, 4, 3, 8], owners=[0, 1, 2, 0, 1, 2, 3], vectors=np.eye(7))
    return memory


# One of every pool on the nodes of one graph; the candidates of an anchor are what `candidates_of` says.
POOLS = {
    "uniform": lambda **s: ns.pools.Everything(GRAPH, **s),
    "weighted": lambda **s: ns.pools.Everything(GRAPH, np.arange(9) % 4, **s),
    "local": lambda **s: ns.pools.Local([[1, 2, 2, 8], [0, 5], [], [7], [4], [5, 6], [7, 8], [6], [0]], GRAPH, **s),
    "in batch": lambda **s: ns.pools.InBatch(GRAPH, **s),
    "memory": lambda **s: memory_of(GRAPH, **s),
    "nearest": lambda **s: ns.pools.Nearest(corner_vectors(), 3, GRAPH, queries=corner_vectors(), **s),
    "k-hop": lambda **s: ns.pools.KHop(GRAPH, (2, 3), **s),
    "walks": lambda **s: ns.pools.Walks(GRAPH, length=2, **s),
    "pagerank": lambda **s: ns.pools.PageRank(GRAPH, (0, 4), **s),
}
EVERY_POOL = pytest.mark.parametrize("name", POOLS)


def corner_vectors():
    return np.random.default_rng(5).standard_normal((9, 4)).astype(np.float32)


def candidates_of(name, anchor, own_positive):
    """The items that a pool may draw for an anchor, in plain Python."""
    excluded = {item for item in range(9) if GRAPH.contains([anchor], [item], relation="any")[0]}
    away = oracles.distances(EDGES, 9, anchor)
    if name == "uniform":
        return set(range(9)) - excluded
    if name == "weighted":
        return {item for item in range(9) if item % 4} - excluded
    if name == "local":
        lists = [[1, 2, 2, 8], [0, 5], [], [7], [4], [5, 6], [7, 8], [6], [0]]
        return set(lists[anchor]) - excluded
    if name == "in batch":
        batch = {item: anchor_of for anchor_of, item in enumerate(reversed(range(9)))}
        return {item for item, owner in batch.items() if owner != anchor and item != own_positive} - excluded
    if name == "memory":
        queue = [(7, 1), (6, 2), (5, 0), (4, 1), (3, 2), (8, 3)]
        return {item for item, owner in queue if owner != anchor and item != own_positive} - excluded
    if name == "nearest":
        scores = oracles.pair_scores(corner_vectors(), corner_vectors())[anchor]
        free = sorted(set(range(9)) - excluded - {own_positive}, key=lambda item: (-scores[item], item))
        return set(free[:3])
    if name == "k-hop":
        return {node for node in range(9) if 2 <= away[node] <= 3} - excluded
    if name == "walks":
        steps = {node: {b for a, b in EDGES if a == node} | {a for a, b in EDGES if b == node} for node in range(9)}
        return {end for middle in steps[anchor] for end in steps[middle]} - excluded
    return None  # the PageRank pool: only what is excluded is checked


@EVERY_POOL
@pytest.mark.parametrize("distinct", [True, False])
def test_a_row_holds_candidates_of_its_anchor_and_all_of_them_if_it_is_long(name, distinct):
    pool = POOLS[name](distinct=distinct)
    positives = NODES[::-1].copy()
    for n in (1, 3, 20):
        got = draw(pool, NODES, n, positives=positives)
        assert got.ids.shape == (9, n)
        assert got.ids.dtype == np.int64
        assert not GRAPH.contains(NODES, got.ids, relation="any").any()
        for anchor in range(9):
            row = got.ids[anchor].tolist()
            filled = [item for item in row if item >= 0]
            assert row == filled + [-1] * (n - len(filled))  # empty slots are at the end
            if distinct:
                assert len(set(filled)) == len(filled)
            candidates = candidates_of(name, anchor, int(positives[anchor]))
            if candidates is None:
                continue
            assert set(filled) <= candidates
            assert len(filled) == (min(n, len(candidates)) if distinct else n * bool(candidates))
        missing = got.ids.size - int((got.ids >= 0).sum())
        assert sum(got.dropped.values()) == missing


@EVERY_POOL
def test_batches_of_none_and_of_one(name):
    pool = POOLS[name]()
    none = np.empty(0, np.int64)
    assert draw(pool, none, 3, positives=none).ids.shape == (0, 3)
    assert draw(pool, [1], 0, positives=[8]).ids.shape == (1, 0)
    assert draw(pool, [1], 2, positives=[8]).ids.shape == (1, 2)
    assert draw(pool, [1, 4], [0, 2], positives=[8, 8]).ids.shape == (2, 2)


@EVERY_POOL
def test_a_row_that_cannot_be_filled_follows_on_short(name):
    with pytest.raises(ns.NaysayError):
        draw(POOLS[name](on_short="raise"), NODES, 20, positives=NODES[::-1].copy())


@EVERY_POOL
def test_draws_depend_on_the_generator_alone(name):
    one, other = POOLS[name](), POOLS[name]()
    rows = np.arange(900) % 9
    for seed in (0, 1):
        found = draw(one, rows, 4, seed, positives=rows[::-1].copy()).ids
        assert (found == draw(other, rows, 4, seed, positives=rows[::-1].copy()).ids).all()
    assert (found != draw(one, rows, 4, 0, positives=rows[::-1].copy()).ids).any()


@EVERY_POOL
def test_one_two_and_four_threads_draw_the_same(name):
    rows = np.arange(6000) % 9
    if name == "in batch":
        rows = rows[:900]  # a row of this pool looks at all others
    positives = rows[::-1].copy()
    pool, found = POOLS[name](distinct=False), []
    for count in (1, 2, 4):
        ns.set_threads(count)
        got = draw(pool, rows, 8, positives=positives)
        found.append((got.ids, None if got.log_q is None else np.array(got.log_q)))
    for ids, log_q in found[1:]:
        assert (ids == found[0][0]).all()
        assert log_q is None or (log_q == found[0][1]).all()


@pytest.mark.parametrize("name", ["uniform", "weighted", "local", "memory", "k-hop", "walks"])
def test_the_library_s_own_check_of_pools_passes(name):
    def query(anchors):
        return ns.Query(anchors, positives=(np.asarray(anchors) + 5) % 9)

    ns.check_pool(POOLS[name](), GRAPH, anchors=NODES, n=3, query=query)


@given(st.data())
def test_uniform_and_weighted_draws_of_any_small_world(data):
    n_items = data.draw(st.integers(1, 9))
    rows = data.draw(st.lists(st.sets(st.integers(0, n_items - 1)), min_size=1, max_size=4))
    weight = st.sampled_from([0, 0.001, 1, 2.5, 1000])
    weights = data.draw(st.none() | st.lists(weight, min_size=n_items, max_size=n_items).filter(any))
    distinct, n = data.draw(st.booleans()), data.draw(st.integers(0, 2 * n_items))
    known = as_positives(rows, n_items)
    got = draw(ns.pools.Everything(known, weights, distinct), np.arange(len(rows)), n, data.draw(st.integers(0, 9)))
    each = [1.0] * n_items if weights is None else weights
    for anchor, items in enumerate(rows):
        reachable = {item for item in set(range(n_items)) - items if each[item] > 0}
        filled = [item for item in got.ids[anchor].tolist() if item >= 0]
        assert set(filled) <= reachable
        assert len(filled) == (min(n, len(reachable)) if distinct else n * bool(reachable))
        expected = oracles.log_q_of_row(got.ids[anchor].tolist(), each, reachable, distinct)
        assert got.log_q[anchor].tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("heavy", [False, True], ids=["uniform", "weighted"])
def test_an_anchor_that_knows_nearly_all_items_gets_the_rest(heavy):
    """Rejection would go on for ever: one item in 20,000 is left, and it has a millionth of the weight."""
    n_items = 20_000
    known = ns.Positives.from_pairs(np.zeros(n_items - 1, int), np.arange(1, n_items), 1, n_items)
    weights = np.r_[1e-6, np.ones(n_items - 1)] if heavy else None
    got = draw(ns.pools.Everything(known, weights), [0] * 50, 3)
    assert (got.ids == [0, -1, -1]).all()
    assert np.allclose(got.log_q, 0)
    assert sum(got.dropped.values()) == 100


def test_items_without_weight_are_never_drawn_and_rows_without_candidates_stay_empty(known):
    got = draw(ns.pools.Everything(known, [0, 0, 1, 1] + [0] * 8), [0, 1, 4, 5], 4)
    assert np.sort(got.ids).tolist() == [[-1, -1, 2, 3], [-1, -1, -1, 2], [-1] * 4, [-1, -1, -1, 3]]


def test_n_may_be_a_number_for_each_row(known):
    pool = ns.pools.Everything(known)
    got = draw(pool, [0, 1, 5], [0, 4, 2])
    assert got.ids.shape == (3, 4)
    assert (got.ids >= 0).sum(axis=1).tolist() == [0, 4, 2]
    assert dict(got.dropped) == {}  # slots that were not asked for are not missing
    whole = draw(pool, [0, 1, 5], 4).ids
    assert (draw(pool, [0, 1, 5], torch.full((3,), 4)).ids == whole).all()


def test_pairs_of_a_later_time_are_not_known_yet():
    known = ns.Positives.from_pairs([0, 0, 0], [0, 1, 2], 1, 3)
    pool = ns.pools.Everything(known, times=([0, 0, 0], [0, 1, 2], [10, 20, 30]))
    for time, free in ((5, {0, 1, 2}), (15, {1, 2}), (25, {2})):
        got = draw(pool, [0], 3, times=[time])
        assert {item for item in got.ids[0].tolist() if item >= 0} == free


def test_popularity_weights_are_counts_to_a_power():
    known = ns.Positives.from_pairs([0, 1, 2, 0], [0, 0, 0, 1], 3, 3)
    weights = ns.pools.popularity(known, power=0.75)
    assert weights[0] / weights[1] == pytest.approx(3**0.75)
    assert weights[2] == 0
    assert np.array_equal(weights, ns.pools.popularity(known.item_counts(), 0.75))


# ---- in batch, memory, nearest --------------------------------------------------------------------------------------


def test_all_items_of_a_batch_stand_in_their_columns():
    query = ns.Query([0, 1, 1, 2], positives=[5, 6, 7, 5])
    known = ns.Positives.from_pairs([0], [7], 3, 9)
    pool = ns.pools.InBatch(known)
    got = pool.draw(query, rng=ns.rng_for(0))
    assert got.ids.tolist() == [[-1, 6, -1, -1], [5, -1, -1, 5], [5, -1, -1, 5], [-1, 6, 7, -1]]
    assert pool.eligible(query).tolist() == (got.ids >= 0).tolist()


def test_a_memory_forgets_the_oldest_and_never_gives_an_anchor_its_own():
    memory = ns.pools.Memory(3)
    memory.push([4, 5], owners=[0, 1])
    memory.push([6, 7], owners=[2, 3])
    assert memory.ids.tolist() == [5, 6, 7]
    got = memory.draw(ns.Query([2], positives=[9]), rng=ns.rng_for(0))
    assert sorted(got.ids[0].tolist()) == [-1, 5, 7]
    assert memory.draw(ns.Query([0], positives=[7]), 5, rng=ns.rng_for(0)).mask.sum() == 2


def test_a_memory_learns_what_it_observes():
    memory = ns.pools.Memory(8)
    query = ns.Query([0, 1], positives=[10, 11])
    memory.observe(query, ns.Negatives(np.array([[3], [4]])), vectors=np.eye(2))
    assert memory.ids.tolist() == [10, 11]
    assert memory.owners.tolist() == [0, 1]
    assert memory.vectors.tolist() == np.eye(2).tolist()


def test_the_nearest_follow_an_update_and_say_how_old_they_are():
    items = np.array([[1.0, 0.0], [0.9, 0.1], [0.5, 0.5], [0.0, 1.0]])
    pool = ns.pools.Nearest(items, 2, ns.Positives.from_pairs([0], [0], n_items=4))
    query = ns.Query([0], vectors=np.array([[1.0, 0.0]]))
    assert np.sort(pool.draw(query, 2, rng=ns.rng_for(0)).ids).tolist() == [[1, 2]]
    pool.update(items[::-1], age=7)
    assert np.sort(pool.draw(query, 2, rng=ns.rng_for(0)).ids).tolist() == [[2, 3]]
    assert pool.age == 7


# ---- graphs and triples ---------------------------------------------------------------------------------------------


def test_hops_are_distances():
    for anchor in range(9):
        away = oracles.distances(EDGES, 9, anchor)
        for hops in (2, (2, 3), 3):
            low, high = (hops, hops) if isinstance(hops, int) else hops
            expected = [node for node in range(9) if low <= away[node] <= high]
            assert sorted(ns.pools.KHop(GRAPH, hops).candidates(anchor).tolist()) == expected


def test_walks_end_as_often_as_the_transition_matrix_says():
    matrix = np.zeros((9, 9))
    for one, other in EDGES:
        matrix[one, other] = matrix[other, one] = 1
    steps = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    chances = (steps @ steps)[1]
    chances[[item for item in range(9) if GRAPH.contains([1], [item], relation="any")[0]]] = 0
    chances /= chances.sum()
    drawn = draw(ns.pools.Walks(GRAPH, length=2, distinct=False), [1] * 4000, 1).ids[:, 0]
    seen = np.bincount(drawn, minlength=9)
    assert (seen[chances == 0] == 0).all()
    expected = 4000 * chances[chances > 0]
    statistic = ((seen[chances > 0] - expected) ** 2 / expected).sum()
    assert statistic < 30  # three degrees of freedom


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 4)), min_size=1, max_size=12))
def test_corruption_never_makes_a_known_triple(triples):
    pool = ns.pools.Corruption(np.array(triples), n_entities=5, n_relations=2, sides=("head", "relation", "tail"))
    query = ns.Query(np.array(triples))
    got = pool.draw(query, 12, rng=ns.rng_for(0))
    made = pool.corrupted(query, got)
    known = set(triples)
    for row, triple in enumerate(triples):
        filled = got.ids[row] >= 0
        found = {tuple(each) for each in made[row][filled].tolist()}
        assert not found & known
        assert triple not in found
        candidates = (
            {
                (*triple[:side], other, *triple[side + 1 :])
                for side in range(3)
                for other in range(2 if side == 1 else 5)
            }
            - known
            - {triple}
        )
        assert len(found) == filled.sum() == min(12, len(candidates))
        for slot in np.flatnonzero(filled):
            side = int(got.side[row, slot])
            changed = [place for place in range(3) if made[row, slot, place] != triple[place]]
            assert changed == [side]
            assert made[row, slot, side] == got.ids[row, slot]


def test_bernoulli_replaces_the_side_that_makes_fewer_false_negatives():
    """Relation 0 has one head with four tails: tph = 4, hpt = 1, so the head is replaced with probability 4/5."""
    triples = np.array([[0, 0, tail] for tail in (1, 2, 3, 4)])
    pool = ns.pools.Corruption(triples, choice="bernoulli", n_entities=50, distinct=False)
    got = pool.draw(ns.Query(np.tile(triples[:1], (4000, 1))), 1, rng=ns.rng_for(0))
    assert (got.side == 0).mean() == pytest.approx(0.8, abs=0.03)


def test_typed_corruption_stays_within_what_was_observed():
    pool = ns.pools.Corruption(TRIPLES, ranges="observed", sides=("tail",), n_entities=9)
    got = pool.draw(ns.Query(TRIPLES), 5, rng=ns.rng_for(0))
    tails = {0: {1, 2, 3}, 1: {0, 3}}
    for row, (_, relation, _) in enumerate(TRIPLES.tolist()):
        assert {item for item in got.ids[row].tolist() if item >= 0} <= tails[relation]


def test_further_known_triples_are_filtered_too():
    pool = ns.pools.Corruption(TRIPLES[:1], known=[[0, 0, 2], [0, 0, 3]], sides=("tail",), n_entities=5)
    got = pool.draw(ns.Query(TRIPLES[:1]), 4, rng=ns.rng_for(0))
    assert sorted(got.ids[0].tolist()) == [-1, -1, 0, 4]


def test_a_stream_of_items_gives_their_frequencies():
    """Every second step the item 0, every fourth the item 1: the gaps between two visits are learnt."""
    stream = ns.pools.StreamingFrequency(3)
    for step in range(2, 2001, 2):
        items = np.array([0, 1] if step % 4 == 0 else [0])
        stream.observe(ns.Query(np.zeros_like(items), positives=items, step=step))
    found = np.exp(stream.log_q(np.array([[0, 1]])))[0]
    assert found.tolist() == pytest.approx([0.5, 0.25], rel=0.05)
