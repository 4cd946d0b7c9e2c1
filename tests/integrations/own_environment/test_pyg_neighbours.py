"""Exact negatives in LinkNeighborLoader with PyG's own NeighborSampler and the compiled sampling of torch-sparse.

It samples no disjoint subgraphs and no times: tests/integrations/test_pyg_links.py has those, with a stand-in.
"""

import sys
from pathlib import Path

import pytest
import torch
import torch_geometric.typing
from torch_geometric.loader import LinkNeighborLoader
from torch_geometric.sampler import NeighborSampler

from naysay.integrations.pyg import ExactLinkSampler
from tests.integrations.test_pyg_links import TYPE, edge_set, films, negatives_of, world

pytestmark = pytest.mark.filterwarnings("ignore:.*without a 'pyg-lib' installation:UserWarning")
LIBRARY = Path(sys.prefix) / "torch_sparse" / "neighbor_sample.so"


@pytest.fixture(autouse=True)
def sampling(monkeypatch):
    """PyG asks whether the whole of torch-sparse can be imported; its sampling is all that is needed here."""
    torch.ops.load_library(LIBRARY)
    monkeypatch.setattr(torch_geometric.typing, "WITH_TORCH_SPARSE", True)


@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("workers", [0, 1])
def test_batches_have_the_neighbours_of_seeds_and_negatives_and_no_negative_is_an_edge(mode, workers):
    data = world(30, 0.3)
    sampler = ExactLinkSampler(data, NeighborSampler(data, num_neighbors=[-1]))
    loader = LinkNeighborLoader(
        data, [-1], neighbor_sampler=sampler, neg_sampling=mode, edge_label_index=data.edge_index, batch_size=20,
        num_workers=workers,
    )  # fmt: skip
    edges, seen, wrong = edge_set(data.edge_index), 0, 0
    into = {node: {i for i, j in edges if j == node} for node in range(30)}
    for batch in loader:
        sources, targets = negatives_of(batch)
        wrong += len(set(zip(sources.tolist(), targets.tolist(), strict=True)) & edges)
        seen += len(sources)
        found = edge_set(batch.n_id[batch.edge_index])
        assert found <= edges
        for node in {*sources.tolist(), *targets.tolist()}:
            assert {i for i, j in found if j == node} == into[node]  # all its neighbours, as asked
    assert (seen, wrong) == (data.num_edges, 0)


@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_a_graph_of_two_types(mode):
    data = films((12, 18))
    reverse = ("film", "liked by", "user")
    data[reverse].edge_index = data[TYPE].edge_index.flip(0)
    sampler = ExactLinkSampler(data, NeighborSampler(data, num_neighbors=[3, 2]), edge_type=TYPE)
    seeds = (TYPE, data[TYPE].edge_index)
    loader = LinkNeighborLoader(
        data, [3, 2], neighbor_sampler=sampler, neg_sampling=mode, edge_label_index=seeds, batch_size=25
    )
    edges, seen, neighbours = edge_set(data[TYPE].edge_index), 0, 0
    for batch in loader:
        sources, targets = negatives_of(batch, TYPE)
        assert not set(zip(sources.tolist(), targets.tolist(), strict=True)) & edges
        seen += len(sources)
        left, right = batch[TYPE].edge_index
        found = set(zip(batch["user"].n_id[left].tolist(), batch["film"].n_id[right].tolist(), strict=True))
        assert found <= edges
        neighbours += len(found)
    assert seen == len(edges)
    assert neighbours > 0


def test_pygs_own_negatives_are_edges_as_often_as_the_graph_is_dense():
    """What the sampler is for: the same loader without it."""
    data = world(30, 0.3)
    loader = LinkNeighborLoader(data, [-1], neg_sampling="triplet", edge_label_index=data.edge_index, batch_size=20)
    edges = edge_set(data.edge_index)
    drawn = [pair for batch in loader for pair in zip(*(part.tolist() for part in negatives_of(batch)), strict=True)]
    assert sum(pair in edges for pair in drawn) > 0.1 * len(drawn)
