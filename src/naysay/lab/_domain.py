"""What the five domains share: data in three parts, a task, and a model in training."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from math import nan
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import pools, samplers
from naysay.arrays import to_torch
from naysay.checks import check_device, check_kind, check_one_of, check_whole, public, raise_invalid
from naysay.positives import Positives
from naysay.text import counted
from naysay.types import Negatives

PARTS = ("train", "validation", "test")
HELD_OUT = "Negatives that are held-out positives; true positives that nobody recorded come on top."
LEARNING_RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
WEIGHT_DECAY = 1e-6
BLOCK = 1024  # texts or images that are encoded at a time, without gradients
# Settings of samplers that an arm may name.
NUMBERS: Mapping[str, float] = MappingProxyType({"candidates": 16, "margin": 1.0, "rho": 1.0, "trials": 50})

Ids = NDArray[np.int64]
Parts = tuple[Positives, Positives, Positives]  # for training, validation and test
Device = str | torch.device
# step(rows, k, *, step) -> (loss, negatives or None)
Step = Callable[..., tuple[Tensor, Negatives | None]]
AnyStep = TypeVar("AnyStep", bound=Callable[..., Any])


# ---- data in three parts ---------------------------------------------------------------------------------------------


def check_parts(data: Any, kind: type, noun: str) -> None:
    """Raise unless the three parts of some data are of a kind, of one size, and not empty."""
    for name in PARTS:
        part = getattr(data, name)
        check_kind(name, part, kind, f"of type {kind.__name__}")
        if not len(part):
            raise_invalid(name, f"at least one {noun}", "none")
        if isinstance(part, Positives):
            sizes, own = ((one.n_anchors, one.n_items) for one in (data.train, part))
            if own != sizes:
                raise_invalid(name, f"of {sizes[0]} anchors and {sizes[1]} items, like `train`", part)


def rows_kept(
    data: Any, name: str, noun: str, reasons: Mapping[str, NDArray[np.bool_]], rule: str
) -> NDArray[np.bool_]:
    """Which rows of a held-out part are kept; a note counts those left out by the first reason that holds.

    Raises if none is kept.
    """
    total = len(next(iter(reasons.values())))
    kept = np.ones(total, bool)
    notes = []
    for reason, bad in reasons.items():
        count = int((bad & kept).sum())
        kept &= ~bad
        if count:
            notes.append(f"{counted(count, f'{name} {noun}')} of {total:,} left out: {reason}.")
    if not kept.any():
        raise_invalid(name, rule, f"none of {total:,}", " ".join(notes))
    object.__setattr__(data, "notes", (*data.notes, *notes))
    return kept


def keep_new_pairs(
    data: Any, rule: str, reasons_of: Callable[[Ids, Ids], dict[str, NDArray[np.bool_]]] = lambda anchors, items: {}
) -> None:
    """Leave out held-out pairs that are in an earlier part, or that `reasons_of` names."""
    earlier = data.train
    for name in PARTS[1:]:
        anchors, items = getattr(data, name).pairs()
        reasons = reasons_of(anchors, items) | {"in an earlier part, too": earlier.contains(anchors, items)}
        kept = rows_kept(data, name, "pair", reasons, rule)
        part = Positives.from_pairs(anchors[kept], items[kept], earlier.n_anchors, earlier.n_items)
        object.__setattr__(data, name, part)
        earlier = earlier.union(part)


def checksum(*values: Any) -> str:
    """A checksum of arrays and texts, 16 digits."""
    state = hashlib.sha256()
    for value in values:
        raw = value.encode() if isinstance(value, str) else np.ascontiguousarray(value).tobytes()
        state.update(f"{len(raw)} ".encode() + raw)
    return state.hexdigest()[:16]


def sizes_of_parts(data: Any, noun: str) -> str:
    """'train 48 pairs, validation 6 pairs, test 6 pairs'."""
    return ", ".join(f"{name} {counted(len(getattr(data, name)), noun)}" for name in PARTS)


def pairs_by_part(anchors: Ids, items: Ids, part: Ids, sizes: Positives) -> Parts:
    """The pairs by the number of their part."""
    train, validation, test = (
        Positives.from_pairs(anchors[part == one], items[part == one], sizes.n_anchors, sizes.n_items)
        for one in range(len(PARTS))
    )
    return train, validation, test


def random_tenths(rows: NDArray[Any], seed: int) -> list[NDArray[Any]]:
    """Eight tenths of the rows for training, one for validation and one for the test."""
    order = np.random.default_rng(seed).permutation(len(rows))
    tenth = len(rows) // 10
    return np.split(rows[order], [len(rows) - 2 * tenth, len(rows) - tenth])


def some_anchors(pairs: Positives, most: int) -> Positives:
    """The pairs of at most so many anchors, the same ones each time."""
    anchors, items = pairs.pairs()
    present = np.unique(anchors)
    if len(present) <= most:
        return pairs
    kept = np.isin(anchors, np.random.default_rng(0).choice(present, most, replace=False))
    return Positives.from_pairs(anchors[kept], items[kept], pairs.n_anchors, pairs.n_items)


# ---- a task, and a model in training ---------------------------------------------------------------------------------


class Task:
    """Data, model and measures of a domain; what `compare` needs to know about it."""

    name: ClassVar[str]
    models: ClassVar[tuple[str, ...]]
    quick_steps: ClassVar[int]  # of a run on generated data
    k: ClassVar[int] = 8  # negatives per positive where an arm has no number
    quick: ClassVar[tuple[str, ...]]  # arms on generated data
    defaults: ClassVar[tuple[str, ...]]  # arms on other data; all are compared to the first
    own: Mapping[str, str]  # {name: composition} of arms that the catalogue does not have
    measure: str  # which measure decides
    learning_rates: tuple[float, ...] = LEARNING_RATES
    decay: float = WEIGHT_DECAY
    test_work = 1.0  # what a test costs, in validations
    ranked = ""  # a sentence about what validation and test rank
    sizes: Mapping[str, Any]  # what decides the result beside data, model and batch

    def __init__(self, data: Any, kind: type, model: str, device: Device) -> None:
        check_kind("data", data, kind, kind.__name__)
        check_one_of("model", model, self.models)
        check_device("device", device)
        self.data, self.model = data, model
        self.device = torch.empty(0, device=device).device  # with its number: "cuda" is "cuda:0"

    def set_batch(self, pairs: int, batch: int | None) -> None:
        """Keep the number of training rows, and how many a step takes."""
        usual = 1 << int(np.clip(round(np.log2(max(1, pairs / 100))), 8, 12))
        self.pairs = pairs
        self.batch = min(usual if batch is None else check_whole("batch", batch, 1), pairs)

    def settings(self) -> dict[str, Any]:
        """What decides the result, for the record."""
        known = {"task": self.name, "model": self.model, "data": repr(self.data)}
        device = {} if self.device.type == "cpu" else {"device": str(self.device)}
        return {**known, "fingerprint": self.data.fingerprint(), "batch": self.batch, **self.sizes, **device}

    def start(self, seed: int) -> Any:
        """A model before training, the same for equal seeds."""
        raise NotImplementedError


@public
class Learner:
    """A model in training: what samplers ask of it, the loss of a step, and the measures."""

    parameters: list[Tensor]
    hardness = nan  # of the last step, see `mean_hardness`
    spared = 0.0  # processor seconds that parts of earlier runs cost when they were made

    def snapshot(self) -> Any:
        """All parameters, for `measure`."""
        return [part.detach().clone() for part in self.parameters]

    def measure(self, state: Any, part: str = "validation") -> dict[str, float]:
        """Measure the "validation" or the "test" part by the parameters of a `snapshot`."""
        check_one_of("part", part, PARTS[1:])
        with torch.no_grad():
            now = self.snapshot()
            self._put(state)
            measures = self._measured(part)
            self._put(now)
        return measures

    def _put(self, values: list[Tensor]) -> None:
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)

    def _measured(self, part: str) -> dict[str, float]:
        raise NotImplementedError


def offered(names_of_samplers: str, names_of_pools: str = "") -> dict[str, Any]:
    """{name: class} of samplers and pools that an arm may name, separated by spaces; and NumPy."""
    found: dict[str, Any] = {name: getattr(samplers, name) for name in names_of_samplers.split()}
    return found | {name: getattr(pools, name) for name in names_of_pools.split()} | {"np": np}


def of_positives(known: Positives) -> dict[str, Any]:
    """{name: value}: what an arm may ask of the known pairs."""
    return {
        "positives": known,
        "known": known,
        "counts": known.item_counts(),
        "n_items": known.n_items,
        "pool": pools.Everything(known),
    }


def uses(negatives: str, step: AnyStep) -> AnyStep:
    """Say what a step uses in place of k negatives: "all", "batch", "queue", "none" or "batch + {k}"."""
    step.negatives_used = negatives  # type: ignore[attr-defined]
    return step


def mean_hardness(positive: Tensor, negatives: Tensor, mask: Any = None) -> float:
    """The mean of sigmoid(negative - positive) over filled slots; NaN without any."""
    with torch.no_grad():
        gaps = torch.sigmoid(negatives - positive[:, None])
        return float((gaps if mask is None else gaps[to_torch(mask, gaps.device)]).mean())


def share_held_out(held: Positives, anchors: Ids, negatives: Negatives, without: float) -> float:
    """The share of the negatives of anchors (B,) that are held-out pairs; `without` any negative, that number."""
    drawn = negatives.numpy()
    repeated = np.broadcast_to(anchors[:, None], drawn.ids.shape)[drawn.mask]
    return float(held.contains(repeated, drawn.ids[drawn.mask]).mean()) if len(repeated) else without


def in_blocks(encode: Callable[[Ids], Tensor], rows: Ids) -> Tensor:
    """The vectors of many rows, encoded some at a time."""
    return torch.cat([encode(block) for block in np.array_split(rows, 1 + len(rows) // BLOCK)])


def first_present(arrays: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of some arrays that is there, or None."""
    return next((arrays[name] for name in names if name in arrays), None)
