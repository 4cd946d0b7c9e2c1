"""Iscen et al.: near by cosine, far along the data; no labels are used."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
angle = np.repeat(np.linspace(0, 6.2, 60), 2)  # two rings, close to each other
vectors = np.stack([np.cos(angle), np.sin(angle), np.tile([0.06, -0.06], 60)], axis=1)
lists = ns.mining.disagreement(vectors, k=12, graph=2)
known = ns.Positives.from_pairs(np.arange(120), np.arange(120), 120, 120)  # a sample is its own positive
sampler = ns.samplers.Static(ns.pools.Local(lists.negatives, known))
query = ns.Query(np.arange(64), positives=np.arange(64))
negatives = sampler.sample(query, 2, rng=ns.rng_for(seed=0))
