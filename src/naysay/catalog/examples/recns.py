"""RecNS: exposed items, and items three hops away in the graph of users and items."""

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
