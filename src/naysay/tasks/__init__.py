"""TASKS: small models of each domain with their data, training step and measures, in torch."""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.tasks.interactions import Interactions, split_by_time, split_by_user
from naysay.tasks.lightgcn import LightGCN
from naysay.tasks.reading import read_interactions
from naysay.tasks.recommendation import Recommendation, Recommender

__all__ = [
    "Interactions",
    "LightGCN",
    "Recommendation",
    "Recommender",
    "read_interactions",
    "split_by_time",
    "split_by_user",
]
