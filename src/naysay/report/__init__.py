"""REPORT: results as one HTML file that opens offline: what to do, the trade, examples, pairs to label."""

from naysay.report.charts import difficulty_by_percentile, effectiveness, score_distribution
from naysay.report.contents import Chart, Contents, Example, Examples, ReviewPair, Table
from naysay.report.html import write_report
from naysay.report.scores import Scores
from naysay.report.threshold_tables import threshold_tables
from naysay.report.trade import Trade, TradePoint
from naysay.report.trade_chart import trade_chart

__all__ = [
    "Chart",
    "Contents",
    "Example",
    "Examples",
    "ReviewPair",
    "Scores",
    "Table",
    "Trade",
    "TradePoint",
    "difficulty_by_percentile",
    "effectiveness",
    "score_distribution",
    "threshold_tables",
    "trade_chart",
    "write_report",
]
