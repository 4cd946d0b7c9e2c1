"""The row for thresholds by shares of all pairs."""

from naysay.catalog.rows import Suspect

_BANDS = """\
import numpy as np
import naysay as ns

users, items = np.random.default_rng(0).integers(0, (50, 200), size=(1000, 2)).T    # who clicked what
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
rng = np.random.default_rng(1)
user, item = rng.standard_normal((50, 16)), rng.standard_normal((200, 16))          # a model's embeddings
score = lambda anchors, ids: np.einsum("bd,bnd->bn", user[anchors], item[ids])
pool = ns.pools.Everything(known)
query = ns.Query(users[:64])
seen = score(users, pool.draw(ns.Query(users), 100, rng=ns.rng_for(seed=0)).ids)    # scores of 100,000 negatives
chosen = ns.detectors.choose_thresholds(seen, n_positives=len(users))               # 0.1 % false, 5 % hard
detector = ns.detectors.Bands(chosen.low, chosen.high)
negatives = ns.samplers.Dynamic(pool, score, candidates=64).sample(query, 8, rng=ns.rng_for(seed=1))
suspicion = detector.suspicion(query, negatives)                                    # (64, 8): 1 at or above high
"""

ROWS: tuple[Suspect, ...] = (
    Suspect(
        name="detectors.Bands",
        kind="threshold",
        summary="Easy, hard and false negatives by two scores, chosen by shares of all pairs.",
        formula="1 if s >= high, else 0; high leaves 0.1 % of all pairs at or above it, low another 5 %",
        parts="Bands(low, high), with choose_thresholds(scores, n_positives=...)",
        paper="A note on threshold selection in negative sampling; shares after Cai et al. 2020, arXiv 2010.06682.",
        cost="O(B K) to ask; O(1) a score to choose, in one pass or two.",
        example=_BANDS,
        also=("threshold selection",),
    ),
)
