"""Rows for losses. Every example leaves `loss` and `values` behind: a function, and what it gives for some input."""

from naysay.catalog.rows import Loss

_SLOTS = """\
import functools
import torch
import naysay as ns

scores = torch.linspace(-1, 1, 36, dtype=torch.float64).reshape(9, 4).T    # 4 anchors: a positive and eight negatives
loss = {loss}
values = loss(scores[:, 8], scores[:, :8])                                 # (4,), unreduced
"""

_VECTORS = """\
import functools
import torch
import naysay as ns

views = torch.linspace(-1, 1, 48, dtype=torch.float64).sin().reshape(8, 6)    # 4 images, two views of each
z = torch.nn.functional.normalize(views, dim=1).requires_grad_()
partner = [4, 5, 6, 7, 0, 1, 2, 3]                                            # row i and row i + 4 are one image
labels = [0, 0, 1, -1, 0, 0, 1, -1]                                           # clusters; -1 is none
loss = {loss}
values = {call}                                                               # (8,), unreduced
"""

_INFO_NCE = """\
import numpy as np
import torch
import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T    # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
sampler = ns.samplers.Static(ns.pools.Everything(known))
negatives = sampler.sample(ns.Query(users[:64], positives=items[:64]), 8, rng=ns.rng_for(seed=0))
rng = np.random.default_rng(1)
user, item = (torch.from_numpy(rng.standard_normal((n, 16))) for n in (50, 200))    # a model's embeddings
positive = (user[users[:64]] * item[items[:64]]).sum(dim=1)
scores = torch.einsum("bd,bkd->bk", user[users[:64]], item[negatives.ids])
loss = ns.losses.info_nce
values = loss(positive, scores, mask=negatives.mask)                                # (64,), unreduced
"""

_SAMPLED = """\
import functools
import numpy as np
import torch
import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T    # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
pool = ns.pools.Everything(known, ns.pools.popularity(known), distinct=False)       # frequent items more often
negatives = ns.samplers.Static(pool).sample(ns.Query(users[:64]), 8, rng=ns.rng_for(seed=0))
rng = np.random.default_rng(1)
user, item = (torch.from_numpy(rng.standard_normal((n, 16))) for n in (50, 200))    # a model's embeddings
positive = (user[users[:64]] * item[items[:64]]).sum(dim=1)
scores = torch.einsum("bd,bkd->bk", user[users[:64]], item[negatives.ids])
loss = functools.partial(ns.losses.sampled_softmax, form="sampled")
values = loss(positive, scores, log_q=negatives.log_q, mask=negatives.mask)         # as if all items had been scored
"""

_ROW = "O(B K) time and memory."
_BLOCK = "O(N M d) time; memory for a block of scores and the gradients, never (N, M)."
_IFND = "Chen et al. Incremental False Negative Detection for Contrastive Learning. ICLR 2022."

ROWS = (
    Loss(
        name="losses.bpr",
        summary="The positive above each negative, pair by pair.",
        formula="sum_j -log sigmoid(p - s_j)",
        paper="Rendle et al. BPR: Bayesian Personalized Ranking from Implicit Feedback. UAI 2009.",
        cost=_ROW,
        example=_SLOTS.format(loss="ns.losses.bpr"),
    ),
    Loss(
        name="losses.hinge",
        summary="The positive above each negative by a margin.",
        formula="sum_j max(0, s_j - p + margin)",
        paper="Weinberger and Saul. Distance Metric Learning for Large Margin Nearest Neighbor ... JMLR 2009.",
        cost=_ROW,
        example=_SLOTS.format(loss="functools.partial(ns.losses.hinge, margin=0.5)"),
        also=("triplet margin",),
    ),
    Loss(
        name="losses.sampled_bce",
        summary="A yes for the positive and a no for each negative.",
        formula="-log sigmoid(p) - sum_j log sigmoid(-s_j)",
        paper="Mikolov et al. Distributed Representations of Words and Phrases. NIPS 2013.",
        cost=_ROW,
        example=_SLOTS.format(loss="ns.losses.sampled_bce"),
        also=("skip-gram negative sampling",),
    ),
    Loss(
        name="losses.gbce",
        summary="The same, with the positive scaled down by how few negatives were drawn.",
        formula="-beta log sigmoid(p) - sum_j log sigmoid(-s_j), beta = 1 - t (1 - k / (n - 1))",
        paper="Petrov and Macdonald. gSASRec. RecSys 2023.",
        cost=_ROW,
        example=_SLOTS.format(loss="functools.partial(ns.losses.gbce, n_items=200)"),
        also=("gBCE", "gSASRec"),
    ),
    Loss(
        name="losses.info_nce",
        summary="The positive among its negatives, as a choice of one.",
        formula="-p/t + log(e^{p/t} + sum_j w_j exp(s_j/t - [log q_j + log K]))",
        paper="van den Oord et al. Representation Learning with Contrastive Predictive Coding. 2018.",
        cost=_ROW,
        example=_INFO_NCE,
        also=("InfoNCE",),
    ),
    Loss(
        name="losses.sampled_softmax",
        summary="A softmax over all items, estimated from a few with known probabilities.",
        formula="-p/t + log(e^{p/t} + (1/K) sum_j e^{s_j/t} / q_j); or the refined, or the classic form",
        paper="Bengio and Senecal 2008; Yi et al. RecSys 2019 (classic); Khrylchenko et al. RecSys 2025 (refined).",
        cost=_ROW,
        example=_SAMPLED,
        also=("logQ correction",),
        needs_log_q=True,
    ),
    Loss(
        name="losses.decoupled",
        summary="InfoNCE without the positive in the denominator.",
        formula="-v p/t + log sum_j e^{s_j/t}",
        paper="Yeh et al. Decoupled Contrastive Learning. ECCV 2022.",
        cost=_ROW,
        example=_SLOTS.format(loss="functools.partial(ns.losses.decoupled, temperature=0.5)"),
        also=("DCLW",),
    ),
    Loss(
        name="losses.debiased",
        summary="InfoNCE less what false negatives are expected to add.",
        formula="-p/t + log(e^{p/t} + N max((mean_j e^{s_j/t} - prior e^{p/t}) / (1 - prior), e^{-1/t}))",
        paper="Chuang et al. Debiased Contrastive Learning. NeurIPS 2020.",
        cost=_ROW,
        example=_SLOTS.format(loss="functools.partial(ns.losses.debiased, prior=0.05)"),
    ),
    Loss(
        name="losses.hardness",
        summary="The debiased loss, with hard negatives counting more.",
        formula="as debiased, with the mean weighted by e^{beta s_j/t}",
        paper="Robinson et al. Contrastive Learning with Hard Negative Samples. ICLR 2021.",
        cost=_ROW,
        example=_SLOTS.format(loss="functools.partial(ns.losses.hardness, beta=1.0, prior=0.05)"),
        also=("HCL",),
        without=("monotone",),
    ),
    Loss(
        name="losses.self_adversarial",
        summary="Logistic, with the model's own scores weighing the negatives.",
        formula="(-log sigmoid(f_p) - sum_j softmax_j(alpha f) log sigmoid(-f_j)) / 2, f = margin + score",
        paper="Sun et al. RotatE. ICLR 2019.",
        cost=_ROW,
        example=_SLOTS.format(loss="functools.partial(ns.losses.self_adversarial, alpha=1.0, margin=6.0)"),
        also=("RotatE loss",),
        without=("gradient", "monotone"),
    ),
    Loss(
        name="losses.guided",
        summary="InfoNCE over the negatives that a guide does not find closer than the positive.",
        formula="info_nce over j with g_j <= g_p - margin",
        paper="Solatorio. GISTEmbed. 2024.",
        cost=_ROW,
        example=_SLOTS.format(
            loss="functools.partial(ns.losses.guided, temperature=1.0)    # the scores guide themselves"
        ),
        also=("GIST",),
        without=("monotone",),
    ),
    Loss(
        name="losses.in_batch",
        summary="The rest of the batch as negatives, in little memory: plain, masked, debiased, hard.",
        formula="info_nce, debiased or hardness of each row of anchors @ keys.T",
        paper="Chen et al. A Simple Framework for Contrastive Learning of Visual Representations. ICML 2020.",
        cost=_BLOCK,
        example=_VECTORS.format(
            loss="functools.partial(ns.losses.in_batch, temperature=0.5)", call="loss(z, partner=partner)"
        ),
        also=("NT-Xent", "SimCLR loss", "MNRL"),
        over="vectors",
    ),
    Loss(
        name="losses.eliminate",
        summary="Detected false negatives leave the denominator.",
        formula="-log(e^{z_i.z_i'/t} / (e^{z_i.z_i'/t} + sum over y_j != y_i of e^{z_i.z_j/t}))",
        paper=_IFND,
        cost=_BLOCK,
        example=_VECTORS.format(
            loss="functools.partial(ns.losses.eliminate, temperature=0.5)", call="loss(z, partner, labels)"
        ),
        over="vectors",
    ),
    Loss(
        name="losses.attract",
        summary="Detected false negatives join the positives.",
        formula="1/|P_i| sum over p in P_i of -log(e^{z_i.z_p/t} / sum over s != i of e^{z_i.z_s/t})",
        paper=_IFND,
        cost=_BLOCK,
        example=_VECTORS.format(
            loss="functools.partial(ns.losses.attract, temperature=0.5)", call="loss(z, partner, labels)"
        ),
        over="vectors",
    ),
    Loss(
        name="losses.sup_con",
        summary="Everything of the anchor's class is a positive.",
        formula="the same over the class of i, without a partner",
        paper="Khosla et al. Supervised Contrastive Learning. NeurIPS 2020.",
        cost=_BLOCK,
        example=_VECTORS.format(loss="functools.partial(ns.losses.sup_con, temperature=0.5)", call="loss(z, labels)"),
        also=("SupCon",),
        over="vectors",
    ),
)
