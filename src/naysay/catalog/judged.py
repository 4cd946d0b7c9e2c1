"""Rows for samplers whose answers a detector has looked at."""

from naysay.catalog.rows import Method

_JUDGED = """\
import numpy as np
import naysay as ns

rng = np.random.default_rng(0)
documents = [f"Document {i % 80}" + "." * (i // 80) for i in range(160)]            # each twice, but for a full stop
table = rng.standard_normal((40, 160))                        # a model's scores
table[np.arange(40), np.arange(40) + 80] = 9.0                # it finds the duplicate of each positive the hardest negative


def score(anchors, ids):                                      # NumPy or torch in, the same out
    found = table[np.asarray(anchors)[:, None], np.asarray(ids)]
    return found if isinstance(ids, np.ndarray) else ids.double().new_tensor(found)


known = ns.Positives.from_pairs(np.arange(40), np.arange(40), n_items=160)
hard = ns.samplers.Dynamic(ns.pools.Everything(known), score, candidates=64)
duplicates = ns.detectors.Duplicates(item_texts=documents, positives=known)
sampler = ns.samplers.Judged(hard, {"duplicates": duplicates}, "drop", refill=2)
query = ns.Query(np.arange(40), positives=np.arange(40))
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))  # the 4 hardest that are no duplicate of the positive
"""

ROWS: tuple[Method, ...] = (
    Method(
        name="judged",
        kind="hard",
        pool="global",
        summary="The first k candidates of a sampler that a detector trusts.",
        formula="the sampler's order, on condition that suspicion < line",
        parts="Judged(Dynamic(Everything(positives), score, candidates=64), {name: detector}, 'drop', refill=2)",
        paper="Qu et al. RocketQA: An Optimized Training Approach to Dense Passage Retrieval. NAACL 2021: denoising.",
        cost="The sampler's and the detector's for refill * k slots.",
        example=_JUDGED,
    ),
)
