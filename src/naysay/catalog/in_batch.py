"""Rows for batches: the items of the other rows, which are encoded anyway."""

from naysay.catalog.rows import Alias, Method

_PAIRS = """\
import numpy as np
import torch
import naysay as ns

rng = np.random.default_rng({seed})
{a}, {b} = rng.integers(0, (200, 400), size=(600, 2)).T{space}    # {what}
known = ns.Positives.from_pairs({a}, {b}, n_anchors=200, n_items=400)
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
query = ns.Query({a}[:32], positives={b}[:32])
negatives = sampler.sample(query, 31, rng=ns.rng_for(seed=0))         # B - 1 a row, or fewer where some are known
one, two = (torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((32, 16))), dim=1) for _ in range(2))
{loss}
"""

_VIEWS = """\
import numpy as np
import torch
import naysay as ns

n = {n}                                                       # {what}
views = np.arange(2 * n)                                      # view v shows {thing} v % n
known = ns.Positives.from_pairs(np.tile(np.arange(n), 2), views)      # both views of {thing} i belong to it
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
batch = np.arange({batch})
query = ns.Query(np.tile(batch, 2), positives=np.concatenate([batch + n, batch]))     # each view asks for the other
negatives = sampler.sample(query, 2 * len(batch) - 2, rng=ns.rng_for(seed=0))         # 2 (B - 1), the rest of the batch
rng = np.random.default_rng({seed})
z = torch.from_numpy(rng.standard_normal((2 * len(batch), 16)))       # {encoder}
z, partner = torch.nn.functional.normalize(z, dim=1), np.roll(np.arange(len(z)), len(batch))
{loss}
"""


def _pairs(a: str, b: str, what: str, loss: str, seed: int) -> str:
    return _PAIRS.format(a=a, b=b, what=what, loss=loss, seed=seed, space=" " * max(0, 16 - len(a) - len(b)))


def _views(what: str, encoder: str, loss: str, seed: int, thing: str = "image") -> str:
    return _VIEWS.format(what=what, encoder=encoder, loss=loss, seed=seed, thing=thing, n=100 + seed, batch=16)


_BASIC = "loss = ns.losses.in_batch(one, two, mask=pool.eligible(query), temperature=0.05)"
_DPR = """\
bm25 = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((32, 1, 16))), dim=2)    # one found by words
mask = np.concatenate([pool.eligible(query), np.ones((32, 32), bool)], axis=1)    # BM25's count for every question
loss = ns.losses.in_batch(one, two, mask=mask, negatives=bm25, share_negatives=True)"""
_YI = """\
share = known.item_counts()[items[:32]] / len(known)          # how often each item comes into a batch
loss = ns.losses.in_batch(one, two, mask=pool.eligible(query), log_q=np.log(share))"""
_ROCKET = """\
passages, first = ns.losses.gather_rows(two)                  # those of every process; here there is one
ids, _ = ns.losses.gather_rows(torch.from_numpy(items[:32]))
known_of = known.contains(queries[:32], np.tile(ids.numpy(), (32, 1)))
loss = ns.losses.in_batch(one, passages, partner=first + torch.arange(32), mask=~known_of, temperature=0.05)"""
_SHARED = "loss = ns.losses.in_batch(one, two, mask=pool.eligible(query))      # what is linked to the user is left out"
_TWO_SIDES = "loss = ns.losses.in_batch(z, partner=partner, temperature=0.2)"
_ONE_SIDE = """\
first, second = z[:16], z[16:]
loss = ns.losses.in_batch(first, second, temperature={t})       # {note}"""
_N_PAIR = """\
first, second = 4 * z[:16], 4 * z[16:]                        # products, not cosines: lengths count
loss = ns.losses.in_batch(first, second)                      # log(1 + sum over others of exp(s_j - s_p))"""
_MVGRL = """\
nodes = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((80, 16))), dim=1)    # five of each graph
loss = ns.losses.in_batch(nodes, z[16:], partner=np.repeat(batch, 5))       # the graphs of the other view"""
_DEBIASED = "loss = ns.losses.in_batch(z, partner=partner, temperature=0.5, prior=0.1)      # 1 in 10 is false"
_GDCL = """\
clusters = np.random.default_rng(0).integers(0, 8, 16)        # of k-means, made anew as training goes on
loss = ns.losses.in_batch(z, partner=partner, labels=np.tile(clusters, 2), temperature=0.5)"""
_DCLR = """\
judge = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((32, 16))), dim=1)    # a second model
loss = ns.losses.in_batch(z, partner=partner, temperature=0.05, mask=judge @ judge.T < 0.85)"""
_FNC = """\
support = torch.from_numpy(rng.standard_normal((8, 32, 16)))  # eight more views of each, not trained on
support = torch.nn.functional.normalize(support, dim=2)
alike = torch.einsum("snd,md->snm", support, z).amax(dim=0)   # the closest that any view of i comes to j
false = (alike > 0.7) & (alike >= alike.topk(10, dim=1).values[:, -1:])
loss = ns.losses.in_batch(z, partner=partner, temperature=0.1, mask=~false)"""
_HARD = "loss = ns.losses.in_batch(z, partner=partner, temperature=0.5, prior=0.1, beta=1.0)     # hard ones count more"
_VASCL = """\
near = (z @ z.T).fill_diagonal_(-1.0).topk(4, dim=1).indices  # the neighbourhood of each sentence in the batch
mask = torch.zeros(32, 32, dtype=torch.bool).scatter_(1, near, True)
loss = ns.losses.in_batch(z, partner=partner, temperature=0.05, mask=mask)"""

_COST = "The scores of all pairs, which are products of vectors that are there anyway: O(B^2 d), in blocks."

ROWS = (
    Method(
        name="in-batch",
        also=("dense retrieval",),
        kind="in-batch",
        pool="mini-batch",
        summary="The items of the batch's other rows, all of them, unless they are known of the anchor.",
        formula="row i: the items j of the batch with j not known of i, B - 1 at most; 2 (B - 1) with two views",
        parts="Static(InBatch(positives)) or InBatch(positives).eligible(query), and losses.in_batch(anchors, keys)",
        paper="Henderson et al. Efficient Natural Language Response Suggestion for Smart Reply. 2017.",
        cost=_COST,
        example=_pairs("queries", "items", "which document answers which query", _BASIC, 0),
        aliases=(
            Alias(
                "SimCLR",
                "Chen et al. A Simple Framework for Contrastive Learning of Visual Representations. ICML 2020.",
                "Two views of each image: 2 (B - 1) negatives.",
                _views("images", "what the encoder makes of each view", _TWO_SIDES, 0),
            ),
            Alias(
                "SimCSE",
                "Gao et al. SimCSE. EMNLP 2021.",
                "A sentence twice through dropout: the second readings of the B - 1 other sentences.",
                _views(
                    "sentences",
                    "read twice, with other dropout",
                    _ONE_SIDE.format(t=0.05, note="B - 1 of the other reading"),
                    1,
                    "sentence",
                ),
            ),
            Alias(
                "GRACE",
                "Zhu et al. Deep Graph Contrastive Representation Learning. 2020.",
                "Two damaged copies of a graph: other nodes of both.",
                _views("nodes", "nodes of two damaged copies of a graph", _TWO_SIDES, 2, "node"),
            ),
            Alias(
                "GCA",
                "Zhu et al. Graph Contrastive Learning with Adaptive Augmentation. WWW 2021.",
                "As GRACE; edges of little weight are dropped first, which is the encoder's side.",
                _views("nodes", "copies that lost their least central edges", _TWO_SIDES, 3, "node"),
            ),
            Alias(
                "GraphCL",
                "You et al. Graph Contrastive Learning with Augmentations. NeurIPS 2020.",
                "Two damaged copies of each graph: the other graphs' second copies.",
                _views("graphs", "whole graphs, twice", _ONE_SIDE.format(t=0.5, note="the other graphs"), 4, "graph"),
            ),
            Alias(
                "MVGRL",
                "Hassani and Khasahmadi. Contrastive Multi-View Representation Learning on Graphs. ICML 2020.",
                "Nodes of one view against the other graphs of the second; the paper's loss is a Jensen-Shannon one.",
                _views("graphs", "whole graphs, in two views", _MVGRL, 14, "graph"),
            ),
            Alias(
                "CLEAR",
                "Wu et al. CLEAR: Contrastive Learning for Sentence Representation. 2020.",
                "Two damaged copies of each sentence: words deleted, moved or replaced.",
                _views("sentences", "read with words deleted or moved", _TWO_SIDES, 15, "sentence"),
            ),
            Alias(
                "CPC",
                "van den Oord et al. Representation Learning with Contrastive Predictive Coding. 2018.",
                "What the past predicts, against what came in the other sequences.",
                _views(
                    "sequences; views are past and future",
                    "predictions, then encodings",
                    _ONE_SIDE.format(t=1.0, note="the futures of the others"),
                    16,
                    "sequence",
                ),
            ),
            Alias(
                "N-pair",
                "Sohn. Improved Deep Metric Learning with Multi-class N-pair Loss Objective. NIPS 2016.",
                "One pair of each class: the other pairs' second halves.",
                _views("classes", "two pictures of each class", _N_PAIR, 17, "class"),
            ),
            Alias(
                "SGL",
                "Wu et al. Self-supervised Graph Learning for Recommendation. SIGIR 2021.",
                "Users among users and items among items, beside the main task.",
                _views(
                    "users; items likewise",
                    "users in two damaged copies of the graph",
                    _ONE_SIDE.format(t=0.2, note="and the same over items"),
                    5,
                    "user",
                ),
            ),
            Alias(
                "N.S. (negative sharing)",
                "Chen et al. On Sampling Strategies for Neural Network-based Collaborative Filtering. KDD 2017.",
                "Items of other links of the batch that are not linked to the user.",
                _pairs("users", "items", "who clicked what", _SHARED, 1),
            ),
            Alias(
                "Yi et al.",
                "Yi et al. Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations. RecSys 2019.",
                "With log_q, so that popular items are not punished; the paper corrects the positive too.",
                _pairs("users", "items", "who watched what", _YI, 2),
            ),
            Alias(
                "DPR",
                "Karpukhin et al. Dense Passage Retrieval for Open-Domain Question Answering. EMNLP 2020.",
                "B - 1 passages of other questions, and BM25's best wrong one of every question.",
                _pairs("questions", "passages", "which passage answers which question", _DPR, 3),
            ),
            Alias(
                "RocketQA",
                "Qu et al. RocketQA. NAACL 2021.",
                "Cross-batch: the passages of all processes (its denoised hard negatives are a detector's work).",
                _pairs("queries", "items", "which passage answers which query", _ROCKET, 4),
            ),
        ),
    ),
    Method(
        name="in-batch debiased",
        kind="in-batch",
        pool="mini-batch",
        summary="The batch, less what is likely to be a positive: by a prior, by clusters, or by a second opinion.",
        formula="sum_neg = (sum_j e^{s_j/t} - prior N e^{p/t}) / (1 - prior), at least N e^{least/t}",
        parts="Static(InBatch(positives)), and losses.in_batch(z, partner=..., prior=0.1)",
        paper="Chuang et al. Debiased Contrastive Learning. NeurIPS 2020.",
        cost=_COST,
        example=_views("images", "two views of each", "loss = ns.losses.in_batch(z, partner=partner, prior=0.05)", 6),
        aliases=(
            Alias(
                "DCL (debiased)",
                "Chuang et al. NeurIPS 2020.",
                "The correction by a prior; the decoupled loss is another DCL.",
                _views("images", "two views of each", _DEBIASED, 7),
            ),
            Alias(
                "GDCL (in-batch)",
                "Zhao et al. Graph Debiased Contrastive Learning with Joint Representation Clustering. IJCAI 2021.",
                "Only those of other clusters; the paper draws some of them.",
                _views("nodes", "two views of each node", _GDCL, 8, "node"),
            ),
            Alias(
                "DCLR",
                "Zhou et al. Debiased Contrastive Learning of Unsupervised Sentence Representations. ACL 2022.",
                "None that a second model finds too alike; its negatives made of noise are not here.",
                _views("sentences", "two readings of each", _DCLR, 9, "sentence"),
            ),
            Alias(
                "FNC (in-batch)",
                "Huynh et al. Boosting Contrastive ... Learning with False Negative Cancellation. WACV 2022.",
                "None that some view comes too close to: eliminated; losses.attract for attraction.",
                _views("images", "two views of each", _FNC, 10),
            ),
        ),
    ),
    Method(
        name="in-batch hard",
        kind="in-batch",
        pool="mini-batch",
        summary="The batch, where negatives near the anchor count more or alone.",
        formula="w_j proportional to e^{beta s_j/t}, in the sum of the debiased form",
        parts="Static(InBatch(positives)), and losses.in_batch(z, partner=..., prior=0.1, beta=1.0)",
        paper="Robinson et al. Contrastive Learning with Hard Negative Samples. ICLR 2021.",
        cost=_COST,
        example=_views("images", "two views of each", _HARD.replace("prior=0.1, ", ""), 11),
        aliases=(
            Alias(
                "HCL (in-batch)",
                "Robinson et al. ICLR 2021.",
                "Weights by the model's own scores, with the correction by a prior.",
                _views("images", "two views of each", _HARD, 12),
            ),
            Alias(
                "VaSCL",
                "Zhang et al. Virtual Augmentation Supported Contrastive Learning. ACL 2022.",
                "The nearest of the batch alone; its virtual positives are not here.",
                _views("sentences", "two readings of each", _VASCL, 13, "sentence"),
            ),
        ),
    ),
)
