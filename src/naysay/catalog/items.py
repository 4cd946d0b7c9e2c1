"""Rows for pairs: (user, item), (query, document), (word, context)."""

from naysay.catalog.rows import Alias, Method

_BPR = """\
import numpy as np
import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T    # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
sampler = ns.samplers.Static(ns.pools.Everything(known))
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0, step=0))   # one unclicked item for each click
"""

_LIGHTGCN = """\
import numpy as np
import naysay as ns

users, items = np.random.default_rng(1).integers(0, (80, 300), size=(2000, 2)).T    # a bipartite graph
known = ns.Positives.from_pairs(users, items, n_anchors=80, n_items=300)
sampler = ns.samplers.Static(ns.pools.Everything(known, distinct=False))
query = ns.Query(users[:256], positives=items[:256])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=2020, step=0))   # uniform over unobserved items
"""

_RUBER = """\
import numpy as np
import naysay as ns

turns = np.arange(500)                                        # dialogue turn i was answered by response i
known = ns.Positives.from_pairs(turns, turns)
sampler = ns.samplers.Static(ns.pools.Everything(known))
query = ns.Query(turns[:32], positives=turns[:32])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))   # the response to another turn
"""

_USR = """\
import numpy as np
import naysay as ns

contexts = np.repeat(np.arange(200), 3)                       # three references for each context
responses = np.arange(600)
known = ns.Positives.from_pairs(contexts, responses)
sampler = ns.samplers.Static(ns.pools.Everything(known))
query = ns.Query(contexts[:48], positives=responses[:48])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))   # no reference of the same context among them
"""

_NGCF = """\
import numpy as np
import naysay as ns

users, items = np.random.default_rng(3).integers(0, (60, 250), size=(1500, 2)).T    # a bipartite graph
known = ns.Positives.from_pairs(users, items, n_anchors=60, n_items=250)
sampler = ns.samplers.Static(ns.pools.Everything(known))
query = ns.Query(users[:128], positives=items[:128])
negatives = sampler.sample(query, 1, rng=ns.rng_for(seed=0))   # for losses.bpr on the graph network's scores
"""

_EBR = """\
import numpy as np
import naysay as ns

searches, clicked = np.random.default_rng(4).integers(0, (100, 800), size=(1200, 2)).T
known = ns.Positives.from_pairs(searches, clicked, n_anchors=100, n_items=800)
sampler = ns.samplers.Static(ns.pools.Everything(known))
query = ns.Query(searches[:64], positives=clicked[:64])
negatives = sampler.sample(query, 20, rng=ns.rng_for(seed=0))   # any documents, for losses.hinge
"""

_ADAPTIVE = """\
import numpy as np
import naysay as ns

users, items = np.random.default_rng(5).integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
sampler = ns.samplers.Static(ns.pools.Everything(known))
k_at, step = ns.quantity.adaptive(peak=12, steps=1000), 400   # 1 to 12 and back to 1; the peak is an estimate's
query = ns.Query(users[:64], positives=items[:64], step=step)
negatives = sampler.sample(query, k_at(step), rng=ns.rng_for(seed=0, step=step))
"""

_WORD2VEC = """\
import numpy as np
import naysay as ns

text = np.random.default_rng(0).zipf(1.3, 20_000) % 500       # a text as word ids
words, contexts = text[:-1], text[1:]                         # skip-gram pairs, window 1
known = ns.Positives.from_pairs(words, contexts, 500, 500)
counts = np.bincount(text, minlength=500)
sampler = ns.samplers.Static(ns.pools.Everything(known, ns.pools.popularity(counts, 0.75), distinct=False))
query = ns.Query(words[:64], positives=contexts[:64])
negatives = sampler.sample(query, 5, rng=ns.rng_for(seed=0))
"""

_ITEM2VEC = """\
import numpy as np
import naysay as ns

baskets = np.random.default_rng(1).zipf(1.4, (500, 4)) % 300  # four items that were bought together
first, second = (baskets[:, side].ravel() for side in np.nonzero(~np.eye(4, dtype=bool)))
known = ns.Positives.from_pairs(first, second, 300, 300)      # all pairs of a basket
counts = np.bincount(baskets.ravel(), minlength=300)
sampler = ns.samplers.Static(ns.pools.Everything(known, ns.pools.popularity(counts, 0.75), distinct=False))
query = ns.Query(first[:64], positives=second[:64])
negatives = sampler.sample(query, 15, rng=ns.rng_for(seed=0))
"""

_GRAPHSAGE = """\
import numpy as np
import naysay as ns

graph = ns.Positives.from_edges(*np.random.default_rng(2).integers(0, 300, size=(2, 900)), 300)
nodes = np.repeat(np.arange(300), 5)
near = ns.pools.Walks(graph, length=3).endpoints(np.arange(300), 5, rng=ns.rng_for(0)).ravel()
nodes, near = nodes[near >= 0], near[near >= 0]               # nodes that meet on a short walk belong together
known = ns.Positives.from_pairs(nodes, near, 300, 300)
weights = ns.pools.popularity(graph.count(), 0.75)            # degree^0.75
sampler = ns.samplers.Static(ns.pools.Everything(known, weights, distinct=False))
query = ns.Query(nodes[:64], positives=near[:64])
negatives = sampler.sample(query, 20, rng=ns.rng_for(seed=0))
"""

_WALKED = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng({seed})
sources, targets = rng.integers(0, 300, size=(2, 1500))       # a graph
known = ns.Positives.from_edges(sources, targets, 300)
{weights}
sampler = ns.samplers.Static(ns.pools.Everything(known, weights, distinct=False))
query = ns.Query(sources[:64], positives=targets[:64])
negatives = sampler.sample(query, 5, rng=ns.rng_for(seed=0))
"""

_DEEPWALK = _WALKED.format(
    seed=0,
    weights="""\
visits = np.zeros(300)
for step in range(1, 6):                                      # where 20 uniform walks a node are after each step
    ends = ns.pools.Walks(known, length=step).endpoints(np.arange(300), 20, rng=ns.rng_for(0, step))
    visits += np.bincount(ends[ends >= 0], minlength=300)
weights = ns.pools.popularity(visits, 0.75)                   # visits^0.75""",
)
_LINE = _WALKED.format(seed=1, weights="weights = ns.pools.popularity(known.count(), 0.75)            # degree^0.75")
_NODE2VEC = _WALKED.format(
    seed=2,
    weights="""\
edges = {v: [] for v in range(300)}
for a, b in zip(sources, targets):
    edges[a].append(b), edges[b].append(a)
visits, p, q = np.zeros(300), 4.0, 0.25
for before in range(300):                                     # one walk a node, biased by where it came from
    here = before
    for _ in range(10 if edges[here] else 0):
        bias = np.array([1 / p if v == before else 1.0 if v in edges[before] else 1 / q for v in edges[here]])
        before, here = here, rng.choice(edges[here], p=bias / bias.sum())
        visits[here] += 1
weights = ns.pools.popularity(visits, 0.75)                   # visits^0.75""",
)

_SETUP = """\
import numpy as np
import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
{sampler}
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
"""
_EVERYTHING = "sampler = ns.samplers.Static(ns.pools.Everything(known, {weights}))"

ROWS = (
    Method(
        name="uniform",
        also=("RNS",),
        kind="static",
        pool="global",
        summary="Any item that is not known of the anchor, each as likely as the next.",
        formula="P(i | a) = 1 / (n - |known(a)|) for i not known of a",
        parts="Static(Everything(positives))",
        paper="Random negative sampling in the review's framework (Yang et al., TPAMI 2024).",
        cost="O(1) a draw; 5 bytes a known pair and 8 an anchor.",
        example=_SETUP.format(sampler="sampler = ns.samplers.Static(ns.pools.Everything(known))"),
        aliases=(
            Alias("BPR", "Rendle et al. Bayesian Personalized Ranking. UAI 2009.", "One item per click.", _BPR),
            Alias(
                "LightGCN",
                "He et al. LightGCN. SIGIR 2020.",
                "Uniform over unobserved items, independent draws.",
                _LIGHTGCN,
            ),
            Alias("RUBER", "Tao et al. RUBER. AAAI 2018.", "A response that answered another turn.", _RUBER),
            Alias(
                "USR",
                "Ghazarian et al. Better Automatic Evaluation of Open-Domain Dialogue Systems. 2019.",
                "Random responses, with several references of a context all excluded.",
                _USR,
            ),
            Alias("NGCF", "Wang et al. Neural Graph Collaborative Filtering. SIGIR 2019.", "As BPR.", _NGCF),
            Alias(
                "EBR",
                "Huang et al. Embedding-based Retrieval in Facebook Search. KDD 2020.",
                "Random documents for each query, for a triplet loss.",
                _EBR,
            ),
            Alias(
                "ANS (adaptive k)",
                "Wu et al. Rethinking InfoNCE: How Many Negative Samples Do You Need? 2021.",
                "A number of negatives that moves with the step: quantity.adaptive.",
                _ADAPTIVE,
            ),
        ),
    ),
    Method(
        name="popularity",
        also=("PNS",),
        kind="static",
        pool="global",
        summary="Frequent items more often, by a power of their count; 0.75 is word2vec's.",
        formula="P(i | a) = c_i^beta / sum of c_j^beta over j not known of a",
        parts="Static(Everything(positives, popularity(counts, 0.75)))",
        paper="Mikolov et al. Distributed Representations of Words and Phrases. NIPS 2013.",
        cost="O(1) a draw by alias table; 24 bytes an item and 8 an anchor beside the pairs.",
        example=_SETUP.format(sampler=_EVERYTHING.format(weights="ns.pools.popularity(known, power=0.75)")),
        aliases=(
            Alias("word2vec", "Mikolov et al. NIPS 2013.", "Skip-gram: five words by count^0.75.", _WORD2VEC),
            Alias(
                "DeepWalk",
                "Perozzi et al. DeepWalk. KDD 2014.",
                "Visits of uniform walks^0.75 (the review's reading: the original uses a hierarchical softmax).",
                _DEEPWALK,
            ),
            Alias("LINE", "Tang et al. LINE. WWW 2015.", "Nodes by degree^0.75.", _LINE),
            Alias(
                "Item2vec",
                "Barkan and Koenigstein. Item2vec. MLSP 2016.",
                "word2vec over baskets: fifteen items by count^0.75.",
                _ITEM2VEC,
            ),
            Alias(
                "GraphSAGE",
                "Hamilton et al. Inductive Representation Learning on Large Graphs. NIPS 2017.",
                "Nodes by degree^0.75, against those that meet on a walk.",
                _GRAPHSAGE,
            ),
            Alias("node2vec", "Grover and Leskovec. node2vec. KDD 2016.", "Visits of biased walks^0.75.", _NODE2VEC),
        ),
    ),
    Method(
        name="user-oriented",
        kind="static",
        pool="global",
        summary="Negatives of an anchor with many positives weigh more.",
        formula="weight(a, i) = count(a) / mean count; i uniform over what is not known of a",
        parts="UserOriented(Everything(positives), positives)",
        paper="Pan et al. One-Class Collaborative Filtering. ICDM 2008.",
        cost="As uniform, and 8 bytes an anchor.",
        example=_SETUP.format(sampler="sampler = ns.samplers.UserOriented(ns.pools.Everything(known), known)"),
    ),
    Method(
        name="item-oriented",
        kind="static",
        pool="global",
        summary="Items that few anchors have are drawn more: a missing pair is surer to be negative there.",
        formula="P(i | a) proportional to n_anchors - count(i) over i not known of a",
        parts="Static(Everything(positives, item_oriented(positives)))",
        paper="Pan et al. One-Class Collaborative Filtering. ICDM 2008.",
        cost="As popularity.",
        example=_SETUP.format(sampler=_EVERYTHING.format(weights="ns.pools.item_oriented(known)")),
    ),
    Method(
        name="log-uniform",
        kind="static",
        pool="global",
        summary="Zipf's law by rank, where ids are sorted by frequency or counts give the order.",
        formula="P(rank r) = log((r + 2) / (r + 1)) / log(n + 1), renormalised over what is not known",
        parts="Static(Everything(positives, log_uniform(n_items, counts)))",
        paper="Jean et al. On Using Very Large Target Vocabulary. ACL 2015; the candidate sampler of TensorFlow.",
        cost="As popularity.",
        example=_SETUP.format(sampler=_EVERYTHING.format(weights="ns.pools.log_uniform(200, known.item_counts())")),
    ),
)
