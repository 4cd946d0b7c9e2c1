"""MINING: hard negatives for each query of a corpus: search, exclude, judge, across anchors, select, backfill."""

from naysay.mining.bm25 import bm25
from naysay.mining.candidates import Candidates, Reason
from naysay.mining.disagreement import Disagreement, disagreement
from naysay.mining.mine import Explanation, Mined, Outcome, mine
from naysay.mining.rrf import rrf

__all__ = [
    "Candidates",
    "Disagreement",
    "Explanation",
    "Mined",
    "Outcome",
    "Reason",
    "bm25",
    "disagreement",
    "mine",
    "rrf",
]
