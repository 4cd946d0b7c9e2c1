"""Detectors: cost, and whether thresholds, calibration and clusters do what they promise."""
