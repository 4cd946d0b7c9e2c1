"""Small pictures with 10 or 100 classes, for the claims about false and hard negatives of pictures.

A picture of `parts` channels is `parts` pictures of the data, each 14 x 14, one in each channel; its class is the tuple
of theirs. So 1 part has 10 classes and 2 parts have 100, of the same kind, and the share of false negatives among
random negatives falls from a tenth to a hundredth. Groups are coarser classes: tops, bottoms and dresses, shoes, bag.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from benchmarks.training.image_encoder import Encoder, Pictures, pictures, predicted, probe
from benchmarks.training.images import Kept

SIDE = 14
PARTS = (1, 2)
CLASSES, GROUPS = 10, (0, 1, 0, 1, 0, 2, 0, 2, 3, 2)


@dataclass(frozen=True)
class World:
    """Pictures to learn from, to choose by, and to report."""

    parts: int
    train: Pictures
    validation: Pictures
    test: Pictures

    def encoder(self, width: int, seed: int) -> Encoder:
        """A new encoder of these pictures."""
        return Encoder(width, seed, side=SIDE, channels=self.parts)

    def groups(self, classes: Tensor) -> Tensor:
        """(n,) the coarser classes."""
        table, found = torch.tensor(GROUPS), torch.zeros_like(classes)
        for place in range(self.parts):
            found += table[classes // CLASSES**place % CLASSES] * (max(GROUPS) + 1) ** place
        return found

    def measures(self, encoder: Encoder) -> dict[str, float]:
        """Accuracies of linear probes, in per cent: of classes on validation and test pictures, of groups on test."""
        train, validation, test = (encoder.features(part.images) for part in (self.train, self.validation, self.test))
        found = predicted(train, self.train.classes, torch.cat([validation, test]))
        right = (found == torch.cat([self.validation.classes, self.test.classes])).float()
        groups = (self.groups(part.classes) for part in (self.train, self.test))
        return {
            "validation": 100 * float(right[: len(validation)].mean()),
            "accuracy": 100 * float(right[len(validation) :].mean()),
            "group_accuracy": 100 * probe(train, next(groups), test, next(groups)),
        }


def composed(source: Pictures, parts: int, count: int, *, last: bool = False) -> Pictures:
    """The first `count` pictures of `parts` channels, or those of the last pictures of the source."""
    if parts * count > len(source.images):
        message = f"{count} pictures of {parts} parts need {parts * count} pictures; there are {len(source.images)}"
        raise SystemExit(message)
    start = len(source.images) - parts * count if last else 0
    chosen = slice(start, start + parts * count)
    small = avg_pool2d(source.images[chosen], source.images.shape[-1] // SIDE)
    classes = source.classes[chosen].reshape(count, parts) * CLASSES ** torch.arange(parts)
    return Pictures(small.reshape(count, parts, SIDE, SIDE), classes.sum(dim=1))


def world(folder: Path, parts: int, train: int, validation: int) -> World:
    """Training pictures from the start of the training part, validation pictures from its end, all test pictures."""
    source, test = pictures(folder, "train"), pictures(folder, "t10k")
    if parts * (train + validation) > len(source.images):
        message = f"{parts} parts of {train + validation} pictures overlap: there are {len(source.images)}"
        raise SystemExit(message)
    held_out = composed(source, parts, validation, last=True)
    return World(parts, composed(source, parts, train), held_out, composed(test, parts, len(test.images) // parts))


def cosine_rates(steps: int, peak: float, *, flat: bool = False) -> np.ndarray:
    """(steps,) learning rates: up to the peak in a tenth, then down along a cosine; or flat, with the same sum."""
    warm = max(1, steps // 10)
    up = np.arange(1, warm + 1) / warm
    down = (1 + np.cos(np.pi * np.arange(1, steps - warm + 1) / (steps - warm))) / 2
    rates = peak * np.concatenate([up, down])[:steps]
    return np.full(steps, rates.mean()) if flat else rates


def paired(runs: dict[int, float], base: dict[int, float]) -> list[float]:
    """Differences of the seeds that both have."""
    return [runs[seed] - base[seed] for seed in sorted(runs) if seed in base]


def missing(names: Iterable[str], rows: dict[tuple[str, int], Any]) -> list[str]:
    """The arms of which no run has finished."""
    done = {name for name, _ in rows}
    return [name for name in names if name not in done]


def parser(text: str, arms: Iterable[str], settings: type[Any], seeds: int) -> argparse.ArgumentParser:
    """The command of a study: its data, what runs, and an option for every setting that has a default."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("data", type=Path)
    made.add_argument("--parts", type=int, nargs="+", choices=PARTS, default=PARTS)
    made.add_argument("--seeds", type=int, default=seeds, help="0 writes the summary of the runs so far")
    made.add_argument("--arms", nargs="+", choices=arms)
    made.add_argument("--out", type=Path)
    for field in fields(settings):
        if field.default is not MISSING:
            made.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    return made


def kept_or_run(kept: Kept, name: str, seed: int, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A run of the file, or a new one, which is then in it."""
    found = kept.get(name, seed)
    if found is None:
        found = kept.add(name, seed, run())
        shown = f"{found['accuracy']:.2f} % {found['processor_seconds']:.0f} s"
        of = " ".join(f"{key} {kept.settings[key]:g}" for key in ("parts", "temperature"))
        print(f"seed {seed} {of} {name:45s} {shown}", flush=True)
    return found
