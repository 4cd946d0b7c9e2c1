"""memory-bank: any other item, with the vector from the last time it was in a batch."""

import numpy as np

import naysay as ns

images = np.arange(200)
known = ns.Positives.from_pairs(images, images)  # each image is a class of its own
features = np.random.default_rng(0).standard_normal((200, 16)).astype(np.float32)
sampler = ns.samplers.Bank(ns.pools.Everything(known), n_items=200, momentum=0.5)
for batch in np.split(images, 4):  # once per step, after the loss
    sampler.observe(ns.Query(batch, positives=batch), None, vectors=features[batch])
query = ns.Query(images[:64], positives=images[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # with negatives.vectors
