"""Scores of anchors and items, or of triples, as one differentiable step, without copies of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from naysay.kernels.products import add_row_gradients, row_products
from naysay.kernels.threads import in_rows
from naysay.kernels.triple_scores import add_query_gradients, add_side_gradients, make_queries, side_scores


def by_loops(table: Tensor) -> bool:
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
    if not by_loops(table):
        # A matrix product may round the same pair in another way for another k; then a positive does not equal itself.
        return (embedding(rows, table)[:, None] * embedding(others, table)).sum(dim=-1)
    multiply: Any = _RowProducts.apply
    found: Tensor = multiply(table, rows, others)
    return found


class _TripleScores(torch.autograd.Function):
    """See `triple_scores`. All gradients of the entities go into one table: each further table costs a pass over it."""

    @staticmethod
    def forward(
        ctx: Any, entities: Tensor, relations: Tensor, triples: Tensor, ids: Tensor, sides: Tensor, form: Any
    ) -> Tensor:
        """The scores; `form` is (how a relation makes a query, whether a score is a distance)."""
        kind, distances = form
        table, between, rows, others, parts = (
            part.detach().numpy() for part in (entities, relations, triples, ids, sides)
        )
        heads, tails = (np.empty((len(rows), table.shape[1]), table.dtype) for _ in range(2))
        in_rows(make_queries, len(rows), heads.size // 4, rows, table, between, kind, heads, tails)
        out = np.empty(others.shape, table.dtype)
        in_rows(
            side_scores, len(out), out.size * table.shape[1] // 8, heads, tails, table, others, parts, distances, out
        )
        scores, *queries = (torch.from_numpy(made) for made in (out, heads, tails))
        ctx.save_for_backward(entities, relations, triples, ids, sides, scores, *queries)
        ctx.form = form
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        """The gradients of both tables, in one thread: rows of a batch may share an entity."""
        kind, distances = ctx.form
        entities, relations, triples, ids, sides, scores, heads, tails = (
            part.detach().numpy() for part in ctx.saved_tensors
        )
        of_entities, of_relations, of_heads, of_tails = (
            np.zeros_like(table) for table in (entities, relations, heads, tails)
        )
        slopes = gradients[0].contiguous().numpy()
        add_sides: Any = add_side_gradients
        add_sides(heads, tails, entities, ids, sides, distances, scores, slopes, of_heads, of_tails, of_entities)
        add_queries: Any = add_query_gradients
        add_queries(triples, entities, relations, kind, of_heads, of_tails, of_entities, of_relations)
        return torch.from_numpy(of_entities), torch.from_numpy(of_relations), None, None, None, None


def triple_scores(
    entities: Tensor,
    relations: Tensor,
    triples: Tensor,
    ids: Tensor,
    sides: Tensor,
    *,
    kind: int,
    distances: bool,
) -> Tensor:
    """(B, K) the scores of triples (B, 3) with the tail replaced by ids (B, K) where sides (B, K) is 2, else the head.

    A score is -|query - entity|, or without `distances` a product, with gradients of both tables. `kind` is how a
    relation makes a query: see `kernels.triple_scores`. Only for tables in the memory of the processor.
    """
    score: Any = _TripleScores.apply
    found: Tensor = score(
        entities, relations.contiguous(), triples.contiguous(), ids.contiguous(), sides.contiguous(), (kind, distances)
    )
    return found
