"""Measurements, one folder per question. Run them from the repository root: python -m benchmarks.speed.sampling."""
