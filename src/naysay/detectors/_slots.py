"""The slots a detector is asked about: their scores in NumPy, and its answer in the array type they came in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import raise_invalid
from naysay.detectors._score_blocks import first_slot
from naysay.types import Array, Negatives, Query, check_query

# Every detector puts its own line here: a policy acts from this suspicion on, unless it is told another.
LINE = 0.5


def check_asked(query: object, negatives: object) -> None:
    """Refuse what is no question: a query, and negatives of as many rows."""
    check_query(query)
    if not isinstance(negatives, Negatives):
        raise_invalid("negatives", "Negatives", type(negatives).__name__, "Pass what a sampler answered.")
    if isinstance(query, Query) and len(query) != negatives.shape[0]:
        raise_invalid("negatives", f"of {len(query)} rows, like the query", f"{negatives.shape[0]} rows")


def query_rows(query: Query, chosen: NDArray[Any]) -> Query:
    """The query of some rows."""
    parts = {name: getattr(query, name) for name in ("anchors", "positives", "vectors")}
    return replace(query, **{name: part[chosen] for name, part in parts.items() if part is not None})


def filled_slots(negatives: Negatives) -> NDArray[np.bool_]:
    """(B, K): slots that hold an id, whatever their relation."""
    return np.asarray(to_numpy(negatives.ids)) >= 0


def slot_scores(negatives: Negatives) -> NDArray[np.float64]:
    """(B, K) the scores of the slots as float64; NaN and infinity are refused where a slot is filled, 0 elsewhere."""
    if negatives.scores is None:
        advice = "Use a sampler that scores, or pass dataclasses.replace(negatives, scores=...)."
        raise_invalid("negatives.scores", "given", None, advice)
    scores = np.asarray(to_numpy(negatives.scores)).astype(np.float64)
    filled = filled_slots(negatives)
    bad = ~np.isfinite(scores) & filled
    if bad.any():
        raise_invalid("negatives.scores", "finite", first_slot(scores, bad))
    return np.where(filled, scores, 0.0)


def as_suspicion(values: NDArray[Any], negatives: Negatives) -> Array:
    """(B, K) values as suspicion: 0 where a slot is empty, in the array type and on the device of the negatives."""
    found = np.where(filled_slots(negatives), values, 0.0)
    return to_torch(found, negatives.ids.device) if is_torch(negatives.ids) else found
