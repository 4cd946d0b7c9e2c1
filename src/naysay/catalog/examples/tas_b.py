"""TAS-B: batches of one topic, and pairs of a query from bins of equal width of the teacher's margin."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
topics = rng.integers(0, 8, 200)  # k-means of the queries
plan = ns.batches.Grouped(topics, 32)
batches = plan.plan(epoch=1, rng=ns.rng_for(seed=1))
margins = rng.gamma(2.0, 1.0, (200, 50))  # the teacher's: positive minus each of a query's 50 passages


def one_of_a_bin(margins, bins=10):
    """The place of one passage of each query (n, m): a bin that is not empty, then a passage of it."""
    low, high = margins.min(axis=1, keepdims=True), margins.max(axis=1, keepdims=True)
    bin_of = np.minimum(bins * (margins - low) / np.maximum(high - low, 1e-12), bins - 1).astype(int)
    size = (bin_of[:, :, None] == bin_of[:, None, :]).sum(axis=2)
    chance = (1 / size) / (1 / size).sum(axis=1, keepdims=True)
    return (rng.random((len(margins), 1)) < chance.cumsum(axis=1)).argmax(axis=1)


place = one_of_a_bin(margins[batches[0]])
