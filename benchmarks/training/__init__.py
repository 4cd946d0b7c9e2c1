"""Training: what negatives do to a trained model."""
