"""AUDIT: how good the negatives of an existing training set are, and what to do about them."""

from naysay.auditing._posterior import Trade
from naysay.auditing.audit import audit
from naysay.auditing.findings import GradientShare, KVerdict, Repeats
from naysay.auditing.report import report_audit
from naysay.auditing.result import Audit
from naysay.auditing.suspects import Worst

__all__ = ["Audit", "GradientShare", "KVerdict", "Repeats", "Trade", "Worst", "audit", "report_audit"]
