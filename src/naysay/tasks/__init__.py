"""TASKS: small models of each domain with their data, training step and measures, in torch."""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.tasks.adapter import Adapter
from naysay.tasks.conv import ConvEncoder
from naysay.tasks.graph_sage import GraphSage
from naysay.tasks.graphs import Graph, read_graph, split_edges
from naysay.tasks.image_contrast import ImageContrast, ImageLearner
from naysay.tasks.images import Images, read_images
from naysay.tasks.interactions import Interactions, split_by_time, split_by_user
from naysay.tasks.knowledge_graph import KnowledgeGraph, read_triples, split_triples
from naysay.tasks.lightgcn import LightGCN
from naysay.tasks.link_prediction import LinkPrediction, LinkPredictor
from naysay.tasks.node_embedding import NodeEmbedder, NodeEmbedding
from naysay.tasks.reading import read_interactions
from naysay.tasks.recommendation import Recommendation, Recommender
from naysay.tasks.retrieval import Retrieval, Retriever
from naysay.tasks.subwords import Pieces, SubwordEncoder
from naysay.tasks.texts import TextPairs, read_texts, split_by_document
from naysay.tasks.triple_models import TripleModel

__all__ = [
    "Adapter",
    "ConvEncoder",
    "Graph",
    "GraphSage",
    "ImageContrast",
    "ImageLearner",
    "Images",
    "Interactions",
    "KnowledgeGraph",
    "LightGCN",
    "LinkPrediction",
    "LinkPredictor",
    "NodeEmbedder",
    "NodeEmbedding",
    "Pieces",
    "Recommendation",
    "Recommender",
    "Retrieval",
    "Retriever",
    "SubwordEncoder",
    "TextPairs",
    "TripleModel",
    "read_graph",
    "read_images",
    "read_interactions",
    "read_texts",
    "read_triples",
    "split_by_document",
    "split_by_time",
    "split_by_user",
    "split_edges",
    "split_triples",
]
