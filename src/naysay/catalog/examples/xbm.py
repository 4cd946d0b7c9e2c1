"""XBM: the batch and a queue of earlier vectors of the same encoder, by pairs of classes, after a warm-up."""

import numpy as np
import torch

import naysay as ns

images = np.arange(320)
classes = torch.from_numpy(images % 20)
known = ns.Positives.from_pairs(images, images)
vectors = torch.nn.functional.normalize(torch.from_numpy(np.random.default_rng(0).standard_normal((320, 16))), dim=1)
memory, warm_up = ns.pools.Memory(256, known), 2
sampler = ns.samplers.Static(memory)
for step, batch in enumerate(np.split(images, 5)):
    z, labels = vectors[batch], classes[batch]
    loss = ns.losses.sup_con(z, labels, temperature=0.1)
    if step >= warm_up:  # by now the encoder moves slowly
        stored, of = memory.vectors, classes[memory.ids]
        loss = loss + ns.losses.sup_con(z, labels, temperature=0.1, keys=stored, key_labels=of)
    memory.push(batch, vectors=z)
query = ns.Query(images[:64], positives=images[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # with negatives.vectors
