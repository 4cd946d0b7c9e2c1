"""BATCHES: which rows of the training data are in a batch, and so are each other's in-batch negatives."""

from naysay.batches.loader import BatchSampler
from naysay.batches.plans import ByLoss, Grouped, RandomWalkBatches, Shuffled

__all__ = ["BatchSampler", "ByLoss", "Grouped", "RandomWalkBatches", "Shuffled"]
