"""The contract as checks for any part, and generated data in which every false negative is known.

check_pool, check_sampler, check_detector, check_loss   raise PromiseBroken for the first promise that broke
planted_world                                           anchors, items and false negatives whose truth is known

naysay.testing.check_sampler(Mine(pool), positives)
"""

from naysay.testing.detectors import check_detector
from naysay.testing.losses import check_loss
from naysay.testing.pools import check_pool
from naysay.testing.promises import PromiseBroken
from naysay.testing.samplers import check_sampler
from naysay.testing.worlds import World, planted_world

__all__ = [
    "PromiseBroken",
    "World",
    "check_detector",
    "check_loss",
    "check_pool",
    "check_sampler",
    "planted_world",
]
