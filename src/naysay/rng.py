"""Randomness: a generator made from (seed, step, rank, worker), and one key per call.

A sampler gets a `numpy.random.Generator`, takes one 64-bit key from it, and compiled loops hash (key, row, slot). So a
draw depends only on the key: not on threads, not on earlier rows, and not on a global generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from naysay.checks import check_generator, check_whole, public

_WORD, _LARGEST = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


@public
def rng_for(seed: int, step: int = 0, rank: int = 0, worker: int = 0) -> np.random.Generator:
    """Make the generator of one step, on one process of a distributed run, in one data worker.

    Equal arguments give equal streams on every machine; any difference gives an independent one. A run that stops at
    step 1,000 resumes with rng_for(seed, step=1000): there is no generator to save.

    Args:
        seed: Of the run.
        step: The training step.
        rank: Of the process.
        worker: The number of the data worker.

    Returns:
        A NumPy Generator.

    Raises:
        NaysayError: If an argument is not a whole number from 0 to below 2^64.

    Examples:
        >>> bool(rng_for(0, step=3).integers(100) == rng_for(0, step=3).integers(100))
        True
    """
    words: list[int] = []
    for name, value in (("seed", seed), ("step", step), ("rank", rank), ("worker", worker)):
        number = value if type(value) is int and 0 <= value <= _LARGEST else check_whole(name, value, 0)
        words += [number & _WORD, number >> 32]  # two words each, so that different arguments never give the same words
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))


def key_from(rng: np.random.Generator) -> np.uint64:
    """The one 64-bit number that a call takes from its generator."""
    check_generator(rng)
    return rng.integers(0, np.iinfo(np.uint64).max, dtype=np.uint64, endpoint=True)


def generator_of(key: np.uint64) -> np.random.Generator:
    """The generator of a key, for draws that are not made by compiled loops."""
    # As Philox(key=key), which asks the system for entropy first.
    given: Any = _Key(key)
    return np.random.Generator(np.random.Philox(given))


class _Key(ISeedSequence):
    """A key as what Philox takes its key from."""

    def __init__(self, key: np.uint64) -> None:
        self.key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """The two words of a Philox key."""
        return np.array([self.key, 0], dtype)
