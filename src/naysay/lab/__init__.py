"""LAB: five domains end to end, `compare` (which negatives for my data), and measures of rankings and vectors.

A domain is a file: its data and readers, small models, and a task. `_task.py` has what tasks share, `_run.py` the
training loop. All but the measures needs torch.
"""

from importlib.util import find_spec
from typing import Any

from naysay.arrays import need_torch
from naysay.lab.probes import auc, average_precision, linear_probe, nearest_labels
from naysay.lab.ranking import Ranking, ranking

if find_spec("torch") is not None:
    from naysay.lab.arms import fitting_methods
    from naysay.lab.comparison import compare
    from naysay.lab.graphs import Graph, NodeEmbedding, read_graph, split_edges
    from naysay.lab.images import ImageContrast, Images, read_images
    from naysay.lab.knowledge_graph import KnowledgeGraph, LinkPrediction, read_triples, split_triples
    from naysay.lab.recommendation import (
        Interactions,
        Recommendation,
        read_interactions,
        split_by_time,
        split_by_user,
    )
    from naysay.lab.report import report_comparison
    from naysay.lab.result import ArmResult, Comparison, Point, RunResult
    from naysay.lab.retrieval import Pieces, Retrieval, SubwordEncoder, TextPairs, read_texts, split_by_document

__all__ = [
    "ArmResult",
    "Comparison",
    "Graph",
    "ImageContrast",
    "Images",
    "Interactions",
    "KnowledgeGraph",
    "LinkPrediction",
    "NodeEmbedding",
    "Pieces",
    "Point",
    "Ranking",
    "Recommendation",
    "Retrieval",
    "RunResult",
    "SubwordEncoder",
    "TextPairs",
    "auc",
    "average_precision",
    "compare",
    "fitting_methods",
    "linear_probe",
    "nearest_labels",
    "ranking",
    "read_graph",
    "read_images",
    "read_interactions",
    "read_texts",
    "read_triples",
    "report_comparison",
    "split_by_document",
    "split_by_time",
    "split_by_user",
    "split_edges",
    "split_triples",
]


def __getattr__(name: str) -> Any:
    """Without torch: say that it is missing."""
    if name in __all__:
        need_torch()
    message = f"module 'naysay.lab' has no attribute {name!r}"
    raise AttributeError(message)
