"""Check your own sampler: the check names the broken promise.

Three versions of one sampler. The first returns known items, the second uses its own generator, the third leaves both
to a pool.

Prints:
    Careless: exclusion
    Own: determinism
    Mine: every promise holds
"""

from typing import Any

import numpy as np

import naysay as ns

KNOWN = ns.Positives.from_pairs([0, 0, 0, 1, 2], [0, 1, 2, 3, 4], n_anchors=4, n_items=12)
POOL = ns.pools.Everything(KNOWN)


class Careless:
    """Any item at all."""

    def sample(self, query: ns.Query, k: Any, *, rng: np.random.Generator) -> ns.Negatives:
        """(B, k) items."""
        return ns.samplers.Static(ns.pools.Everything(ns.Positives.from_pairs([], [], 4, 12))).sample(query, k, rng=rng)


class Own:
    """Items that are not known, by a generator of its own."""

    def sample(self, query: ns.Query, k: Any, *, rng: np.random.Generator) -> ns.Negatives:
        """(B, k) items."""
        return ns.samplers.Static(POOL).sample(query, k, rng=np.random.default_rng())


class Mine:
    """Items that are not known, by the generator of the call."""

    def sample(self, query: ns.Query, k: Any, *, rng: np.random.Generator) -> ns.Negatives:
        """(B, k) items."""
        return ns.samplers.Static(POOL).sample(query, k, rng=rng)


if __name__ == "__main__":
    for mine in (Careless(), Own(), Mine()):
        try:
            ns.check_sampler(mine, KNOWN)
            print(f"{type(mine).__name__}: every promise holds")
        except ns.testing.PromiseBroken as broken:
            print(f"{type(mine).__name__}: {broken.promise}")
