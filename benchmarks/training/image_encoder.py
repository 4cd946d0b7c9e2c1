"""A small convolutional encoder for pictures, its augmentations, their reader, and the linear probe of it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, cross_entropy, grid_sample, normalize

SIDE = 28
FEATURES, PROJECTED = 128, 64


@dataclass(frozen=True)
class Pictures:
    """Pictures (n, channels, side, side) from 0 to 1, grey ones of MNIST's size as read, and their classes (n,)."""

    images: Tensor
    classes: Tensor

    def first(self, n: int) -> Pictures:
        """The first n."""
        return Pictures(self.images[:n], self.classes[:n])


def read_idx(path: Path) -> np.ndarray:
    """The array of a gzipped IDX file of bytes: two zeros, a type, how many dimensions, their lengths, the data."""
    with gzip.open(path, "rb") as file:
        zero, kind, dimensions = int.from_bytes(file.read(2), "big"), file.read(1)[0], file.read(1)[0]
        if zero or kind != 8:
            message = f"{path.name} is no IDX file of bytes"
            raise SystemExit(message)
        shape = np.frombuffer(file.read(4 * dimensions), ">u4")
        return np.frombuffer(file.read(), np.uint8).reshape(shape)


def pictures(folder: Path, part: str) -> Pictures:
    """The "train" or "t10k" part of a folder of MNIST's four files."""
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
    classes = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
    return Pictures(torch.from_numpy(images[:, None] / np.float32(255)), torch.from_numpy(classes.astype(np.int64)))


class Encoder(nn.Module):
    """Three convolutions of stride 2 and a layer to features (n, 128); a projection of two layers, (n, 64) of length 1.

    The convolutions are flattened, not averaged: so small an encoder has to know where in the picture it looks.
    """

    def __init__(self, width: int, seed: int, side: int = SIDE, channels: int = 1) -> None:
        """Weights by a generator of its own: the global one decides nothing."""
        super().__init__()
        sizes = (channels, width, 2 * width, 4 * width)
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        last = 4 * width * ((side + 7) // 8) ** 2  # 28, 14, 7, 4
        layers += [nn.Flatten(), nn.Linear(last, FEATURES, bias=False), nn.BatchNorm1d(FEATURES), nn.ReLU()]
        self.body = nn.Sequential(*layers).to(memory_format=torch.channels_last)  # which processors like
        self.head = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.ReLU(), nn.Linear(FEATURES, PROJECTED))
        generator = torch.Generator().manual_seed(seed)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        """(n, 64) what the losses see."""
        return normalize(self.head(self.body(_channels_last(images))), dim=1)

    @torch.no_grad()
    def features(self, images: Tensor, block: int = 2000) -> Tensor:
        """(n, 128) of pictures as they are, for clusters and for the probe."""
        self.eval()
        found = torch.cat([self.body(_channels_last(part)) for part in images.split(block)])
        self.train()
        return found


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)


def view(images: Tensor, generator: torch.Generator) -> Tensor:
    """A random view of each: a crop of 50 to 100 % of the area, mirrored or not, of other brightness and contrast."""
    rows = len(images)

    def between(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(rows, generator=generator)

    side = between(0.5, 1.0).sqrt()
    shape = between(0.85, 1.18).sqrt()
    wide, high = (side * shape).clamp(max=1), (side / shape).clamp(max=1)
    mirror = (torch.rand(rows, generator=generator) < 0.5) * -2.0 + 1.0
    crop = torch.zeros(rows, 2, 3)
    crop[:, 0, 0], crop[:, 1, 1] = wide * mirror, high
    crop[:, 0, 2], crop[:, 1, 2] = between(-1, 1) * (1 - wide), between(-1, 1) * (1 - high)
    grid = affine_grid(crop, list(images.shape), align_corners=False)
    seen = grid_sample(images, grid, padding_mode="border", align_corners=False)
    contrast, brightness = between(0.6, 1.4), between(0.6, 1.4)
    mean = seen.mean(dim=(1, 2, 3), keepdim=True)
    return ((seen - mean) * contrast[:, None, None, None] + mean * brightness[:, None, None, None]).clamp(0, 1)


def predicted(train: Tensor, classes: Tensor, test: Tensor, penalty: float = 1e-4) -> Tensor:
    """(n,) classes of `test` by a linear classifier of the features: L-BFGS to rest, on standardised columns."""
    mean, spread = train.mean(dim=0), train.std(dim=0) + 1e-6
    inputs, held_out = (train - mean) / spread, (test - mean) / spread
    count = int(classes.max()) + 1
    weight, bias = torch.zeros(train.shape[1], count, requires_grad=True), torch.zeros(count, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = cross_entropy(inputs @ weight + bias, classes) + penalty * weight.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    with torch.no_grad():
        return (held_out @ weight + bias).argmax(dim=1)


def probe(train: Tensor, classes: Tensor, test: Tensor, truth: Tensor, penalty: float = 1e-4) -> float:
    """The accuracy of `predicted` on `test`."""
    return float((predicted(train, classes, test, penalty) == truth).float().mean())
