"""nearest: the items that a search with the query's own vector finds at this step (ADORE)."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(2)
queries, documents = rng.integers(0, (50, 200), size=(300, 2)).T
known = ns.Positives.from_pairs(queries, documents, n_anchors=50, n_items=200)
of_query, of_document = (rng.standard_normal((n, 16)).astype(np.float32) for n in (50, 200))

pool = ns.pools.Nearest(of_document, 40, known, queries=of_query, metric="dot")
sampler = ns.samplers.Static(pool)
for step in range(3):
    of_query += 0.1 * rng.standard_normal(of_query.shape)  # the query encoder learns; documents stay as they are
    batch = queries[:32]
    query = ns.Query(batch, positives=documents[:32], vectors=of_query[batch], step=step)
    negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0, step=step))
