"""The type of float64 arrays, at its old address."""

from naysay.quantity.separation import Floats as Floats
