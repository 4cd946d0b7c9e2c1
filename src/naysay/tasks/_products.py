"""Scores of anchors and items, or of triples, as one differentiable step, without copies of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from naysay.kernels.products import add_row_gradients, row_products
from naysay.kernels.threads import in_rows
from naysay.kernels.triple_scores import add_side_gradients, side_scores
from naysay.types import TAIL


def _by_loops(table: Tensor) -> bool:
    """Whether the compiled loops score vectors of a table: those in the memory of the processor."""
    return table.device.type == "cpu"


class _RowProducts(torch.autograd.Function):
    """See `row_scores`. torch's look-up copies every vector, and again for the gradient: three times the cost."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        """The products."""
        ctx.save_for_backward(table, rows, others)
        arrays = [part.detach().numpy() for part in (table, rows, others)]
        out = np.empty(arrays[2].shape, arrays[0].dtype)
        in_rows(row_products, len(out), out.size * table.shape[1] // 8, *arrays, out)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """The gradient of the table, in one thread: two rows of a batch may share a row of the table."""
        table, rows, others = (part.detach().numpy() for part in ctx.saved_tensors)
        out = np.zeros_like(table)
        add: Any = add_row_gradients
        add(table, rows, others, gradients[0].contiguous().numpy(), out)
        return torch.from_numpy(out), None, None


def row_scores(table: Tensor, rows: Tensor, others: Tensor) -> Tensor:
    """(B, K) table[rows] (B,) times table[others] (B, K), with gradients of the table, on its device."""
    if not _by_loops(table):
        # A matrix product may round the same pair in another way for another k; then a positive does not equal itself.
        return (embedding(rows, table)[:, None] * embedding(others, table)).sum(dim=-1)
    multiply: Any = _RowProducts.apply
    found: Tensor = multiply(table, rows, others)
    return found


class _SideScores(torch.autograd.Function):
    """See `entity_scores`."""

    @staticmethod
    def forward(
        ctx: Any, heads: Tensor, tails: Tensor, entities: Tensor, ids: Tensor, sides: Tensor, distances: Any
    ) -> Tensor:
        """The scores; `distances` is a bool."""
        arrays = [part.detach().numpy() for part in (heads, tails, entities, ids, sides)]
        out = np.empty(ids.shape, arrays[2].dtype)
        in_rows(side_scores, len(out), out.size * entities.shape[1] // 8, *arrays, distances, out)
        scores = torch.from_numpy(out)
        ctx.save_for_backward(heads, tails, entities, ids, sides, scores)
        ctx.distances = distances
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        """The gradients of both queries and of the entities, in one thread: rows of a batch may share an entity."""
        *arrays, scores = (part.detach().numpy() for part in ctx.saved_tensors)
        made = [np.zeros_like(array) for array in arrays[:3]]
        add: Any = add_side_gradients
        add(*arrays, ctx.distances, scores, gradients[0].contiguous().numpy(), *made)
        return torch.from_numpy(made[0]), torch.from_numpy(made[1]), torch.from_numpy(made[2]), None, None, None


def entity_scores(
    heads: Tensor, tails: Tensor, entities: Tensor, ids: Tensor, sides: Tensor, *, distances: bool
) -> Tensor:
    """(B, K) the scores of entities (B, K) as tails for queries `tails` (B, d) where sides (B, K) is 2, else as heads.

    A score is -|query - entity|, or without `distances` a product. With gradients, on the device of the entities.
    """
    if not _by_loops(entities):
        queries = torch.where((sides == TAIL)[:, :, None], tails[:, None], heads[:, None])
        others = embedding(ids, entities)
        if distances:
            return -((queries - others).square().sum(dim=-1) + 1e-12).sqrt()  # which has a gradient at 0
        return (queries * others).sum(dim=-1)
    score: Any = _SideScores.apply
    found: Tensor = score(heads, tails, entities, ids.contiguous(), sides.contiguous(), distances)
    return found
