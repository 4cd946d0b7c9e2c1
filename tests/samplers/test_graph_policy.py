"""GraphPolicy: all paths of a toy graph by loops, the gradient by finite differences, learning, state, promises."""

import numpy as np
import pytest

import naysay as ns
from naysay.errors import NaysayError
from naysay.samplers import Factors, GraphPolicy, _policy

# items 0 to 5, entities 6 to 8; an item is connected with entities
EDGES = [(0, 6), (0, 7), (1, 6), (2, 6), (2, 7), (3, 7), (4, 8), (5, 7), (5, 8), (1, 8)]
GRAPH = ns.Positives.from_edges(EDGES, n_nodes=9)
KNOWN = ns.Positives.from_pairs([0, 0, 1], [0, 1, 4], 9, 9)
ITEMS = np.arange(9) < 6
REWARD = np.array([1.0, 0.0, 2.0, -1.0, 0.5, 3.0, 0.0, 0.0, 0.0])


def policy(generator, **how):
    return GraphPolicy(GRAPH, generator, lambda anchors, ids: REWARD[ids], positives=KNOWN, items=ITEMS, **how)


def paths(generator, anchor, start, hops=2):
    """{path: probability}, in loops: steps to neighbours from which an allowed end can be reached."""
    near = {node: sorted({b for a, b in EDGES if a == node} | {a for a, b in EDGES if b == node}) for node in range(9)}
    allowed = [node for node in range(6) if node not in (anchor, start) and not KNOWN.contains([anchor], [node])[0]]

    def leads(node, left):
        return node in allowed if left == 0 else any(leads(other, left - 1) for other in near[node])

    def walk(path, left):
        if left == 0:
            return {tuple(path): 1.0}
        ways = [other for other in near[path[-1]] if leads(other, left - 1)]
        logits = generator.logits(np.array([path[-1]]), np.array([ways]))
        found = {}
        for other, chance in zip(ways, _policy.softmax(logits)[0], strict=True):
            found |= {one: chance * p for one, p in walk([*path, other], left - 1).items()}
        return found

    return walk([start], hops)


@pytest.mark.parametrize(("anchor", "start"), [(0, 0), (0, 2), (1, 5), (3, 3)])
def test_the_ends_of_all_paths(anchor, start):
    made = Factors(9, 9, 3, seed=4)
    sampler = policy(made, start="positive")
    found = sampler._paths(ns.Query([anchor], positives=[start]), ns.rng_for(0))
    wanted = np.zeros(9)
    for path, chance in paths(made, anchor, start).items():
        wanted[path[-1]] += chance
    got, (nodes, chance) = np.zeros(9), found.ends()
    np.add.at(got, np.maximum(nodes[0], 0), chance[0])
    np.testing.assert_allclose(got, wanted, atol=1e-12)
    assert wanted.sum() == pytest.approx(1.0)
    drawn = sampler.sample(ns.Query([anchor] * 3000, positives=[start] * 3000), 1, rng=ns.rng_for(1)).ids[:, 0]
    assert np.abs(np.bincount(drawn, minlength=9) / 3000 - wanted).max() < 0.05


def tree_law(generator, edges, n, root, allowed):
    """{node: G}, in loops: down a breadth-first tree of the root, until the walk turns back; open ways alone."""
    near = {node: sorted({b for a, b in edges if a == node} | {a for a, b in edges if b == node}) for node in range(n)}
    parent, queue, children = {root: None}, [root], {}
    for node in queue:
        children[node] = [other for other in near[node] if other not in parent]
        parent |= dict.fromkeys(children[node], node)
        queue += children[node]

    def leads(node):
        return node in allowed or any(map(leads, children[node]))

    def walk(node, chance):
        ways = [other for other in children[node] if leads(other)]
        back = [parent[node]] if node in allowed else []
        logits = generator.logits(np.array([node]), np.array([ways + back]))
        for other, p in zip(ways + back, _policy.softmax(logits)[0], strict=True):
            if other == parent[node]:
                law[node] = chance * p
            else:
                walk(other, chance * p)

    law = dict.fromkeys(range(n), 0.0)
    walk(root, 1.0)
    return law


TREES = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (4, 5), (3, 6), (6, 7)]  # with one cycle


@pytest.mark.parametrize("root", [0, 3, 4])  # from which every node is at most four steps away
@pytest.mark.parametrize("known", [[], [1, 4]])
def test_walks_down_a_tree_until_they_turn_back(root, known):
    """GraphGAN's graph softmax: it sums to 1 and never gives the root."""
    graph = ns.Positives.from_edges(TREES, n_nodes=8)
    liked = ns.Positives.from_pairs([root] * len(known), known, 8, 8)
    made = Factors(8, 8, 3, seed=3)
    sampler = GraphPolicy(graph, made, lambda anchors, ids: ids * 1.0, 4, positives=liked, width=3, stop="return")
    nodes, chance = sampler._paths(ns.Query([root]), ns.rng_for(0)).ends()
    got = np.zeros(8)
    np.add.at(got, np.maximum(nodes[0], 0), chance[0])
    wanted = tree_law(made, TREES, 8, root, [node for node in range(8) if node != root and node not in known])
    np.testing.assert_allclose(got, list(wanted.values()), atol=1e-12)
    assert got.sum() == pytest.approx(1.0)
    assert got[root] == 0


def test_golden_path_of_graphgan():
    """0 - 1 - 2 from 0 with equal scores: half of the walks turn back at 1, and half at 2."""
    path, none = ns.Positives.from_edges([0, 1], [1, 2]), ns.Positives.from_pairs([], [], 3, 3)
    flat = Factors(3, 3, 1)
    flat.restore({name: np.zeros_like(value) for name, value in flat.state().items()})
    sampler = GraphPolicy(path, flat, lambda anchors, ids: ids * 1.0, positives=none, stop="return")
    drawn = sampler.sample(ns.Query([0] * 2000), 1, rng=ns.rng_for(0)).ids[:, 0]
    assert abs((drawn == 1).sum() - 1000) < 100
    assert set(drawn) == {1, 2}


@pytest.mark.parametrize("stop", ["fixed", "return"])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_gradient_is_that_of_the_expected_reward(hops, stop):
    """GraphGAN's code trains log sigmoid of pairs in a window, not the softmax it draws from."""
    items = None if hops != 2 else ITEMS
    made = Factors(9, 9, 3, rate=1e-6, bias=True, seed=2)
    none = ns.Positives.from_pairs([], [], 9, 9)
    sampler = GraphPolicy(
        GRAPH, made, lambda anchors, ids: REWARD[ids] + ids, hops, positives=none, items=items, stop=stop
    )
    query, begin = ns.Query([0, 5]), made.state()

    def value(state):
        made.restore(state)
        nodes, chance = sampler._paths(query, ns.rng_for(0)).ends()
        ends = np.maximum(nodes, 0)
        return (chance * (REWARD[ends] + ends)).sum(axis=1).mean()

    sampler.observe(query)
    moved = {name: (table - begin[name]) / 1e-6 for name, table in made.state().items()}
    for name, table in begin.items():
        for place in np.ndindex(*table.shape):
            slopes = []
            for sign in (1, -1):
                state = {other: part.copy() for other, part in begin.items()}
                state[name][place] += sign * 1e-5
                slopes.append(value(state))
            assert moved[name][place] == pytest.approx((slopes[0] - slopes[1]) / 2e-5, abs=1e-5)


@pytest.mark.parametrize("how", [{}, {"stop": "return", "hops": 3}])
def test_it_learns_in_500_steps(how):
    sampler = policy(Factors(9, 9, 4, rate=0.5), **how)
    query = ns.Query(np.repeat([0, 2, 3], 200))

    def mean():
        drawn = sampler.sample(query, 4, rng=ns.rng_for(0))
        assert ITEMS[drawn.ids].all()
        assert not KNOWN.contains(np.repeat([0, 2, 3], 200), drawn.ids).any()
        return REWARD[drawn.ids].mean(axis=1)

    before = mean()
    for _ in range(500):
        sampler.observe(ns.Query([0, 2, 3]))
    gain = mean() - before
    assert gain.mean() - 2 * gain.std(ddof=1) / np.sqrt(len(gain)) > 0


def test_few_of_many_neighbours_are_different_ones():
    star = ns.Positives.from_edges([(0, other) for other in range(1, 30)], n_nodes=30)
    sampler = GraphPolicy(star, Factors(30, 30, 2), lambda anchors, ids: ids * 1.0, width=5)
    near = sampler._neighbours(np.zeros((200, 1), int), ns.rng_for(0))
    filled = [row[row >= 0] for row in near]
    assert all(len(set(row.tolist())) == len(row) for row in filled)
    assert 3.5 < np.mean([len(row) for row in filled]) <= 5
    assert set(np.concatenate(filled).tolist()) == set(range(1, 30))


def test_a_run_goes_on_from_its_state():
    whole, first, second = (policy(Factors(9, 9, 3), width=2) for _ in range(3))
    for step in range(6):
        whole.observe(ns.Query([0, 2]))
        (first if step < 3 else second).observe(ns.Query([0, 2]))
        if step == 2:
            second.restore(first.state())
    for name, value in whole.state().items():
        np.testing.assert_array_equal(value, second.state()[name])


@pytest.mark.parametrize("stop", ["fixed", "return"])
def test_promises(stop):
    rng = np.random.default_rng(0)
    graph = ns.Positives.from_edges(rng.integers(0, 12, (25, 2)), n_nodes=12)
    ns.check_sampler(GraphPolicy(graph, Factors(12, 12, 2), lambda anchors, ids: ids * 1.0, stop=stop), graph, k=3)


def test_errors():
    for how, sentence in (
        ({"hops": 5}, "`hops` must be"),
        ({"start": "item"}, "`start` must be one of 'anchor', 'positive', got 'item'"),
        ({"stop": "leaf"}, "`stop` must be one of 'fixed', 'return', got 'leaf'"),
        ({"items": [True]}, "`items` must be bool of shape (9,)"),
        (
            {"positives": ns.Positives.from_pairs([0], [0], 9, 8)},
            "`positives` must be of 9 items, the nodes of the graph",
        ),
    ):
        with pytest.raises(NaysayError) as caught:
            GraphPolicy(**{"graph": GRAPH, "generator": Factors(9, 9), "reward": np.add, **how})
        assert str(caught.value).startswith(f"GraphPolicy: {sentence}")
