"""HOW MANY negatives: what a k that is not a whole number means."""

from naysay.quantity.realise import realise

__all__ = ["realise"]
