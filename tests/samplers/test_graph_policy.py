"""GraphPolicy: all paths of a toy graph by loops, and a step that is the gradient of the expected reward."""

import numpy as np
import pytest
import torch
from by_table import gradient_by_differences

import naysay as ns
from naysay.samplers import GraphPolicy

# items 0 to 5, entities 6 to 8; an item is connected with entities
EDGES = [(0, 6), (0, 7), (1, 6), (2, 6), (2, 7), (3, 7), (4, 8), (5, 7), (5, 8), (1, 8)]
GRAPH = ns.Positives.from_edges(EDGES, n_nodes=9)
KNOWN = ns.Positives.from_pairs([0, 0, 1], [0, 1, 4], 9, 9)
ITEMS = np.arange(9) < 6
REWARD = np.array([1.0, 0.0, 2.0, -1.0, 0.5, 3.0, 0.0, 0.0, 0.0])
TREE = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (4, 5), (3, 6), (6, 7)]  # with one cycle


def policy(logits, graph=GRAPH, rate=1.0, **settings):
    """A policy with a logit for each step (9, 9), and the logits."""
    table = torch.tensor(logits, requires_grad=True)
    optimizer = torch.optim.SGD([table], rate)
    how = {"positives": KNOWN, "items": ITEMS, **settings}
    sampler = GraphPolicy(
        graph, lambda nodes, ids: table[nodes[:, None], ids], optimizer, lambda anchors, ids: REWARD[ids], **how
    )
    return sampler, table


def random_logits(n=9):
    return np.random.default_rng(3).standard_normal((n, n))


def neighbours(edges, n):
    return {node: sorted({b for a, b in edges if a == node} | {a for a, b in edges if b == node}) for node in range(n)}


def softmax(values):
    raised = np.exp(np.array(values))
    return raised / raised.sum()


def path_ends(logits, anchor, start, hops=2):
    """(9,) the probability of each end, in loops: steps to neighbours from which an allowed end can be reached."""
    near = neighbours(EDGES, 9)
    allowed = [node for node in range(6) if node not in (anchor, start) and not KNOWN.contains([anchor], [node])[0]]
    ends = np.zeros(9)

    def leads(node, left):
        return node in allowed if left == 0 else any(leads(other, left - 1) for other in near[node])

    def walk(node, chance, left):
        if left == 0:
            ends[node] += chance
            return
        ways = [other for other in near[node] if leads(other, left - 1)]
        for other, step in zip(ways, softmax([logits[node, other] for other in ways]), strict=True):
            walk(other, chance * step, left - 1)

    walk(start, 1.0, hops)
    return ends


def tree_ends(logits, edges, n, root, allowed):
    """(n,) the probability of each end, in loops: down a breadth-first tree of the root, until the walk turns back."""
    near = neighbours(edges, n)
    parent, queue, children = {root: None}, [root], {}
    for node in queue:
        children[node] = [other for other in near[node] if other not in parent]
        parent |= dict.fromkeys(children[node], node)
        queue += children[node]
    ends = np.zeros(n)

    def leads(node):
        return node in allowed or any(map(leads, children[node]))

    def walk(node, chance):
        ways = [other for other in children[node] if leads(other)]
        back = [parent[node]] if node in allowed else []
        for other, step in zip(ways + back, softmax([logits[node, one] for one in ways + back]), strict=True):
            if other == parent[node]:
                ends[node] = chance * step
            else:
                walk(other, chance * step)

    walk(root, 1.0)
    return ends


def frequencies(sampler, query, n):
    drawn = sampler.sample(query, 4, rng=ns.rng_for(1)).ids
    return np.bincount(drawn.ravel(), minlength=n) / drawn.size


@pytest.mark.parametrize(("anchor", "start"), [(0, 0), (0, 2), (1, 5), (3, 3)])
def test_paths_end_as_often_as_loops_say(anchor, start):
    logits = random_logits()
    sampler, _ = policy(logits, start="positive")
    found = frequencies(sampler, ns.Query([anchor] * 1500, positives=[start] * 1500), 9)
    wanted = path_ends(logits, anchor, start)
    assert wanted.sum() == pytest.approx(1.0)
    assert np.abs(found - wanted).max() < 0.03
    assert (found[wanted == 0] == 0).all()


@pytest.mark.parametrize("root", [0, 3, 4])  # from which every node is at most four steps away
@pytest.mark.parametrize("known", [[], [1, 4]])
def test_walks_down_a_tree_until_they_turn_back(root, known):
    """GraphGAN's graph softmax never gives the root."""
    graph, logits = ns.Positives.from_edges(TREE, n_nodes=8), random_logits(8)
    liked = ns.Positives.from_pairs([root] * len(known), known, 8, 8)
    sampler, _ = policy(logits, graph, hops=4, positives=liked, items=None, width=3, stop="return")
    found = frequencies(sampler, ns.Query([root] * 1500), 8)
    wanted = tree_ends(logits, TREE, 8, root, [node for node in range(8) if node != root and node not in known])
    assert wanted.sum() == pytest.approx(1.0)
    assert np.abs(found - wanted).max() < 0.03
    assert (found[wanted == 0] == 0).all()


def test_a_step_is_the_gradient_of_the_expected_reward():
    logits = random_logits()
    sampler, table = policy(logits)
    sampler.observe(ns.Query([0, 3]))
    wanted = gradient_by_differences(
        lambda at: np.mean([path_ends(at, anchor, anchor) @ REWARD for anchor in (0, 3)]), logits
    )
    np.testing.assert_allclose(table.detach().numpy() - logits, wanted, atol=1e-5)


def test_a_step_down_a_tree_is_the_gradient_of_the_expected_reward():
    """GraphGAN's code trains log sigmoid of pairs in a window, not the softmax it draws from."""
    logits, none = random_logits(8), ns.Positives.from_pairs([], [], 8, 8)
    graph = ns.Positives.from_edges(TREE, n_nodes=8)
    sampler, table = policy(logits, graph, hops=4, positives=none, items=None, width=3, stop="return")
    sampler.observe(ns.Query([0]))
    wanted = gradient_by_differences(lambda at: tree_ends(at, TREE, 8, 0, range(1, 8)) @ REWARD[:8], logits)
    np.testing.assert_allclose(table.detach().numpy() - logits, wanted, atol=1e-5)


def test_few_of_many_neighbours_compete():
    star = ns.Positives.from_edges([(0, other) for other in range(1, 30)], n_nodes=30)
    none = ns.Positives.from_pairs([], [], 30, 30)
    logits = torch.arange(30.0, requires_grad=True)  # the highest node that competes is nearly sure
    optimizer = torch.optim.SGD([logits], 1.0)
    sampler = GraphPolicy(star, lambda nodes, ids: 9 * logits[ids], optimizer, lambda a, i: i * 1.0, 1, positives=none)
    drawn = sampler.sample(ns.Query([0] * 500), 1, rng=ns.rng_for(0)).ids[:, 0]
    assert 1 < len(np.unique(drawn)) < 29
    assert (drawn == 29).mean() == pytest.approx(1 - (28 / 29) ** 8, abs=0.06)


def test_a_node_without_an_allowed_end_stays_empty():
    path = ns.Positives.from_edges([0], [1], n_nodes=3)
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([logits], 1.0)
    sampler = GraphPolicy(path, lambda nodes, ids: logits[ids], optimizer, lambda anchors, ids: ids * 1.0)
    drawn = sampler.sample(ns.Query([0, 2]), 2, rng=ns.rng_for(0))
    assert (drawn.ids == -1).all()
    assert drawn.dropped == {"exhausted": 4}
    sampler.observe(ns.Query([0, 2]))
    assert (logits == 0).all()
