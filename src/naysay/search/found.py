"""Found: what a search answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from naysay.checks import public, raise_invalid


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best corpus rows of each query, in the canonical order: score descending, of equal scores id ascending.

    Args:
        ids: (n, m) int64; -1 is an empty slot, at the end of a row.
        scores: (n, m) float32; -inf where the slot is empty.

    Example:
        >>> found = Found(np.array([[2, 0, -1]]), np.array([[0.5, 0.5, -np.inf]], np.float32))
        >>> len(found), found.filled.tolist()
        (1, [[True, True, False]])
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit one another; the order is the maker's promise."""
        for name, kind in (("ids", np.int64), ("scores", np.float32)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype != kind:
                got = f"{array.shape} {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
                raise_invalid(name, f"(n, m) {np.dtype(kind)}", got)
        if self.ids.shape != self.scores.shape:
            raise_invalid("scores", f"of shape {self.ids.shape}, like ids", f"shape {self.scores.shape}")

    def __len__(self) -> int:
        """n, the number of queries."""
        return len(self.ids)

    @property
    def filled(self) -> NDArray[np.bool_]:
        """(n, m) bool: slots that hold a corpus row."""
        return np.asarray(self.ids >= 0)
