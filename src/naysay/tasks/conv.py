"""A small convolutional encoder of images with a projection head, and random views of images."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, grid_sample, normalize

from naysay.arrays import to_torch
from naysay.checks import check_whole, public
from naysay.tasks._parts import Device

_BLOCK = 1024  # images that are encoded at a time, without gradients


@final
@public
class ConvEncoder(nn.Module):
    """Three convolutions of stride 2, features of 256 numbers, a head to 64 for the loss, and SimSiam's predictor.

    Args:
        colours: The channels of an image.
        seed: Equal seeds give equal parameters; the global generator of torch is not used.

    Examples:
        >>> encoder = ConvEncoder(1, seed=0)
        >>> encoder.features(torch.zeros(2, 1, 28, 28)).shape, encoder(torch.zeros(2, 1, 28, 28)).shape
        (torch.Size([2, 256]), torch.Size([2, 64]))
    """

    def __init__(self, colours: int, seed: int) -> None:
        super().__init__()
        sizes = (check_whole("colours", colours, 1), 16, 32, 64)
        with torch.random.fork_rng(devices=[]):  # layers draw first weights, which are drawn again below
            layers: list[nn.Module] = []
            for before, after in pairwise(sizes):
                layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
            self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())
            self.head = nn.Sequential(nn.Linear(256, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
            self.predictor = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 64))
        start = torch.Generator().manual_seed(check_whole("seed", seed, 0))
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=start)
                nn.init.zeros_(layer.bias)

    def features(self, images: Tensor) -> Tensor:
        """(n, 256) of images (n, c, h, w) from 0 to 1: what is measured."""
        found: Tensor = self.body(images - 0.5)
        return found

    def forward(self, images: Tensor) -> Tensor:
        """(n, 64) of length 1: what the loss compares."""
        return normalize(self.head(self.features(images)), dim=1)

    @torch.no_grad()
    def all_features(self, images: Any) -> Tensor:
        """(n, 256) features of many images, stored as bytes, as they are after training."""
        before = self.training
        self.eval()
        device = next(self.parameters()).device
        found = [self.features(as_floats(images[at : at + _BLOCK], device)) for at in range(0, len(images), _BLOCK)]
        self.train(before)
        return torch.cat(found)


def as_floats(images: Any, device: Device) -> Tensor:
    """Bytes as numbers from 0 to 1, on a device."""
    found: Tensor = to_torch(np.ascontiguousarray(images), device).float() / 255
    return found


def view(images: Tensor, generator: torch.Generator) -> Tensor:
    """A random view of each image: a part of it at another size, perhaps mirrored, in another light, with noise.

    Random numbers are those of the processor, on any device.
    """
    count, device = len(images), images.device

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=generator).to(device)

    scale, mirrored = uniform(0.6, 1.0), torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    moved = [(1 - scale) * uniform(-1, 1) for _ in range(2)]
    zero = torch.zeros(count, device=device)
    rows = [torch.stack([scale * mirrored, zero, moved[0]], 1), torch.stack([zero, scale, moved[1]], 1)]
    grid = affine_grid(torch.stack(rows, dim=1), list(images.shape), align_corners=False)
    seen = grid_sample(images, grid, align_corners=False, padding_mode="border")
    lit = seen * uniform(0.6, 1.4)[:, None, None, None] + uniform(-0.2, 0.2)[:, None, None, None]
    return (lit + 0.05 * torch.randn(lit.shape, generator=generator).to(device)).clamp(0, 1)
