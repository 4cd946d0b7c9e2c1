"""WHAT IS MINIMISED: losses over a positive and its negatives, unreduced, in torch."""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.losses.across import gather_rows
from naysay.losses.attract import attract
from naysay.losses.bpr import bpr
from naysay.losses.debiased import debiased
from naysay.losses.decoupled import decoupled
from naysay.losses.eliminate import eliminate
from naysay.losses.gbce import gbce
from naysay.losses.guided import guided
from naysay.losses.hardness import hardness
from naysay.losses.hinge import hinge
from naysay.losses.in_batch import in_batch
from naysay.losses.info_nce import info_nce
from naysay.losses.log_q import distinct_log_q, mixture_log_q
from naysay.losses.sampled_bce import sampled_bce
from naysay.losses.sampled_softmax import sampled_softmax
from naysay.losses.self_adversarial import self_adversarial
from naysay.losses.sup_con import sup_con

__all__ = [
    "attract",
    "bpr",
    "debiased",
    "decoupled",
    "distinct_log_q",
    "eliminate",
    "gather_rows",
    "gbce",
    "guided",
    "hardness",
    "hinge",
    "in_batch",
    "info_nce",
    "mixture_log_q",
    "sampled_bce",
    "sampled_softmax",
    "self_adversarial",
    "sup_con",
]
