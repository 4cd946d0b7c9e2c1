"""How many negatives, estimated during the run, and the schedule that follows.

A simulated model learns to separate held-out positives from uniform negatives, up to a separation of 1.7; on training
pairs, which measure the labels, up to 2. Every 5 % of the run a probe is recorded. k is 4 until there is an estimate;
then it follows the schedule with that peak. Without noise the best k is 12.

Prints:
    step    0: k = 4.0   `validation` must be recorded at 5 steps or more
    step  300: k = 4.0   `validation` must be probes past tau, 63 % of the way, beyond their error
    step  500: k = 6.0   10 (6 to 15), may lose 1.3 %
    step  700: k = 4.7   12 (9 to 16), may lose 0.3 %
    step 1000: k = 1.0   13 (11 to 14), may lose 0.1 %
"""

import numpy as np
from numpy.typing import NDArray

import naysay as ns

Ids = NDArray[np.int64]

STEPS, PAIRS, ITEMS = 1000, 600, 5000
known = ns.Positives.from_pairs(np.arange(PAIRS), np.arange(PAIRS), n_items=ITEMS)
pool = ns.pools.Everything(known)


def model(anchors: Ids, ids: Ids, step: int, end: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Scores of the model after `step` steps: those of positives are shifted, the others are noise."""
    reached = end * (1 - np.exp(-3 * step / STEPS))
    return rng.standard_normal(ids.shape) + reached * (ids == anchors[:, None])


def main() -> None:
    """Record probes through one run."""
    online, anchors = ns.quantity.Online(STEPS), np.arange(PAIRS)
    for step in range(STEPS + 1):
        if step % 50 == 0:
            for place, (split, end) in enumerate({"validation": 1.7, "training": 2.0}.items()):
                rng = ns.rng_for(seed=place, step=step)
                drawn = pool.draw(ns.Query(anchors), 8, rng=rng)  # uniform, whatever the run trains on
                positive = model(anchors, anchors[:, None], step, end, rng)[:, 0]
                online.record(step, positive, model(anchors, drawn.ids, step, end, rng), split, mask=drawn.mask)
        k = online.k_at(step)  # for a sampler: sampler.sample(query, k, rng=rng)
        if step in (0, 300, 500, 700, STEPS):
            if online.ready:
                found = online.estimate()
                status = f"{found.k} ({found.low} to {found.high}), may lose {100 * found.regret:.1f} %"
            else:
                status = online.why.partition(", got")[0]
            print(f"step {step:4d}: k = {k:.1f}   {status}")


if __name__ == "__main__":
    main()
