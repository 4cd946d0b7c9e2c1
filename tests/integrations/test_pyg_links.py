"""Exact negatives in PyG's link loaders. Neighbours are sampled by a stand-in: PyG's own needs pyg-lib, compiled."""

import math
import warnings

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkNeighborLoader
from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, NegativeSampling, NeighborSampler, SamplerOutput

import naysay as ns
from naysay.integrations.pyg import ExactLinkSampler
from tests.integrations.upstream import check_signature

TYPE = ("user", "likes", "film")
NONE = torch.empty(0, dtype=torch.long)


class Alone(NeighborSampler):
    """PyG's sampler, except that a node has no neighbours: only PyG's part that calls compiled code is replaced."""

    def _sample(self, seed, seed_time=None, **options):
        if isinstance(seed, dict):
            none = dict.fromkeys(self.edge_types, NONE)
            batch = {name: torch.arange(len(ids)) for name, ids in seed.items()} if self.disjoint else None
            return HeteroSamplerOutput(node=seed, row=none, col=none, edge=none, batch=batch)
        batch = torch.arange(len(seed)) if self.disjoint else None
        return SamplerOutput(node=seed, row=NONE, col=NONE, edge=NONE, batch=batch)


def alone(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that pyg-lib is missing
        return Alone(data, num_neighbors=[1], **options)


def world(n=12, share=0.5, seed=0):
    """A directed graph of which a large share of the pairs are edges; node 0 has none out of it."""
    rng = np.random.default_rng(seed)
    edges = np.argwhere((rng.random((n, n)) < share) & ~np.eye(n, dtype=bool))
    edges = torch.from_numpy(edges[edges[:, 0] > 0].T.copy())
    return Data(edge_index=edges, num_nodes=n, time=torch.arange(n))


def films(n=(7, 9), share=0.5):
    data = HeteroData()
    data["user"].num_nodes, data["film"].num_nodes = n
    data["user"].time, data["film"].time = torch.zeros(n[0], dtype=torch.long), torch.arange(n[1])
    data[TYPE].edge_index = torch.from_numpy(np.argwhere(np.random.default_rng(0).random(n) < share).T.copy())
    return data


def negatives_of(batch, edge_type=None):
    """(sources, targets) of the negatives of a batch, as ids of the graph."""
    if edge_type is None:
        ends, nodes = (batch, batch), (batch.n_id, batch.n_id)
    else:
        ends = (batch[edge_type[0]], batch[edge_type[-1]])
        nodes = (ends[0].n_id, ends[1].n_id)
    if "src_index" in ends[0]:
        each = ends[1].dst_neg_index.reshape(len(ends[0].src_index), -1)
        sources = ends[0].src_index[:, None].expand_as(each)
        return nodes[0][sources].reshape(-1), nodes[1][each].reshape(-1)
    store = batch if edge_type is None else batch[edge_type]
    left, right = store.edge_label_index[:, store.edge_label == 0]
    return nodes[0][left], nodes[1][right]


def loaded(data, neg_sampling, *, edge_type=None, known=(), disjoint=False, time=None, **options):
    """All negatives of an epoch, and the times of their seeds."""
    timed = {} if time is None else {"time_attr": "time"}
    sampler = ExactLinkSampler(data, alone(data, disjoint=disjoint, **timed), edge_type=edge_type, known=known)
    edges = data.edge_index if edge_type is None else data[edge_type].edge_index
    seeds = {"edge_label_index": edges if edge_type is None else (edge_type, edges), "edge_label_time": time}
    loader = LinkNeighborLoader(
        data, [1], neg_sampling=neg_sampling, neighbor_sampler=sampler, batch_size=5, **seeds, **timed, **options
    )
    found = [negatives_of(batch, edge_type) for batch in loader]
    return tuple(torch.cat(part) for part in zip(*found, strict=True))


def edge_set(edge_index):
    return {tuple(pair) for pair in edge_index.T.tolist()}


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize(("mode", "amount"), [("binary", 1), ("binary", 2.5), ("triplet", 1), ("triplet", 3)])
def test_no_negative_is_an_edge_or_a_loop(mode, amount, disjoint):
    """PyG's own would return edges at the density of the graph: one in two here."""
    data = world()
    sources, targets = loaded(data, NegativeSampling(mode, amount), disjoint=disjoint)
    sizes = [5] * (data.num_edges // 5) + [data.num_edges % 5]
    assert len(sources) == sum(math.ceil(size * amount) for size in sizes)
    pairs = set(zip(sources.tolist(), targets.tolist(), strict=True))
    assert not pairs & edge_set(data.edge_index)
    assert all(i != j for i, j in pairs)


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_ends_of_two_types_are_not_mixed(mode, disjoint):
    data = films()
    sources, targets = loaded(data, NegativeSampling(mode, 2), edge_type=TYPE, disjoint=disjoint)
    pairs = set(zip(sources.tolist(), targets.tolist(), strict=True))
    assert not pairs & edge_set(data[TYPE].edge_index)
    assert sources.max() < 7
    assert targets.max() == 8


@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_further_edges_are_excluded_both_ways_if_the_graph_is_undirected(mode):
    path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    data = Data(edge_index=path, num_nodes=5)
    sources, targets = loaded(data, NegativeSampling(mode, 40), known=torch.tensor([[3], [0]]))
    assert set(zip(sources.tolist(), targets.tolist(), strict=True)) == {
        *{(0, 2), (0, 4), (1, 3), (1, 4), (2, 0), (2, 4), (3, 1), (3, 4)},
        *({(4, 0), (4, 1), (4, 2), (4, 3)} if mode == "binary" else ()),
    }


def test_binary_negatives_are_uniform_over_the_pairs_that_are_no_edges():
    data = world(5, 0.4)
    sources, targets = loaded(data, NegativeSampling("binary", 400))
    counts = torch.bincount(sources * 5 + targets, minlength=25).numpy()
    assert chisquare(counts[counts > 0]).pvalue > 1e-3
    assert (counts > 0).sum() == 20 - data.num_edges


@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_weights_choose_the_ends(mode):
    data, weight = world(), torch.zeros(12)
    data.edge_index = data.edge_index[:, data.edge_index[1] > 0]  # so that node 0 is possible for all others
    weight[torch.tensor([0, 5])] = torch.tensor([1.0, 3.0])
    src_weight = (torch.arange(12) < 9).float()
    sources, targets = loaded(data, NegativeSampling(mode, 2, src_weight, weight))
    assert mode == "triplet" or set(sources.tolist()) == {*range(9)}
    assert set(targets.tolist()) == {0, 5}
    assert not set(zip(sources.tolist(), targets.tolist(), strict=True)) & edge_set(data.edge_index)


@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("hetero", [False, True])
def test_negatives_are_no_later_than_their_seed(mode, hetero):
    """PyG's own returns the oldest node where five tries fail, edge or not."""
    data = films() if hetero else world()
    edge_type = TYPE if hetero else None
    edges = data[TYPE].edge_index if hetero else data.edge_index
    time = edges.max(dim=0).values + 3  # two nodes later than the ends, at least
    sources, targets = loaded(data, NegativeSampling(mode, 2), edge_type=edge_type, disjoint=True, time=time)
    size = 5
    latest = torch.cat(
        [part.repeat_interleave(2) if mode == "triplet" else part.repeat(2) for part in time.split(size)]
    )
    assert bool((targets <= latest).all())
    assert hetero or bool((sources <= latest).all())
    assert not set(zip(sources.tolist(), targets.tolist(), strict=True)) & edge_set(edges)


def test_a_source_without_a_target_is_named():
    data = Data(edge_index=torch.tensor([[0, 0, 1], [1, 2, 0]]), num_nodes=3)
    message = r"`data` must be a graph in which every source has a possible target, got node 0, which has none \(2 such"
    with pytest.raises(ns.NaysayError, match=message):
        loaded(data, "triplet")
    with pytest.raises(ns.NaysayError, match=message):
        loaded(
            Data(edge_index=data.edge_index, num_nodes=3, time=torch.zeros(3)),
            "triplet",
            disjoint=True,
            time=NONE.new_ones(3),
        )


def test_weights_and_times_together_are_an_error():
    data = world()
    asked = NegativeSampling("triplet", 1, None, torch.ones(12))
    with pytest.raises(
        ns.NaysayError, match=r"`neg_sampling` must be without weights if nodes have times, got weights"
    ):
        loaded(data, asked, disjoint=True, time=torch.full((data.num_edges,), 11))


@pytest.mark.parametrize(
    ("data", "edge_type", "known", "message"),
    [
        ("graph", None, (), "`data` must be a Data or a HeteroData of torch_geometric, got str."),
        (Data(x=torch.ones(2, 1)), None, (), "`data` must be a graph with `edge_index`, got ['x']."),
        (world(3), TYPE, (), "`edge_type` must be None for a Data, got ('user', 'likes', 'film')."),
        (films(), None, (), "`edge_type` must be one of [('user', 'likes', 'film')], got None."),
        (world(3), None, torch.ones(2, 1), "`known` must be of whole numbers, got torch.float32."),
    ],
)
def test_a_graph_that_does_not_fit_is_named(data, edge_type, known, message):
    with pytest.raises(ns.NaysayError) as caught:
        ExactLinkSampler(data, alone(world(3)), edge_type=edge_type, known=known)
    assert str(caught.value) == f"ExactLinkSampler: {message}"


def test_a_sampler_or_type_that_does_not_fit_is_named():
    with pytest.raises(
        ns.NaysayError, match=r"`sampler` must be a sampler of torch_geometric, got int. For example Nei"
    ):
        ExactLinkSampler(world(3), 3)
    data = films()
    data["user", "sees", "film"].edge_index = data[TYPE].edge_index
    sampler = ExactLinkSampler(data, alone(data), edge_type=TYPE)
    loader = LinkNeighborLoader(
        data, [1], neighbor_sampler=sampler, edge_label_index=("user", "sees", "film"), neg_sampling="triplet"
    )
    with pytest.raises(ns.NaysayError, match="`edge_type` must be that of the loader's `edge_label_index`, got"):
        next(iter(loader))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (BaseSampler.sample_from_nodes, ["self", "index", "kwargs"]),
        (BaseSampler.sample_from_edges, ["self", "index", "neg_sampling"]),
        (NegativeSampling.__init__, ["self", "mode", "amount", "src_weight", "dst_weight"]),
        (NegativeSampling.sample, ["self", "num_samples", "endpoint", "num_nodes"]),
    ],
)
def test_pyg_still_asks_as_it_did(function, expected):
    check_signature("pyg", "torch_geometric", function, expected)
