"""MINING: the best negatives in a corpus, exact, explained, in bounded memory. Embeddings in, ids out."""

from naysay.mining.approximate import Index
from naysay.mining.backfill import backfill
from naysay.mining.bm25 import bm25
from naysay.mining.candidates import Candidates
from naysay.mining.encode import encode_texts, load_model, weights_hash
from naysay.mining.exclude import exclude
from naysay.mining.explain import Explanation, Fate
from naysay.mining.found import Found
from naysay.mining.join import join
from naysay.mining.judge import judge
from naysay.mining.merge import Merged, merge
from naysay.mining.mine import mine
from naysay.mining.mined import Mined
from naysay.mining.read_beir import Beir, read_beir
from naysay.mining.read_negatives import read_negatives
from naysay.mining.recall import Recall, check_recall
from naysay.mining.rescore import rescore
from naysay.mining.runs import Run, read_run, write_run
from naysay.mining.search import search, search_below
from naysay.mining.select import select
from naysay.mining.training_file import TrainingFile
from naysay.mining.vectors import Vectors, open_vectors
from naysay.mining.window import floor, window
from naysay.mining.write_negatives import Written, write_negatives

__all__ = [
    "Beir",
    "Candidates",
    "Explanation",
    "Fate",
    "Found",
    "Index",
    "Merged",
    "Mined",
    "Recall",
    "Run",
    "TrainingFile",
    "Vectors",
    "Written",
    "backfill",
    "bm25",
    "check_recall",
    "encode_texts",
    "exclude",
    "floor",
    "join",
    "judge",
    "load_model",
    "merge",
    "mine",
    "open_vectors",
    "read_beir",
    "read_negatives",
    "read_run",
    "rescore",
    "search",
    "search_below",
    "select",
    "weights_hash",
    "window",
    "write_negatives",
    "write_run",
]
