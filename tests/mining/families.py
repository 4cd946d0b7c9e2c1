"""A world of families: anchors with three documents each around them, one of them labelled, among many others."""

import numpy as np

import naysay as ns


class Families:
    def __init__(self, n=300, others=1500, width=32, seed=1):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(n, width))
        own = centres[:, None] + 0.6 * rng.normal(size=(n, 3, width))
        self.n = n
        self.corpus = np.concatenate([own.reshape(-1, width), rng.normal(size=(others, width))]).astype(np.float32)
        self.queries = (centres + 0.3 * rng.normal(size=(n, width))).astype(np.float32)
        self.labelled = 3 * np.arange(n) + rng.integers(0, 3, n)

    def mine(self, k=10, **options):
        return ns.mine(self.queries, self.corpus, self.labelled, k, **options)

    def false(self, mined):
        """(n, k) the negatives that are false."""
        return mined.mask & (mined.ids // 3 == np.arange(self.n)[:, None]) & (mined.ids < 3 * self.n)

    def share(self, mined):
        return self.false(mined).sum() / mined.mask.sum()
