"""COMPARE: which negatives for my data. Every arm has the same start, data order and budget."""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.comparing.arms import Arm, fitting_methods
from naysay.comparing.compare import compare
from naysay.comparing.report import report_comparison
from naysay.comparing.result import ArmResult, Comparison, Point, RunResult

__all__ = [
    "Arm",
    "ArmResult",
    "Comparison",
    "Point",
    "RunResult",
    "compare",
    "fitting_methods",
    "report_comparison",
]
