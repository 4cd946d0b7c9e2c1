"""Exclusion: no draw returns a known positive."""
