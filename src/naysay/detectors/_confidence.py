"""How sure a pseudo-label is: for each sample among all centroids, or for its cluster as a whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay.detectors._clusters import Vectors, blocks, lengths

CONFIDENCES = ("sample", "cluster")
_SMOOTH = 10  # PCL's alpha: without it a small cluster would count as a dense one


def of_samples(
    vectors: Vectors, means: Vectors, assigned: NDArray[np.int64], temperature: float
) -> NDArray[np.float64]:
    """(n,) the softmax of cos(v, c) / t over all centroids, at the ASSIGNED one: Eq. 2 of the paper.

    The nearest centroid by distance need not be the one with the largest cosine. A block of rows at a time is held
    against all centroids; call it by `clusters.alone`. A centroid of zero has the cosine 0 with everything.
    """
    import faiss

    units, squares = _units(means)
    found = np.empty(len(vectors))
    for part in blocks(len(vectors), max(means.shape)):
        rows, own = _units(vectors[part])
        # faiss's product, of squared distances between unit vectors: NumPy's own would follow the threads of its BLAS.
        cosines = faiss.pairwise_distances(rows, units)
        np.subtract(own[:, None] + squares, cosines, out=cosines)
        cosines /= 2
        largest = cosines.max(axis=1, keepdims=True)
        mine = np.take_along_axis(cosines, assigned[part, None], axis=1).astype(np.float64)
        cosines -= largest
        cosines /= temperature
        total = np.exp(cosines, out=cosines).sum(axis=1, dtype=np.float64)
        found[part] = np.exp((mine - largest)[:, 0] / temperature) / total
    return found


def of_clusters(vectors: Vectors, means: Vectors, assigned: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) 1 / (1 + phi) of the sample's cluster, phi = sum of distances to the centroid / (Z log(Z + 10)), Z samples.

    phi is PCL's concentration: small where many are near. One number for all of a cluster, whatever is beside it. A
    cluster of one has no spread to go by and takes the largest phi, as in PCL's code; that code also clips phi at its
    10th and 90th percentile and scales it, which a ranking has no use for.
    """
    away = np.empty(len(vectors))
    for part in blocks(*vectors.shape):
        away[part] = lengths(vectors[part].astype(np.float64) - means[assigned[part]])
    held = np.bincount(assigned, minlength=len(means))
    sums = np.bincount(assigned, weights=away, minlength=len(means))
    phi = sums / np.maximum(held, 1) / np.log(held + _SMOOTH)
    several = held > 1
    phi[~several] = phi[several].max(initial=0.0)
    return np.asarray(1 / (1 + phi))[assigned]


def _units(vectors: Vectors) -> tuple[Vectors, Vectors]:
    """Rows of length 1, a zero row as it is, and their squared lengths: 1, or 0."""
    long = lengths(vectors)
    some = long > 0
    units = vectors / np.where(some, long, 1.0)[:, None]
    return units.astype(np.float32), some.astype(np.float32)
