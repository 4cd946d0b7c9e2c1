"""Rows for what finds false negatives by a line through the scores: by positives, by rank, or learnt."""

from naysay.catalog.rows import Suspect

_SCORED = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
anchor_vectors, item_vectors = rng.standard_normal((300, 16)), rng.standard_normal((500, 16))   # an encoder's answers
anchor_vectors /= np.linalg.norm(anchor_vectors, axis=1, keepdims=True)
items = np.arange(300)                                        # item a is the labelled positive of anchor a
item_vectors[:300] = anchor_vectors + 0.2 * rng.standard_normal((300, 16))
item_vectors /= np.linalg.norm(item_vectors, axis=1, keepdims=True)


def score(anchors, ids):
    return np.einsum("bd,bnd->bn", anchor_vectors[anchors], item_vectors[ids])


known = ns.Positives.from_pairs(items, items, n_items=500)
sampler = ns.samplers.Dynamic(ns.pools.Everything(known), score, candidates=64)
query = ns.Query(np.arange(64), positives=items[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
own = score(items, items[:, None])[:, 0]                      # how each anchor's positive scores
{detector}
suspicion = detector.suspicion(query, negatives)              # (64, 8), flagged from 0.5 on
"""

_CALIBRATED = _SCORED.format(
    detector="""\
held_out = ns.detectors.one_per_anchor(items, share=0.5, rng=ns.rng_for(seed=1))    # not to be trained on
detector = ns.detectors.Calibrated(alpha=0.05).fit(own[held_out], items[held_out])"""
)
_BY_ANCHOR = _SCORED.format(
    detector="""\
background = score(np.arange(300), rng.integers(0, 500, (300, 100)))    # random candidates of each anchor
detector = ns.detectors.Calibrated(alpha=0.05, standardise=True).fit(own, np.arange(300), background=background)"""
)
_LEARNED = "import dataclasses\n" + _SCORED.format(
    detector="""\
detector = ns.detectors.LearnedQuantile(n_anchors=300, alpha=0.1)
pool = ns.pools.Everything(known)
for step in range(200):                                       # once a training step: random candidates, as they come
    seen = ns.Query(rng.integers(0, 300, 64), step=step)
    drawn = pool.draw(seen, 32, rng=ns.rng_for(seed=2, step=step))
    detector.observe(seen, dataclasses.replace(drawn, scores=score(seen.anchors, drawn.ids)))
query = dataclasses.replace(query, step=200)"""
)

_NV = "Moreira et al. NV-Retriever: Improving Text Embedding Models with Effective Hard-Negative Mining. 2024."
_LINE = "0.5 + 0.5 d / (1 + |d|), d = s - "

ROWS: tuple[Suspect, ...] = (
    Suspect(
        name="detectors.Calibrated",
        kind="threshold",
        summary="What scores like a labelled positive; at most alpha of unlabelled ones are let through.",
        formula="0.5 at the r-th smallest of n positives' scores, r = floor(alpha (n + 1)); elsewhere by rank",
        parts="Calibrated(alpha).fit(positive_scores, anchors, rng=rng)",
        paper="Vovk, Gammerman and Shafer. Algorithmic Learning in a Random World. 2005: conformal prediction.",
        cost="A sort of n scores; O(log n) a slot.",
        example=_CALIBRATED,
    ),
    Suspect(
        name="calibrated by anchor",
        kind="threshold",
        summary="The same in deviations above what random candidates of the anchor score.",
        formula="the same of z = (s - mean_q) / deviation_q",
        parts="Calibrated(alpha, standardise=True).fit(positive_scores, anchors, background=background)",
        paper="Vovk, Gammerman and Shafer. Algorithmic Learning in a Random World. 2005: conformal prediction.",
        cost="A sort of n scores, O(m) an anchor; O(log n) a slot.",
        example=_BY_ANCHOR,
    ),
    Suspect(
        name="detectors.RankWindow",
        kind="threshold",
        summary="The nearest few of each row, whatever they score.",
        formula="skip / (skip + rank)",
        parts="RankWindow(skip)",
        paper=_NV,
        cost="A sort of each row, O(K log K).",
        example=_SCORED.format(detector="detector = ns.detectors.RankWindow(2)"),
        also=("Shift-N", "range_min"),
    ),
    Suspect(
        name="detectors.Absolute",
        kind="threshold",
        summary="What scores above one number, for all anchors.",
        formula=_LINE + "high",
        parts="Absolute(high)",
        paper=_NV,
        cost="O(1) a slot.",
        example=_SCORED.format(detector="detector = ns.detectors.Absolute(0.5)"),
        also=("TopK-Abs", "max_score"),
    ),
    Suspect(
        name="detectors.Margin",
        kind="threshold",
        summary="What comes closer to the anchor's positive than a margin.",
        formula=_LINE + "(s+ - margin)",
        parts="Margin(margin, positive_scores)",
        paper=_NV,
        cost="O(1) a slot.",
        example=_SCORED.format(
            detector="""\
detector = ns.detectors.Margin(0.2, lambda query: score(query.anchors, query.positives[:, None])[:, 0])"""
        ),
        also=("TopK-MarginPos", "absolute_margin"),
    ),
    Suspect(
        name="detectors.ShareOfPositive",
        kind="threshold",
        summary="What scores above 95 % of the anchor's positive.",
        formula=_LINE + "(s+ - |s+| (1 - share))",
        parts="ShareOfPositive(positive_scores, share=0.95)",
        paper=_NV,
        cost="O(1) a slot.",
        example=_SCORED.format(
            detector="""\
lowest = ns.detectors.lowest_scores(items, own, n_anchors=300)
detector = ns.detectors.ShareOfPositive(lowest, share=0.7)"""
        ),
        also=("TopK-PercPos", "relative_margin"),
    ),
    Suspect(
        name="detectors.Ecdf",
        kind="threshold",
        summary="What ranks too high among all positives' scores, against the anchor's own positive.",
        formula=(
            "u / (2 p) up to p, the rank of the highest positive at or below max(beta u(s+), floor), "
            "then 0.5 + 0.5 (u - p) / (1 - p); u the rank of s"
        ),
        parts="Ecdf(scores, positive_scores, beta=0.01, floor=0.005)",
        paper="jansowa. mine-hard-negatives. 2026.",
        cost="A sort of n scores; O(log n) a slot.",
        example=_SCORED.format(detector="detector = ns.detectors.Ecdf(own, own, beta=0.1)"),
    ),
    Suspect(
        name="detectors.LearnedQuantile",
        kind="threshold",
        summary="The top alpha of each anchor's negatives, by a line that follows them through training.",
        formula=_LINE + "line_q; line_q moves by Adam on alpha - share of the anchor's negatives above it",
        parts="LearnedQuantile(n_anchors, alpha); observe(query, negatives) once a step",
        paper="Balmaseda et al. Discovering Global False Negatives On the Fly ... ICML 2025.",
        cost="O(B K) a step; four numbers an anchor.",
        example=_LEARNED,
        also=("GloFND",),
    ),
)
