"""Prototypes: a sample is drawn to the centre of its cluster, away from the other centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay.arrays import is_torch, to_numpy
from naysay.checks import (
    as_floats,
    check_generator,
    check_number,
    check_range,
    check_whole,
    first_bad,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.losses._inputs import as_labels, as_numbers, as_vectors, check_finite, computing_dtype


@public
def prototypes(
    z: Tensor,
    centroids: Any,
    labels: Any,
    *,
    temperatures: Any,
    negatives: int | None = None,
    rng: np.random.Generator | None = None,
) -> Tensor:
    """Compute the mean over G clusterings of -log softmax_j(z.c_j / phi_j) at the sample's own cluster.

    This is the second term of ProtoNCE; the first is InfoNCE. With negatives=r the softmax is over the clusters of the
    batch and r others at random, else over all. A cluster is one column, however many samples of the batch are in it:
    the published code has a column for each sample, so that two samples of one cluster push each other's centre away.

    phi_j is the concentration of cluster j, see `concentrations`. With one phi for all it is a plain softmax over the
    centres.

    Li, Zhou, Xiong, Hoi. Prototypical Contrastive Learning of Unsupervised Representations. ICLR 2021.

    Args:
        z: (N, d), used as given: normalise first for cosines.
        centroids: (k, d) the centres, NumPy or torch, or a list of G of these. They take no gradient.
        labels: (N,) or (G, N): the cluster of each sample; -1 is none, and gives 0.
        temperatures: phi: a number for all clusters, (k,), or a list of G of these.
        negatives: How many clusters outside the batch; None: all.
        rng: For `negatives`.

    Returns:
        (N,) losses, unreduced; 0 where a sample has no other cluster.

    Examples:
        >>> import torch
        >>> prototypes(torch.eye(2), torch.eye(2), [0, -1], temperatures=1.0)    # log(1 + e^-1)
        tensor([0.3133, 0.0000])
    """
    given = as_vectors("z", z)
    wide = given.to(computing_dtype(given))
    label = as_labels("labels", labels, len(wide), wide.device)
    centres = _listed("centroids", centroids, len(label))
    phis = _listed("temperatures", temperatures, len(label))
    if negatives is not None:
        check_whole("negatives", negatives, 0)
        if rng is None:
            raise_invalid("rng", "given with negatives", None)
        check_generator(rng)
    losses = [_one(wide, *part, negatives, rng) for part in zip(centres, phis, label, strict=True)]
    return torch.stack(losses).mean(dim=0).to(given.dtype)


@public
def concentrations(vectors: Any, centroids: Any, labels: Any, *, temperature: float) -> NDArray[np.float64]:
    """Return (k,) the temperature of each cluster: small for dense ones, `temperature` on average.

    phi = mean distance to the centre / log(size + 10). A cluster of at most one sample takes the largest phi; all are
    clipped to the 10th and 90th percentile, then scaled to the mean `temperature`, as in the code of PCL.

    Args:
        vectors: (n, d) of all samples.
        centroids: (k, d).
        labels: (n,) the cluster of each sample; -1 is none.
        temperature: Above 0, the mean.

    Returns:
        (k,) float64, for `prototypes`.

    Examples:
        >>> import numpy as np
        >>> points = np.array([[0.0], [0.2], [5.0], [7.0]])
        >>> concentrations(points, [[0.1], [6.0]], [0, 0, 1, 1], temperature=0.2).round(3).tolist()
        [0.069, 0.331]
    """
    check_number("temperature", temperature, above=0, finite=True)
    points, centres = as_floats("vectors", to_numpy(vectors)), as_floats("centroids", to_numpy(centroids))
    label = whole_numbers("labels", to_numpy(labels)).astype(np.int64)
    if points.ndim != 2 or centres.ndim != 2 or points.shape[1] != centres.shape[1] or label.shape != (len(points),):
        got = f"shapes {points.shape}, {centres.shape} and {label.shape}"
        raise_invalid("vectors", "(n, d), with centroids (k, d) and labels (n,)", got)
    check_range("labels", label, len(centres), "centroids", least=-1)
    points, label = points[label >= 0], label[label >= 0]
    apart = np.sqrt(((points - centres[label]) ** 2).sum(axis=1))
    sizes = np.bincount(label, minlength=len(centres))
    phi = np.bincount(label, apart, len(centres)) / np.maximum(sizes, 1) / np.log(sizes + 10)
    phi[sizes <= 1] = phi[sizes > 1].max(initial=0.0)
    phi = np.clip(phi, *np.percentile(phi, (10, 90))) if len(phi) else phi
    if not phi.size or not phi.min() > 0:
        raise_invalid("vectors", "spread around the centroids", "a cluster without spread", "Use one temperature.")
    return np.asarray(temperature * phi / phi.mean())


def _listed(parameter: str, values: Any, size: int) -> list[Any]:
    """One for each granularity."""
    parts = list(values) if isinstance(values, list | tuple) else [values]
    if len(parts) != size:
        raise_invalid(parameter, f"one for each of the {size} granularities of labels", len(parts))
    return parts


def _one(z: Tensor, centroids: Any, phi: Any, label: Tensor, negatives: int | None, rng: Any) -> Tensor:
    """(N,) losses of one clustering."""
    size = len(centroids) if hasattr(centroids, "__len__") else 0
    centre = as_numbers("centroids", centroids, (size, z.shape[1]), z).detach()
    check_finite("centroids", centre)
    if (label >= len(centre)).any():
        got = first_bad(to_numpy(label), to_numpy(label >= len(centre)))
        raise_invalid("labels", f"below the number of centroids, {len(centre)}", got)
    shape = (len(centre),)
    scale = as_numbers("temperatures", phi if is_torch(phi) else np.broadcast_to(phi, shape), shape, z)
    bad = ~(scale.isfinite() & (scale > 0))
    if bad.any():
        raise_invalid("temperatures", "finite and above 0", first_bad(to_numpy(scale), to_numpy(bad)))
    held = torch.zeros(len(centre), dtype=torch.bool, device=z.device)
    held[label[label >= 0]] = True
    if negatives is None:
        held[:] = True
    elif negatives:
        outside = (~held).nonzero()[:, 0]
        picked = rng.permutation(len(outside))[:negatives]
        held[outside[torch.from_numpy(picked).to(outside.device)]] = True
    none = (label < 0) | (held.sum() < 2)
    logits = (z @ (centre / scale[:, None]).T).masked_fill(~held, -torch.inf)
    logits = logits.masked_fill(none[:, None], 0.0)
    own = logits.gather(1, label.clamp_min(0)[:, None])[:, 0]
    return (torch.logsumexp(logits, dim=1) - own).masked_fill(none, 0.0)
