"""Scores and vectors that are read from a table in the array type that is asked, and gradients by differences."""

import numpy as np
import torch


def by(table):
    """score(anchors (B,), ids (B, n)) -> table[anchor, id]."""

    def score(anchors, ids):
        return (table if isinstance(ids, np.ndarray) else torch.from_numpy(table))[anchors[:, None], ids]

    return score


def rows_of(table):
    """embed(ids) -> table[ids]."""

    def embed(ids):
        return (table if isinstance(ids, np.ndarray) else torch.from_numpy(table))[ids]

    return embed


def gradient_by_differences(function, at, step=1e-6):
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        moved = at.copy()
        moved[place] += step
        found[place] = (function(moved) - function(at)) / step
    return found
