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
    got = np.zeros(9)
    np.add.at(got, np.maximum(found.nodes[-1][0], 0), found.ends[0])
    np.testing.assert_allclose(got, wanted, atol=1e-12)
    assert wanted.sum() == pytest.approx(1.0)
    drawn = sampler.sample(ns.Query([anchor] * 3000, positives=[start] * 3000), 1, rng=ns.rng_for(1)).ids[:, 0]
    assert np.abs(np.bincount(drawn, minlength=9) / 3000 - wanted).max() < 0.05


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_gradient_is_that_of_the_expected_reward(hops):
    items = None if hops != 2 else ITEMS
    made = Factors(9, 9, 3, rate=1e-6, bias=True, seed=2)
    none = ns.Positives.from_pairs([], [], 9, 9)
    sampler = GraphPolicy(GRAPH, made, lambda anchors, ids: REWARD[ids] + ids, hops, positives=none, items=items)
    query, begin = ns.Query([0, 5]), made.state()

    def value(state):
        made.restore(state)
        found = sampler._paths(query, ns.rng_for(0))
        ends = np.maximum(found.nodes[-1], 0)
        return (found.ends * (REWARD[ends] + ends)).sum(axis=1).mean()

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


def test_it_learns_in_500_steps():
    sampler = policy(Factors(9, 9, 4, rate=0.5))
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


def test_promises():
    rng = np.random.default_rng(0)
    graph = ns.Positives.from_edges(rng.integers(0, 12, (25, 2)), n_nodes=12)
    ns.check_sampler(GraphPolicy(graph, Factors(12, 12, 2), lambda anchors, ids: ids * 1.0), graph, k=3)


def test_errors():
    for how, sentence in (
        ({"hops": 5}, "`hops` must be"),
        ({"start": "item"}, "`start` must be one of 'anchor', 'positive', got 'item'"),
        ({"items": [True]}, "`items` must be bool of shape (9,)"),
        (
            {"positives": ns.Positives.from_pairs([0], [0], 9, 8)},
            "`positives` must be of 9 items, the nodes of the graph",
        ),
    ):
        with pytest.raises(NaysayError) as caught:
            GraphPolicy(**{"graph": GRAPH, "generator": Factors(9, 9), "reward": np.add, **how})
        assert str(caught.value).startswith(f"GraphPolicy: {sentence}")
