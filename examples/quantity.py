"""How many negatives: estimate k from the AUCs of a run, then follow a schedule that peaks there.

A run with one uniform negative per positive reached a training AUC of 0.95; its validation AUC rose as listed. The
schedule goes from 1 up to the best k and down to 1. Between whole numbers some rows get one negative more.

Prints:
    best k = 16, within 1 % of it from 11 to 25
    step    0: k =  1.00, slots  1, negatives per anchor 1.00
    step   50: k =  8.50, slots  9, negatives per anchor 8.50
    step  100: k = 16.00, slots 16, negatives per anchor 16.00
    step  400: k = 10.99, slots 11, negatives per anchor 10.99
    step  999: k =  1.00, slots  1, negatives per anchor 1.00
"""

import numpy as np

import naysay as ns

STEPS = 1000


def main() -> None:
    """Estimate, make a schedule, and draw for 20,000 anchors at some of its steps."""
    found = ns.quantity.estimate(train_auc=0.95, val_auc=[0.5, 0.68, 0.79, 0.85, 0.885, 0.905, 0.92, 0.93])
    print(f"best k = {found.k}, within 1 % of it from {found.flat[0]} to {found.flat[1]}")
    k_at = ns.quantity.adaptive(peak=found.k, steps=STEPS)
    anchors = np.arange(20_000)
    known = ns.Positives.from_pairs(anchors, anchors % 1000, n_items=1000)
    sampler = ns.samplers.Static(ns.pools.Everything(known))
    for step in (0, 50, 100, 400, STEPS - 1):
        query = ns.Query(anchors, step=step)
        negatives = sampler.sample(query, k_at(step), rng=ns.rng_for(seed=0, step=step))
        mean = negatives.mask.sum(axis=1).mean()
        width = negatives.shape[1]
        print(f"step {step:4d}: k = {k_at(step):5.2f}, slots {width:2d}, negatives per anchor {mean:.2f}")


if __name__ == "__main__":
    main()
