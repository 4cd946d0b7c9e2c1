"""EVALUATE: how well wanted items rank among all others, or among some of them; and how much vectors tell."""

from naysay.evaluate.probes import auc, average_precision, linear_probe, nearest_labels
from naysay.evaluate.ranking import Ranking, ranking

__all__ = ["Ranking", "auc", "average_precision", "linear_probe", "nearest_labels", "ranking"]
