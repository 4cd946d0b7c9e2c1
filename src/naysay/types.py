"""What flows through the house: a Query goes in, Negatives come out. Read this first.

    Query -> pool.draw -> (score) -> sampler.sample -> detector.suspicion -> policy -> loss -> report

Shapes are the contract: (B,) in, (B, K) out, also for B = 0 and 1. Arrays are NumPy at rest and torch in flight: pools
answer in NumPy, samplers in the array type of the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import as_array, check_whole, public, raise_invalid, whole_numbers

Array = Any  # a NumPy array or a torch tensor, of the shape that the comment beside it says
HEAD, RELATION, TAIL = 0, 1, 2
SIDES = ("head", "relation", "tail")


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What a sampler is asked: negatives for these anchors.

    Args:
        anchors: (B,) ids, or (B, 3) for triples to corrupt; NumPy, torch or a list.
        positives: (B,) the positive of each row, for parts that look at it.
        vectors: (B, d) the anchors' vectors, for parts that look at them.
        step: The training step, for schedules.
    """

    anchors: Array
    positives: Array = None
    vectors: Array = None
    step: int = 0

    def __post_init__(self) -> None:
        """Refuse shapes that are not (B,) or (B, 3) and partners of another length."""
        anchors = _array("anchors", self.anchors)
        if anchors.ndim not in (1, 2) or (anchors.ndim == 2 and anchors.shape[1] != 3):
            raise_invalid("anchors", "of shape (B,), or (B, 3) for triples", f"shape {tuple(anchors.shape)}")
        object.__setattr__(self, "anchors", anchors)
        if self.positives is not None:
            positives = _array("positives", self.positives)
            if tuple(positives.shape) != (len(anchors),):
                raise_invalid("positives", f"of shape ({len(anchors)},)", f"shape {tuple(positives.shape)}")
            object.__setattr__(self, "positives", positives)
        if self.vectors is not None:
            vectors = _array("vectors", self.vectors)
            if vectors.ndim != 2 or len(vectors) != len(anchors):
                rule = f"of shape ({len(anchors)}, d), a row for each anchor"
                raise_invalid("vectors", rule, f"shape {tuple(vectors.shape)}")
            object.__setattr__(self, "vectors", vectors)
        check_whole("step", self.step, 0)

    def __len__(self) -> int:
        """B, the number of rows."""
        return len(self.anchors)

    @property
    def device(self) -> Any:
        """The torch device of the answer, or None for NumPy."""
        return self.anchors.device if is_torch(self.anchors) else None


def anchor_ids(query: Query) -> NDArray[np.int64]:
    """The anchors of a query as NumPy ids, (B,) or (B, 3)."""
    anchors = np.asarray(to_numpy(query.anchors))
    shape = "(B,)" if anchors.ndim == 1 else "(B, 3)"
    return _ids("anchors", anchors, shape, "anchor_names")


def positive_ids(query: Query) -> NDArray[np.int64]:
    """The positives of a query as NumPy ids (B,). Raises NaysayError if the query has none."""
    if query.positives is None:
        raise_invalid("query.positives", "given", None, "Pass Query(anchors, positives=items).")
    return _ids("positives", np.asarray(to_numpy(query.positives)), "(B,)", "item_names")


def _array(parameter: str, values: Any) -> Array:
    """A part of a query: a tensor as it is, anything else as a NumPy array."""
    return values if is_torch(values) else as_array(parameter, values)


def _ids(parameter: str, values: NDArray[Any], shape: str, names: str) -> NDArray[np.int64]:
    """A part of a query as ids; for strings the refusal says who knows their ids."""
    if values.size and values.dtype.kind in "OSTU":
        advice = f"The ids of names are positives.{names}.ids(names)."
        raise_invalid(parameter, "whole numbers", f"dtype {values.dtype}", advice)
    return whole_numbers(parameter, values, shape).astype(np.int64, copy=False)


def check_query(query: object) -> None:
    """Refuse what is no Query: a bare array of anchors, most likely."""
    if not isinstance(query, Query):
        raise_invalid("query", "a Query", type(query).__name__, "Write naysay.Query(anchors).")


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Negatives:
    """What a pool, sampler or policy answers. Frozen: a change is a changed copy (`replace`).

    Args:
        ids: (B, K) int64; -1 is the only mark of an empty slot.
        relation: (B, K) int8 or None: 0 negative, 1 attract, 2 ignore.
        scores: (B, K) or None.
        suspicion: (B, K) or None.
        weights: (B, K) or None.
        vectors: (B, K, d) or None.
        parents: (B, K, 2) or None: the two ids that a synthetic slot was mixed from.
        side: (B, K) int8 or None: which part of a triple was replaced, 0 head, 1 relation, 2 tail.
        source: (B, K) int8 or None: which of `source_names` a slot came from.
        log_q: (B, K) or None: exact, with replacement the log-probability of the id; for distinct draws that of the
            id at its slot given the row's earlier slots. 0 where the slot is empty. It may be a read-only view.
        dropped: {"reason": count}: everything that was left out.
    """

    ids: Array
    relation: Array = None
    scores: Array = None
    suspicion: Array = None
    weights: Array = None
    vectors: Array = None
    parents: Array = None
    side: Array = None
    source: Array = None
    source_names: tuple[str, ...] = ()
    log_q: Array = None
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse ids that are not (B, K) int64, and partners of another shape."""
        if not hasattr(self.ids, "dtype"):
            raise_invalid("ids", "(B, K) int64", type(self.ids).__name__)
        if self.ids.ndim != 2 or str(self.ids.dtype).removeprefix("torch.") != "int64":
            raise_invalid("ids", "(B, K) int64", f"{tuple(self.ids.shape)} {self.ids.dtype}")
        for name in _PER_SLOT:
            value = getattr(self, name)
            if value is None:
                continue
            shape = tuple(getattr(value, "shape", ()))
            beyond = {"vectors": shape[2:], "parents": (2,)}.get(name, ())
            if shape != (*self.ids.shape, *beyond):
                raise_invalid(name, f"of shape {(*self.ids.shape, *beyond)}, like ids", shape)

    @property
    def mask(self) -> Array:
        """(B, K) bool: slots that hold a negative."""
        filled = self.ids >= 0
        return filled if self.relation is None else filled & (self.relation == 0)

    @property
    def shape(self) -> tuple[int, int]:
        """(B, K)."""
        rows, slots = self.ids.shape
        return int(rows), int(slots)

    def to(self, device: Any) -> Negatives:
        """The same in torch, on `device`."""
        return self._mapped(lambda array: to_torch(array, device))

    def numpy(self) -> Negatives:
        """The same in NumPy."""
        return self._mapped(to_numpy)

    def pin_memory(self) -> Negatives:
        """The same in page-locked torch memory; a DataLoader with pin_memory=True calls it."""
        return self._mapped(lambda array: to_torch(array).pin_memory())

    def like(self, query: Query) -> Negatives:
        """The same in the array type of a query's anchors, on their device."""
        if query.device is not None:
            return self.to(query.device)
        return self.numpy() if is_torch(self.ids) else self

    def _mapped(self, convert: Any) -> Negatives:
        changed = {
            name: convert(getattr(self, name)) for name in ("ids", *_PER_SLOT) if getattr(self, name) is not None
        }
        return replace(self, **changed)


_PER_SLOT = tuple(f.name for f in fields(Negatives) if f.name not in ("ids", "source_names", "dropped"))


@runtime_checkable
class Pool(Protocol):
    """Where candidates come from. It has excluded what is known before anyone sees it."""

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, n) candidates, in NumPy; n is a number or one per row."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """Which candidates become negatives."""

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """(B, K) negatives, in the query's array type; k is an int, a float or (B,) ints."""
        ...


@runtime_checkable
class Detector(Protocol):
    """Which negatives to distrust."""

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) in [0, 1]: how likely each slot is a false negative; 0 where it is empty."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """A part that learns: all of what it learnt goes in and out as a flat dictionary of arrays and numbers."""

    def state(self) -> dict[str, Any]:
        """Everything that the next answer depends on."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave."""
        ...
