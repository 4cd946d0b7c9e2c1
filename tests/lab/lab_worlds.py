"""Small data of the five domains, and a task for each model."""

import numpy as np

import naysay as ns

ENTITIES, RELATIONS = 20, 3
NODE_CLASSES = np.arange(60) % 2
_RNG = np.random.default_rng(0)
EDGES = np.argwhere(
    _RNG.random((60, 60)) < np.where(NODE_CLASSES[:, None] == NODE_CLASSES, 0.3, 0.01)
)  # some are loops, and some come twice
IMAGE_CLASSES = np.arange(240) % 2
_AT = np.sin(np.arange(12) * 1.6 + _RNG.uniform(0, 7, (240, 1)))
_STRIPES = np.where((IMAGE_CLASSES == 0)[:, None, None], _AT[:, :, None], _AT[:, None, :])
PICTURES = np.clip(0.5 + 0.3 * _STRIPES + 0.15 * _RNG.standard_normal((240, 12, 12)), 0, 1)
_WORDS = _RNG.permutation([f"{a}{b}{a}" for a in "bcdfghjkl" for b in "aeiouy"])[:48].reshape(8, 2, 3)  # topic, side
_TOPIC = np.repeat(np.arange(8), 15)
QUERIES, ANSWERS = ([" ".join(_RNG.permutation(_WORDS[topic, side])[:2]) for topic in _TOPIC] for side in range(2))
_SIGNAL = _RNG.standard_normal((8, 4))[_TOPIC]
VECTORS = [np.hstack([_SIGNAL, 1.5 * _RNG.standard_normal((120, 12))]) for _ in range(2)]  # most means nothing
TEXT_PARTS = ns.lab.split_by_document(ns.Positives.from_pairs(np.arange(120), np.arange(120)))


def interactions(seed=0, share=0.3, n_users=20, n_items=30):
    """Random pairs, split by user."""
    users, items = np.nonzero(np.random.default_rng(seed).random((n_users, n_items)) < share)
    return ns.lab.split_by_user(users, items, n_users, n_items)


def triples(seed=0):
    """Random triples."""
    rng = np.random.default_rng(seed)
    every = np.argwhere(rng.random((ENTITIES, RELATIONS, ENTITIES)) < 0.15)
    return ns.lab.split_triples(every, ENTITIES, RELATIONS, seed=seed)


GRAPH = ns.lab.split_edges(EDGES, 60, labels=NODE_CLASSES)
IMAGES = ns.lab.Images(PICTURES, IMAGE_CLASSES)
OF_VECTORS = ns.lab.TextPairs(*TEXT_PARTS, query_vectors=VECTORS[0], document_vectors=VECTORS[1])
OF_TEXTS = ns.lab.TextPairs(*TEXT_PARTS, query_texts=QUERIES, document_texts=ANSWERS)
FEW_IMAGES = ns.lab.Images(PICTURES[:120, :8, :8], IMAGE_CLASSES[:120])

TASKS = {
    "mf": lambda **more: ns.lab.Recommendation(interactions(), "mf", dim=8, batch=32, **more),
    "lightgcn": lambda **more: ns.lab.Recommendation(interactions(), "lightgcn", dim=8, batch=32, **more),
    **{
        kind: lambda kind=kind, **more: ns.lab.LinkPrediction(triples(), kind, dim=8, batch=32, **more)
        for kind in ("transe", "distmult", "complex", "rotate")
    },
    "skip-gram": lambda **more: ns.lab.NodeEmbedding(GRAPH, "skip-gram", dim=8, batch=64, **more),
    "graphsage": lambda **more: ns.lab.NodeEmbedding(GRAPH, "graphsage", dim=8, batch=64, **more),
    "adapter": lambda **more: ns.lab.Retrieval(OF_VECTORS, batch=32, **more),
    "subwords": lambda **more: ns.lab.Retrieval(OF_TEXTS, batch=32, **more),
    "conv": lambda **more: ns.lab.ImageContrast(FEW_IMAGES, batch=32, **more),
    "conv without classes": lambda **more: ns.lab.ImageContrast(ns.lab.Images(PICTURES[:120]), batch=32, **more),
}
