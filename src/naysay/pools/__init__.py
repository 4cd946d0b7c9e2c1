"""WHERE negatives come from: the review's five pools, and corruption of triples."""

from naysay.pools.corruption import Corruption
from naysay.pools.everything import Everything
from naysay.pools.fading import Fading
from naysay.pools.in_batch import InBatch
from naysay.pools.khop import KHop
from naysay.pools.local import Local
from naysay.pools.memory import Memory
from naysay.pools.nearest import Nearest
from naysay.pools.pagerank import PageRank
from naysay.pools.refresh import Refresh
from naysay.pools.streaming_frequency import StreamingFrequency
from naysay.pools.tie_walks import TieWalks, consumption_ties
from naysay.pools.walks import Walks
from naysay.pools.weighted_walks import WeightedWalks
from naysay.pools.weights import item_oriented, log_uniform, popularity

__all__ = [
    "Corruption",
    "Everything",
    "Fading",
    "InBatch",
    "KHop",
    "Local",
    "Memory",
    "Nearest",
    "PageRank",
    "Refresh",
    "StreamingFrequency",
    "TieWalks",
    "Walks",
    "WeightedWalks",
    "consumption_ties",
    "item_oriented",
    "log_uniform",
    "popularity",
]
