"""What every pool promises, over one registry of pools: `check_pool`, short rows, prefixes, and what is refused."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay import pools

N = 9
GRAPH = ns.Positives.from_edges([0, 0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7, 8], N)
CROWDED = GRAPH.with_ignored([8] * 8, np.arange(8))  # node 8 has nothing left
VECTORS = np.random.default_rng(0).normal(size=(N, 3))
LISTS = [[1, 2, 2, 8], [0, 5, 6], [], [7, 8], [4, 1], [5, 6, 0], [7, 8, 1], [6], [0, 1]]
TRIPLES = ns.Triples([[0, 0, 1], [0, 0, 2], [1, 0, 2], [1, 1, 0], [2, 1, 0], [0, 1, 0]], n_entities=5)
TIES = pools.consumption_ties(GRAPH)


def memory(**settings):
    made = pools.Memory(12, CROWDED, **settings)
    made.push(np.arange(N), np.roll(np.arange(N), 3), VECTORS)
    return made


# name: (a pool with some settings, what it must exclude)
POOLS = {
    "uniform": (lambda **s: pools.Everything(CROWDED, **s), CROWDED),
    "weighted": (lambda **s: pools.Everything(CROWDED, np.arange(N) % 4, **s), CROWDED),
    "local": (lambda **s: pools.Local(LISTS, CROWDED, **s), CROWDED),
    "in batch": (lambda **s: pools.InBatch(CROWDED, **s), CROWDED),
    "memory": (memory, CROWDED),
    "nearest": (lambda **s: pools.Nearest(VECTORS, 3, CROWDED, queries=VECTORS, **s), CROWDED),
    "k-hop": (lambda **s: pools.KHop(CROWDED, (2, 3), **s), CROWDED),
    "k-hop of triples": (lambda **s: pools.KHop(TRIPLES, (1, 3), **s), TRIPLES),
    "walks": (lambda **s: pools.Walks(CROWDED, length=2, walks=200, **s), CROWDED),
    "weighted walks": (
        lambda **s: pools.Walks(GRAPH, 2, 200, CROWDED, weights=1.0 + np.arange(2 * 8) % 3, exclude_edges=False, **s),
        CROWDED,
    ),
    "walks over ties": (
        lambda **s: pools.Walks(TIES[0], 4, 200, CROWDED, weights=TIES[1], stop=0.2, items=GRAPH, **s),
        CROWDED,
    ),
    "pagerank": (lambda **s: pools.PageRank(CROWDED, (0, 4), **s), CROWDED),
    "corruption": (lambda **s: pools.Corruption(TRIPLES, sides=("head", "relation", "tail"), **s), TRIPLES),
}
OF_TRIPLES = {"k-hop of triples", "corruption"}


def query_for(name):
    return (
        ns.Query(TRIPLES.array) if name in OF_TRIPLES else ns.Query(np.arange(N), positives=np.arange(N)[::-1].copy())
    )


def draw(pool, name, n):
    return pool.draw(query_for(name), n, rng=ns.rng_for(3))


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("name", POOLS)
def test_every_pool_keeps_the_promises_of_a_pool(name, distinct):
    make, excluded = POOLS[name]
    ns.check_pool(make(distinct=distinct), excluded, n=4)


@pytest.mark.parametrize("name", POOLS)
def test_fewer_slots_are_the_first_of_more(name):
    pool = POOLS[name][0](distinct=False)
    wide, narrow = draw(pool, name, 5).ids, draw(pool, name, 2).ids
    assert np.array_equal(wide[:, :2], narrow)


@pytest.mark.parametrize("name", POOLS)
def test_a_short_row_can_be_refused(name):
    """All rows together have fewer than 40 candidates each."""
    with pytest.raises(ns.NaysayError, match="candidates left of the 40 requested"):
        draw(POOLS[name][0](on_short="raise"), name, 40)


@pytest.mark.parametrize("name", sorted(set(POOLS) - OF_TRIPLES))
def test_anchors_may_be_tensors_and_graphs_of_one_query_are_the_same(name):
    pool, query = POOLS[name][0](), query_for(name)
    tensors = ns.Query(torch.from_numpy(query.anchors), positives=torch.from_numpy(query.positives))
    assert np.array_equal(pool.draw(tensors, 3, rng=ns.rng_for(3)).ids, draw(pool, name, 3).ids)


OF_GRAPHS = pytest.mark.parametrize(
    "make",
    [
        lambda graph: pools.KHop(graph, 2),
        lambda graph: pools.Walks(graph),
        lambda graph: pools.PageRank(graph, (0, 4)),
    ],
)


@OF_GRAPHS
def test_drawing_leaves_the_graph_as_it_was(make):
    """GraphGAN's sampler removed the root from its cached tree: the second draw answered otherwise."""
    graph = ns.Positives.from_edges(*np.random.default_rng(1).integers(0, 50, (2, 100)), 50)
    before = [array.copy() for array in graph._rows]
    pool = make(graph)
    first, second = (pool.draw(ns.Query(np.arange(50)), 9, rng=ns.rng_for(4)).ids for _ in range(2))
    assert (first == second).all()
    assert all((one == other).all() for one, other in zip(before, graph._rows, strict=True))


@OF_GRAPHS
def test_a_graph_may_be_a_sparse_matrix(make):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    sources, targets = (ends[GRAPH.relation == 1] for ends in GRAPH.pairs())  # nodes are ignored pairs of themselves
    matrix = scipy_sparse.csr_array((np.ones(len(sources)), (sources, targets)), shape=(N, N))
    query = ns.Query(np.arange(N))
    one, other = (make(graph).draw(query, 2, rng=ns.rng_for(0)).ids for graph in (GRAPH, matrix))
    assert np.array_equal(one, other)


# ---- what is refused ------------------------------------------------------------------------------------------------

KNOWN = ns.Positives.from_pairs([0, 1], [0, 1], 2, 4)
EVERYTHING = pools.Everything(KNOWN)
TIMED = pools.Everything(KNOWN, times=([0, 1], [0, 1], [5, 6]))
RNG = ns.rng_for(0)
ONE = ns.Query([0])
OTHER = pools.Memory(3)
OTHER.push([1], vectors=np.ones((1, 2)))
FREQUENCY = pools.StreamingFrequency(4)
FREQUENCY.observe(ns.Query([0], positives=[1], step=3))
CORRUPTION = pools.Corruption([[0, 0, 1]])
WALKS = pools.Walks(GRAPH)


def draw_with(pool, query=ONE, n=1, rng=RNG):
    return pool.draw, {"query": query, "n": n, "rng": rng}


INVALID = [
    (pools.Everything, {"positives": [[0, 1]]}, "positives"),
    (pools.Everything, {"positives": ns.Positives.from_pairs([], [], 1, 0)}, "positives"),
    (pools.Everything, {"positives": ns.Positives.from_pairs([], [], 1, 1 << 32)}, "positives"),
    *(
        (pools.Everything, {"positives": KNOWN, "weights": weights}, "weights")
        for weights in ([1, 2], [[1, 2, 3, 4]], "abcd", "popularity", [1, -2, 3, 4], [1, 2, np.nan, 4], [0, 0, 0, 0])
    ),
    (pools.Everything, {"positives": KNOWN, "times": [5, 6]}, "times"),
    (pools.Everything, {"positives": KNOWN, "times": ([0], [0], [5, 6])}, "times"),
    (pools.Everything, {"positives": KNOWN, "times": ([0], [3], [5])}, "times"),
    (pools.Everything, {"positives": KNOWN, "times": ([0], [0], [np.nan])}, "times"),
    (*draw_with(TIMED, ns.Query([0], times=np.array(["2024"], "M8[D]"))), "query.times"),
    (*draw_with(EVERYTHING, ns.Query([0], times=[1])), "query.times"),
    (*draw_with(pools.InBatch(KNOWN), ns.Query([0], positives=[0], times=[1])), "query.times"),
    (*draw_with(CORRUPTION, ns.Query([[0, 0, 1]], times=[1])), "query.times"),
    (*draw_with(EVERYTHING, [0]), "query"),
    (*draw_with(EVERYTHING, ns.Query([2])), "anchors"),
    (*draw_with(EVERYTHING, ns.Query([[0, 0, 1]])), "query.anchors"),
    *((*draw_with(EVERYTHING, n=n), "n") for n in (-1, 2.0, True, "3", None, [1, 2], [-4], [[1]], [1.0])),
    (*draw_with(EVERYTHING, rng=0), "rng"),
    (EVERYTHING.draw_pairs, {"n": 1.5, "rng": RNG}, "n"),
    (EVERYTHING.draw_pairs, {"n": 1, "rng": RNG, "distinct": "no"}, "distinct"),
    (pools.Everything(KNOWN, np.ones(4)).draw_pairs, {"n": 1, "rng": RNG}, "weights"),
    (pools.Everything(KNOWN, on_short="raise").draw_pairs, {"n": 7, "rng": RNG}, "n"),
    (EVERYTHING.log_chance, {"query": ONE, "ids": [[4]]}, "ids"),
    *(
        (pools.Local, {"lists": lists}, "lists")
        for lists in (7, "ab", {0: [1]}, ([0, 1], [1]), [[0.5]], [1, 2], np.zeros((2, 2)), [[2, -3]])
    ),
    (pools.Local, {"lists": [[1], [4]], "positives": KNOWN}, "lists"),
    (pools.Local, {"lists": [[1]], "positives": KNOWN}, "lists"),
    (pools.Memory, {"size": 1 << 32}, "size"),
    (pools.Memory(4).push, {"ids": [1, -1]}, "ids"),
    (pools.Memory(4).push, {"ids": [1, 2], "owners": [1]}, "ids"),
    (pools.Memory(4).push, {"ids": [1], "owners": [-2]}, "owners"),
    (pools.Memory(4, KNOWN).push, {"ids": [1]}, "owners"),  # anchors and items are two sets
    (pools.Memory(4, KNOWN).push, {"ids": [4], "owners": [0]}, "ids"),
    *(
        (pools.Memory(4).push, {"ids": [1], "vectors": vectors}, "vectors")
        for vectors in ([1.0], np.ones((2, 3)), np.ones((1, 3), int), [[np.nan]])
    ),
    (OTHER.push, {"ids": [2]}, "vectors"),
    (OTHER.push, {"ids": [2], "vectors": np.ones((1, 3))}, "vectors"),
    (*draw_with(pools.Memory(4, KNOWN), ns.Query([1], positives=[9])), "positives"),
    (pools.Nearest, {"vectors": VECTORS, "depth": 3, "window": (2, 1)}, "window"),
    (pools.Nearest, {"vectors": VECTORS[:2], "depth": 3, "positives": KNOWN}, "vectors"),
    (pools.Nearest, {"vectors": VECTORS, "depth": 3, "queries": VECTORS[:, :2]}, "queries"),
    (pools.Nearest(VECTORS, 3).update, {"vectors": VECTORS[:4]}, "vectors"),
    (*draw_with(pools.Nearest(VECTORS, 3)), "query.vectors"),
    (*draw_with(pools.Nearest(VECTORS, 3), ns.Query([0], vectors=[[1.0]])), "query.vectors"),
    *((pools.KHop, {"graph": GRAPH, "hops": hops}, "hops") for hops in (0, 2.0, (3, 2), (1, 2, 3))),
    (pools.KHop, {"graph": ns.Positives.from_pairs(["a"], ["b"])}, "graph"),
    (pools.KHop, {"graph": ns.Positives.from_edges([], [])}, "graph"),
    (pools.KHop, {"graph": GRAPH, "positives": ns.Positives.from_pairs([0], [N])}, "positives"),
    (pools.KHop, {"graph": GRAPH, "positives": TRIPLES}, "positives"),
    (pools.KHop(GRAPH).candidates, {"anchor": N}, "anchor"),
    (pools.KHop(TRIPLES).candidates, {"anchor": 0}, "graph"),
    (*draw_with(pools.KHop(TRIPLES)), "query.anchors"),
    *(
        (pools.PageRank, {"graph": GRAPH, "ranks": ranks}, "ranks")
        for ranks in ("x", (1, 2, 3), (0, 0.5), (0.5, 1.5), (3, 3))
    ),
    (pools.PageRank, {"graph": GRAPH, "ranks": (0, 2), "tolerance": np.nan}, "tolerance"),
    (pools.PageRank(GRAPH, (0, 2)).scores, {"anchor": N}, "anchor"),
    (pools.Walks, {"graph": GRAPH, "length": 2**31}, "length"),
    (pools.Walks, {"graph": GRAPH, "walks": 1.5}, "walks"),
    (pools.Walks, {"graph": GRAPH, "stop": 0}, "stop"),
    (pools.Walks, {"graph": GRAPH, "items": KNOWN}, "items"),
    (pools.Walks, {"graph": GRAPH, "exclude_edges": "no"}, "exclude_edges"),
    *((pools.Walks, {"graph": GRAPH, "weights": weights}, "weights") for weights in ([1.0], [-1.0] * 16, "x")),
    (WALKS.endpoints, {"anchors": [-1], "count": 1, "rng": RNG}, "anchors"),
    (WALKS.endpoints, {"anchors": [0], "count": -1, "rng": RNG}, "count"),
    (pools.consumption_ties, {"consumed": [1]}, "consumed"),
    *((pools.Corruption, {"triples": [[0, 0, 1]], "sides": sides}, "sides") for sides in ("head", (), ("hed",))),
    (pools.Corruption, {"triples": [[0, 0, 1]], "choice": "bernoulli", "sides": ("head",)}, "choice"),
    (pools.Corruption, {"triples": [[0, 0, 1]], "known": 5}, "known"),
    (pools.Corruption, {"triples": [[0, 0, 1]], "known": [[7, 0, 1]], "n_entities": 5}, "triples"),
    (pools.Corruption, {"triples": [[0, 0, 1]], "domains": "observed", "sides": ("tail",)}, "domains"),
    *(
        (pools.Corruption, {"triples": [[0, 0, 1]], "ranges": ranges}, "ranges")
        for ranges in ("seen", 5, {0: [1]}, [[0], [1]], [[0, 9]], [[0.5]], [0])
    ),
    (*draw_with(CORRUPTION, ns.Query([[0, 1, 0]])), "triples"),
    (
        CORRUPTION.corrupted,
        {"query": ns.Query([[0, 0, 1]]), "negatives": ns.Negatives(np.array([[1]]))},
        "negatives.side",
    ),
    (CORRUPTION.one_side, {"side": "relation"}, "side"),
    *((pools.popularity, {"counts": counts}, "counts") for counts in ([[1, 2]], 3, ["a"], [np.nan], [[1], [1, 2]])),
    *((pools.popularity, {"counts": [1, 10], "power": power}, "power") for power in (np.inf, "1", None, 400, -400)),
    (pools.log_uniform, {"n_items": 3, "counts": [1, 2]}, "counts"),
    (pools.item_oriented, {"positives": [1, 2]}, "positives"),
    (pools.StreamingFrequency, {"size": 9, "rate": 0}, "rate"),
    (FREQUENCY.log_q, {"ids": [0]}, "ids"),
    (FREQUENCY.observe, {"query": ns.Query([0], positives=[1], step=3)}, "query"),
    (FREQUENCY.observe, {"query": ns.Query([0], positives=[4], step=4)}, "ids"),
    (FREQUENCY.restore, {"state": {"gap": np.ones(4)}}, "state"),
    *((make, {"distinct": "no"}, "distinct") for make, _ in POOLS.values()),
    *((make, {"on_short": "pda"}, "on_short") for make, _ in POOLS.values()),
]


@pytest.mark.parametrize(("call", "arguments", "parameter"), INVALID)
def test_an_invalid_call_names_its_parameter(call, arguments, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        call(**arguments)
    assert caught.value.parameter == parameter
    assert len(OTHER) == 1  # nothing was pushed
