"""WHERE negatives come from: the review's five pools, and corruption of triples."""

from naysay.pools.corruption import Corruption
from naysay.pools.everything import Everything
from naysay.pools.weights import item_oriented, log_uniform, popularity

__all__ = ["Corruption", "Everything", "item_oriented", "log_uniform", "popularity"]
