"""MoCoRing: a ring over a memory queue, by the vectors in it; its lower bound rises during training."""

import numpy as np

import naysay as ns

images = np.arange(160)
known = ns.Positives.from_pairs(images, images)  # the other view of an image is its positive
rng = np.random.default_rng(4)
keys = rng.standard_normal((160, 16)).astype(np.float32)  # the output of the momentum encoder
memory = ns.pools.Memory(128, known)
for batch in np.split(images[32:], 4):  # earlier steps
    memory.push(batch, vectors=keys[batch])


def embed(anchors):  # the encoder that is trained
    return keys[anchors]


rising = ns.quantity.Linear(0.0, 0.9, steps=10_000)
score = ns.samplers.StoredVectors("cosine", embed)
sampler = ns.samplers.Ring(memory, score, candidates=None, keep=(rising, 0.99))  # of the whole queue
query = ns.Query(images[:32], positives=images[:32])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
