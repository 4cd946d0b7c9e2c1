"""WHO SITS TOGETHER: which rows of the training data are in a batch, and so are each other's in-batch negatives."""

from naysay.batches.by_loss import ByLoss
from naysay.batches.grouped import Grouped
from naysay.batches.loader import BatchSampler
from naysay.batches.shuffled import Shuffled
from naysay.batches.walk import Walk

__all__ = ["BatchSampler", "ByLoss", "Grouped", "Shuffled", "Walk"]
