"""Batch: what a loader returns for one step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from naysay.arrays import is_torch, to_torch
from naysay.checks import check_kind, public
from naysay.types import OF_ROWS, Negatives, Query


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The pairs of one training step and their negatives, in torch.

    Args:
        query: Anchors (B,), positives (B,), the step and, if asked for, times (B,), where dates stay in NumPy; or
            triples (B, 3) as anchors, without positives.
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
        return Batch(self._mapped(lambda array: in_torch(array, device)), self.negatives.to(device))

    def pin_memory(self) -> Batch:
        """The same in page-locked memory. A DataLoader with pin_memory=True calls it."""
        return Batch(self._mapped(_pinned), self.negatives.pin_memory())

    def _mapped(self, convert: Any) -> Query:
        """The query with other arrays."""
        arrays = {name: getattr(self.query, name) for name in OF_ROWS}
        return replace(self.query, **{name: convert(array) for name, array in arrays.items() if array is not None})


def in_torch(array: Any, device: Any = None) -> Any:
    """An array in torch, which has no dates: they stay in NumPy."""
    return array if getattr(array.dtype, "kind", "") == "M" else to_torch(array, device)


def _pinned(array: Any) -> Any:
    tensor = in_torch(array)
    return tensor.pin_memory() if is_torch(tensor) else tensor
