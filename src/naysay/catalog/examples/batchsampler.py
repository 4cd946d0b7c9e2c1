"""BatchSampler: batches of rows that are near each other, by walks over a graph of neighbours."""

import numpy as np
import torch

import naysay as ns

vectors = torch.nn.functional.normalize(torch.from_numpy(np.random.default_rng(0).standard_normal((400, 16))), dim=1)
plan = ns.batches.Walk(400, 32, neighbours=10, candidates=100, restart=0.1)
plan.update(vectors, rng=ns.rng_for(seed=0))  # the encoder's vectors, again every so many steps
for batch in plan.plan(epoch=1, rng=ns.rng_for(seed=1)):
    rows = torch.from_numpy(batch[batch >= 0])
    loss = ns.losses.in_batch(vectors[rows], vectors[rows] + 0.01, temperature=0.05)
