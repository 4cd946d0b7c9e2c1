"""Exact, certified nearest-neighbour search in bounded memory, and an approximate index with measured recall."""

from naysay.search.exact import Found, search
from naysay.search.index import Index, Recall, check_recall
from naysay.search.vectors import Vectors, open_vectors

__all__ = ["Found", "Index", "Recall", "Vectors", "check_recall", "open_vectors", "search"]
