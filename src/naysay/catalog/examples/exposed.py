"""exposed: against a purchase, what was only clicked or viewed; against a click, what was only viewed."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
pairs = [rng.integers(0, (50, 200), size=(n, 2)).T for n in (300, 800, 2000)]  # bought, clicked, viewed
names = ("bought", "clicked", "viewed")
levels = {
    name: ns.Positives.from_pairs(*pair, n_anchors=50, n_items=200) for name, pair in zip(names, pairs, strict=True)
}
known = levels["bought"]
every = known.union(levels["clicked"]).union(levels["viewed"])
rest = ns.pools.Everything(every, distinct=False)
sampler = ns.samplers.Exposed(levels, (1, 1 / 2, 1 / 3), rest, share=0.5)
query = ns.Query(pairs[0][0][:64], positives=pairs[0][1][:64])
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
