"""log_q for rows drawn without replacement, so that a softmax estimated from them is unbiased."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import as_array, first_bad, public, raise_invalid


@public
def distinct_log_q(log_q: Any, mask: Any = None) -> Any:
    """Convert the log_q of rows drawn without replacement to -log(1/q_j + a_j), for an unbiased softmax.

    a_j is the number of slots drawn after slot j. A distinct row never repeats an item, so e^{s_j} / q_j estimates the
    sum over the items that were still free; the earlier ones are known, and are added. The mean over j of
    sum_{i<j} e^{s_i} + e^{s_j} / q_j is unbiased for the sum over all items (Des Raj's estimator), and collecting terms
    by slot gives e^{s_j} (1/q_j + a_j) / K, which is what `info_nce` sums with this log_q. Without it the sum is too
    low by about K / 2 items of n.

    Des Raj. Some Estimators in Sampling with Varying Probabilities without Replacement. JASA 1956.

    Args:
        log_q: (B, K) from a pool with distinct=True: the log-probability of slot j given the row's earlier slots.
        mask: (B, K) bool, True where a slot was drawn.

    Returns:
        (B, K), torch if log_q is; 0 where the mask is False.

    Examples:
        >>> np.exp(-distinct_log_q(-np.log([[5.0, 4.0]]))).round(3).tolist()    # two of five, one after the other
        [[6.0, 4.0]]
    """
    given = as_array("log_q", to_numpy(log_q))
    if given.ndim != 2:
        raise_invalid("log_q", "of shape (B, K)", f"shape {given.shape}")
    if given.dtype.kind not in "iuf":
        raise_invalid("log_q", "numbers", f"dtype {given.dtype}")
    drawn = np.ones(given.shape, dtype=bool) if mask is None else as_array("mask", to_numpy(mask))
    if drawn.shape != given.shape or drawn.dtype != bool:
        raise_invalid("mask", f"bool, of shape {given.shape}", f"{drawn.dtype}, shape {drawn.shape}")
    bad = drawn & ~(given <= 1e-6)
    if bad.any():
        got = first_bad(given, bad)
        raise_invalid("log_q", "at most 0", got, "It is the logarithm of a probability.")
    after = drawn[:, ::-1].cumsum(axis=1)[:, ::-1] - drawn
    with np.errstate(divide="ignore"):
        result = np.where(drawn, -np.logaddexp(np.log(after), -np.where(drawn, given, 0.0)), 0.0)
    return to_torch(result, log_q.device).to(log_q.dtype) if is_torch(log_q) else result
