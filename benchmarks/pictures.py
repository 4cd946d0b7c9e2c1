"""Small pictures, a small encoder of them, random views, and how good its features are: for studies of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, avg_pool2d, grid_sample, normalize

from benchmarks import measures, readers

FEATURES, PROJECTED = 128, 64
TOP = 5  # classes of which one is right
CLASSES = 10  # of each part of a picture


@dataclass(frozen=True)
class Pictures:
    """Pictures (n, channels, side, side) from 0 to 1, and their classes (n,)."""

    images: Tensor
    classes: Tensor


@dataclass(frozen=True)
class World:
    """Pictures to learn from, to choose by, and to report."""

    train: Pictures
    validation: Pictures
    test: Pictures


def world(folder: Path, settings: Mapping[str, Any]) -> World:
    """Training pictures from the start of the training part, validation pictures from its end, test pictures.

    A picture of two `parts` has a picture of the data in each channel, and its class is the pair of theirs: so 1 part
    has 10 classes and 2 parts have 100 of the same kind, and the share of false negatives falls from 10 % to 1 %.
    """
    parts, side = settings["parts"], settings["side"]
    train, test = (
        _composed(*readers.pictures(folder, settings["data"], part), parts, side) for part in ("train", "test")
    )
    learned, held = settings["train"], settings["validation"]
    if learned + held > len(train.images):
        message = f"{learned + held} pictures of {parts} parts are more than the {len(train.images)} there are"
        raise SystemExit(message)
    return World(
        _some(train, slice(0, learned)), _some(train, slice(-held, None)), _some(test, slice(0, settings["test"]))
    )


def _composed(images: np.ndarray, classes: np.ndarray, parts: int, side: int) -> Pictures:
    count = len(images) // parts
    small = torch.from_numpy(images[: parts * count])
    if small.shape[-1] != side:
        small = avg_pool2d(small, small.shape[-1] // side)
    codes = torch.from_numpy(classes[: parts * count]).reshape(count, parts) * CLASSES ** torch.arange(parts)
    return Pictures(small.reshape(count, -1, side, side), codes.sum(dim=1))


def _some(pictures: Pictures, rows: slice) -> Pictures:
    return Pictures(pictures.images[rows].contiguous(), pictures.classes[rows])


class Encoder(nn.Module):
    """Convolutions of stride 2 and a layer to features (n, 128); a projection of two layers, (n, 64) of length 1.

    pooled   whether the last maps are averaged; else they are flattened, and the encoder knows where it looks
    """

    def __init__(self, channels: int, side: int, seed: int, *, width: int, layers: int, pooled: bool) -> None:
        """Weights by a generator of its own: the global one decides nothing."""
        super().__init__()
        sizes = (channels, *(width << place for place in range(layers)))
        body: list[nn.Module] = []
        for before, after in pairwise(sizes):
            body += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            side = (side + 1) // 2
        body += [nn.AdaptiveAvgPool2d(1)] if pooled else []
        inputs = sizes[-1] if pooled else sizes[-1] * side**2
        body += [nn.Flatten(), nn.Linear(inputs, FEATURES, bias=False), nn.BatchNorm1d(FEATURES), nn.ReLU()]
        self.body = nn.Sequential(*body).to(memory_format=torch.channels_last)  # which processors like
        self.head = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.ReLU(), nn.Linear(FEATURES, PROJECTED))
        generator = torch.Generator().manual_seed(seed)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        """(n, 64) what the losses see."""
        return normalize(self.head(self.body(images.contiguous(memory_format=torch.channels_last))), dim=1)

    @torch.no_grad()
    def features(self, images: Tensor, block: int = 2000) -> Tensor:
        """(n, 128) of pictures as they are, for clusters and for the probe."""
        self.eval()
        found = torch.cat(
            [self.body(part.contiguous(memory_format=torch.channels_last)) for part in images.split(block)]
        )
        self.train()
        return found


def encoder_of(given: World, settings: Mapping[str, Any], seed: int) -> Encoder:
    """A new encoder of these pictures."""
    _, channels, side, _ = given.train.images.shape
    shape = {name: settings[name] for name in ("width", "layers", "pooled")}
    return Encoder(channels, side, seed, **shape)


def view(images: Tensor, generator: torch.Generator, *, smallest: float, mirror: bool) -> Tensor:
    """A random view of each: a crop of at least `smallest` of the area, mirrored or not, of other brightness."""
    rows = len(images)

    def between(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(rows, generator=generator)

    side = between(smallest, 1.0).sqrt()
    shape = between(0.85, 1.18).sqrt()
    wide, high = (side * shape).clamp(max=1), (side / shape).clamp(max=1)
    turned = (torch.rand(rows, generator=generator) < (0.5 if mirror else 0.0)) * -2.0 + 1.0
    crop = torch.zeros(rows, 2, 3)
    crop[:, 0, 0], crop[:, 1, 1] = wide * turned, high
    crop[:, 0, 2], crop[:, 1, 2] = between(-1, 1) * (1 - wide), between(-1, 1) * (1 - high)
    grid = affine_grid(crop, list(images.shape), align_corners=False)
    seen = grid_sample(images, grid, padding_mode="border", align_corners=False)
    contrast, brightness = (between(0.6, 1.4)[:, None, None, None] for _ in range(2))
    mean = seen.mean(dim=(1, 2, 3), keepdim=True)
    return ((seen - mean) * contrast + mean * brightness).clamp(0, 1)


def cosine_rates(steps: int, peak: float) -> np.ndarray:
    """(steps,) learning rates: up to the peak in a tenth, then down along a cosine."""
    warm = max(1, steps // 10)
    up = np.arange(1, warm + 1) / warm
    down = (1 + np.cos(np.pi * np.arange(1, steps - warm + 1) / max(1, steps - warm))) / 2
    return peak * np.concatenate([up, down])[:steps]


def accuracies(given: World, encoder: Encoder, labelled: int | None = None) -> dict[str, float]:
    """Accuracies of a linear probe in per cent, on validation and test pictures; fitted to so many labels."""
    train = encoder.features(given.train.images[:labelled])
    others = [encoder.features(part.images) for part in (given.validation, given.test)]
    scores = measures.class_scores(train, given.train.classes[:labelled], torch.cat(others))
    best = scores.topk(min(TOP, scores.shape[1]), dim=1).indices
    right = best == torch.cat([given.validation.classes, given.test.classes])[:, None]
    validated, tested = right[: len(others[0])], right[len(others[0]) :]
    return {
        "validation": 100 * float(validated[:, 0].float().mean()),
        "accuracy": 100 * float(tested[:, 0].float().mean()),
        "top_5": 100 * float(tested.any(dim=1).float().mean()),
    }
