"""WHICH candidates become negatives."""

from naysay.samplers.adaptive_oversampling import AdaptiveOversampling
from naysay.samplers.adversarial_bank import AdversarialBank
from naysay.samplers.bank import Bank
from naysay.samplers.blocks import in_blocks
from naysay.samplers.cached import Cached
from naysay.samplers.decomposed import Decomposed
from naysay.samplers.distance_weighted import DistanceWeighted
from naysay.samplers.dynamic import Dynamic
from naysay.samplers.exposed import Exposed
from naysay.samplers.generated import Generated
from naysay.samplers.generators import Factors, Perceptron
from naysay.samplers.graph_policy import GraphPolicy
from naysay.samplers.judged import Judged
from naysay.samplers.learned import Learned
from naysay.samplers.markov_chain import MarkovChain
from naysay.samplers.mixed import Mixed
from naysay.samplers.mixgcf import MixGCF
from naysay.samplers.mixkg import MixKG
from naysay.samplers.mochi import MoCHi
from naysay.samplers.momentum import momentum_update
from naysay.samplers.near_positive import NearPositive
from naysay.samplers.near_target import NearTarget
from naysay.samplers.perturb import ascend, noise, shuffled
from naysay.samplers.perturbed import Perturbed
from naysay.samplers.ring import Ring
from naysay.samplers.semihard import SemiHard
from naysay.samplers.softmax_weights import SoftmaxWeights
from naysay.samplers.static import Static
from naysay.samplers.stored_vectors import StoredVectors
from naysay.samplers.torch_module import TorchModule
from naysay.samplers.transformed import Transformed, jigsaw
from naysay.samplers.triple_factors import TripleFactors
from naysay.samplers.user_oriented import UserOriented
from naysay.samplers.warp import Warp

__all__ = [
    "AdaptiveOversampling",
    "AdversarialBank",
    "Bank",
    "Cached",
    "Decomposed",
    "DistanceWeighted",
    "Dynamic",
    "Exposed",
    "Factors",
    "Generated",
    "GraphPolicy",
    "Judged",
    "Learned",
    "MarkovChain",
    "MixGCF",
    "MixKG",
    "Mixed",
    "MoCHi",
    "NearPositive",
    "NearTarget",
    "Perceptron",
    "Perturbed",
    "Ring",
    "SemiHard",
    "SoftmaxWeights",
    "Static",
    "StoredVectors",
    "TorchModule",
    "Transformed",
    "TripleFactors",
    "UserOriented",
    "Warp",
    "ascend",
    "in_blocks",
    "jigsaw",
    "momentum_update",
    "noise",
    "shuffled",
]
