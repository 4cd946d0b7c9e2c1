"""TASKS: small models of each domain with their data, training step and measures, in torch."""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.tasks.interactions import Interactions, split_by_time, split_by_user
from naysay.tasks.knowledge_graph import KnowledgeGraph, read_triples, split_triples
from naysay.tasks.lightgcn import LightGCN
from naysay.tasks.link_prediction import LinkPrediction, LinkPredictor
from naysay.tasks.reading import read_interactions
from naysay.tasks.recommendation import Recommendation, Recommender
from naysay.tasks.triple_models import TripleModel

__all__ = [
    "Interactions",
    "KnowledgeGraph",
    "LightGCN",
    "LinkPrediction",
    "LinkPredictor",
    "Recommendation",
    "Recommender",
    "TripleModel",
    "read_interactions",
    "read_triples",
    "split_by_time",
    "split_by_user",
    "split_triples",
]
