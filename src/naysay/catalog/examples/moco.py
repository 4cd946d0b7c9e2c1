"""MoCo: keys of a momentum encoder: momentum_update."""

import numpy as np

import naysay as ns

images = np.arange(256)
known = ns.Positives.from_pairs(images, images)  # the other view of an image is its positive
rng = np.random.default_rng(1)
keys = rng.standard_normal((256, 16)).astype(np.float32)  # the output of the momentum encoder
keys /= np.linalg.norm(keys, axis=1, keepdims=True)
memory = ns.pools.Memory(192, known)
for batch in np.split(rng.permutation(images), 4):  # once per step, after the loss
    memory.observe(ns.Query(batch, positives=batch), None, vectors=keys[batch])
# After each step, with two torch modules: ns.samplers.momentum_update(fast, slow, momentum=0.999)
sampler = ns.samplers.Static(memory)
query = ns.Query(images[:64], positives=images[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # with negatives.vectors
