"""Negatives with vectors of their own: made from changed inputs of items, from other rows, or from nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, need_torch, to_torch
from naysay.checks import (
    as_array,
    check_generator,
    check_number,
    check_one_of,
    check_whole,
    public,
    raise_invalid,
)
from naysay.rng import generator_of, key_from
from naysay.samplers._settings import FromSampler, check_base, check_function
from naysay.samplers._vectors import checked, stack_last, zero_where_empty
from naysay.types import Array, Negatives, Query, Sampler

__all__ = ["Transformed", "ascend", "jigsaw", "noise", "shuffled"]


@final
@public
@dataclass(eq=False, repr=False)
class Transformed(FromSampler):
    """Give each negative of a sampler a vector of its own: vectors = make(query, ids, rng).

    `make` is yours. It may look the inputs up, change and encode them: patches in another order (`jigsaw`), a word
    replaced by its opposite. Or it may move vectors: embed(ids) + radius * unit(query.vectors)[:, None] is the step
    that raises a loss of dot products most (adversarial perturbation). `parents` are the item itself, twice; log_q is
    the sampler's, of the ids.

    Sinha et al. Negative Data Augmentation. ICLR 2021; Park and Chang. Adversarial Sampling and Training for
    Semi-Supervised Information Retrieval. WWW 2019; Ho and Vasconcelos. Contrastive Learning with Adversarial Examples.
    NeurIPS 2020 (by signs, of the inputs).

    Args:
        base: The sampler whose items are changed.
        make: make(query, ids (B, K), rng) -> (B, K, d), in the array type of the query. It never gets -1.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> base = ns.samplers.Static(ns.pools.Everything(ns.Positives.from_pairs([0], [0], n_items=2)))
        >>> sampler = Transformed(base, lambda query, ids, rng: -np.eye(2)[ids])
        >>> sampler.sample(ns.Query([0]), 1, rng=ns.rng_for(0)).vectors.tolist()
        [[[-0.0, -1.0]]]
    """

    _made_of = ("base", "make")

    base: Sampler
    make: Callable[[Query, Array, np.random.Generator], Array]

    def __post_init__(self) -> None:
        check_base("base", self.base)
        check_function("make", self.make, "make(query, ids, rng)")

    def sample(self, query: Query, k: Any, *, rng: np.random.Generator) -> Negatives:
        """Draw (B, K) negatives of the sampler, with the vectors that `make` returns."""
        drawn = self.base.sample(query, k, rng=rng)
        made = self.make(query, drawn.ids.clip(min=0), generator_of(key_from(rng)))
        vectors = checked("make", made, drawn.ids, tuple(drawn.ids.shape), 3)
        parents = stack_last(drawn.ids, drawn.ids)
        return replace(drawn, vectors=zero_where_empty(vectors, drawn.ids), parents=parents)


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


@public
def shuffled(vectors: Array, *, rows: bool = True, columns: bool = False, rng: np.random.Generator) -> Array:
    """Return the same vectors for other rows: corrupted negatives, as of DGI, MVGRL, DHCN and MHCN.

    With `rows` no row keeps its place if there are at least two; the published codes use any permutation, so that a row
    can be its own negative. With `columns` all rows have their columns permuted in the same way.

    Args:
        vectors: (n, d), NumPy or torch.
        rows: Whether to permute rows.
        columns: Whether to permute columns.
        rng: The source of randomness.

    Returns:
        (n, d) in the array type of `vectors`; gradients flow.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> shuffled(np.arange(3.0)[:, None], rng=ns.rng_for(0))[:, 0].tolist() in ([1, 2, 0], [2, 0, 1])
        True
    """
    check_generator(rng)
    if getattr(vectors, "ndim", 0) != 2:
        raise_invalid("vectors", "of shape (n, d)", f"shape {tuple(getattr(vectors, 'shape', ()))}")
    cycle, across = rng.permutation(vectors.shape[0]), rng.permutation(vectors.shape[1])
    others = np.empty(len(cycle), np.int64)  # each row is mapped to the next one of a cycle, and so never to itself
    others[cycle] = np.roll(cycle, -1)
    moved: Array = vectors
    for axis, wanted, places in ((0, rows, others), (1, columns, across)):
        if wanted:
            index = to_torch(places, vectors.device) if is_torch(vectors) else places
            moved = moved.index_select(axis, index) if is_torch(vectors) else np.take(moved, index, axis=axis)
    return moved


@public
def noise(n: int, dim: int, *, rng: np.random.Generator, like: Any = None) -> Array:
    """Return (n, dim) vectors of independent normal numbers: negatives made of nothing, as in DCLR.

    They have no ids, so they are not `Negatives`: pass them as in_batch(negatives=noise.expand(...),
    share_negatives=True), or as further keys. In many dimensions they are nearly orthogonal to everything: `ascend`
    moves them.

    Zhou, Zhang, Zhao, Wen. Debiased Contrastive Learning of Unsupervised Sentence Representations. ACL 2022.

    Args:
        n: How many.
        dim: Their dimension.
        rng: The source of randomness.
        like: A tensor whose dtype and device the vectors have; None for NumPy.

    Returns:
        (n, dim).

    Examples:
        >>> import naysay as ns
        >>> noise(2, 3, rng=ns.rng_for(0)).shape
        (2, 3)
    """
    check_generator(rng)
    made = rng.standard_normal((check_whole("n", n, 0), check_whole("dim", dim, 1)))
    return made if like is None else to_torch(made).to(like)


@public
def ascend(vectors: Any, loss: Callable[[Any], Any], *, steps: int = 4, size: float = 1e-3, norm: str = "unit") -> Any:
    """Move vectors along the gradient that raises a loss, and return them without gradient.

    Each step adds size * g / |g| row by row ("unit"), size * sign(g) ("sign"), or size * g ("none"). Only the vectors
    move: no gradient reaches a model's parameters. In torch.

    Zhou et al. ACL 2022 (noise of DCLR, 4 steps of 1e-3); Zhang, Xiao, Zhu, Ma, Arnold. Virtual Augmentation Supported
    Contrastive Learning of Sentence Representations. Findings of ACL 2022 (VaSCL: one step).

    Args:
        vectors: (n, d) a tensor.
        loss: loss(vectors) -> one number, or several, which are summed.
        steps: How many.
        size: Of a step, above 0.
        norm: "unit", "sign" or "none".

    Returns:
        (n, d), a new tensor.

    Examples:
        >>> import torch
        >>> ascend(torch.zeros(1, 2), lambda moved: moved @ torch.tensor([3.0, 4.0]), steps=1, size=1.0)
        tensor([[0.6000, 0.8000]])
    """
    torch = need_torch()
    if not is_torch(vectors) or vectors.ndim != 2 or not vectors.is_floating_point():
        raise_invalid("vectors", "a floating tensor of shape (n, d)", f"a {type(vectors).__name__}")
    check_whole("steps", steps, 0)
    check_number("size", size, above=0, finite=True)
    check_one_of("norm", norm, ("unit", "sign", "none"))
    moved = vectors.detach().clone()
    for _ in range(steps):
        with torch.enable_grad():
            leaf = moved.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(loss(leaf).sum(), leaf)
        if norm == "sign":
            gradient = gradient.sign()
        elif norm == "unit":
            lengths = gradient.norm(dim=-1, keepdim=True)
            gradient = gradient / (lengths + (lengths == 0))  # 0 stays 0
        moved = moved + size * gradient
    return moved
