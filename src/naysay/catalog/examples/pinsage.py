"""PinSage: in epoch e, e - 1 hard negatives from a PageRank window."""

import numpy as np

import naysay as ns

sources, targets = np.random.default_rng(0).integers(0, 40, size=(2, 80))
known = ns.Positives.from_edges(sources, targets, 40)
steps_per_epoch = 100
sampler = ns.samplers.Mixed(
    {
        "random": ns.samplers.Static(ns.pools.Everything(known)),
        "hard": ns.samplers.Static(ns.pools.PageRank(known, ranks=(0.1, 0.5))),  # ranks=(2000, 5000) in the paper
    },
    shares=lambda step: (4, step // steps_per_epoch),  # epoch e has e - 1 hard ones
)
epoch = 3
query = ns.Query(sources[:64], positives=targets[:64], step=(epoch - 1) * steps_per_epoch)
negatives = sampler.sample(query, 4 + epoch - 1, rng=ns.rng_for(seed=0))
