"""Who is in a batch decides the in-batch negatives: random rows, rows of one topic, and a walk to near rows.

1,000 rows have one of 20 topics and one of 300 items. Two rows with the same item are false negatives of each other, so
`Shuffled` keeps them apart. `Grouped` and `RandomWalkBatches` put near rows together, which makes the negatives harder.

Prints:
    plan              batches  same topic  same item
    random rows            20          5 %        4.0
    items apart            20          5 %        0.0
    by topic               20        100 %        3.9
    walk                   20         39 %        4.0
"""

import numpy as np

import naysay as ns

rng = np.random.default_rng(0)
topic, item = np.repeat(np.arange(20), 50), rng.integers(0, 300, 1000)
vectors = np.repeat(rng.standard_normal((20, 8)), 50, axis=0) + 0.3 * rng.standard_normal((1000, 8))
walk = ns.batches.RandomWalkBatches(1000, 50, neighbours=8, candidates=200)
walk.update(vectors, rng=ns.rng_for(0))
PLANS = {
    "random rows": ns.batches.Shuffled(1000, 50),
    "items apart": ns.batches.Shuffled(1000, 50, forbid=item),
    "by topic": ns.batches.Grouped(topic, 50),
    "walk": walk,
}

if __name__ == "__main__":
    print("plan              batches  same topic  same item")
    for name, plan in PLANS.items():
        batches = [batch[batch >= 0] for batch in plan.plan(0, rng=ns.rng_for(0))]
        pairs = [topic[batch][:, None] == topic[batch] for batch in batches]
        same = np.mean([(pair.sum() - len(pair)) / (pair.size - len(pair)) for pair in pairs])
        repeats = np.mean([len(batch) - len(np.unique(item[batch])) for batch in batches])
        print(f"{name:17} {len(batches):7} {same:11.0%} {repeats:10.1f}".replace("%", " %"))
