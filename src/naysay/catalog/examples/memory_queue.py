"""memory-queue: items of earlier batches with the vectors they had then: first in, first out."""

import numpy as np

import naysay as ns

images = np.arange(320)
known = ns.Positives.from_pairs(images, images)  # the other view of an image is its positive
rng = np.random.default_rng(0)
keys = rng.standard_normal((320, 16)).astype(np.float32)  # the output of the momentum encoder
keys /= np.linalg.norm(keys, axis=1, keepdims=True)
memory = ns.pools.Memory(256, known)
for batch in np.split(images[64:], 4):  # earlier steps
    memory.push(batch, vectors=keys[batch])
sampler = ns.samplers.Static(memory)
query = ns.Query(images[:64], positives=images[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # with negatives.vectors
