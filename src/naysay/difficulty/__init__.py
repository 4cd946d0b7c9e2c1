"""WHAT THEY DID: how hard negatives are, what hard ones have in common, and whether they are always the same."""

from naysay.difficulty.bands import (
    Consistency,
    Curve,
    Dispersion,
    ancestor_depth,
    bands,
    below_zero_share,
    common_depth,
    consistency,
    gradient_mass,
    mean_score,
    percentiles,
    same_class_share,
)
from naysay.difficulty.monitor import Monitor
from naysay.difficulty.study import Drift, Gap, Mean, Profile, Study, arms, drift, study

__all__ = [
    "Consistency",
    "Curve",
    "Dispersion",
    "Drift",
    "Gap",
    "Mean",
    "Monitor",
    "Profile",
    "Study",
    "ancestor_depth",
    "arms",
    "bands",
    "below_zero_share",
    "common_depth",
    "consistency",
    "drift",
    "gradient_mass",
    "mean_score",
    "percentiles",
    "same_class_share",
    "study",
]
