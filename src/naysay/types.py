"""The types that all parts share: a Query goes in, Negatives come out. Read this first.

    Query -> pool.draw -> (score) -> sampler.sample -> detector.suspicion -> policy -> loss -> report

Shapes are the contract: (B,) in, (B, K) out, also for B = 0 and 1. Pools answer in NumPy, samplers in the array type of
the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, TypeVar, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.checks import as_array, check_kind, check_not_masked, check_whole, public, raise_invalid, whole_numbers

Array = Any  # a NumPy array or a torch tensor
HEAD, RELATION, TAIL = 0, 1, 2
SIDES = ("head", "relation", "tail")
OF_ROWS = ("anchors", "positives", "vectors", "times")  # the arrays of a query
_Made = TypeVar("_Made", bound="Query | Negatives")


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """The anchors that need negatives.

    Args:
        anchors: (B,) ids, or (B, 3) for triples to corrupt; NumPy, torch or a list.
        positives: (B,) the positive of each row, for parts that use it.
        vectors: (B, d) the anchors' vectors, for parts that use them.
        step: The training step, for schedules.
        times: (B,) the time of each row, for `pools.Everything` with times: pairs of a later time are not known yet.

    Raises:
        NaysayError: If a shape is wrong, or ids are not whole numbers.

    Examples:
        >>> len(Query([3, 1, 4], positives=[0, 0, 2]))
        3
    """

    anchors: Array
    positives: Array = None
    vectors: Array = None
    step: int = 0
    times: Array = None

    def __post_init__(self) -> None:
        """Check the shapes and the types of ids."""
        anchors = _array("anchors", self.anchors)
        if anchors.ndim not in (1, 2) or (anchors.ndim == 2 and anchors.shape[1] != 3):
            raise_invalid("anchors", "of shape (B,), or (B, 3) for triples", f"shape {tuple(anchors.shape)}")
        _check_not_floats("anchors", anchors)
        object.__setattr__(self, "anchors", anchors)
        for name, dimensions in (("positives", 1), ("vectors", 2), ("times", 1)):
            if getattr(self, name) is None:
                continue
            values = _array(name, getattr(self, name))
            if values.ndim != dimensions or len(values) != len(anchors):
                shape = f"({len(anchors)},)" if dimensions == 1 else f"({len(anchors)}, d), a row for each anchor"
                raise_invalid(name, f"of shape {shape}", f"shape {tuple(values.shape)}")
            object.__setattr__(self, name, values)
        if self.positives is not None:
            _check_not_floats("positives", self.positives)
        check_whole("step", self.step, 0)

    def __len__(self) -> int:
        """B, the number of rows."""
        return len(self.anchors)

    @property
    def device(self) -> Any:
        """The torch device of the anchors, or None for NumPy."""
        return self.anchors.device if is_torch(self.anchors) else None


def anchor_ids(query: Query) -> NDArray[np.int64]:
    """The anchors of a query as NumPy ids, (B,) or (B, 3)."""
    anchors = np.asarray(to_numpy(query.anchors))
    shape = "(B,)" if anchors.ndim == 1 else "(B, 3)"
    advice = "positives.anchor_names.ids(names)" if anchors.ndim == 1 else "pool.known.ids(names)"
    return _ids("anchors", anchors, shape, advice)


def positive_ids(query: Query) -> NDArray[np.int64]:
    """The positives of a query as NumPy ids (B,). Raises NaysayError if the query has none."""
    if query.positives is None:
        raise_invalid("query.positives", "given", None, "Pass Query(anchors, positives=items).")
    return _ids("positives", np.asarray(to_numpy(query.positives)), "(B,)", "positives.item_names.ids(names)")


def _array(parameter: str, values: Any) -> Array:
    """A part of a query: a tensor as it is, anything else as a NumPy array."""
    return values if is_torch(values) else as_array(parameter, values)


def _check_not_floats(parameter: str, ids: Array) -> None:
    """Raise if ids are floating-point or boolean, unless there are none. Names get an error where ids are read."""
    dtype = str(ids.dtype).removeprefix("torch.")
    if dtype.startswith(("float", "bfloat", "bool", "complex")) and 0 not in ids.shape:
        raise_invalid(parameter, "whole numbers", f"dtype {dtype}", "Ids count from 0.")


def _ids(parameter: str, values: NDArray[Any], shape: str, looked_up: str) -> NDArray[np.int64]:
    """A part of a query as ids; for strings the error says how to get their ids."""
    if values.dtype == np.int64:  # its shape was checked when the query was made
        return values
    if values.size and values.dtype.kind in "OSTU":
        raise_invalid(parameter, "whole numbers", f"dtype {values.dtype}", f"The ids of names are {looked_up}.")
    return whole_numbers(parameter, values, shape).astype(np.int64, copy=False)


def check_query(query: object) -> None:
    """Raise if `query` is not a Query but, most likely, a bare array of anchors."""
    check_kind("query", query, Query, "a Query", "Write naysay.Query(anchors).")


@final
@public
@dataclass(frozen=True, slots=True, eq=False)
class Negatives:
    """The answer of a pool, sampler or policy. Frozen: to change it, make a copy with `dataclasses.replace`.

    Args:
        ids: (B, K) int64; -1 marks an empty slot, and nothing else does.
        relation: (B, K) int8 or None: 0 negative, 1 attract, 2 ignore.
        scores: (B, K) or None: the model's scores.
        suspicion: (B, K) or None: 0 to 1, how likely a slot is a false negative.
        weights: (B, K) or None: for losses that take them.
        vectors: (B, K, d) or None.
        parents: (B, K, 2) or None: the two ids that a synthetic slot was mixed from.
        side: (B, K) int8 or None: which part of a triple was replaced, 0 head, 1 relation, 2 tail.
        source: (B, K) int8 or None: which of `source_names` a slot came from.
        source_names: The names of the sources.
        log_q: (B, K) or None: the exact log-probability of the id; for distinct draws given the row's earlier slots. 0
            where the slot is empty. Where a policy ignored or attracted slots after the draw, log(slots drawn / slots
            left) of the row is added in those left. It may be a read-only view.
        dropped: {"reason": count}: everything that was left out.

    Raises:
        NaysayError: If a shape or type is wrong.

    Examples:
        >>> import numpy as np
        >>> negatives = Negatives(np.array([[4, 2], [5, -1]]))
        >>> negatives.shape, negatives.mask.tolist()
        ((2, 2), [[True, True], [True, False]])
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
        """Check the ids, and that all arrays have their shape."""
        if not hasattr(self.ids, "dtype"):
            raise_invalid("ids", "(B, K) int64", type(self.ids).__name__)
        if self.ids.ndim != 2 or str(self.ids.dtype).removeprefix("torch.") != "int64":
            raise_invalid("ids", "(B, K) int64", f"{tuple(self.ids.shape)} {self.ids.dtype}")
        for name in PER_SLOT:
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, np.ma.MaskedArray):
                check_not_masked(name, value)
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
        """The same in page-locked torch memory. A DataLoader with pin_memory=True calls it."""
        return self._mapped(lambda array: to_torch(array).pin_memory())

    def like(self, query: Query) -> Negatives:
        """The same in the array type of a query's anchors, on their device."""
        if query.device is not None:
            return self.to(query.device)
        return self.numpy() if is_torch(self.ids) else self

    def _mapped(self, convert: Any) -> Negatives:
        arrays = {name: getattr(self, name) for name in PER_SLOT}
        return changed(self, **{name: convert(array) for name, array in arrays.items() if array is not None})


# The fields of Negatives that have one value for each slot.
PER_SLOT = tuple(one.name for one in fields(Negatives) if one.name not in ("source_names", "dropped"))


def unchecked(kind: type[_Made], **values: Any) -> _Made:
    """A Query or Negatives of arrays that naysay made: without the checks of the constructor."""
    made = object.__new__(kind)
    for one in fields(kind):
        default = {} if one.name == "dropped" else one.default
        object.__setattr__(made, one.name, values.get(one.name, default))
    return made


def changed(made: _Made, **values: Any) -> _Made:
    """A copy with some fields replaced by what naysay made: `dataclasses.replace` without the checks."""
    kept = {one.name: getattr(made, one.name) for one in fields(made)}
    return unchecked(type(made), **kept | values)


def needs_main_process(*parts: object) -> bool:
    """Whether any of these parts answers by what the main process changes in training, so that a copy would be stale.

    A part, or a function, says so by an attribute `needs_main_process`. One without it needs the main process if it
    learns from steps (`observe`), or if it is a function, which may call the model in training.
    """
    return any(map(_changes_in_training, parts))


def _changes_in_training(part: object) -> bool:
    stated = getattr(part, "needs_main_process", None)
    if stated is not None:
        return bool(stated)
    is_function = callable(part) and not isinstance(part, Pool | Sampler | Detector)
    return is_function or hasattr(part, "observe")


class MadeOf:
    """A part that needs the main process if one of the parts and functions it was made of does."""

    _made_of: ClassVar[tuple[str, ...]]  # the names of their attributes; an attribute may be None

    @property
    def needs_main_process(self) -> bool:
        """Whether draws depend on what the main process changes in training; if so, `data.loader` needs workers=0."""
        return needs_main_process(*(getattr(self, name) for name in self._made_of))


@runtime_checkable
class Pool(Protocol):
    """Where candidates come from. A pool excludes what is known, exactly.

    An optional attribute `needs_main_process` says whether draws depend on what the main process changes during an
    epoch. Without it they do if the pool has `observe`.
    """

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw candidates.

        Args:
            query: The anchors.
            n: Candidates per anchor: an int, or (B,) ints.
            rng: The source of randomness; one key is taken from it.

        Returns:
            (B, n) candidates in NumPy. With (B,) ints n is the largest, and unused slots are -1.

        Raises:
            NaysayError: If an argument is invalid, or a row is short and the pool has on_short="raise".
        """
        ...


@runtime_checkable
class Sampler(Protocol):
    """Which candidates become negatives.

    An optional attribute `needs_main_process` says whether draws depend on what the main process changes during an
    epoch: what a part learns, or a function such as the score of the model. `data.loader` then needs workers=0. Without
    it they do if the sampler has `observe`. A sampler of other parts says what they say. A function of yours counts as
    changing; set `function.needs_main_process = False` if it does not.
    """

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw negatives.

        Args:
            query: The anchors.
            k: Negatives per anchor: an int, a float (realised per row, with expectation k), or (B,) ints.
            rng: The source of randomness.

        Returns:
            (B, K) negatives in the query's array type. K is ceil(k), or the largest of (B,); unused slots are -1.

        Raises:
            NaysayError: If an argument is invalid, or a row is short and the sampler has on_short="raise".
        """
        ...


@runtime_checkable
class Detector(Protocol):
    """Which negatives are likely false.

    An optional attribute `suspicion_threshold` in [0, 1] is the suspicion from which a slot counts as a false negative;
    0.5 without it. All that acts on a detector's suspicion uses it by default. For `needs_main_process` see `Sampler`.
    """

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) in [0, 1]: how likely each slot is a false negative; 0 where it is empty."""
        ...


class ThresholdDetector(Detector, Protocol):
    """A detector that suspects the scores of a row from one threshold on. `threshold` of others is no method."""

    def threshold(self, query: Query) -> NDArray[np.float64]:
        """(B,) the score of each row above which slots are suspected. Whether one equal to it is, a detector says."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """A part that learns. Its whole state is a flat dictionary of arrays and numbers.

    Save it by `np.savez(file, **state)`, or by torch.save: `torch.load(file, weights_only=True)` gives tensors, which
    `restore` takes, too.
    """

    def state(self) -> dict[str, Any]:
        """All that the next answer depends on, apart from the settings."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        ...
