"""An estimate as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from naysay.quantity.estimate import Estimate


def as_json(runs: Sequence[tuple[str, Estimate]]) -> bytes:
    """All that was found, as JSON: a list with an entry for each run; inf, which JSON does not have, as a string."""
    found = [
        {
            "run": name,
            "k": estimate.k,
            "at_edge": estimate.at_edge,
            "flat": list(estimate.flat),
            "carried_by_easy": estimate.carried_by_easy,
            "weight": estimate.weight,
            "separation": _finite(estimate.separation),
            "reached": [_finite(value) for value in estimate.reached.tolist()],
            "notes": list(estimate.notes),
            "curve": estimate.curve.tolist(),
        }
        for name, estimate in runs
    ]
    return (json.dumps(found, indent=1, allow_nan=False) + "\n").encode()


def _finite(value: float) -> Any:
    return value if abs(value) < float("inf") else str(value)
