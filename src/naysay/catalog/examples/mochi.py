"""MoCHi: added to the queue's own negatives, after a warm-up."""

import numpy as np

import naysay as ns

images = np.arange(256)
known = ns.Positives.from_pairs(images, images)  # the other view of an image is its positive
keys = np.random.default_rng(0).standard_normal((256, 16))
keys /= np.linalg.norm(keys, axis=1, keepdims=True)
memory = ns.pools.Memory(192, known)
memory.push(images, vectors=keys)


def embed(ids):
    return keys[ids]


mixing = ns.samplers.MoCHi(memory, None, n_hard=32, embed_anchors=embed)
sampler = ns.samplers.Mixed(  # three quarters from the queue, one quarter mixed
    {"queue": ns.samplers.Static(memory), "mixed": mixing},
    shares=lambda step: (3, 1) if step >= 1024 else (1, 0),
)
query = ns.Query(images[:64], positives=images[:64], vectors=keys[:64], step=2048)
negatives = sampler.sample(query, 64, rng=ns.rng_for(seed=0))  # negatives.parents is -1 where nothing was mixed
