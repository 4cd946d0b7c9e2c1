"""WHAT IS MINIMISED: losses over a positive and its negatives, unreduced, in torch."""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.losses.across import gather_rows
from naysay.losses.attract import attract
from naysay.losses.bounded_margin import bounded_margin
from naysay.losses.bpr import bpr
from naysay.losses.cached_step import cached_step
from naysay.losses.debiased import debiased
from naysay.losses.decoupled import decoupled
from naysay.losses.eliminate import eliminate
from naysay.losses.gbce import gbce
from naysay.losses.guided import guided
from naysay.losses.hardness import hardness
from naysay.losses.hinge import hinge
from naysay.losses.in_batch import in_batch
from naysay.losses.in_batch_hinge import in_batch_hinge
from naysay.losses.info_nce import info_nce
from naysay.losses.keep_hardest import keep_hardest
from naysay.losses.log_q import distinct_log_q, mixture_log_q
from naysay.losses.margin_mse import margin_mse
from naysay.losses.normalised_hardness import normalised_hardness
from naysay.losses.prototypes import concentrations, prototypes
from naysay.losses.sampled_bce import sampled_bce
from naysay.losses.sampled_softmax import sampled_softmax
from naysay.losses.self_adversarial import self_adversarial
from naysay.losses.spreading import spreading
from naysay.losses.sup_con import sup_con
from naysay.losses.whole_data import whole_data

__all__ = [
    "attract",
    "bounded_margin",
    "bpr",
    "cached_step",
    "concentrations",
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
    "in_batch_hinge",
    "info_nce",
    "keep_hardest",
    "margin_mse",
    "mixture_log_q",
    "normalised_hardness",
    "prototypes",
    "sampled_bce",
    "sampled_softmax",
    "self_adversarial",
    "spreading",
    "sup_con",
    "whole_data",
]
