"""SoftClusters: negatives in the anchor's own cluster, by the probability that both belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import check_generator, check_number, check_whole, public, raise_invalid
from naysay.detectors._clusters import in_parallel, kmeans
from naysay.detectors._pairs import (
    Embed,
    as_vectors,
    best_products,
    check_function,
    check_width,
    embedded,
    slot_vectors,
)
from naysay.detectors._slots import as_suspicion, check_query_and_negatives
from naysay.rng import key_from
from naysay.text import described
from naysay.types import Array, Negatives, Query

_BLOCK = 1 << 22  # numbers at a time
_SEEDS = 1 << 31  # of faiss


@final
@public
class SoftClusters:
    """Suspect the negatives in the anchor's cluster.

    Anchors and candidates are points of one space, e.g. nodes of a graph. `update`, once an epoch, finds the centres
    mu_u by k-means. q_u is the probability that point z is in cluster u, by a Student's t kernel, and a that of a pair
    to be in one cluster:

        q_u(z) = (1 + |z - mu_u|^2 / nu)^(-(nu + 1) / 2) / sum over clusters,      a = sum_u q_u(anchor) q_u(j)

        suspicion = (1 + a) / 2 if both have the same nearest centre, else a / 2

    More, smaller clusters flag fewer. The state is the centres; restore({"centres": ...}) accepts centres that were
    trained elsewhere.

    Zhao, Yang, Wang, Yang, Deng. Graph Debiased Contrastive Learning with Joint Representation Clustering. IJCAI 2021
    (GDCL), by its abstract and published code: k-means, then the kernel, with nu = 0.0001. There the centres are also
    trained. The probability a and its use in the suspicion are ours.

    Args:
        n_clusters: The number of clusters, at least 2: the number of classes, if it is known.
        embed: embed(ids) -> (..., d), the candidates' vectors. None: `negatives.vectors`.
        embed_anchors: embed_anchors(anchors (B,)) -> (B, d), for queries without vectors.
        freedom: nu of the kernel, the degrees of freedom, above 0.
        iterations: Iterations of k-means.
        restarts: Restarts of k-means, of which the best is kept.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> nodes = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.1, 5.0]])
        >>> detector = SoftClusters(2, lambda ids: nodes[ids], embed_anchors=lambda ids: nodes[ids])
        >>> detector.update(nodes, rng=ns.rng_for(0))
        >>> detector.suspicion(ns.Query([0, 2]), ns.Negatives(np.array([[1, 2], [3, -1]]))).round(2)
        array([[0.98, 0.02],
               [0.98, 0.  ]])
    """

    def __init__(
        self,
        n_clusters: int,
        embed: Embed | None = None,
        *,
        embed_anchors: Embed | None = None,
        freedom: float = 1.0,
        iterations: int = 25,
        restarts: int = 3,
    ) -> None:
        self.n_clusters = check_whole("n_clusters", n_clusters, 2)
        check_function("embed", embed)
        check_function("embed_anchors", embed_anchors)
        self.embed, self.embed_anchors = embed, embed_anchors
        self.freedom = check_number("freedom", freedom, above=0, finite=True)
        self.iterations = check_whole("iterations", iterations, 1)
        self.restarts = check_whole("restarts", restarts, 1)
        self.centres: NDArray[np.float32] | None = None

    def update(self, vectors: Any, *, rng: np.random.Generator) -> None:
        """Find the centres. Fewer vectors than clusters, or vectors that are all equal, raise an error.

        Args:
            vectors: (n, d) the current vectors of all points.
            rng: The generator for the starting points.
        """
        check_generator(rng)
        points = as_vectors("vectors", to_numpy(vectors), ("n", "d"))
        if len(points) < self.n_clusters:
            raise_invalid("vectors", f"at least {self.n_clusters}, one for each cluster", len(points))
        if (points == points[0]).all():
            raise_invalid("vectors", "different vectors", f"{len(points)} equal ones")
        data = np.ascontiguousarray(points, np.float32)
        seed = int(key_from(rng)) % _SEEDS
        settings = {"iterations": self.iterations, "restarts": self.restarts, "seed": seed}
        self.centres = in_parallel(lambda _: kmeans(data, self.n_clusters, **settings), [1])[0]

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) in [0, 1]: at least 0.5 where the nearest centre is the anchor's."""
        check_query_and_negatives(query, negatives)
        centres = self._fitted()  # one set for the whole result, even if another thread updates it
        vectors, places = slot_vectors(negatives, self.embed)
        if not len(vectors):
            return as_suspicion(np.zeros(negatives.shape), negatives)
        slots = self._assigned("negatives.vectors" if self.embed is None else "embed", vectors, centres)
        anchors = self._assigned("query.vectors", self._anchors(query), centres)
        together = np.clip(best_products(anchors[:, None], slots, places), 0.0, 1.0)
        same = anchors.argmax(axis=1)[:, None] == slots.argmax(axis=1)[places]
        return as_suspicion(np.where(same, 0.5, 0.0) + 0.5 * together, negatives)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return the centres (n_clusters, d); empty before the first update."""
        return {} if self.centres is None else {"centres": self.centres.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, or centres from elsewhere. Nothing changes if they do not fit."""
        if isinstance(state, Mapping) and not state:
            self.centres = None
            return
        self.centres = read_state(state, {"centres": Entry((self.n_clusters, "d"))})["centres"].astype(np.float32)

    def _fitted(self) -> NDArray[np.float32]:
        if self.centres is None:
            raise_invalid("centres", "found before", "no update", "Call update(vectors, rng=...) with all vectors.")
        return self.centres

    def _anchors(self, query: Query) -> NDArray[Any]:
        """(B, d) the anchors' vectors: `query.vectors`, or from `embed_anchors`."""
        if query.vectors is not None:
            return as_vectors("query.vectors", np.asarray(to_numpy(query.vectors)), (len(query), "d"))
        if self.embed_anchors is None:
            advice = "Pass Query(anchors, vectors=...), or `embed_anchors` to the detector."
            raise_invalid("query.vectors", "given", None, advice)
        return as_vectors("embed_anchors", embedded(self.embed_anchors, query.anchors), (len(query), "d"))

    def _assigned(self, parameter: str, vectors: NDArray[Any], found: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n, n_clusters) q, in blocks of points."""
        centres = found.astype(np.float64)
        check_width(parameter, vectors, centres.shape[1], "the centres'")
        chances = np.empty((len(vectors), self.n_clusters))
        size = max(1, _BLOCK // centres.size)
        for first in range(0, len(vectors), size):
            part = vectors[first : first + size].astype(np.float64)
            away = part[:, None] - centres
            logs = -0.5 * (self.freedom + 1) * np.log1p((away * away).sum(axis=2) / self.freedom)
            kernel = np.exp(logs - logs.max(axis=1, keepdims=True))
            chances[first : first + size] = kernel / kernel.sum(axis=1, keepdims=True)
        return chances

    def __repr__(self) -> str:
        return described(self, "no centres" if self.centres is None else f"{self.centres.shape[1]} dimensions")
