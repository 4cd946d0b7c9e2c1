"""AUDIT: how good the negatives of a training set are that exists already, and what to do about them."""

from naysay.auditing.audit import audit
from naysay.auditing.gradient_share import Pulls
from naysay.auditing.k_verdict import Quantity
from naysay.auditing.repeats import Repeats
from naysay.auditing.report import report_audit
from naysay.auditing.result import Audit
from naysay.auditing.worst import Worst

__all__ = ["Audit", "Pulls", "Quantity", "Repeats", "Worst", "audit", "report_audit"]
