"""TRAINING ON SEVERAL PROCESSES: each gets its rows of what one process would do with the whole batch.

The whole batch is the rows of all processes, in the order of their ranks. Numbers of rows may differ. All parts wait
for the other processes of the group: every process must call them equally often, and in the same order.
"""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.distributed.in_shares import in_shares
from naysay.distributed.observe_all import observe_all
from naysay.distributed.update_on_first import update_on_first
from naysay.distributed.whole_batch import WholeBatch

__all__ = ["WholeBatch", "in_shares", "observe_all", "update_on_first"]
