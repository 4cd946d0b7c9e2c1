"""How many negatives are false depends on the pool.

Generated data in which 30 % of the true pairs are not labelled. Each pool excludes the labelled pairs, exactly. The
closer its candidates are to the anchor, the more of them are unlabelled true pairs.

Prints:
    uniform           0 known, 0.6% false
    popularity^0.75   0 known, 0.7% false
    nearest 100       0 known, 5.1% false
    nearest 50        0 known, 7.9% false
"""

import numpy as np

import naysay as ns


def main() -> None:
    """Draw 8 negatives for each anchor from each pool, and compare them with the truth."""
    world = ns.planted_world(n_anchors=2000, n_items=1000, known_share=0.7, seed=4)
    anchors = np.arange(2000)
    by_score = np.argsort(-(world.anchor_vectors @ world.item_vectors.T), axis=1)
    pools = {
        "uniform": ns.pools.Everything(world.known),
        "popularity^0.75": ns.pools.Everything(world.known, ns.pools.popularity(world.known, 0.75)),
        "nearest 100": ns.pools.Local(by_score[:, :100], world.known),
        "nearest 50": ns.pools.Local(by_score[:, :50], world.known),
    }
    for name, pool in pools.items():
        drawn = pool.draw(ns.Query(anchors), 8, rng=ns.rng_for(seed=0))
        known = int(world.known.contains(anchors, drawn.ids).sum())
        print(f"{name:17s} {known} known, {world.false_negative_rate(anchors, drawn.ids):.1%} false")


if __name__ == "__main__":
    main()
