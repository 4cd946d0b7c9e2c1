"""PyTorch Geometric: its functions for negative edges without their defects, and exact negatives in link loaders."""
# ruff: noqa: E402  (a missing package is named before anything needs it)

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.integrations._frameworks import need, torch_rng

need("torch-geometric")

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import BaseSampler, NegativeSampling

from naysay import checks
from naysay._rows import distinct_values
from naysay.arrays import to_numpy, to_torch
from naysay.checks import public, raise_invalid, shown
from naysay.pools.everything import Everything
from naysay.positives import Positives
from naysay.types import Query

Ids = NDArray[np.int64]
Times = NDArray[np.int64] | NDArray[np.float64]


@public
def negative_sampling(
    edge_index: Tensor,
    num_nodes: int | tuple[int, int] | None = None,
    num_neg_samples: int | float | None = None,
    method: str = "sparse",
    force_undirected: bool = False,  # noqa: FBT001
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw non-edges of a graph, with the arguments of `torch_geometric.utils.negative_sampling`.

    They are distinct and uniform over all pairs that are not edges; on one set of nodes none is a self-loop. PyG's own
    differs in this:

    1. It ignores torch's seed. Here torch's generator decides, or the one that is passed.
    2. It may return fewer than asked, because it stops after three tries. Here only if there are fewer.
    3. It counts repeated edges as different ones, so it returns nothing for a graph with many.
    4. With force_undirected it does not see an edge (i, j) with i > j, and returns (j, i) as a non-edge.

    Cost: O(edges + negatives), and no sort of all edges. For many calls on one graph keep the index:
    `Everything(Positives.from_edges(*edge_index, n, directed=True)).draw_pairs(n, rng=rng)`.

    Args:
        edge_index: (2, E) the edges.
        num_nodes: By default the largest id plus one; (sources, targets) for a bipartite graph.
        num_neg_samples: How many; a float is a share of E; by default E.
        method: "sparse" or "dense": accepted for compatibility, without effect.
        force_undirected: Whether both directions of each non-edge are returned, half as many; without effect on
            bipartite graphs.
        generator: By default torch's global generator.

    Returns:
        (2, n) non-edges, on the device of `edge_index`.

    Raises:
        NaysayError: If an argument is invalid.

    Examples:
        >>> edges = torch.tensor([[0, 0, 1], [1, 2, 2]])
        >>> negative_sampling(edges, 3, 99).T.sort(dim=0).values.tolist()
        [[1, 0], [2, 0], [2, 1]]
    """
    checks.check_one_of("method", method, ("sparse", "dense"))
    checks.check_bool("force_undirected", force_undirected)
    edges, sizes = _edges("edge_index", edge_index, num_nodes)
    wanted = _count(num_neg_samples, edges.shape[1])
    square = not isinstance(num_nodes, tuple | list)
    both_ways = force_undirected and square
    if 0 in sizes or not wanted:
        return edge_index.new_empty((2, 0), dtype=torch.long)
    pool = Everything(_known([edges], sizes, square=square, directed=not both_ways))
    rng = torch_rng(generator)
    # Of 2 n different ordered pairs at least n differ as unordered ones.
    drawn = np.stack(pool.draw_pairs(2 * (wanted // 2) if both_ways else wanted, rng=rng))
    if both_ways:
        codes = distinct_values(drawn.min(axis=0) * sizes[1] + drawn.max(axis=0))  # an unordered pair comes once
        pairs = np.stack(np.divmod(codes[rng.permutation(len(codes))[: wanted // 2]], sizes[1]))
        drawn = np.concatenate([pairs, pairs[::-1]], axis=1)
    negatives: Tensor = to_torch(drawn, edge_index.device)
    return negatives


@public
def structured_negative_sampling(
    edge_index: Tensor,
    num_nodes: int | tuple[int, int] | None = None,
    contains_neg_self_loops: bool = True,  # noqa: FBT001
    *,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a target k for each edge (i, j) so that (i, k) is no edge, as PyG's function of this name.

    PyG's never ends if a node is connected to all others, and takes square graphs only. k is uniform, drawn for each
    edge on its own. Cost: O(edges).

    Args:
        edge_index: (2, E) the edges.
        num_nodes: By default the largest id plus one; (sources, targets) for a bipartite graph.
        contains_neg_self_loops: Whether k may be i; without effect on bipartite graphs.
        generator: By default torch's global generator.

    Returns:
        (i, j, k), each (E,).

    Raises:
        NaysayError: If an argument is invalid, or a source is connected to all targets.

    Examples:
        >>> edges = torch.tensor([[0, 0, 1], [1, 2, 2]])
        >>> structured_negative_sampling(edges, (2, 4))[2].tolist()[1] in (0, 3)
        True
    """
    checks.check_bool("contains_neg_self_loops", contains_neg_self_loops)
    edges, sizes = _edges("edge_index", edge_index, num_nodes)
    square = not isinstance(num_nodes, tuple | list) and not contains_neg_self_loops
    if not edges.size:
        return edge_index[0], edge_index[1], edge_index[0].clone()
    pool = Everything(_known([edges], sizes, square=square, directed=True), distinct=False)
    drawn = pool.draw(Query(edges[0]), 1, rng=torch_rng(generator)).ids[:, 0]
    _check_possible("edge_index", edges[0], drawn >= 0)
    return edge_index[0], edge_index[1], to_torch(drawn, edge_index.device)


@final
@public
class ExactLinkSampler(BaseSampler):  # type: ignore[misc]
    """Negatives for PyG's link loaders that are never edges, around a neighbour sampler of PyG.

        sampler = ExactLinkSampler(data, NeighborSampler(data, num_neighbors=[10, 5]))
        LinkNeighborLoader(data, [10, 5], neighbor_sampler=sampler, neg_sampling="triplet", edge_label_index=...)

    PyG draws both ends of a negative at random, so that a share of them as large as the density of the graph are
    edges. Here "binary" draws pairs and "triplet" targets that are no edges and no self-loops, uniformly or by
    `src_weight` and `dst_weight`. With node times (`time_attr="time"`) they are also drawn exactly, among nodes that
    are no later than the seed; PyG takes the oldest node wherever five tries fail. Draws follow torch's generator.

    Cost: O(1) per draw in expectation, O(log edges) with times. Memory: 5 bytes per edge, 12 more with times.

    Args:
        data: The graph: a Data, or a HeteroData with `edge_type`.
        sampler: What samples the neighbourhoods: a `NeighborSampler`, or any other sampler of PyG.
        edge_type: The type of the seed edges, for HeteroData.
        known: Further edges to exclude: a (2, E) tensor or several, for example those of validation and test, or an
            `edge_label_index` that is not part of the graph.

    Raises:
        NaysayError: If an argument is invalid; in a batch, if a source has no possible target.
    """

    def __init__(
        self, data: Data | HeteroData, sampler: BaseSampler, *, edge_type: Any = None, known: Any = ()
    ) -> None:
        checks.check_kind("data", data, Data | HeteroData, "a Data or a HeteroData of torch_geometric")
        checks.check_kind(
            "sampler", sampler, BaseSampler, "a sampler of torch_geometric", "For example NeighborSampler."
        )
        if isinstance(data, HeteroData):
            if edge_type not in data.edge_types:
                raise_invalid("edge_type", f"one of {data.edge_types}", shown(edge_type))
            store, ends = data[edge_type], [data[edge_type[0]], data[edge_type[-1]]]
        elif edge_type is not None:
            raise_invalid("edge_type", "None for a Data", shown(edge_type))
        else:
            store, ends = data, [data, data]
        if store.get("edge_index") is None:
            raise_invalid("data", "a graph with `edge_index`", f"{sorted(store.keys())}")
        sizes = tuple(end.num_nodes for end in ends)
        edges = [_edges("edge_index", store.edge_index, sizes)[0]]
        edges += [_edges("known", part, sizes)[0] for part in ([known] if isinstance(known, Tensor) else known)]
        self.sampler, self.edge_type = sampler, edge_type
        square = ends[0] is ends[1]
        directed = not square or not store.is_undirected()
        self.pool = Everything(_known(edges, sizes, square=square, directed=directed), distinct=False)
        self._weighted: tuple[Any, Everything] = (None, self.pool)

    @property
    def edge_permutation(self) -> Any:
        """That of the neighbour sampler."""
        return self.sampler.edge_permutation

    def sample_from_nodes(self, index: Any) -> Any:
        """Sample as the neighbour sampler does."""
        return self.sampler.sample_from_nodes(index)

    def sample_from_edges(self, index: Any, neg_sampling: NegativeSampling | None = None) -> Any:
        """Sample the neighbourhoods of the seed edges and, if asked, of exact negatives."""
        if neg_sampling is None:
            return self.sampler.sample_from_edges(index)
        if index.input_type != self.edge_type:
            raise_invalid("edge_type", "that of the loader's `edge_label_index`", shown(self.edge_type))
        sources, targets = self._drawn(index, neg_sampling, torch_rng())
        return self.sampler.sample_from_edges(index, _Drawn(neg_sampling, sources, targets))

    def _drawn(self, index: Any, asked: NegativeSampling, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """The ends of the negatives, in the order in which PyG reads them."""
        rows, each = to_numpy(index.row), math.ceil(asked.amount)
        weights = (asked.src_weight, asked.dst_weight)
        if self._times is not None:
            if weights != (None, None):
                raise_invalid("neg_sampling", "without weights if nodes have times", "weights")
            # PyG reads the first negative of all rows, then the second, with the times of the seeds repeated.
            seeds, latest = np.tile(rows, each), np.tile(to_numpy(index.time), each)
            if asked.is_binary():
                seeds = self._times.sources(seeds, latest, rng)
            return seeds, self._times.targets(seeds, latest, rng)
        if asked.is_triplet():
            drawn = self._targets(rows, each, weights[1], rng)
            return rows, (drawn.T if getattr(self.sampler, "disjoint", False) else drawn).reshape(-1)
        n = math.ceil(len(rows) * asked.amount)
        if weights == (None, None):
            return self.pool.draw_pairs(n, rng=rng)
        known = self.pool.positives
        free = known.count(relation="any") < known.n_items  # sources that have a possible target
        chance = free if weights[0] is None else free * to_numpy(weights[0]).astype(np.float64)
        sources = rng.choice(len(chance), n, p=chance / chance.sum())
        return sources, self._targets(sources, 1, weights[1], rng)[:, 0]

    def _targets(self, sources: Ids, n: int, weight: Tensor | None, rng: np.random.Generator) -> Ids:
        """(B, n) targets that are no neighbours of the sources."""
        if weight is not self._weighted[0]:
            self._weighted = (weight, Everything(self.pool.positives, weight, distinct=False))
        drawn: Ids = self._weighted[1].draw(Query(sources), n, rng=rng).ids
        _check_possible("data", sources, drawn[:, 0] >= 0)
        return drawn

    @cached_property
    def _times(self) -> _NodeTimes | None:
        """The nodes by time, if the neighbour sampler has times of nodes."""
        times = getattr(self.sampler, "node_time", None)
        if times is None:
            return None
        ends = [times.get(self.edge_type[end]) if isinstance(times, dict) else times for end in (0, -1)]
        return _NodeTimes(self.pool.positives, *map(to_numpy, ends))


class _NodeTimes:
    """The nodes in the order of time. The possible targets of a row are a first part of them, less the known ones.

    Times of None: the nodes are always possible.
    """

    def __init__(self, known: Positives, source_times: Times | None, target_times: Times | None) -> None:
        self._source_order, self._source_times = _in_order(source_times, known.n_anchors)
        self._order, self._times = _in_order(target_times, known.n_items)
        place = np.empty(known.n_items, np.int64)
        place[self._order] = np.arange(known.n_items)
        anchors, items = known.pairs()
        self._known = Positives.from_pairs(anchors, place[items], known.n_anchors, known.n_items)
        anchors, items = self._known.pairs()
        self._codes = anchors * known.n_items + items

    def sources(self, own: Ids, latest: Times, rng: np.random.Generator) -> Ids:
        """(B,) any nodes of time at most `latest`, but the row's own source where that one has no possible target."""
        early = np.searchsorted(self._source_times, latest, side="right")
        drawn = self._source_order[rng.integers(0, np.maximum(early, 1))]
        return np.where((early > 0) & (self._free(drawn, latest) > 0), drawn, own)

    def targets(self, sources: Ids, latest: Times, rng: np.random.Generator) -> Ids:
        """(B,) nodes of time at most `latest`, uniform over those that are not known of the source."""
        free = self._free(sources, latest)
        _check_possible("data", sources, free > 0)
        return self._order[self._known.nth_negative(sources, rng.integers(0, free))]

    def _free(self, sources: Ids, latest: Times) -> Ids:
        """(B,) the number of possible targets."""
        early = np.searchsorted(self._times, latest, side="right")
        before = np.searchsorted(self._codes, sources * self._known.n_items + early)
        return np.asarray(early - before + self._known.indptr[sources])


def _check_possible(parameter: str, sources: Ids, good: NDArray[np.bool_]) -> None:
    """Raise if a source has no possible target."""
    if not good.all():
        rule = "a graph in which every source has a possible target"
        got = f"node {sources[good.argmin()]}, which has none ({np.count_nonzero(~good)} such rows)"
        raise_invalid(parameter, rule, got)


def _in_order(times: Times | None, size: int) -> tuple[Ids, Times]:
    """The nodes from the oldest to the newest, and their times."""
    if times is None:
        return np.arange(size), np.full(size, -np.inf)
    order = np.argsort(times, kind="stable")
    return order, times[order]


class _Drawn(NegativeSampling):  # type: ignore[misc]
    """Negatives that are drawn already, in place of PyG's own draws."""

    def __init__(self, asked: NegativeSampling, sources: Ids, targets: Ids) -> None:
        super().__init__(asked.mode, asked.amount)
        self.ends = {"src": sources, "dst": targets}

    def sample(self, num_samples: int, endpoint: str, num_nodes: int | None = None) -> Tensor:
        drawn: Tensor = to_torch(self.ends[endpoint])
        return drawn[:num_samples]


def _edges(parameter: str, edge_index: Any, num_nodes: Any) -> tuple[Ids, tuple[int, int]]:
    """The edges in NumPy, and the numbers of sources and targets."""
    if not isinstance(edge_index, Tensor) or edge_index.ndim != 2 or len(edge_index) != 2:
        got = f"shape {tuple(edge_index.shape)}" if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise_invalid(parameter, "a tensor of shape (2, E)", got)
    if edge_index.dtype.is_floating_point or edge_index.dtype.is_complex or edge_index.dtype == torch.bool:
        raise_invalid(parameter, "of whole numbers", edge_index.dtype)
    edges = to_numpy(edge_index).astype(np.int64, copy=False)
    if num_nodes is None:
        sizes = [int(edges.max(initial=-1)) + 1] * 2
    else:
        given = num_nodes if isinstance(num_nodes, tuple | list) else [num_nodes] * 2
        sizes = [checks.check_whole("num_nodes", size, 0) for size in given]
        if len(sizes) != 2:
            raise_invalid("num_nodes", "one number, or (sources, targets)", shown(num_nodes))
    for part, size in zip(edges, sizes, strict=True):
        checks.check_range(parameter, part, size, "nodes")
    return edges, (sizes[0], sizes[1])


def _known(edges: Sequence[Ids], sizes: tuple[int, int], *, square: bool, directed: bool) -> Positives:
    """The edges to exclude; on one set of nodes with the self-loops."""
    sources, targets = np.concatenate(edges, axis=1)
    if square:
        return Positives.from_edges(sources, targets, sizes[0], directed=directed)
    return Positives.from_pairs(sources, targets, *sizes)


def _count(wanted: Any, edges: int) -> int:
    """How many negatives are asked for."""
    if wanted is None:
        return edges
    if checks.is_number(wanted) and isinstance(wanted, float):
        return int(checks.check_number("num_neg_samples", wanted, at_least=0, finite=True) * edges)
    return checks.check_whole("num_neg_samples", wanted, 0)
