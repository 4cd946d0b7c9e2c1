"""A small world that several files share: eight anchors, thirty items, a table of scores and vectors."""

import numpy as np
import torch

import naysay as ns

N_ANCHORS, N_ITEMS, WIDTH = 8, 30, 4
SCORES = np.random.default_rng(0).uniform(-0.9, 0.9, (N_ANCHORS, N_ITEMS)).astype(np.float32)
VECTORS = np.random.default_rng(1).standard_normal((N_ITEMS, WIDTH)).astype(np.float32)
UNIT = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
ANCHORS = np.arange(N_ANCHORS)
KNOWN = ns.Positives.from_pairs(ANCHORS, ANCHORS, N_ANCHORS, N_ITEMS)
POOL = ns.pools.Everything(KNOWN)
QUERY = ns.Query(ANCHORS, positives=ANCHORS, vectors=VECTORS[:N_ANCHORS])
ASKED = np.tile(np.arange(10, 16), (N_ANCHORS, 1))
NEGATIVES = ns.Negatives(ASKED, scores=SCORES[ANCHORS[:, None], ASKED], vectors=VECTORS[ASKED])


def score(anchors, ids):
    """(B, n) the scores of the table, in the array type of the question."""
    if torch.is_tensor(ids):
        return torch.from_numpy(SCORES)[anchors[:, None], ids]
    return SCORES[anchors[:, None], ids]


def of_pairs(anchors, ids):
    """(n,) the scores of pairs."""
    return SCORES[anchors, ids]


def embed(ids):
    """(..., d) the vectors of items."""
    return torch.from_numpy(VECTORS)[ids] if torch.is_tensor(ids) else VECTORS[ids]


def torch_query():
    """The same query in torch."""
    anchors = torch.from_numpy(ANCHORS)
    return ns.Query(anchors, positives=anchors, vectors=torch.from_numpy(VECTORS[:N_ANCHORS]))
