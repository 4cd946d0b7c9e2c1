"""REPORT: results as one HTML file that opens offline: what to do, the trade, examples, pairs to label."""

from naysay.report.charts import difficulty_by_percentile, effectiveness, score_distribution
from naysay.report.contents import Chart, Contents, Example, Examples, ReviewPair, Table
from naysay.report.html import write_report
from naysay.report.run_log import TrainingRun, read_run
from naysay.report.scores import Scores
from naysay.report.threshold_tables import threshold_tables
from naysay.report.trade import Trade, TradePoint
from naysay.report.trade_chart import trade_chart
from naysay.report.training_run import report_run

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
    "TrainingRun",
    "difficulty_by_percentile",
    "effectiveness",
    "read_run",
    "report_run",
    "score_distribution",
    "threshold_tables",
    "trade_chart",
    "write_report",
]
