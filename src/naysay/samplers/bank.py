"""Stored vectors of items: a bank with one for each, and the slow encoder of a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from naysay._lock import Lock
from naysay._slots import blanked
from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, need_torch, to_numpy
from naysay.checks import (
    MOST_ROWS,
    as_array,
    check_all,
    check_number,
    check_range,
    check_whole,
    public,
    raise_invalid,
    shown,
)
from naysay.samplers._choose import draw_k, take_kept
from naysay.samplers._settings import check_pool
from naysay.samplers._vectors import unit
from naysay.text import described
from naysay.types import Negatives, Pool, Query, check_query, positive_ids

__all__ = ["Bank", "momentum_update"]


@final
@public
class Bank:
    """Take k candidates as the pool draws them, with the vectors that they had when they were last observed.

    Call `observe` once a step with the vectors of the query's positives. An item that was never observed has no vector:
    it is left out, its slot stays empty, and `dropped` counts it as "unseen". The answer has `vectors` (B, K, d), 0 in
    empty slots, without gradients. log_q is the pool's once all items were observed, None before.

    Wu, Xiong, Yu, Lin. Unsupervised Feature Learning via Non-Parametric Instance Discrimination. CVPR 2018.

    Args:
        pool: Where candidates come from; for instance discrimination `Everything` with each sample its own positive.
        n_items: The number of items.
        momentum: The share of the old vector: unit(momentum * old + (1 - momentum) * new).
        initial: (n_items, d) vectors to begin with, e.g. those of the untrained encoder; None for no vectors.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> bank = Bank(ns.pools.Everything(ns.Positives.from_pairs([0, 1, 2], [0, 1, 2])), 3)
        >>> bank.observe(ns.Query([1], positives=[1]), None, vectors=np.array([[0.0, 2.0]]))
        >>> drawn = bank.sample(ns.Query([0]), 2, rng=ns.rng_for(0))
        >>> drawn.ids.tolist(), drawn.vectors.tolist(), dict(drawn.dropped)
        ([[1, -1]], [[[0.0, 1.0], [0.0, 0.0]]], {'unseen': 1})
    """

    needs_main_process = True  # its draws depend on what it was taught in the training loop

    def __init__(self, pool: Pool, n_items: int, momentum: float = 0.5, initial: ArrayLike | None = None) -> None:
        check_pool(pool)
        self.pool, self.momentum = pool, check_number("momentum", momentum, at_least=0, at_most=1)
        self.n_items = check_whole("n_items", n_items, 1, MOST_ROWS)
        self.distinct = getattr(pool, "distinct", None)
        self._vectors: NDArray[Any] = np.zeros((self.n_items, 0), np.float32)
        self._seen = np.zeros(self.n_items, np.bool_)
        self._lock = Lock()
        if initial is not None:
            self._vectors = unit(_checked("initial", initial, self.n_items))
            self._seen[:] = True

    @property
    def vectors(self) -> NDArray[Any]:
        """(n_items, d) the stored vectors; 0 where an item was never observed."""
        return self._vectors

    @property
    def seen(self) -> NDArray[np.bool_]:
        """(n_items,) whether an item was ever observed."""
        return self._seen

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives with `vectors`."""
        drawn = draw_k(self.pool, query, k, rng).numpy()
        check_range("pool", drawn.ids, self.n_items, "items", least=-1)
        filled = drawn.ids >= 0
        with self._lock:
            known, vectors = filled & self._seen[drawn.ids], self._vectors[drawn.ids]
            all_seen = self._seen.all()
        drawn = replace(drawn, ids=np.where(known, drawn.ids, -1), vectors=vectors)
        if not all_seen:
            drawn = replace(drawn, log_q=None)
        n_unseen = int(np.count_nonzero(filled & ~known))
        if n_unseen:
            counts = np.count_nonzero(known, axis=1)
            in_front = take_kept(drawn.like(query), known, query, counts, drawn.shape[1], "pad")
            drawn = replace(in_front, dropped={**drawn.dropped, "unseen": n_unseen})
        return blanked(drawn).like(query)

    def observe(
        self,
        query: Query,
        negatives: Negatives | None,
        *,
        positive_scores: Any = None,
        vectors: ArrayLike | None = None,
    ) -> None:
        """Update the vectors of the query's positives by `vectors` (B, d), NumPy or torch; the rest is not used."""
        check_query(query)
        items = positive_ids(query)
        check_range("positives", items, self.n_items, "items")
        if vectors is None:
            raise_invalid("vectors", "given", None, "Pass the vectors (B, d) of the query's positives.")
        new = unit(_checked("vectors", vectors, len(items)))
        with self._lock:
            if self._vectors.shape[1] == 0:
                self._vectors = np.zeros((self.n_items, new.shape[1]), new.dtype)
            dim = self._vectors.shape[1]
            if new.shape[1] != dim:
                raise_invalid("vectors", f"of dimension {dim}, like those stored", new.shape[1])
            stays = np.where(self._seen[items], self.momentum, 0.0)[:, None]
            self._vectors[items] = unit(stays * self._vectors[items] + (1 - stays) * new)
            self._seen[items] = True

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Everything that the next answer depends on but the settings."""
        with self._lock:
            return {"vectors": self._vectors.copy(), "seen": self._seen.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. Raises NaysayError, with nothing changed, if the vectors do not fit."""
        entries = {"vectors": Entry((self.n_items, "d")), "seen": Entry((self.n_items,), whole=True)}
        read = read_state(state, entries)
        vectors, seen = read["vectors"], read["seen"].astype(np.bool_)
        dim = self._vectors.shape[1] or max(vectors.shape[1], 1)
        if seen.any() and vectors.shape[1] != dim:
            raise_invalid("vectors", f"of dimension {dim}", vectors.shape[1])
        with self._lock:
            self._vectors, self._seen = vectors.astype(as_array("vectors", to_numpy(state["vectors"])).dtype), seen

    def __repr__(self) -> str:
        return described(self, f"{np.count_nonzero(self._seen):,} of {self.n_items:,} items seen")


def _checked(parameter: str, vectors: ArrayLike, rows: int) -> NDArray[Any]:
    """(rows, d) finite floating-point vectors. Raises if they are not."""
    array = as_array(parameter, to_numpy(vectors))
    if array.ndim != 2 or len(array) != rows:
        raise_invalid(parameter, f"of shape ({rows}, d)", f"shape {array.shape}")
    if array.dtype.kind != "f":
        raise_invalid(parameter, "floating numbers", f"dtype {array.dtype}")
    check_all(parameter, array, np.isfinite(array), "finite")
    return array


@public
def momentum_update(online: Any, target: Any, momentum: float = 0.999) -> None:
    """Move each parameter of `target` towards `online`, in place: slow <- momentum * slow + (1 - momentum) * fast.

    Buffers (running means, counters) are copied; MoCo's code lets the slow encoder collect its own. No gradient is
    recorded, and `target` needs none. Call it once a step, before the slow encoder is used.

    He, Fan, Wu, Xie, Girshick. Momentum Contrast for Unsupervised Visual Representation Learning. CVPR 2020.

    Args:
        online: The torch module that is trained.
        target: A module of the same shapes, made once by copy.deepcopy(online). Its vectors go into the `Memory`.
        momentum: 0 copies the parameters, 1 keeps the old ones; 0.999 in MoCo.

    Examples:
        >>> import torch
        >>> fast, slow = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
        >>> for module, value in ((fast, 1.0), (slow, 0.0)):
        ...     _ = torch.nn.init.constant_(module.weight, value)
        >>> momentum_update(fast, slow, momentum=0.75)
        >>> slow.weight.item()
        0.25
    """
    torch = need_torch()
    for name, module in (("online", online), ("target", target)):
        if not isinstance(module, torch.nn.Module):
            raise_invalid(name, "a torch module", type(module).__name__)
    check_number("momentum", momentum, at_least=0, at_most=1)
    if online is target:
        raise_invalid("target", "another module than online", "the same", "Make it by copy.deepcopy(online).")
    fast, slow = (module.state_dict(keep_vars=True) for module in (online, target))
    for name in {**fast, **slow}:
        shapes = [tuple(values[name].shape) if name in values else None for values in (fast, slow)]
        if shapes[0] != shapes[1]:
            raise_invalid("target", f"of the shapes of online, which has {shapes[0]}", f"{shown(name)} of {shapes[1]}")
    learnt = dict(target.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name, value in slow.items():
            if name not in learnt:
                value.copy_(fast[name])
        for name, value in target.named_parameters():  # shared ones once
            value.lerp_(fast[name].to(value), 1 - momentum)
