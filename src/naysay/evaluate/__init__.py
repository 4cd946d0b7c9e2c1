"""EVALUATE: how well wanted items rank among all others, or among some of them."""

from naysay.evaluate.ranking import Ranking, ranking

__all__ = ["Ranking", "ranking"]
