"""WHAT IS MINIMISED: losses over a positive and its negatives, unreduced, in torch."""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.losses.across import gather_rows
from naysay.losses.all_items import all_items
from naysay.losses.cached_step import cached_step
from naysay.losses.check_values import check_values
from naysay.losses.in_batch import attract, eliminate, in_batch, in_batch_hinge, invariant_spreading, sup_con
from naysay.losses.keep_hardest import keep_hardest
from naysay.losses.log_q import distinct_log_q, mixture_log_q
from naysay.losses.pairwise import (
    bounded_margin,
    bpr,
    gbce,
    hinge,
    margin_mse,
    normalised_hardness,
    sampled_bce,
    self_adversarial,
)
from naysay.losses.prototypes import concentrations, proto_nce
from naysay.losses.softmax import debiased, decoupled, gist, hard_negative_nce, info_nce, sampled_softmax

__all__ = [
    "all_items",
    "attract",
    "bounded_margin",
    "bpr",
    "cached_step",
    "check_values",
    "concentrations",
    "debiased",
    "decoupled",
    "distinct_log_q",
    "eliminate",
    "gather_rows",
    "gbce",
    "gist",
    "hard_negative_nce",
    "hinge",
    "in_batch",
    "in_batch_hinge",
    "info_nce",
    "invariant_spreading",
    "keep_hardest",
    "margin_mse",
    "mixture_log_q",
    "normalised_hardness",
    "proto_nce",
    "sampled_bce",
    "sampled_softmax",
    "self_adversarial",
    "sup_con",
]
