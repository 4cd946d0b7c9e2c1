"""AUDIT: how good the negatives of an existing training set are, and what to do about them."""

from naysay.audits.audit import audit
from naysay.audits.false_share import Trade
from naysay.audits.findings import GradientShare, KVerdict, Repeats
from naysay.audits.fix import Fixed
from naysay.audits.report import report_audit
from naysay.audits.result import Audit
from naysay.audits.review import AuditReview
from naysay.audits.suspects import Worst

__all__ = [
    "Audit",
    "AuditReview",
    "Fixed",
    "GradientShare",
    "KVerdict",
    "Repeats",
    "Trade",
    "Worst",
    "audit",
    "report_audit",
]
