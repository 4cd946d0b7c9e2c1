"""RecNS: vectors of items three hops away, mixed with those of an item that was shown."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
users, items = rng.integers(0, (50, 200), size=(250, 2)).T  # who clicked what; items are nodes 50 to 249
known = ns.Positives.from_edges(users, items + 50, n_nodes=250)
shown = ns.Positives.from_pairs(*rng.integers((0, 50), (50, 250), size=(300, 2)).T, n_anchors=250, n_items=250)
middle = ns.pools.KHop(known, hops=3, positives=shown, distinct=False)
sampler = ns.samplers.Exposed({"clicked": known, "shown": shown}, (1, 1), middle, share=0.5)
query = ns.Query(users[:64], positives=items[:64] + 50)
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
place = rng.standard_normal((250, 8))


def merged(far, exposed):
    """(B, K, d) of K items of the middle region and one that was shown (B, d)."""
    share = 1 / far.shape[1]
    return (1 - share) * far + share * ((1 - share) * far[:, :1] + share * exposed[:, None])


far = middle.draw(query, 15, rng=ns.rng_for(seed=1)).ids
made = merged(place[far], place[negatives.ids[:, 0]])
