"""Rows for nodes of a graph, where nearness in the graph makes candidates hard."""

from naysay.catalog.rows import Alias, Method

_SETUP = """\
import numpy as np
import naysay as ns

sources, targets = np.random.default_rng({seed}).integers(0, 400, size=(2, 800))
known = ns.Positives.from_edges(sources, targets, 400)
sampler = ns.samplers.Static({pool})
query = ns.Query(sources[:64], positives=targets[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
"""

_GNEG = """\
import numpy as np
import naysay as ns

text = np.random.default_rng(0).zipf(1.5, 3_000) % 400        # a text as word ids
known = ns.Positives.from_edges(text[:-1], text[1:], 400)     # words that stand side by side
sampler = ns.samplers.Static(ns.pools.Walks(known, length=2))
query = ns.Query(text[:64], positives=text[1:65])
negatives = sampler.sample(query, 5, rng=ns.rng_for(seed=0))   # words two steps away
"""

ROWS = (
    Method(
        name="k-hop",
        kind="auxiliary",
        pool="hop",
        summary="Nodes at an exact distance from the anchor, its neighbours and itself left out.",
        formula="P(v | a) = 1 / |{v : distance(a, v) in hops, v not known}|",
        parts="Static(KHop(graph, hops=(2, 3)))",
        paper="Ahrabian et al. Structure Aware Negative Sampling in Knowledge Graphs. EMNLP 2020.",
        cost="One breadth-first search a row: the edges within the ball.",
        example=_SETUP.format(seed=0, pool="ns.pools.KHop(known, hops=2)"),
        aliases=(
            Alias(
                "SANS",
                "Ahrabian et al. EMNLP 2020.",
                "Two hops away; the paper's matrix power would keep the node and its neighbours.",
                _SETUP.format(seed=1, pool="ns.pools.KHop(known, hops=2)"),
            ),
        ),
    ),
    Method(
        name="walks",
        kind="auxiliary",
        pool="hop",
        summary="Ends of random walks from the anchor: near nodes, and those with many paths more often.",
        formula="P(v | a) proportional to ((D^-1 A)^length)_av over v not known",
        parts="Static(Walks(graph, length=2))",
        paper="Ahrabian et al. EMNLP 2020, its random-walk variant.",
        cost="`length` steps a walk, at most `walks` walks a row.",
        example=_SETUP.format(seed=2, pool="ns.pools.Walks(known, length=3)"),
        aliases=(
            Alias(
                "RW-SANS",
                "Ahrabian et al. EMNLP 2020.",
                "Every walk starts at the anchor; the published code walks on from the last end.",
                _SETUP.format(seed=3, pool="ns.pools.Walks(known, length=2)"),
            ),
            Alias(
                "GNEG",
                "Zhang and Zweigenbaum. GNEG: Graph-Based Negative Sampling for word2vec. ACL 2018.",
                "Walks on the graph of co-occurring words; the paper weighs its edges by counts.",
                _GNEG,
            ),
        ),
    ),
    Method(
        name="pagerank-window",
        kind="auxiliary",
        pool="hop",
        summary="Nodes within a window of ranks by personalised PageRank: close, but not the closest.",
        formula="P(v | a) = 1 / (hi - lo) for the nodes ranked lo to hi by PPR_a",
        parts="Static(PageRank(graph, ranks=(2000, 5000)))",
        paper="Ying et al. Graph Convolutional Neural Networks for Web-Scale Recommender Systems. KDD 2018.",
        cost="One forward push a row, O(1 / (restart * tolerance)).",
        example=_SETUP.format(seed=4, pool="ns.pools.PageRank(known, ranks=(0.1, 0.5))"),
    ),
)
