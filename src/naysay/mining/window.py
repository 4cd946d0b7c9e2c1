"""Window and floor: ranks that are skipped, and scores too low to teach anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay.checks import as_floats, check_whole, public, raise_invalid
from naysay.mining.candidates import Candidates, check_candidates


@public
def window(candidates: Candidates, first: int = 1, last: int | None = None) -> Candidates:
    """Drop ranks before `first` ("too near") and after `last` ("too far"); both ends are kept.

    **Ranks are those of the list a candidate came from, before anything was dropped**, so that the window skips the
    same candidates whatever other stages did before. O(1) a slot.

    Example:
        >>> from types import SimpleNamespace
        >>> found = SimpleNamespace(ids=np.array([[4, 2, 7]]), scores=np.array([[0.9, 0.5, 0.1]]))
        >>> left = window(Candidates.of(found), first=2, last=2)
        >>> left.ids[left.kept].tolist()
        [2]
    """
    check_candidates(candidates)
    check_whole("first", first, 1)
    candidates = candidates.drop(candidates.rank < first, "too near")
    if last is None:
        return candidates
    if check_whole("last", last, 1) < first:
        raise_invalid("last", f"at least first = {first}", last)
    return candidates.drop(candidates.rank > last, "too far")


@public
def floor(candidates: Candidates, low: Any) -> Candidates:
    """Drop what scores below `low`, a number or (n,) of them, as "too easy"; a score on it is hard, as in `Bands`."""
    check_candidates(candidates)
    least = as_floats("low", low)
    if least.ndim and least.shape != (len(candidates),):
        raise_invalid("low", f"a number, or ({len(candidates)},) one for each anchor", f"shape {least.shape}")
    return candidates.drop(candidates.scores < least.astype(np.float32).reshape(-1, 1), "too easy")
