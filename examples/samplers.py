"""Estimate a sum over all items from a few negatives, with log_q.

A softmax needs the sum of exp(score) over every item that is not a positive of the anchor. The mean of exp(score) / q
over drawn negatives is an unbiased estimate for every distribution, if q is exact: known items are excluded, and the
rest is normalised for each anchor. Without log_q the estimate is biased towards popular items.

Prints:
    uniform            estimate / sum = 1.00
    popularity^0.75    estimate / sum = 1.00
    the same, no log_q estimate / sum = 1.27
"""

import numpy as np

import naysay as ns


def main() -> None:
    """Estimate the sum for each of 200 anchors from 2,000 negatives, twice, and once as if they were uniform."""
    rng = np.random.default_rng(0)
    items = np.minimum(rng.zipf(1.3, 8000) - 1, 499)  # a few items are very popular
    known = ns.Positives.from_pairs(rng.integers(0, 200, 8000), items, n_anchors=200, n_items=500)
    popularity = ns.pools.popularity(known.item_counts() + 1, 0.75)
    scores = rng.normal(size=(200, 500)) + 0.3 * np.log(popularity)
    anchors = np.arange(200)
    free = ~known.contains(anchors, np.broadcast_to(np.arange(500), (200, 500)))
    total = np.where(free, np.exp(scores), 0.0).sum(axis=1)

    def ratio(weights: np.ndarray | None, *, correct: bool) -> float:
        sampler = ns.samplers.Static(ns.pools.Everything(known, weights, distinct=False))
        drawn = sampler.sample(ns.Query(anchors), 2000, rng=ns.rng_for(seed=0))
        log_q = drawn.log_q if correct else -np.log(free.sum(axis=1, keepdims=True))
        estimate = np.exp(scores[anchors[:, None], drawn.ids] - log_q).mean(axis=1)
        return float((estimate / total).mean())

    print(f"uniform            estimate / sum = {ratio(None, correct=True):.2f}")
    print(f"popularity^0.75    estimate / sum = {ratio(popularity, correct=True):.2f}")
    print(f"the same, no log_q estimate / sum = {ratio(popularity, correct=False):.2f}")


if __name__ == "__main__":
    main()
