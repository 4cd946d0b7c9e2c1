"""What all tasks share: checks of the three parts of data, sizes of batches, hardness, and what is left out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay.arrays import to_torch
from naysay.checks import check_device, check_kind, check_whole, raise_invalid
from naysay.positives import Positives
from naysay.text import counted

PARTS = ("train", "validation", "test")
HELD_OUT = "Negatives that are held-out positives; true positives that nobody recorded come on top."
Ids = NDArray[np.int64]
Parts = tuple[Positives, Positives, Positives]  # for training, validation and test
Device = str | torch.device
Step = TypeVar("Step", bound=Callable[..., Any])  # step(rows, k, *, step) -> (loss, negatives or None)


def checked_device(device: Device) -> torch.device:
    """The device of a task, with its number: "cuda" is "cuda:0". Raises unless torch can compute there."""
    check_device("device", device)
    return torch.empty(0, device=device).device


def recorded_device(device: torch.device) -> dict[str, str]:
    """{"device": its name} for the record, and nothing for the processor."""
    return {} if device.type == "cpu" else {"device": str(device)}


def check_parts(data: Any, kind: type, noun: str) -> None:
    """Raise unless the three parts of some data are of a kind, of one size, and not empty."""
    for name in PARTS:
        part = getattr(data, name)
        check_kind(name, part, kind, f"of type {kind.__name__}")
        if not len(part):
            raise_invalid(name, f"at least one {noun}", "none")
        sizes = [(one.n_anchors, one.n_items) for one in (data.train, part) if isinstance(one, Positives)]
        if len({*sizes}) > 1:
            raise_invalid(name, f"of {sizes[0][0]} anchors and {sizes[0][1]} items, like `train`", part)


def kept_of(
    name: str, noun: str, reasons: Mapping[str, NDArray[np.bool_]], rule: str
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which rows of a held-out part are kept, and a sentence for each reason: the first that holds counts.

    Raises if none is kept.
    """
    total = len(next(iter(reasons.values())))
    kept, notes = np.ones(total, bool), []
    for reason, bad in reasons.items():
        count = int((bad & kept).sum())
        kept &= ~bad
        if count:
            notes.append(f"{counted(count, f'{name} {noun}')} of {total:,} left out: {reason}.")
    if not kept.any():
        raise_invalid(name, rule, f"none of {total:,}", " ".join(notes))
    return kept, tuple(notes)


def add_notes(data: Any, *notes: str) -> None:
    """Append sentences to the notes of frozen data."""
    object.__setattr__(data, "notes", (*data.notes, *notes))


def checksum(*arrays: Any) -> str:
    """A checksum of arrays and texts, 16 digits."""
    state = hashlib.sha256()
    for array in arrays:
        raw = array.encode() if isinstance(array, str) else np.ascontiguousarray(array).tobytes()
        state.update(f"{len(raw)} ".encode() + raw)
    return state.hexdigest()[:16]


def usual_batch(rows: int, batch: int | None) -> int:
    """The given size, or a hundredth of the rows, rounded to a power of two from 256 to 4,096; at most all rows."""
    usual = 1 << int(np.clip(round(np.log2(max(1, rows / 100))), 8, 12))
    return min(usual if batch is None else check_whole("batch", batch, 1), rows)


def some_anchors(pairs: Positives, most: int) -> Positives:
    """The pairs of at most so many anchors, the same ones each time."""
    anchors, items = pairs.pairs()
    there = np.unique(anchors)
    if len(there) <= most:
        return pairs
    kept = np.isin(anchors, np.random.default_rng(0).choice(there, most, replace=False))
    return Positives.from_pairs(anchors[kept], items[kept], pairs.n_anchors, pairs.n_items)


def ranked_among(wanted: Positives, known: Positives, most: int) -> tuple[Ids, Ids, Positives, Positives]:
    """The anchors that want something, at most so many items with all wanted ones, and both pairs over these ids."""
    rows, items = np.flatnonzero(wanted.count()), np.unique(wanted.pairs()[1])
    others = np.setdiff1d(np.arange(wanted.n_items), items)
    some = np.random.default_rng(0).permutation(others)[: max(0, most - len(items))]
    items = np.sort(np.concatenate([items, some]))
    places = [np.full(size, -1) for size in (wanted.n_anchors, wanted.n_items)]
    for place, ids in zip(places, (rows, items), strict=True):
        place[ids] = np.arange(len(ids))
    made = []
    for pairs in (wanted, known):
        anchors, found = (place[ids] for place, ids in zip(places, pairs.pairs(), strict=True))
        there = (anchors >= 0) & (found >= 0)
        made.append(Positives.from_pairs(anchors[there], found[there], len(rows), len(items)))
    return rows, items, made[0], made[1]


def uses(negatives: str, step: Step) -> Step:
    """Say what a step of a comparison uses in place of k negatives: "all", "batch", "queue", "none", "batch + {k}"."""
    step.negatives_used = negatives  # type: ignore[attr-defined]
    return step


def put(parameters: list[Tensor], values: list[Tensor]) -> None:
    """Set parameters to values; without gradients only."""
    for parameter, value in zip(parameters, values, strict=True):
        parameter.copy_(value)


def in_parts(first: Ids, second: Ids, part: Ids, sizes: Positives) -> Parts:
    """The pairs by the number of their part."""
    train, validation, test = (
        Positives.from_pairs(first[part == one], second[part == one], sizes.n_anchors, sizes.n_items)
        for one in range(len(PARTS))
    )
    return train, validation, test


def mean_hardness(positive: Tensor, negatives: Tensor, mask: Any = None) -> float:
    """The mean of sigmoid(negative - positive) over filled slots; NaN without any."""
    with torch.no_grad():
        gaps = torch.sigmoid(negatives - positive[:, None])
        return float((gaps if mask is None else gaps[to_torch(mask, gaps.device)]).mean())
