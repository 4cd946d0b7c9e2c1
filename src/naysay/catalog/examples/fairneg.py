"""FairNeg: each group of items has a share of the negatives; a group whose positives lose more gets fewer."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(4)
users, items = rng.integers(0, (50, 200), size=(1000, 2)).T
known = ns.Positives.from_pairs(users, items, n_anchors=50, n_items=200)
group = (np.arange(200) < 160).astype(int)  # 40 items of group 0, 160 of group 1
pools = [ns.pools.Everything(known, weights=(group == one).astype(float), distinct=False) for one in (0, 1)]
shares = np.array([0.5, 0.5])  # changed in place
sampler = ns.samplers.Mixed({str(one): ns.samplers.Static(pool) for one, pool in enumerate(pools)}, lambda step: shares)


def adapt(losses, of, rate=0.2):
    """Move the shares by each group's mean loss (B,) of the positives of groups `of` (B,), against that of all."""
    means = np.array([losses[of == one].mean() for one in (0, 1)])
    moved = np.clip(shares - rate * (means - means.mean()), 0.0, 1.0)
    shares[:] = moved / moved.sum()


adapt(np.where(group[items[:64]] == 0, 0.9, 0.4), group[items[:64]])  # the model knows group 0 less
query = ns.Query(users[:64], positives=items[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))
