"""ReinforcedNS: one item that was shown and 29 others; what the model scores low and what was shown is rewarded."""

import numpy as np

import naysay as ns

rng = np.random.default_rng(1)
known, shown = (ns.Positives.from_pairs(*rng.integers(0, (50, 200), size=(n, 2)).T, 50, 200) for n in (1000, 900))
table = rng.standard_normal((50, 8)) @ rng.standard_normal((8, 200))  # a model's scores
exposed, others = ns.pools.Local(shown, known), ns.pools.Everything(known.union(shown))


def one_shown(query, n, *, rng):
    parts = exposed.draw(query, 1, rng=rng), others.draw(query, n - 1, rng=rng)
    return ns.Negatives(np.concatenate([part.numpy().ids for part in parts], axis=1))


def reward(anchors, ids):
    return -1 / (1 + np.exp(-table[anchors[:, None], ids])) + 2.5 * shown.contains(anchors, ids)


query, generator = ns.Query(np.arange(50)), ns.samplers.Factors(50, 200, d=8)
pool = type("OneShown", (), {"draw": staticmethod(one_shown)})()  # anything with draw is a pool
sampler = ns.samplers.Learned(pool, generator, reward, candidates=30, baseline="running", slots=2)
negatives = sampler.sample(query, 4, rng=ns.rng_for(seed=0))
sampler.observe(query, negatives)
