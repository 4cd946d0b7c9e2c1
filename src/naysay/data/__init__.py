"""DATA: batches of queries with their negatives, made by torch's DataLoader workers."""

from naysay.data.batch import Batch
from naysay.data.loader import Loader, LoaderOptions, loader

__all__ = ["Batch", "Loader", "LoaderOptions", "loader"]
