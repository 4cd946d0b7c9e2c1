"""WHAT THEY DID: how hard negatives are, what hard ones have in common, and whether they are always the same."""

from naysay.difficulty.arms import arms
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
from naysay.difficulty.monitor import Monitor
from naysay.difficulty.result import Profile, Study
from naysay.difficulty.study import study
from naysay.difficulty.wordnet import ClassTree, read_wordnet

__all__ = [
    "ClassPair",
    "ClassPairs",
    "ClassTree",
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
    "class_pairs",
    "common_depth",
    "consistency",
    "drift",
    "gradient_mass",
    "mean_score",
    "percentiles",
    "read_wordnet",
    "same_class_share",
    "study",
]
