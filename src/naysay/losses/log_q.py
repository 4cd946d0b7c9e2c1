"""log_q of rows drawn without replacement, and of rows that several samplers drew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, of_type, to_numpy
from naysay.checks import as_array, check_all, public, raise_invalid


@public
def distinct_log_q(log_q: Any, mask: Any = None) -> Any:
    """Convert the log_q of rows drawn without replacement to -log(1/q_j + a_j), for an unbiased softmax.

    a_j is the number of slots drawn after slot j. A distinct row never repeats an item, so e^{s_j} / q_j estimates the
    sum over the items that were still free, and the mean over j of sum_{i<j} e^{s_i} + e^{s_j} / q_j is unbiased for
    the sum over all items. Terms by slot are e^{s_j} (1/q_j + a_j) / K, which `info_nce` sums with this log_q. Without
    it the sum is too low by about K / 2 items of n. Des Raj. JASA 1956.

    Args:
        log_q: (B, K) from a pool with distinct=True: the log-probability of slot j given the row's earlier slots.
        mask: (B, K) bool, True where a slot was drawn.

    Returns:
        (B, K), torch if log_q is; 0 where the mask is False.

    Examples:
        >>> np.exp(-distinct_log_q(-np.log([[5.0, 4.0]]))).round(3).tolist()    # two of five, one after the other
        [[6.0, 4.0]]
    """
    given = _numbers("log_q", log_q)
    if given.ndim != 2:
        raise_invalid("log_q", "of shape (B, K)", f"shape {given.shape}")
    drawn = np.ones(given.shape, dtype=bool) if mask is None else as_array("mask", to_numpy(mask))
    if drawn.shape != given.shape or drawn.dtype != bool:
        raise_invalid("mask", f"bool, of shape {given.shape}", f"{drawn.dtype}, shape {drawn.shape}")
    _check_below_0("log_q", given, drawn)
    after = drawn[:, ::-1].cumsum(axis=1)[:, ::-1] - drawn
    with np.errstate(divide="ignore"):
        result = np.where(drawn, -np.logaddexp(np.log(after), -np.where(drawn, given, 0.0)), 0.0)
    return of_type(result, log_q) if is_torch(log_q) else result


@public
def mixture_log_q(log_qs: Sequence[Any], shares: Any) -> Any:
    """Return the log-probability of negatives drawn by several samplers: log sum_m share_m q_m.

    A row of B in-batch negatives and B' uniform ones is one row of B + B' draws from Q = (B q_batch + B' / n) /
    (B + B'). Correcting each slot by the sampler that drew it is biased where one of them cannot draw every item.
    Yang et al. Mixed Negative Sampling. WWW 2020.

    Args:
        log_qs: One array for each sampler, all of one shape: the log-probability of EVERY slot's id under that
            sampler, whichever sampler drew it; -inf where a sampler cannot draw an id.
        shares: One number for each sampler: how many of a row's slots it fills. They are divided by their sum.

    Returns:
        An array of the shape of the log_qs, torch if the first of them is.

    Examples:
        >>> popularity, uniform = np.log([[0.5, 0.3]]), np.log([[0.1, 0.1]])
        >>> np.exp(mixture_log_q([popularity, uniform], [3, 1])).round(3).tolist()
        [[0.4, 0.25]]
    """
    parts = [_numbers("log_qs", part) for part in log_qs]
    if not parts:
        raise_invalid("log_qs", "at least one array", "none")
    if len({part.shape for part in parts}) > 1:
        raise_invalid("log_qs", "of one shape", ", ".join(str(part.shape) for part in parts))
    share = _numbers("shares", shares)
    if share.shape != (len(parts),):
        raise_invalid("shares", f"{len(parts)} numbers, one for each of log_qs", f"shape {share.shape}")
    if not (np.isfinite(share) & (share >= 0)).all() or share.sum() == 0:
        raise_invalid("shares", "at least 0, and not all 0", share.tolist())
    for part in parts:
        _check_below_0("log_qs", part)
    with np.errstate(divide="ignore"):
        terms = [np.log(part) + log_q for part, log_q in zip(share / share.sum(), parts, strict=True)]
    mixed = np.logaddexp.reduce(terms)
    return of_type(mixed, log_qs[0]) if is_torch(log_qs[0]) else mixed


def _numbers(parameter: str, values: Any) -> NDArray[Any]:
    array = as_array(parameter, to_numpy(values))
    if array.dtype.kind not in "iuf":
        raise_invalid(parameter, "numbers", f"dtype {array.dtype}")
    return array


def _check_below_0(parameter: str, values: NDArray[Any], where: Any = True) -> None:
    check_all(
        parameter, values, (values <= 1e-6) | ~np.asarray(where), "at most 0", "It is the logarithm of a probability."
    )
