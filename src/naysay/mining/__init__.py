"""MINING: hard negatives for each query of a corpus: search, exclude, judge, select, backfill."""

from naysay.mining.backfill import backfill
from naysay.mining.bm25 import bm25
from naysay.mining.candidates import Candidates, join
from naysay.mining.disagreement import Disagreement, disagreement
from naysay.mining.exclude import drop_below, exclude, window
from naysay.mining.explain import Explanation, Outcome
from naysay.mining.judge import judge
from naysay.mining.merge import Merged, merge
from naysay.mining.mine import mine
from naysay.mining.mined import Mined
from naysay.mining.rescore import rescore
from naysay.mining.select import select

__all__ = [
    "Candidates",
    "Disagreement",
    "Explanation",
    "Merged",
    "Mined",
    "Outcome",
    "backfill",
    "bm25",
    "disagreement",
    "drop_below",
    "exclude",
    "join",
    "judge",
    "merge",
    "mine",
    "rescore",
    "select",
    "window",
]
