"""Non-edges with PyG's signatures: exact, as many as exist, and by torch's seed."""

import inspect

import numpy as np
import pytest
import torch
import torch_geometric
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import naysay as ns
from naysay.integrations import pyg
from tests.integrations.upstream import check_signature

SQUARE = torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@st.composite
def graphs(draw):
    """(edge_index, num_nodes) with repeats and self-loops; two numbers for a bipartite graph."""
    sizes = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    sizes = sizes if draw(st.booleans()) else (sizes[0], sizes[0])
    n = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    edges = torch.from_numpy(np.stack([rng.integers(0, size, n) for size in sizes]))
    return edges, sizes[0] if sizes[0] == sizes[1] else sizes


def non_edges(edge_index, num_nodes, *, undirected=False):
    """All pairs that are no edges, by plain loops."""
    square = isinstance(num_nodes, int)
    sizes = (num_nodes, num_nodes) if square else num_nodes
    edges = {tuple(pair) for pair in edge_index.T.tolist()}
    if undirected and square:
        edges |= {(j, i) for i, j in edges}
    pairs = {(i, j) for i in range(sizes[0]) for j in range(sizes[1])} - edges
    return {(i, j) for i, j in pairs if not square or i != j}


# ---- negative_sampling ----------------------------------------------------------------------------------------------


@given(graphs(), st.one_of(st.none(), st.integers(0, 40), st.floats(0, 3)), st.booleans(), st.integers(0, 99))
def test_pairs_are_distinct_non_edges_and_as_many_as_exist(graph, wanted, undirected, seed):
    edges, num_nodes = graph
    drawn = pyg.negative_sampling(edges, num_nodes, wanted, "dense", undirected, generator=seeded(seed))
    possible = non_edges(edges, num_nodes, undirected=undirected)
    number = edges.shape[1] if wanted is None else wanted
    number = int(number * edges.shape[1]) if isinstance(number, float) else number
    if undirected and isinstance(num_nodes, int):
        number = 2 * (number // 2)
    pairs = [tuple(pair) for pair in drawn.T.tolist()]
    assert set(pairs) <= possible
    assert len(pairs) == len(set(pairs)) == min(number, len(possible))
    if undirected and isinstance(num_nodes, int):
        half = len(pairs) // 2
        assert [(j, i) for i, j in pairs[:half]] == pairs[half:]


@pytest.mark.parametrize("undirected", [False, True])
def test_every_non_edge_is_as_likely(undirected):
    possible = sorted(non_edges(SQUARE, 5, undirected=undirected))
    generator, counts = seeded(), dict.fromkeys(possible, 0)
    for _ in range(600):
        for pair in pyg.negative_sampling(SQUARE, 5, 4, force_undirected=undirected, generator=generator).T.tolist():
            counts[tuple(pair)] += 1
    assert chisquare([*counts.values()]).pvalue > 1e-3


def test_torch_decides_the_draws():
    """PyG's own ignores torch's seed."""
    state = torch.random.get_rng_state()
    try:
        drawn = [
            (torch.default_generator.manual_seed(seed), pyg.negative_sampling(SQUARE, 40, 20))[1] for seed in (1, 1, 2)
        ]
    finally:
        torch.random.set_rng_state(state)
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(drawn[2])


def test_repeated_edges_count_once():
    """PyG's own returns nothing here."""
    assert pyg.negative_sampling(torch.tensor([[0], [1]]).repeat(1, 20), 3).shape == (2, 5)


def test_an_undirected_graph_is_known_by_either_direction():
    """PyG's own does not see (2, 0), and returns (0, 2)."""
    drawn = pyg.negative_sampling(torch.tensor([[2], [0]]), 3, 99, force_undirected=True)
    assert {tuple(pair) for pair in drawn.T.tolist()} == {(0, 1), (1, 0), (1, 2), (2, 1)}


def test_a_nearly_complete_graph_still_gives_all_that_is_left():
    """PyG's own gives up after three tries."""
    full = torch.tensor([(i, j) for i in range(30) for j in range(30) if i != j and (i, j) not in ((3, 4), (9, 2))]).T
    assert sorted(pyg.negative_sampling(full, 30, 2).T.tolist()) == [[3, 4], [9, 2]]


# ---- structured_negative_sampling -----------------------------------------------------------------------------------


@given(graphs(), st.booleans(), st.integers(0, 99))
def test_each_edge_gets_a_target_that_is_none(graph, loops, seed):
    edges, num_nodes = graph
    possible = non_edges(edges, num_nodes)
    if isinstance(num_nodes, int) and loops:
        present = {tuple(pair) for pair in edges.T.tolist()}
        possible |= {(i, i) for i in range(num_nodes)} - present
    stuck = {i for i, _ in edges.T.tolist()} - {i for i, _ in possible}
    if stuck:
        with pytest.raises(ns.NaysayError, match=rf"got node ({'|'.join(map(str, stuck))}), which has none"):
            pyg.structured_negative_sampling(edges, num_nodes, loops, generator=seeded(seed))
        return
    i, j, k = pyg.structured_negative_sampling(edges, num_nodes, loops, generator=seeded(seed))
    assert i.equal(edges[0])
    assert j.equal(edges[1])
    assert set(zip(i.tolist(), k.tolist(), strict=True)) <= possible


# ---- errors and signatures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([[0], [1]],), "`edge_index` must be a tensor of shape (2, E), got list."),
        ((torch.zeros(3, 2, dtype=torch.long),), "`edge_index` must be a tensor of shape (2, E), got shape (3, 2)."),
        ((torch.zeros(2, 2),), "`edge_index` must be of whole numbers, got torch.float32."),
        ((SQUARE, 3), "`edge_index` must be between 0 and 2 (3 nodes), got 3 at row 3 (1 such row)."),
        ((SQUARE, (4, 4, 4)), "`num_nodes` must be one number, or (sources, targets), got (4, 4, 4)."),
        ((SQUARE, 4.0), "`num_nodes` must be a whole number, got 4.0."),
    ],
)
@pytest.mark.parametrize("function", [pyg.negative_sampling, pyg.structured_negative_sampling])
def test_a_bad_graph_is_named(function, given, message):
    with pytest.raises(ns.NaysayError) as caught:
        function(*given)
    assert str(caught.value) == f"{function.__name__}: {message}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_neg_samples": -1}, "`num_neg_samples` must be at least 0, got -1."),
        ({"num_neg_samples": -0.5}, "`num_neg_samples` must be a finite number at least 0, got -0.5."),
        ({"method": "spare"}, "`method` must be one of 'sparse', 'dense', got 'spare'. Did you mean 'sparse'?"),
        ({"force_undirected": 1}, "`force_undirected` must be True or False, got 1."),
    ],
)
def test_a_bad_argument_is_named(given, message):
    with pytest.raises(ns.NaysayError) as caught:
        pyg.negative_sampling(SQUARE, **given)
    assert str(caught.value) == f"negative_sampling: {message}"


@pytest.mark.parametrize("name", ["negative_sampling", "structured_negative_sampling"])
def test_the_signature_is_that_of_pyg(name):
    """Parameters and defaults in PyG's order; ours is keyword-only."""
    ours = {**inspect.signature(getattr(pyg, name)).parameters}
    assert ours.pop("generator").kind == inspect.Parameter.KEYWORD_ONLY
    check_signature("pyg", "torch_geometric", getattr(torch_geometric.utils, name), [*ours])
    theirs = inspect.signature(getattr(torch_geometric.utils, name)).parameters
    assert {key: one.default for key, one in ours.items()} == {key: one.default for key, one in theirs.items()}
