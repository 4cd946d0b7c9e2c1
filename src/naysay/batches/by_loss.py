"""ByLoss: rows whose last loss was high come more often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay import checks
from naysay._lock import Lock
from naysay.arrays import for_checkpoints, to_numpy
from naysay.batches._plans import Ids, batches_needed, check_epoch, check_sizes
from naysay.checks import public
from naysay.quantity.schedules import at_step
from naysay.text import described


@final
@public
class ByLoss:
    """Draw rows by the rank of their last loss: p(rank i) proportional to pressure^(-i / n), i = 1 the highest.

    The first rank is pressure^((n - 1) / n) times as likely as the last. Draws are independent, so an epoch of as many
    draws as rows repeats some, also within a batch, and leaves others out. Rows that were never observed rank first.
    The drawn losses are biased towards hard rows; `weights` removes that. With wrong labels among the rows, the highest
    losses are mostly theirs.

    Loshchilov and Hutter. Online Batch Selection for Faster Training of Neural Networks. 2015.

    Cost: a sort of n numbers per epoch; 8 bytes per row.

    Args:
        n: The number of rows.
        size: Rows per batch.
        pressure: At least 1, which is uniform; or a function of the epoch.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> batches = ByLoss(5, 2)
        >>> batches.observe(np.arange(5), np.array([0.1, 0.5, 0.3, 0.2, 0.4]))
        >>> batches.chances(0).round(3).tolist()
        [0.015, 0.608, 0.096, 0.038, 0.242]
    """

    def __init__(self, n: int, size: int, *, pressure: Any = 100.0) -> None:
        """Start with no loss known."""
        self.n, self.size = check_sizes(n, size)
        self.pressure = pressure
        if not callable(pressure):
            checks.check_number("pressure", pressure, at_least=1, finite=True)
        self._lock = Lock()
        self._losses = np.full(self.n, np.inf)

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return batches_needed(self.n, self.size)

    def chances(self, epoch: int) -> NDArray[np.float64]:
        """(n,) how likely a draw of this epoch is each row."""
        pressure = checks.check_number("pressure", at_step(self.pressure, epoch), at_least=1, finite=True)
        with self._lock:
            order = np.argsort(-self._losses, kind="stable")
        by_rank = np.exp(-np.arange(self.n) * np.log(pressure) / self.n)
        chances = np.empty(self.n)
        chances[order] = by_rank / by_rank.sum()
        return chances

    def weights(self, epoch: int) -> NDArray[np.float64]:
        """(n,) 1 / (n p): losses times these have the mean of all rows, on average."""
        return np.asarray(1.0 / (self.n * self.chances(epoch)))

    def plan(self, epoch: int, *, rng: np.random.Generator) -> Ids:
        """Return (n_batches, size) rows, n draws; -1 at the end of the last batch."""
        check_epoch(epoch, rng)
        ends = np.cumsum(self.chances(epoch))
        out = np.full(len(self) * self.size, -1, np.int64)
        out[: self.n] = np.searchsorted(ends, rng.random(self.n) * ends[-1], side="right")
        return out.reshape(len(self), self.size)

    def observe(self, rows: ArrayLike, losses: Any) -> None:
        """Store the losses (B,) of rows (B,). Call it once a step."""
        ids = checks.whole_numbers("rows", to_numpy(rows)).astype(np.int64)
        checks.check_range("rows", ids, self.n, "rows")
        values = checks.as_floats("losses", to_numpy(losses))
        if values.ndim != 1:
            checks.raise_invalid("losses", "of shape (B,)", f"shape {values.shape}")
        checks.check_lengths(rows=len(ids), losses=len(values))
        checks.check_all("losses", values, np.isfinite(values), "finite")
        with self._lock:
            self._losses[ids] = values

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """The losses; infinity for rows that were never observed."""
        with self._lock:
            return {"losses": self._losses.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        checks.check_kind("state", state, Mapping, "what ByLoss.state returned")
        if set(state) != {"losses"}:
            checks.raise_invalid("state", "of ['losses']", checks.shown(list(state)))
        losses = checks.as_floats("losses", to_numpy(state["losses"]))
        if losses.shape != (self.n,):
            checks.raise_invalid("losses", f"of shape ({self.n},)", f"shape {losses.shape}")
        checks.check_all("losses", losses, np.isfinite(losses) | (losses == np.inf), "numbers, or infinity for none")
        with self._lock:
            self._losses = losses.copy()

    def __repr__(self) -> str:
        return described(self, f"{np.count_nonzero(np.isfinite(self._losses)):,} losses")
