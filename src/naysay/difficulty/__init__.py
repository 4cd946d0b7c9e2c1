"""WHAT THEY DID: how hard negatives are, what hard ones have in common, and whether they are always the same."""

from naysay.difficulty.class_pairs import ClassPair, ClassPairs, class_pairs
from naysay.difficulty.consistency import Consistency, Dispersion, consistency
from naysay.difficulty.curves import Curve, Gap
from naysay.difficulty.drift import Drift, Mean, drift
from naysay.difficulty.measures import (
    ancestor_depth,
    bands,
    below_zero_share,
    common_depth,
    gradient_mass,
    mean_score,
    percentiles,
    same_class_share,
)
from naysay.difficulty.result import Profile, Study
from naysay.difficulty.study import study

__all__ = [
    "ClassPair",
    "ClassPairs",
    "Consistency",
    "Curve",
    "Dispersion",
    "Drift",
    "Gap",
    "Mean",
    "Profile",
    "Study",
    "ancestor_depth",
    "bands",
    "below_zero_share",
    "class_pairs",
    "common_depth",
    "consistency",
    "drift",
    "gradient_mass",
    "mean_score",
    "percentiles",
    "same_class_share",
    "study",
]
