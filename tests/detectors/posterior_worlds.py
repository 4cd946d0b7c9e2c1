"""Lists of candidates with known positives, for tests of the posterior."""

import numpy as np


def planted(seed, anchors=300, items=150, hidden=2, shift=3.0, depth=60):
    """(scores, own, truth, alike) of lists: positives score N(shift, 1), others N(0, 1); labels are random."""
    rng = np.random.default_rng(seed)
    positive = np.arange(items) < np.broadcast_to(hidden, anchors)[:, None]
    scores = rng.normal(0, 1, (anchors, items)) + shift * positive
    alike = rng.normal(0, 0.15, (anchors, items)) + 0.5 * positive
    order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    listed, truth, similar = (np.take_along_axis(part, order, axis=1) for part in (scores, positive, alike))
    return listed, rng.normal(shift, 1, anchors), truth, similar
