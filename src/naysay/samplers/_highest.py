"""The negatives of the highest values: choice and answer in one compiled pass, where the arrays are a processor's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.kernels import top
from naysay.kernels.threads import in_rows
from naysay.pools._slots import shortfall
from naysay.samplers._choose import SHORT
from naysay.samplers._pick import pick
from naysay.samplers._scored import per_slot, take
from naysay.types import Array, Negatives


def take_highest(
    drawn: Negatives,
    values: Array,
    counts: np.ndarray[Any, Any],
    width: int,
    on_short: str,
    scores: Array,
) -> Negatives:
    """Of each row of `drawn` the counts[b] candidates of the highest values, highest first; wide as `width`.

    The same as `take` after `pick`. Those are a dozen passes over (B, n) and (B, K), this is one: at a batch of a
    thousand rows and more the passes cost more than the choice.

    Args:
        values: (B, n), -inf where a slot is empty: what is compared, and what the answer holds.
        scores: (B, n), -inf where a slot is empty: what is compared, and what the answer holds.
    """
    on_processor = not is_torch(values) or values.device.type == "cpu"
    if not on_processor or not 0 < width < min(values.shape[1], SHORT + 1) or per_slot(drawn):
        return take(drawn, *pick(values, scores > -np.inf, width), counts, width, on_short, scores)
    compared, held, ids = (np.ascontiguousarray(to_numpy(array)) for array in (values, scores, drawn.ids))
    order, chosen = (np.empty((len(ids), width), np.int64) for _ in range(2))
    found = np.empty((len(ids), width), held.dtype)
    in_rows(top.take_highest, len(ids), ids.size, compared, held, ids, counts, order, chosen, found)
    dropped = shortfall(on_short, chosen, counts)
    if is_torch(values):
        chosen, found = to_torch(chosen), to_torch(found)
    return replace(drawn, ids=chosen, scores=found, log_q=None, dropped=dropped)
