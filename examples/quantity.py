"""A k between whole numbers: some rows get one negative more, and the mean is k.

A schedule that rises from 1 to 4 negatives asks for 2.5 halfway. Every anchor then has 2 or 3.

Prints:
    step    0: k = 1.0, slots 1, negatives per anchor 1.00
    step   50: k = 2.5, slots 3, negatives per anchor 2.50
    step  100: k = 4.0, slots 4, negatives per anchor 4.00
"""

import numpy as np

import naysay as ns


def k_at(step: int) -> float:
    """From 1 to 4 over 100 steps: a schedule is a function of the step."""
    return 1 + 3 * step / 100


def main() -> None:
    """Draw for 20,000 anchors at three steps and count."""
    anchors = np.arange(20_000)
    known = ns.Positives.from_pairs(anchors, anchors % 1000, n_items=1000)
    sampler = ns.samplers.Static(ns.pools.Everything(known))
    for step in (0, 50, 100):
        k = k_at(step)
        negatives = sampler.sample(ns.Query(anchors, step=step), k, rng=ns.rng_for(seed=0, step=step))
        mean = negatives.mask.sum(axis=1).mean()
        print(f"step {step:4d}: k = {k}, slots {negatives.shape[1]}, negatives per anchor {mean:.2f}")


if __name__ == "__main__":
    main()
