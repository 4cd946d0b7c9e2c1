"""DISTRIBUTED: each rank gets its slice of the global batch.

The global batch is the rows of all processes, in the order of their ranks. Numbers of rows may differ. All parts wait
for the other processes of the group: every process must call them equally often, and in the same order.
"""
# ruff: noqa: E402  (a missing torch is named before anything needs it)

from naysay.arrays import need_torch

need_torch()

from naysay.distributed.update_on_first import update_on_first
from naysay.distributed.whole_batch import WholeBatch, in_shares, observe_all

__all__ = ["WholeBatch", "in_shares", "observe_all", "update_on_first"]
