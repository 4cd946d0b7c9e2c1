"""MINING: hard negatives for each query of a corpus: search, exclude, judge, across anchors, select, backfill."""

from naysay.mining.bm25 import bm25
from naysay.mining.candidates import Candidates, Reason, join
from naysay.mining.disagreement import Disagreement, disagreement
from naysay.mining.exclude import drop_below, exclude, window
from naysay.mining.judge import judge
from naysay.mining.mine import mine
from naysay.mining.mined import Explanation, Mined, Outcome
from naysay.mining.rescore import rescore
from naysay.mining.rrf import rrf
from naysay.mining.take import backfill, select

__all__ = [
    "Candidates",
    "Disagreement",
    "Explanation",
    "Mined",
    "Outcome",
    "Reason",
    "backfill",
    "bm25",
    "disagreement",
    "drop_below",
    "exclude",
    "join",
    "judge",
    "mine",
    "rescore",
    "rrf",
    "select",
    "window",
]
