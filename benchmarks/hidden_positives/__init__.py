"""Hidden positives: which rules keep them out of the negatives, on real data."""
