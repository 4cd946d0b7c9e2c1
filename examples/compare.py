"""Which negatives for my data: four arms, each with its own learning rate, on a small recommendation task.

400 users have 16 of 1,000 items each. A tenth of each user's items is for validation and a tenth for the test. The
fourth arm is a sampler of one's own: the hardest of 4 candidates, by the model that is being trained.

Prints:
    uniform:1   k 1  recall@20 0.79
    uniform:8   k 8  recall@20 0.81
    dynamic:1   k 1  recall@20 0.73
    mine:1      k 1  recall@20 0.78
"""

from collections.abc import Mapping
from typing import Any

import naysay as ns


def mine(parts: Mapping[str, Any]) -> ns.samplers.Dynamic:
    """Make a sampler from what the model offers."""
    return ns.samplers.Dynamic(ns.pools.Everything(parts["known"]), parts["score"], candidates=4)


if __name__ == "__main__":
    world = ns.planted_world(n_anchors=400, n_items=1000, per_anchor=16)
    data = ns.lab.split_by_user(*world.truth.pairs())
    methods = {"uniform:1": None, "uniform:8": None, "dynamic:1": None, "mine:1": mine}
    found = ns.compare(data, methods=methods, steps=60, seeds=1)
    for arm in found.arms:
        print(f"{arm.name:11} k {arm.k}  recall@20 {found.mean(arm).mean:.2f}")
