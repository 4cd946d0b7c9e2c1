"""Quantity: the cost and the quality of an estimate of k."""
