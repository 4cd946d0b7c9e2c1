"""Texts to vectors, cached on disk."""

from naysay.encode.model import load_model, weights_hash
from naysay.encode.texts import encode_texts

__all__ = ["encode_texts", "load_model", "weights_hash"]
