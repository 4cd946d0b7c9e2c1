"""What papers claim about negatives in training, run again on a small scale."""
