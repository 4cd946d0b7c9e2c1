"""WHAT THEY DID: how hard negatives are, what hard ones have in common, and whether they are always the same."""

from naysay.difficulty.bands import (
    Consistency,
    Curve,
    Dispersion,
    bands,
    common_depth,
    consistency,
    gradient_mass,
    percentiles,
    same_class_share,
)
from naysay.difficulty.monitor import Monitor
from naysay.difficulty.study import Gap, Mean, Profile, Study, arms, study

__all__ = [
    "Consistency",
    "Curve",
    "Dispersion",
    "Gap",
    "Mean",
    "Monitor",
    "Profile",
    "Study",
    "arms",
    "bands",
    "common_depth",
    "consistency",
    "gradient_mass",
    "percentiles",
    "same_class_share",
    "study",
]
