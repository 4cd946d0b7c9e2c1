"""Which versions of the frameworks fit, and draws that follow torch's random generator as theirs do."""

from __future__ import annotations

from typing import Any

import numpy as np

from naysay._packages import need_package
from naysay.arrays import need_torch
from naysay.rng import generator_of

# {package: (extra, the first version that fits, the first that does not)}, as in pyproject.toml.
VERSIONS = {
    "sentence-transformers": ("sentence-transformers", "5.0", "7"),
    "transformers": ("sentence-transformers", "4.41", "6"),  # which sentence-transformers installs
    "pykeen": ("pykeen", "1.11.1", "1.12"),
    "torch-geometric": ("pyg", "2.6", "3"),
    "pytorch-metric-learning": ("metric-learning", "2.6", "3"),
    "lightning": ("lightning", "2.4", "3"),
}


def need(package: str) -> Any:
    """Import a framework; raise MissingExtraError, with the pip command, if it is missing or does not fit."""
    extra, first, beyond = VERSIONS[package]
    return need_package(package, first, below=beyond, extra=extra)


def torch_rng(generator: Any = None) -> np.random.Generator:
    """A generator seeded by one number of torch's, so that the framework's seed decides, in each data worker its own.

    Args:
        generator: A torch.Generator; by default torch's global one.
    """
    torch = need_torch()
    device = "cpu" if generator is None else generator.device
    return generator_of(np.uint64(torch.randint((1 << 63) - 1, (1,), generator=generator, device=device).item()))
