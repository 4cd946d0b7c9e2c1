"""Positives as five encoders score them, from isotropic to all vectors in one narrow cone."""

import numpy as np

# how far positives stray from their anchor, and how much of one common direction is added to every vector
ENCODERS = {
    "isotropic": (0.75, 0.0),
    "tilted": (0.8, 1.88),
    "narrow": (0.8, 3.64),
    "isotropic and noisy": (1.73, 0.0),
    "narrow and noisy": (2.8, 3.18),
}


def units(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def positive_scores(name, n_anchors, per_anchor, seed, dimensions=32):
    """(n_anchors, per_anchor) cosines of anchors with their positives; which of these are labelled is chance."""
    noise, cone = ENCODERS[name]
    rng = np.random.default_rng(seed)
    common = cone * units(rng.standard_normal(dimensions))
    anchors = units(rng.standard_normal((n_anchors, 1, dimensions)))
    stray = noise * units(rng.standard_normal((n_anchors, per_anchor, dimensions)))
    return (units(anchors + common) * units(units(anchors + stray) + common)).sum(axis=2)
