"""A linear change of given vectors."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from naysay.arrays import to_torch
from naysay.checks import public


@final
@public
class Adapter(torch.nn.Module):
    """x + x W, normalised: a change of given vectors. W is one matrix for queries and documents, and begins at 0.

    Args:
        width: The number of coordinates of a vector.

    Examples:
        >>> Adapter(3)(torch.eye(3), np.array([2]))
        tensor([[0., 0., 1.]], grad_fn=<DivBackward0>)
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(width, width))

    def forward(self, vectors: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """(n, d) of some rows of the given vectors."""
        given = vectors[to_torch(rows, vectors.device)]
        return normalize(given + given @ self.weight, dim=1)
