"""The log_q of negatives that several samplers have drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import as_array, first_bad, public, raise_invalid


@public
def mixture_log_q(log_qs: Sequence[Any], shares: Any) -> Any:
    """Return the log-probability of negatives drawn by several samplers: log sum_m share_m q_m.

    A row of B in-batch negatives, drawn by popularity, and B' uniform ones is one row of B + B' draws from
    Q = (B q_batch + B' / n) / (B + B'). Correcting each slot by the sampler that drew it has a larger variance, and is
    biased where one of them cannot draw every item.

    Yang et al. Mixed Negative Sampling for Learning Two-tower Neural Networks in Recommendations. WWW 2020.

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
    parts = [as_array("log_qs", to_numpy(part)) for part in log_qs]
    if not parts:
        raise_invalid("log_qs", "at least one array", "none")
    for part in parts:
        if part.dtype.kind not in "iuf":
            raise_invalid("log_qs", "numbers", f"dtype {part.dtype}")
    if len({part.shape for part in parts}) > 1:
        raise_invalid("log_qs", "of one shape", ", ".join(str(part.shape) for part in parts))
    share = as_array("shares", to_numpy(shares))
    if share.dtype.kind not in "iuf":
        raise_invalid("shares", "numbers", f"dtype {share.dtype}")
    if share.shape != (len(parts),):
        raise_invalid("shares", f"{len(parts)} numbers, one for each of log_qs", f"shape {share.shape}")
    if not (np.isfinite(share) & (share >= 0)).all() or share.sum() == 0:
        raise_invalid("shares", "at least 0, and not all 0", share.tolist())
    for part in parts:
        bad = ~(part <= 1e-6)
        if bad.any():
            raise_invalid("log_qs", "at most 0", first_bad(part, bad), "They are logarithms of probabilities.")
    with np.errstate(divide="ignore"):
        terms = [np.log(part) + log_q for part, log_q in zip(share / share.sum(), parts, strict=True)]
    mixed = np.logaddexp.reduce(terms)
    if not is_torch(log_qs[0]):
        return mixed
    return to_torch(mixed, log_qs[0].device).to(log_qs[0].dtype)
