"""Generators for `Learned`: what scores candidates for the sampler, and learns which ones are rewarded.

A generator has logits(anchors, candidates (B, n)) -> (B, n) and ascend(anchors, candidates, gradient (B, n)), one step
up the gradient in those logits. For triples candidates are (B, n, 3). All work in NumPy; `TorchModule` wraps a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import MOST_ROWS, check_whole, public, raise_invalid
from naysay.samplers import _looked_up as looked_up
from naysay.samplers._generators import Floats, Ids, Tables
from naysay.text import described


@final
@public
class Factors:
    """A matrix factorisation: logit = u_a . v_i + b_i.

    Args:
        n_anchors: The number of anchors.
        n_items: The number of items.
        d: The dimension.
        rate: Of gradient ascent.
        decay: Of the touched rows, for each step.
        bias: Whether items have b.
        seed: Of the start, normal with deviation 0.1.

    Examples:
        >>> import numpy as np
        >>> factors = Factors(2, 3, 4)
        >>> before = factors.logits(np.array([0]), np.array([[2]]))[0, 0]
        >>> factors.ascend(np.array([0]), np.array([[2]]), np.array([[1.0]]))
        >>> bool(factors.logits(np.array([0]), np.array([[2]]))[0, 0] > before)
        True
    """

    def __init__(
        self,
        n_anchors: int,
        n_items: int,
        d: int = 16,
        *,
        rate: float = 0.1,
        decay: float = 0.0,
        bias: bool = True,
        seed: int = 0,
    ) -> None:
        """Start at random."""
        self.n_anchors, self.n_items, self.d, self.bias = n_anchors, n_items, d, bias
        sizes = (
            check_whole("n_anchors", n_anchors, 1, MOST_ROWS),
            check_whole("n_items", n_items, 1, MOST_ROWS),
            check_whole("d", d, 1),
        )
        shapes = {"anchors": (sizes[0], sizes[2]), "items": (sizes[1], sizes[2])}
        self.rate, self.decay, self.seed = rate, decay, seed
        self._tables = Tables(rate, decay, shapes | ({"bias": (sizes[1],)} if bias else {}), seed)

    def logits(self, anchors: Ids, candidates: Ids) -> Floats:
        """(B, n)."""
        logits = looked_up.dots(self._tables["anchors"][anchors], self._tables["items"], candidates)
        return np.asarray(logits + self._tables["bias"][candidates] if self.bias else logits)

    def ascend(self, anchors: Ids, candidates: Ids, gradient: Floats) -> None:
        """One step up the gradient (B, n) in the logits."""
        own = self._tables["anchors"][anchors]  # a copy: items move by the vectors from before the step
        self._tables.add("anchors", anchors, looked_up.sums(gradient, self._tables["items"], candidates))
        self._tables.add("items", candidates, gradient, own)
        if self.bias:
            self._tables.add("bias", candidates, gradient)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All parameters."""
        return self._tables.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self._tables.restore(state)

    def __repr__(self) -> str:
        """The settings."""
        return described(self)


@final
@public
class Perceptron:
    """Two layers over the vector of what is asked: logits of all items = W2 relu(W1 x + b1) + b2.

    Args:
        embed: embed(anchors (B,) or triples (B, 3)) -> (B, d): for IGAN the relation and the entity that stays.
        d: The dimension of `embed`.
        n_items: The number of items, or entities.
        hidden: The width of the hidden layer.
        rate: Of gradient ascent.
        decay: Of the touched rows, for each step.
        seed: Of the start.

    Examples:
        >>> import numpy as np
        >>> net = Perceptron(lambda anchors: np.eye(3)[anchors], 3, n_items=5, hidden=4)
        >>> net.logits(np.array([0, 1]), np.array([[0, 4], [1, 2]])).shape
        (2, 2)
    """

    def __init__(
        self,
        embed: Callable[[Any], Any],
        d: int,
        n_items: int,
        hidden: int = 32,
        *,
        rate: float = 0.1,
        decay: float = 0.0,
        seed: int = 0,
    ) -> None:
        """Start at random."""
        if not callable(embed):
            raise_invalid("embed", "a function of anchors that returns vectors", type(embed).__name__)
        self.embed, self.d, self.n_items, self.hidden = embed, d, n_items, hidden
        widths = check_whole("d", d, 1), check_whole("hidden", hidden, 1), check_whole("n_items", n_items, 1, MOST_ROWS)
        shapes = {"first": (widths[0] + 1, widths[1]), "second": (widths[2], widths[1]), "bias": (widths[2],)}
        self.rate, self.decay, self.seed = rate, decay, seed
        self._tables = Tables(rate, decay, shapes, seed)

    def _hidden(self, anchors: Ids) -> tuple[Floats, Floats]:
        """(B, d + 1) inputs with a 1, and (B, hidden) before the rectifier."""
        given = np.asarray(to_numpy(self.embed(anchors)), np.float64)
        if given.shape != (len(anchors), self.d):
            raise_invalid("embed", f"a function that returns shape ({len(anchors)}, {self.d})", f"shape {given.shape}")
        inputs = np.concatenate([given, np.ones((len(given), 1))], axis=1)
        return inputs, inputs @ self._tables["first"]

    def logits(self, anchors: Ids, candidates: Ids) -> Floats:
        """(B, n)."""
        ids = _replaced(anchors, candidates)
        hidden = np.maximum(self._hidden(anchors)[1], 0.0)
        return np.asarray(looked_up.dots(hidden, self._tables["second"], ids) + self._tables["bias"][ids])

    def ascend(self, anchors: Ids, candidates: Ids, gradient: Floats) -> None:
        """One step up the gradient (B, n) in the logits."""
        ids = _replaced(anchors, candidates)
        inputs, before = self._hidden(anchors)
        back = looked_up.sums(gradient, self._tables["second"], ids) * (before > 0)
        self._tables.add("second", ids, gradient, np.maximum(before, 0.0))
        self._tables.add("bias", ids, gradient)
        self._tables.add("first", np.arange(self.d + 1), inputs.T @ back)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All parameters."""
        return self._tables.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self._tables.restore(state)

    def __repr__(self) -> str:
        """The settings."""
        return described(self)


def _replaced(anchors: Ids, candidates: Ids) -> Ids:
    """(B, n) the ids that were put in: the candidates, or of corrupted triples the head or tail that is new."""
    if candidates.ndim == 2:
        return candidates
    head = candidates[..., 0] != anchors[:, None, 0]
    return np.where(head, candidates[..., 0], candidates[..., 2])
