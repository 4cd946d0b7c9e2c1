"""How many negatives, found while the run goes on, and the schedule that follows.

A stand-in for a model learns to tell held-out positives from uniform negatives, up to a separation of 1.7; on training
pairs, which say how good the labels are, up to 2. Every 5 % of the run a probe is recorded. k is 4 until the probes can
tell; then it follows the schedule to the k they give. Without noise the best k is 12.

Prints:
    step    0: k = 4.0   `validation` must be recorded at 5 steps or more
    step  300: k = 4.0   `validation` must be past tau, 63 % of its way, beyond its error
    step  500: k = 6.0   10 (6 to 15), may lose 1.1 %
    step  700: k = 4.7   12 (10 to 15), may lose 0.3 %
    step 1000: k = 1.0   13 (12 to 14), may lose 0.1 %
"""

import numpy as np
from numpy.typing import NDArray

import naysay as ns

Ids = NDArray[np.int64]

STEPS, PAIRS, ITEMS = 1000, 600, 5000
known = ns.Positives.from_pairs(np.arange(PAIRS), np.arange(PAIRS), n_items=ITEMS)
pool = ns.pools.Everything(known)


def model(anchors: Ids, ids: Ids, step: int, end: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Scores of a model that has learned for so many steps: its own positives stand out, others are noise."""
    reached = end * (1 - np.exp(-3 * step / STEPS))
    return rng.standard_normal(ids.shape) + reached * (ids == anchors[:, None])


def main() -> None:
    """Watch one run."""
    online, anchors = ns.quantity.Online(STEPS), np.arange(PAIRS)
    for step in range(STEPS + 1):
        if step % 50 == 0:
            for place, (split, end) in enumerate({"validation": 1.7, "training": 2.0}.items()):
                rng = ns.rng_for(seed=place, step=step)
                drawn = pool.draw(ns.Query(anchors), 8, rng=rng)  # uniform, whatever the run trains on
                positive = model(anchors, anchors[:, None], step, end, rng)[:, 0]
                online.record(step, positive, model(anchors, drawn.ids, step, end, rng), split, mask=drawn.mask)
        k = online.k_at(step)  # what a sampler is asked for: sampler.sample(query, k, rng=rng)
        if step in (0, 300, 500, 700, STEPS):
            if online.ready:
                found = online.estimate()
                says = f"{found.k} ({found.low} to {found.high}), may lose {100 * found.regret:.1f} %"
            else:
                says = online.why.partition(": ")[2].partition(", got")[0]
            print(f"step {step:4d}: k = {k:.1f}   {says}")


if __name__ == "__main__":
    main()
