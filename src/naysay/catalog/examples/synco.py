"""SynCo: six kinds of synthetic negatives from the hardest of a queue."""

import numpy as np

import naysay as ns
from naysay.samplers import Dynamic, Mixed, MoCHi, Perturbed, StoredVectors, Transformed

images, rng = np.arange(256), np.random.default_rng(0)
known = ns.Positives.from_pairs(images, images)  # the other view of an image is its positive
keys = rng.standard_normal((256, 16)) / 4
memory = ns.pools.Memory(256, known)
memory.push(images, vectors=keys)


def embed(ids, noise=None):
    return keys[ids] + (0 if noise is None else 0.01 * noise.standard_normal((*ids.shape, 16)))


mixing = (("interpolated", 1.0, (0.0, 0.5)), ("extrapolated", 1.0, (-0.5, 0.0)), ("mixed", 0.0, (0.0, 0.5)))
parts = {name: MoCHi(memory, None, 64, embed_anchors=embed, anchor_share=s, anchor_mix=m) for name, s, m in mixing}
hard = Dynamic(memory, StoredVectors(embed_anchors=embed), candidates=None)
parts |= {norm: Perturbed(hard, embed, 0.01, norm, embed_anchors=embed) for norm in ("2", "inf")}
sampler = Mixed({**parts, "noisy": Transformed(hard, embed)}, (4, 4, 4, 1, 1, 1))
query = ns.Query(images[:64], positives=images[:64], vectors=keys[:64])
negatives = sampler.sample(query, 30, rng=ns.rng_for(seed=0))
