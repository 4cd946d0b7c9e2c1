"""The inputs of a loss under test, and its value and gradients as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import need_torch, to_numpy
from naysay.rng import rng_for


@dataclass(frozen=True)
class Case:
    """Inputs of a loss as tensors, and the loss itself. `log_q` is passed only if the loss needs it."""

    loss: Callable[..., Any]
    positive: Any  # (B,)
    negatives: Any  # (B, K)
    mask: Any = None
    weights: Any = None
    log_q: Any = None

    def values(self) -> Any:
        """(B,) the loss; options that are None are left out."""
        options = {"mask": self.mask, "weights": self.weights, "log_q": self.log_q}
        given = {name: value for name, value in options.items() if value is not None}
        return self.loss(self.positive, self.negatives, **given)

    def all(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The loss (B,) and the gradients of its sum in the positive (B,) and the negatives (B, K), in NumPy."""
        torch = need_torch()
        leaves = [score.detach().clone().requires_grad_() for score in (self.positive, self.negatives)]
        values = replace(self, positive=leaves[0], negatives=leaves[1]).values()
        total = values.sum()
        found = torch.autograd.grad(total, leaves, allow_unused=True) if total.requires_grad else (None, None)
        grads = [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, found, strict=True)]
        return np.asarray(to_numpy(values)), np.asarray(to_numpy(grads[0])), np.asarray(to_numpy(grads[1]))

    def rows(self, rows: Any, slots: Any = slice(None)) -> Case:
        """The same for some rows and some of their slots."""
        parts = {name: getattr(self, name) for name in ("negatives", "mask", "weights", "log_q")}
        cut = {name: value[rows][:, slots] for name, value in parts.items() if value is not None}
        return replace(self, positive=self.positive[rows], **cut)


@dataclass(frozen=True)
class Bench:
    """A loss under test and the inputs to test it with."""

    loss: Callable[..., Any]
    needs_log_q: bool
    seed: int

    def case(self, rows: int = 6, slots: int = 5, dtype: str = "float64") -> Case:
        """Random scores, with log_q if the loss needs it; no mask and no weights."""
        torch, rng = need_torch(), rng_for(self.seed, step=rows)
        kind = getattr(torch, dtype)
        positive, negatives = rng.standard_normal(rows), rng.standard_normal((rows, slots))
        log_q = torch.tensor(rng.uniform(-5, -1, (rows, slots)), dtype=kind) if self.needs_log_q else None
        return Case(self.loss, torch.tensor(positive, dtype=kind), torch.tensor(negatives, dtype=kind), log_q=log_q)

    def masked(self) -> Case:
        """A case whose rows have one masked slot, two, and so on."""
        case = self.case()
        rows, slots = case.negatives.shape
        torch = need_torch()
        mask = np.arange(slots) > np.arange(rows)[:, None] % (slots - 1)
        return replace(case, mask=torch.tensor(rng_for(self.seed).permuted(mask, axis=1)))

    def weighted(self) -> Case:
        """The same with weights."""
        torch, case = need_torch(), self.masked()
        weights = rng_for(self.seed).uniform(0.2, 2.0, tuple(case.negatives.shape))
        return replace(case, weights=torch.tensor(weights))
