"""DATA: batches of queries with their negatives, made by torch's DataLoader workers."""

from naysay.data.loader import Batch, Loader, LoaderOptions, loader

__all__ = ["Batch", "Loader", "LoaderOptions", "loader"]
