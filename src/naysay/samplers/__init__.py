"""WHICH candidates become negatives."""

from naysay.samplers.adaptive_oversampling import AdaptiveOversampling
from naysay.samplers.bank import Bank
from naysay.samplers.blocks import in_blocks
from naysay.samplers.cached import Cached
from naysay.samplers.distance_weighted import DistanceWeighted
from naysay.samplers.dynamic import Dynamic
from naysay.samplers.judged import Judged
from naysay.samplers.mixed import Mixed
from naysay.samplers.mixgcf import MixGCF
from naysay.samplers.mixkg import MixKG
from naysay.samplers.mochi import MoCHi
from naysay.samplers.momentum import momentum_update
from naysay.samplers.near_positive import NearPositive
from naysay.samplers.near_target import NearTarget
from naysay.samplers.ring import Ring
from naysay.samplers.semihard import SemiHard
from naysay.samplers.softmax_weights import SoftmaxWeights
from naysay.samplers.static import Static
from naysay.samplers.stored_vectors import StoredVectors
from naysay.samplers.user_oriented import UserOriented
from naysay.samplers.warp import Warp

__all__ = [
    "AdaptiveOversampling",
    "Bank",
    "Cached",
    "DistanceWeighted",
    "Dynamic",
    "Judged",
    "MixGCF",
    "MixKG",
    "Mixed",
    "MoCHi",
    "NearPositive",
    "NearTarget",
    "Ring",
    "SemiHard",
    "SoftmaxWeights",
    "Static",
    "StoredVectors",
    "UserOriented",
    "Warp",
    "in_blocks",
    "momentum_update",
]
