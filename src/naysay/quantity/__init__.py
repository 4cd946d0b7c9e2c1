"""HOW MANY negatives: estimates of the best k, schedules, and fractional k."""

from naysay.quantity.effectiveness import (
    Shares,
    auc,
    effectiveness,
    mean_effectiveness,
    reliability,
    separation,
    shares,
    simulated,
)
from naysay.quantity.estimate import Estimate, estimate
from naysay.quantity.online import Online, OnlineEstimate
from naysay.quantity.schedules import Adaptive, Linear, adaptive, realise

__all__ = [
    "Adaptive",
    "Estimate",
    "Linear",
    "Online",
    "OnlineEstimate",
    "Shares",
    "adaptive",
    "auc",
    "effectiveness",
    "estimate",
    "mean_effectiveness",
    "realise",
    "reliability",
    "separation",
    "shares",
    "simulated",
]
