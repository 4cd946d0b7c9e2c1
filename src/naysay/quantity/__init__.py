"""HOW MANY negatives: estimates of the best k, schedules, and fractional k."""

from naysay.quantity.effectiveness import Shares, effectiveness, mean_effectiveness, reliability, shares
from naysay.quantity.estimate import Estimate, estimate
from naysay.quantity.forecast import OnlineEstimate
from naysay.quantity.online import Online
from naysay.quantity.realise import realise
from naysay.quantity.schedules import Adaptive, Linear, adaptive
from naysay.quantity.separation import auc, separation
from naysay.quantity.simulated import TurningSweep, simulated, turning_sweep

__all__ = [
    "Adaptive",
    "Estimate",
    "Linear",
    "Online",
    "OnlineEstimate",
    "Shares",
    "TurningSweep",
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
    "turning_sweep",
]
