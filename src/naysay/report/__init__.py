"""REPORT: results as one HTML file that opens offline: what to do, charts, a threshold to move, examples."""

from naysay.report.charts import difficulty_by_percentile, effectiveness, score_distribution
from naysay.report.contents import Chart, Contents, Example, Examples, Table
from naysay.report.html import write_report
from naysay.report.scores import Sample, Scores
from naysay.report.threshold import AtThreshold, at_threshold
from naysay.report.threshold_tables import threshold_tables

__all__ = [
    "AtThreshold",
    "Chart",
    "Contents",
    "Example",
    "Examples",
    "Sample",
    "Scores",
    "Table",
    "at_threshold",
    "difficulty_by_percentile",
    "effectiveness",
    "score_distribution",
    "threshold_tables",
    "write_report",
]
