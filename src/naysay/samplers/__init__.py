"""WHICH candidates become negatives."""

from naysay.samplers.curriculum import Linear
from naysay.samplers.dynamic import Dynamic
from naysay.samplers.static import Static
from naysay.samplers.user_oriented import UserOriented

__all__ = ["Dynamic", "Linear", "Static", "UserOriented"]
