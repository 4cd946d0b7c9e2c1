"""Rows for detectors that ask several witnesses: views of the anchor, a mixture of scores, soft clusters."""

from naysay.catalog.rows import Suspect

_VIEWS = """\
import numpy as np
import naysay as ns

world = ns.testing.planted_world(200, 300, per_anchor=10, noise=0.5)
noise = ns.rng_for(seed=1).standard_normal((200, 8, 32)) / 8
views = world.anchor_vectors[:, None] + noise                             # eight more looks at each anchor
query = ns.Query(np.arange(64))
negatives = ns.pools.Everything(world.known).draw(query, 50, rng=ns.rng_for(seed=0))
detector = ns.detectors.SupportViews(views, lambda ids: world.item_vectors[ids], top=10, threshold=0.5)
suspicion = detector.suspicion(query, negatives)                          # (64, 50); from 1/2 on: in the top, and near
"""

_MIXTURE = """\
import dataclasses
import numpy as np
import naysay as ns

world = ns.testing.planted_world(200, 300, per_anchor=10, noise=0.5)
query = ns.Query(np.arange(64))
negatives = ns.pools.Everything(world.known).draw(query, 50, rng=ns.rng_for(seed=0))
negatives = dataclasses.replace(negatives, scores=world.scores(query.anchors, negatives.ids))
detector = ns.detectors.Mixture({settings})
detector.update(negatives.scores, mask=negatives.mask)                    # two components, in detector.components
suspicion = detector.suspicion(query, negatives)                          # (64, 50): the posterior of the higher one
weights = detector.weights(negatives.scores, mask=negatives.mask)         # ProGCL's: true and hard at once
"""

_CLUSTERS = """\
import numpy as np
import naysay as ns

world = ns.testing.planted_world(200, 300, per_anchor=10, noise=0.5)
query = ns.Query(np.arange(64), vectors=world.anchor_vectors[:64])
negatives = ns.pools.Everything(world.known).draw(query, 50, rng=ns.rng_for(seed=0))
detector = ns.detectors.SoftClusters(6, lambda ids: world.item_vectors[ids])
detector.update(np.concatenate([world.anchor_vectors, world.item_vectors]), rng=ns.rng_for(seed=2))    # once an epoch
suspicion = detector.suspicion(query, negatives)                          # (64, 50); from 1/2 on: the same cluster
"""

ROWS: tuple[Suspect, ...] = (
    Suspect(
        name="detectors.SupportViews",
        kind="agreement",
        summary="Negatives that look like one of many views of the anchor.",
        formula="score = max over views of cos; flagged: in the row's top n and at least the threshold",
        parts="SupportViews(views, embed, top=10, threshold=0.7, aggregate='max')",
        paper="Huynh et al. Boosting Contrastive Self-Supervised Learning with False Negative Cancellation. WACV 2022.",
        cost="O(B S n d) for n different ids that rows share, else O(B K S d); a sort of each row.",
        example=_VIEWS,
        also=("FNC",),
    ),
    Suspect(
        name="detectors.Mixture",
        kind="mixture",
        summary="The chance that a score is of the higher of two beta components.",
        formula="share p_false(s) / ((1 - share) p_true(s) + share p_false(s)), level beyond its turn",
        parts="Mixture('beta', bounds=None, false_share=0.05, iterations=10); update(scores)",
        paper="Xia et al. ProGCL: Rethinking Hard Negative Mining in Graph Contrastive Learning. ICML 2022.",
        cost="O(n) a round of the fit; O(1) a slot.",
        example=_MIXTURE.format(settings='"beta", bounds=(-1, 1)'),
        also=("ProGCL",),
    ),
    Suspect(
        name="detectors.Mixture normal",
        kind="mixture",
        summary="The chance that a score is of the higher of two normal components.",
        formula="share p_false(s) / ((1 - share) p_true(s) + share p_false(s)), level beyond its turn",
        parts="Mixture('normal'); update(scores)",
        paper="Xia et al. ProGCL, ICML 2022, which prefers beta; the mixture of normals is the textbook's.",
        cost="O(n) a round of the fit; O(1) a slot.",
        example=_MIXTURE.format(settings='"normal"'),
    ),
    Suspect(
        name="detectors.SoftClusters",
        kind="clustering",
        summary="Negatives of the anchor's own cluster, by how surely both belong to it.",
        formula="(1 + a) / 2 in the same cluster, else a / 2, with a = sum_u q_u(anchor) q_u(j), q Student's t kernel",
        parts="SoftClusters(n_clusters, embed); update(vectors, rng=...)",
        paper="Zhao et al. Graph Debiased Contrastive Learning with Joint Representation Clustering. IJCAI 2021.",
        cost="k-means, O(n n_clusters d) a round; asking, O((B + ids) n_clusters d + B K n_clusters).",
        example=_CLUSTERS,
        also=("GDCL",),
    ),
)
