"""A world in which the assumptions of an audit hold: families of documents, of which one member is labelled."""

import numpy as np

import naysay as ns
from naysay.testing import World


def families(n=250, seed=0, sizes=(2, 3, 4, 5), near=0.75, others=600, topics=60, dimensions=48):
    """Each query asks for its family; one member, drawn at random, is labelled. `near`: how far members are apart."""
    rng = np.random.default_rng(seed)

    def around(centres, spread):
        moved = centres + spread * rng.normal(size=centres.shape) / np.sqrt(dimensions)
        return (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)

    topic = around(np.zeros((topics, dimensions)), 1.0)
    size = rng.choice(sizes, n)
    family = around(topic[rng.integers(topics, size=n)], 0.9)
    owner = np.repeat(np.arange(n), size)
    items = np.concatenate([around(family[owner], near), around(topic[rng.integers(topics, size=others)], 0.9)])
    one = np.cumsum(size) - size + (rng.random(n) * size).astype(np.int64)
    known = ns.Positives.from_pairs(np.arange(n), one, n, len(items))
    truth = ns.Positives.from_pairs(owner, np.arange(len(owner)), n, len(items))
    return World(known, truth, around(family, near), items)


def with_planted(world, ids, share, seed=0):
    """The same negatives, of which this share is replaced by unlabelled positives of the anchor, at random."""
    rng, planted = np.random.default_rng(seed), ids.copy()
    for anchor in range(len(ids)):
        true = set(world.truth.indices[world.truth.indptr[anchor] : world.truth.indptr[anchor + 1]].tolist())
        known = set(world.known.indices[world.known.indptr[anchor] : world.known.indptr[anchor + 1]].tolist())
        hidden = sorted(true - known - set(ids[anchor].tolist()))
        for slot in np.flatnonzero(rng.random(ids.shape[1]) < share).tolist():
            if hidden:
                planted[anchor, slot] = hidden.pop(int(rng.integers(len(hidden))))
    return planted
