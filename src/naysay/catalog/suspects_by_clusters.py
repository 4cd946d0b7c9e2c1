"""Rows for what finds false negatives by clusters of the model's own features."""

from naysay.catalog.rows import Suspect

_INCREMENTAL = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
kind = rng.integers(0, 8, 400)                                # eight kinds of samples, of which we know nothing
features = rng.standard_normal((8, 16))[kind] + 0.3 * rng.standard_normal((400, 16))
detector = ns.detectors.Incremental(n_samples=400, clusters=(8, 24){more})
detector.update(features, progress=0.5)                                       # half of training is over
known = ns.Positives.from_pairs(np.arange(400), np.arange(400))               # a sample is no negative of itself
query = ns.Query(np.arange(64))
negatives = ns.pools.Everything(known).draw(query, 16, rng=ns.rng_for(seed=0))
suspicion = detector.suspicion(query, negatives)
"""

_PAPER = "Chen et al. Incremental False Negative Detection for Contrastive Learning. ICLR 2022."
_COST = "An update: O(n k d) an iteration, no (n, k) in memory. Asking: O(1) a slot and granularity."

ROWS: tuple[Suspect, ...] = (
    Suspect(
        name="detectors.Incremental",
        kind="clustering",
        summary="Samples of one k-means cluster, the most confident first, more as training goes on.",
        formula="mean over k of [y_i = y_j, both accepted]; confidence softmax_j(cos(v, c_j) / t) at c_y",
        parts="Incremental(n_samples, clusters); update(features, progress) once an epoch",
        paper=_PAPER,
        cost=_COST,
        example=_INCREMENTAL.format(more=""),
        also=("IFND",),
    ),
    Suspect(
        name="step acceptance",
        kind="clustering",
        summary="All cluster labels at once, after a warm-up of a tenth of training.",
        formula="mean over k of [y_i = y_j] once progress >= 0.1, else 0",
        parts="Incremental(n_samples, clusters, accept=StepAcceptance())",
        paper="Li et al. Prototypical Contrastive Learning of Unsupervised Representations. ICLR 2021.",
        cost=_COST,
        example=_INCREMENTAL.format(more=", accept=ns.detectors.StepAcceptance()"),
    ),
    Suspect(
        name="cluster concentration",
        kind="clustering",
        summary="Samples of one k-means cluster, those of dense clusters first.",
        formula="the same with confidence 1 / (1 + phi), phi = mean distance to the centroid / log(Z + 10)",
        parts='Incremental(n_samples, clusters, confidence="cluster")',
        paper="Li et al. Prototypical Contrastive Learning of Unsupervised Representations. ICLR 2021.",
        cost=_COST,
        example=_INCREMENTAL.format(more=', confidence="cluster"'),
    ),
)
