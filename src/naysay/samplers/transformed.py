"""Transformed: negatives made from the input of an item, such as an image with its parts in another order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch
from naysay.checks import as_array, check_generator, check_whole, public, raise_invalid
from naysay.rng import generator_of, key_from
from naysay.samplers._vectors import FromSampler, checked, with_vectors
from naysay.types import Array, Negatives, Query, Sampler


@final
@public
@dataclass(eq=False, repr=False)
class Transformed(FromSampler):
    """Encode a changed copy of each negative of a sampler: vectors = make(ids, rng).

    `make` looks the inputs up, changes them and encodes them. It is yours: patches in another order (`jigsaw`), a word
    replaced by its opposite, a response with its key phrase changed. `parents` are the item itself, twice; log_q is
    the sampler's, of the ids.

    Sinha et al. Negative Data Augmentation. ICLR 2021; Gupta, Tsvetkov, Bigham. Synthesizing Adversarial Negative
    Responses for Robust Response Ranking and Evaluation. Findings of ACL 2021.

    Args:
        base: The sampler whose items are changed.
        make: make(ids (B, K), rng) -> (B, K, d), in the array type of the query. It never gets -1.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> base = ns.samplers.Static(ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=2)))
        >>> sampler = Transformed(base, lambda ids, rng: -np.eye(2)[ids])
        >>> sampler.sample(ns.Query([0]), 1, rng=ns.rng_for(0)).vectors.tolist()
        [[[-0.0, -1.0]]]
    """

    _made_of = ("base", "make")

    base: Sampler
    make: Callable[[Array, np.random.Generator], Array]

    def __post_init__(self) -> None:
        self._check_base()
        if not callable(self.make):
            raise_invalid("make", "a function make(ids, rng)", type(self.make).__name__)

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives of the sampler, with vectors of their changed inputs."""
        drawn = self.base.sample(query, k, rng=rng)
        own = generator_of(key_from(rng))
        ids = drawn.ids.clamp(min=0) if is_torch(drawn.ids) else np.maximum(drawn.ids, 0)
        made = checked("make", self.make(ids, own), drawn.ids, tuple(drawn.ids.shape), 3)
        return with_vectors(drawn, made)


@public
def jigsaw(images: Any, parts: int = 2, *, rng: np.random.Generator) -> NDArray[Any]:
    """Return each image with its parts x parts tiles in another order, never its own.

    The published code of NDA splits by rows and joins by columns, so that one of its 23 orders of four tiles is the
    image itself.

    Args:
        images: (n, height, width, ...), both divisible by `parts`.
        parts: Tiles along each side, at least 2.
        rng: The source of randomness.

    Returns:
        (n, height, width, ...).

    Examples:
        >>> import numpy as np, naysay as ns
        >>> image = np.arange(4).reshape(1, 2, 2)
        >>> bool((jigsaw(image, rng=ns.rng_for(0)) != image).any())
        True
    """
    check_generator(rng)
    given = as_array("images", images)
    check_whole("parts", parts, 2)
    if given.ndim < 3 or given.shape[1] % parts or given.shape[2] % parts:
        raise_invalid("images", f"(n, height, width, ...), both divisible by {parts}", f"shape {given.shape}")
    n, height, width = given.shape[:3]
    rows, columns, rest = height // parts, width // parts, given.shape[3:]
    tiles = given.reshape(n, parts, rows, parts, columns, *rest).swapaxes(2, 3)
    tiles = tiles.reshape(n, parts * parts, rows, columns, *rest)
    order = np.argsort(rng.random((n, parts * parts)), axis=1)
    same = (order == np.arange(parts * parts)).all(axis=1)
    order[same] = np.roll(order[same], 1, axis=1)  # its own order becomes another
    moved = tiles[np.arange(n)[:, None], order].reshape(n, parts, parts, rows, columns, *rest)
    return np.asarray(moved.swapaxes(2, 3).reshape(given.shape))
