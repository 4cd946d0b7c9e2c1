"""Difficulty: which negatives are hard for a small encoder."""
