"""WHICH candidates become negatives."""

from naysay.samplers.static import Static
from naysay.samplers.user_oriented import UserOriented

__all__ = ["Static", "UserOriented"]
