"""Batch: what a loader returns for one step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from naysay.arrays import to_torch
from naysay.checks import check_kind, public
from naysay.types import OF_ROWS, Negatives, Query


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The pairs of one training step and their negatives, in torch.

    Args:
        query: Anchors (B,), positives (B,) and the step; or triples (B, 3) as anchors, without positives.
        negatives: (B, K), drawn for this query.

    Examples:
        >>> import numpy as np
        >>> import naysay as ns
        >>> batch = Batch(ns.Query([0, 1], positives=[4, 5]), ns.Negatives(np.array([[2, 3], [3, 2]])))
        >>> len(batch), batch.to("cpu").negatives.shape
        (2, (2, 2))
    """

    query: Query
    negatives: Negatives

    def __post_init__(self) -> None:
        check_kind("query", self.query, Query, "a Query")
        check_kind("negatives", self.negatives, Negatives, "Negatives")

    def __len__(self) -> int:
        """B, the number of rows."""
        return len(self.query)

    def to(self, device: Any) -> Batch:
        """The same on a torch device."""
        return Batch(self._mapped(lambda array: to_torch(array, device)), self.negatives.to(device))

    def pin_memory(self) -> Batch:
        """The same in page-locked memory. A DataLoader with pin_memory=True calls it."""
        return Batch(self._mapped(lambda array: to_torch(array).pin_memory()), self.negatives.pin_memory())

    def _mapped(self, convert: Any) -> Query:
        """The query with other arrays."""
        arrays = {name: getattr(self.query, name) for name in OF_ROWS}
        return replace(self.query, **{name: convert(array) for name, array in arrays.items() if array is not None})
