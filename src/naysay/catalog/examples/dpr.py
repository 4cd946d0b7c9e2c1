"""DPR: B - 1 passages of other questions, and BM25's top wrong passage of every question."""

import numpy as np
import torch

import naysay as ns

rng = np.random.default_rng(3)
questions, passages = rng.integers(0, (200, 400), size=(600, 2)).T  # which passage answers which question
known = ns.Positives.from_pairs(questions, passages, n_anchors=200, n_items=400)
pool = ns.pools.InBatch(known)
sampler = ns.samplers.Static(pool)
query = ns.Query(questions[:32], positives=passages[:32])
negatives = sampler.sample(query, 31, rng=ns.rng_for(seed=0))  # B - 1 per row, fewer if some are positives
vectors = torch.from_numpy(rng.standard_normal((2, 32, 16)))  # an encoder's output
anchors, keys = torch.nn.functional.normalize(vectors, dim=2)
bm25 = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((32, 1, 16))), dim=2)  # one found by BM25
mask = np.concatenate([pool.eligible(query), np.ones((32, 32), bool)], axis=1)  # BM25's are negatives of every question
loss = ns.losses.in_batch(anchors, keys, mask=mask, negatives=bm25, share_negatives=True)
