"""WHERE negatives come from: eight pools of items, and corruption of triples."""

from naysay.pools.corruption import Corruption
from naysay.pools.everything import Everything
from naysay.pools.in_batch import InBatch
from naysay.pools.khop import KHop
from naysay.pools.local import Local
from naysay.pools.memory import Memory
from naysay.pools.nearest import Nearest
from naysay.pools.pagerank import PageRank
from naysay.pools.refresh import Refresh
from naysay.pools.walks import Walks, consumption_ties
from naysay.pools.weights import StreamingFrequency, item_oriented, log_uniform, popularity

__all__ = [
    "Corruption",
    "Everything",
    "InBatch",
    "KHop",
    "Local",
    "Memory",
    "Nearest",
    "PageRank",
    "Refresh",
    "StreamingFrequency",
    "Walks",
    "consumption_ties",
    "item_oriented",
    "log_uniform",
    "popularity",
]
