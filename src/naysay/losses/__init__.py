"""WHAT IS MINIMISED: losses over a positive and its negatives, unreduced, in torch."""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch("naysay.losses")

from naysay.losses.bpr import bpr
from naysay.losses.debiased import debiased
from naysay.losses.decoupled import decoupled
from naysay.losses.distinct import distinct_log_q
from naysay.losses.gbce import gbce
from naysay.losses.guided import guided
from naysay.losses.hardness import hardness
from naysay.losses.hinge import hinge
from naysay.losses.info_nce import info_nce
from naysay.losses.mixture import mixture_log_q
from naysay.losses.sampled_bce import sampled_bce
from naysay.losses.sampled_softmax import sampled_softmax
from naysay.losses.self_adversarial import self_adversarial

__all__ = [
    "bpr",
    "debiased",
    "decoupled",
    "distinct_log_q",
    "gbce",
    "guided",
    "hardness",
    "hinge",
    "info_nce",
    "mixture_log_q",
    "sampled_bce",
    "sampled_softmax",
    "self_adversarial",
]
