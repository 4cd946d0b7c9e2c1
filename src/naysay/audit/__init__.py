"""AUDIT: how good the negatives of a training set are that exists already, and what to do about them."""

from naysay.audit.audit import audit
from naysay.audit.enough import Quantity
from naysay.audit.pulls import Pulls
from naysay.audit.repeats import Repeats
from naysay.audit.reported import report_audit
from naysay.audit.result import Audit
from naysay.audit.worst import Worst

__all__ = ["Audit", "Pulls", "Quantity", "Repeats", "Worst", "audit", "report_audit"]
