"""AdversarialBank: negatives that are vectors of their own, moved to where they raise the loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._lock import Lock
from naysay._state import read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import MOST_ROWS, as_floats, check_all, check_number, check_whole, public, raise_invalid
from naysay.pools._slots import draw_listed
from naysay.rng import key_from, rng_for
from naysay.samplers._candidates import wanted_slots
from naysay.samplers._generators import weights_of
from naysay.text import described
from naysay.types import Negatives, Query, check_query


@final
@public
@dataclass(eq=False, repr=False)
class AdversarialBank:
    """Draw from a bank of free vectors, which `observe` moves up the gradient of InfoNCE.

    A vector d_k is used at length 1, u_k = d_k / |d_k|. With p_nk the softmax of a batch's logits / t over the positive
    and all of the bank, the ascent direction is

        g_k = (1 / t) mean_n p_nk (q_n - (q_n.u_k) u_k) / |d_k|,    v <- momentum v - g + decay d,    d <- d - step v

    in closed form, with a temperature t of its own, sharper than the loss's. A slot has the id of its row in the bank,
    which is no item: `parents` are (-1, -1) and the source is "bank". Use `vectors` of the answer, or all of
    `bank.vectors` as keys of `losses.in_batch`. Vectors that raise the loss move to what anchors of a class share:
    they can become false negatives.

    Hu, Wang, Hu, Qi. AdCo: Adversarial Contrast for Efficient Learning of Unsupervised Representations from
    Self-Trained Negative Adversaries. CVPR 2021. Its code also has the keys of the other rows in the softmax.

    Cost: two products of (B, d) and (d, size) per step; 16 d bytes per vector.

    Args:
        size: The number of vectors.
        d: Their dimension.
        step: The learning rate of the bank.
        temperature: t, above 0.
        momentum: In [0, 1).
        decay: Of the vectors, at least 0.
        initial: (size, d) the first vectors, such as the keys of some batches; None: normal numbers.
        seed: Of those.

    Examples:
        >>> import naysay as ns
        >>> bank = AdversarialBank(1, 2, step=0.5, temperature=0.5, momentum=0.0, decay=0.0, initial=[[0.0, 2.0]])
        >>> bank.observe(ns.Query([0], vectors=[[1.0, 0.0]]), positive_scores=[0.6])
        >>> (bank._table / 1).round(6).tolist()                          # moved by 0.5 * 0.231475 towards the anchor
        [[0.115738, 2.0]]
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    size: int
    d: int
    _: KW_ONLY
    step: float = 3.0
    temperature: float = 0.02
    momentum: float = 0.9
    decay: float = 1e-4
    initial: Any = None
    seed: int = 0
    _lock: Lock = field(init=False)

    def __post_init__(self) -> None:
        check_whole("size", self.size, 1, MOST_ROWS)
        check_whole("d", self.d, 1)
        check_number("step", self.step, above=0, finite=True)
        check_number("temperature", self.temperature, above=0, finite=True)
        check_number("momentum", self.momentum, at_least=0, below=1)
        check_number("decay", self.decay, at_least=0, finite=True)
        check_whole("seed", self.seed, 0)
        made = rng_for(self.seed).standard_normal((self.size, self.d)) if self.initial is None else self.initial
        table = as_floats("initial", to_numpy(made))
        if table.shape != (self.size, self.d):
            raise_invalid("initial", f"of shape ({self.size}, {self.d})", f"shape {table.shape}")
        check_all("initial", table, np.isfinite(table), "finite")
        if not (np.linalg.norm(table, axis=1) > 0).all():
            raise_invalid("initial", "vectors other than 0", "a zero vector")
        self._table, self._velocity = table.copy(), np.zeros_like(table)
        self._lock = Lock()

    @property
    def vectors(self) -> NDArray[np.float64]:
        """(size, d) all vectors, of length 1."""
        with self._lock:
            return np.asarray(self._table / np.linalg.norm(self._table, axis=1, keepdims=True))

    @property
    def distinct(self) -> bool:
        """True: a row has a vector at most once."""
        return True

    def __repr__(self) -> str:
        return described(self)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) different vectors of the bank for each row, with ids of their rows in it."""
        check_query(query)
        counts, width = wanted_slots(k, len(query), rng)
        begins, sizes = np.zeros(len(query), np.int64), np.full(len(query), self.size)
        lists = (begins, sizes, np.arange(self.size))
        ids = draw_listed(lists, counts, width, key_from(rng), distinct=True)[0]
        empty = ids < 0
        vectors = np.where(empty[:, :, None], 0.0, self.vectors[np.maximum(ids, 0)])
        missing = int(counts.sum() - np.count_nonzero(~empty))
        return Negatives(
            ids,
            vectors=vectors,
            parents=np.full((*ids.shape, 2), -1),
            source=np.where(empty, -1, 0).astype(np.int8),
            source_names=("bank",),
            dropped={"exhausted": missing} if missing else {},
        ).like(query)

    def observe(self, query: Query, negatives: Any = None, *, positive_scores: Any = None, vectors: Any = None) -> None:
        """Move the bank by one step. Call it after the model's step.

        Args:
            query: With `vectors` (B, d), of length 1.
            negatives: Not used: all of the bank moves.
            positive_scores: (B,) the products of anchors and positives.
            vectors: Not used.
        """
        check_query(query)
        if query.vectors is None or positive_scores is None:
            missing = "query.vectors" if query.vectors is None else "positive_scores"
            raise_invalid(missing, "given", None)
        anchors = as_floats("query.vectors", to_numpy(query.vectors))
        own = as_floats("positive_scores", to_numpy(positive_scores))
        if anchors.shape[1] != self.d or own.shape != (len(anchors),):
            rule = f"of shape ({len(anchors)}, {self.d}), with positive_scores of shape ({len(anchors)},)"
            raise_invalid("query.vectors", rule, f"shapes {anchors.shape} and {own.shape}")
        check_all("query.vectors", anchors, np.isfinite(anchors), "finite")
        check_all("positive_scores", own, np.isfinite(own), "finite")
        if not len(anchors):
            return
        with self._lock:
            up = self._ascent(anchors, own)
            self._velocity = self.momentum * self._velocity - up + self.decay * self._table
            self._table = self._table - self.step * self._velocity

    def _ascent(self, anchors: NDArray[np.float64], own: NDArray[np.float64]) -> NDArray[np.float64]:
        """(size, d) the gradient of the mean loss in the vectors."""
        lengths = np.linalg.norm(self._table, axis=1, keepdims=True)
        unit = self._table / lengths
        scores = anchors @ unit.T
        logits = np.concatenate([own[:, None], scores], axis=1) / self.temperature
        logits -= logits.max(axis=1, keepdims=True)
        chance = np.exp(logits)
        chance = chance[:, 1:] / chance.sum(axis=1, keepdims=True)
        along = (chance * scores).sum(axis=0)[:, None]
        return np.asarray((chance.T @ anchors - along * unit) / (lengths * self.temperature * len(anchors)))

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """All that the next sample and observe depend on, apart from the settings."""
        with self._lock:
            return {"table": self._table.copy(), "velocity": self._velocity.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        shape = weights_of((self.size, self.d))
        read = read_state(state, {"table": shape, "velocity": shape})
        check_all("table", read["table"], np.abs(read["table"]).max(axis=1, keepdims=True) > 1e-100, "not 0")
        with self._lock:
            self._table, self._velocity = read["table"], read["velocity"]
