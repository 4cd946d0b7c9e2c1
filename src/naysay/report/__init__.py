"""REPORT: what was found, as one HTML file that opens offline: a sentence to act on, charts, a line to move."""

from naysay.report.contents import Chart, Contents, Example, Examples, Table
from naysay.report.difficulty import difficulty_by_percentile
from naysay.report.distribution import score_distribution
from naysay.report.effectiveness import effectiveness
from naysay.report.html import write_report
from naysay.report.moving import Moved, moved
from naysay.report.scores import Sample, Scores
from naysay.report.threshold_tables import threshold_tables

__all__ = [
    "Chart",
    "Contents",
    "Example",
    "Examples",
    "Moved",
    "Sample",
    "Scores",
    "Table",
    "difficulty_by_percentile",
    "effectiveness",
    "moved",
    "score_distribution",
    "threshold_tables",
    "write_report",
]
