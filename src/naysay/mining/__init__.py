"""MINING: the best negatives in a corpus, exact, explained, in bounded memory. Embeddings in, ids out.

Steps are files here. What they stand on, and what runs them, has rooms:

files       lines, tables and vectors, a block at a time; files that appear whole or not at all
searching   the exact search, and the scores of listed pairs
index       the approximate search, and its recall
encode      texts to vectors
formats     training files of all libraries, runs, BEIR
reported    reports and notes
task        what `mine` and a job on disk share: checks, the line, the stages for some anchors
jobs        jobs on disk, which can be stopped and resumed
"""

from naysay.mining.backfill import backfill
from naysay.mining.bm25 import bm25
from naysay.mining.candidates import Candidates
from naysay.mining.encode.encode_texts import encode_texts
from naysay.mining.encode.model import load_model, weights_hash
from naysay.mining.exclude import exclude
from naysay.mining.explain import Explanation, Fate
from naysay.mining.files.vectors import Vectors, open_vectors
from naysay.mining.formats.read_beir import Beir, read_beir
from naysay.mining.formats.read_negatives import read_negatives
from naysay.mining.formats.runs import Run, read_run, write_run
from naysay.mining.formats.training_file import TrainingFile
from naysay.mining.formats.write_negatives import Written, write_negatives
from naysay.mining.index.approximate import Index
from naysay.mining.index.recall import Recall, check_recall
from naysay.mining.join import join
from naysay.mining.judge import judge
from naysay.mining.merge import Merged, merge
from naysay.mining.mine import mine
from naysay.mining.mined import Mined
from naysay.mining.rescore import rescore
from naysay.mining.searching.found import Found
from naysay.mining.searching.search import search, search_below
from naysay.mining.select import select
from naysay.mining.window import floor, window

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
