"""Prototypes: a sample moves to the centre of its cluster, away from the other centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay.arrays import to_numpy
from naysay.checks import (
    as_floats,
    check_generator,
    check_number,
    check_range,
    check_whole,
    public,
    raise_invalid,
    whole_numbers,
)
from naysay.losses._inputs import (
    as_labels,
    as_numbers,
    as_vectors,
    check_all,
    check_finite,
    computing_dtype,
    without_autocast,
)
from naysay.losses._slots import log_sum_exp
from naysay.losses.check_values import values_are_checked


@public
def proto_nce(
    z: Tensor,
    centroids: Any,
    labels: Any,
    *,
    temperatures: Any,
    negatives: int | None = None,
    rng: np.random.Generator | None = None,
) -> Tensor:
    """Compute the mean over G clusterings of -log softmax_j(z.c_j / phi_j) at the sample's own cluster.

    This is the second term of ProtoNCE; the first is InfoNCE. phi_j is the concentration of cluster j, see
    `concentrations`. With negatives=r the softmax is over the clusters of the batch and r others at random. A cluster
    is one column, however many samples are in it; the published code has a column for each sample, so that two samples
    of one cluster push each other's centre away. Li et al. PCL. ICLR 2021.

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
        >>> proto_nce(torch.eye(2), torch.eye(2), [0, -1], temperatures=1.0)    # log(1 + e^-1)
        tensor([0.3133, 0.0000])
    """
    given = as_vectors("z", z)
    wide = given.to(computing_dtype(given))
    clusterings = as_labels("labels", labels, len(wide), wide.device)
    centres = _one_each("centroids", centroids, len(clusterings))
    phis = _one_each("temperatures", temperatures, len(clusterings))
    if negatives is not None:
        check_whole("negatives", negatives, 0)
        if rng is None:
            raise_invalid("rng", "given with negatives", None)
        check_generator(rng)
    losses = []
    for centre, phi, clusters in zip(centres, phis, clusterings, strict=True):
        losses.append(_of_one_clustering(wide, centre, phi, clusters, negatives, rng))
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
        (k,) float64, for `proto_nce`.

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


def _one_each(parameter: str, values: Any, size: int) -> list[Any]:
    """One for each granularity."""
    parts = list(values) if isinstance(values, list | tuple) else [values]
    if len(parts) != size:
        raise_invalid(parameter, f"one for each of the {size} granularities of labels", len(parts))
    return parts


def _of_one_clustering(
    z: Tensor, centroids: Any, phi: Any, clusters: Tensor, negatives: int | None, rng: Any
) -> Tensor:
    """(N,) losses of one clustering."""
    size = len(centroids) if hasattr(centroids, "__len__") else 0
    centre = as_numbers("centroids", centroids, (size, z.shape[1]), z).detach()
    check_finite("centroids", centre)
    if values_are_checked(clusters):
        check_all("labels", clusters, clusters < size, f"below the number of centroids, {size}")
    phi = torch.full((size,), float(phi), dtype=torch.float64) if isinstance(phi, int | float) else phi
    scale = as_numbers("temperatures", phi, (size,), z)
    if values_are_checked(scale):
        check_all("temperatures", scale, scale.isfinite() & (scale > 0), "finite and above 0")
    columns = _chosen_clusters(clusters, size, negatives, rng)
    with without_autocast(z):
        logits = z @ (centre / scale[:, None]).T
    own = logits.gather(1, clusters.clamp_min(0)[:, None])[:, 0]
    loss = log_sum_exp(logits, columns[None]) - own
    return loss.masked_fill((clusters < 0) | (columns.sum() < 2), 0.0)


def _chosen_clusters(clusters: Tensor, size: int, negatives: int | None, rng: Any) -> Tensor:
    """(k,) bool: all clusters, or those of the batch and `negatives` others at random."""
    if negatives is None:
        return torch.ones(size, dtype=torch.bool, device=clusters.device)
    samples = torch.zeros(size, dtype=torch.long, device=clusters.device)
    chosen = samples.index_add(0, clusters.clamp_min(0), (clusters >= 0).long()) > 0
    outside = (~chosen).nonzero()[:, 0]
    picked = rng.permutation(len(outside))[:negatives]
    chosen[outside[torch.from_numpy(picked).to(outside.device)]] = True
    return chosen
