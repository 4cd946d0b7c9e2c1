"""SoftClusters: negatives in the anchor's own cluster, by the probability that both belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy
from naysay.checks import check_generator, check_number, check_one_of, check_whole, public, raise_invalid
from naysay.detectors._clusters import spread_centroids
from naysay.detectors._pairs import (
    Embed,
    as_vectors,
    best_products,
    check_function,
    check_width,
    embedded,
    slot_vectors,
)
from naysay.detectors._slots import SUSPICION_THRESHOLD, as_suspicion, check_query_and_negatives
from naysay.rng import key_from
from naysay.text import described
from naysay.types import Array, Negatives, Query

RULES = ("cluster", "probability")
_BLOCK = 1 << 22  # numbers at a time


@final
@public
class SoftClusters:
    """Suspect the negatives in the anchor's cluster.

    Anchors and candidates are points of one space, e.g. nodes of a graph. `update`, once an epoch, finds the centres
    mu_u by k-means. q_u is the probability that point z is in cluster u, by a Student's t kernel, and a that of a pair
    to be in one cluster:

        q_u(z) = (1 + |z - mu_u|^2 / nu)^(-(nu + 1) / 2) / sum over clusters,      a = sum_u q_u(anchor) q_u(j)

        suspicion = (1 + a) / 2 if both have the same nearest centre and reach `confidence`, else a / 2   ("cluster")
        suspicion = a                                                                                 ("probability")

    "probability" reaches 1/2 only where q is sharp: with nu = 1 and vectors of norm 1, whose squared distances are at
    most 4, all q are similar and a is near 1 / n_clusters. More, smaller clusters flag fewer.

    Cost: k-means, O(n n_clusters d) per iteration and restart. suspicion: O((B + m) n_clusters d) for the m distinct
    ids of the batch, each embedded once, and O(B K n_clusters). The state is the centres; restore({"centres": ...})
    accepts centres that were trained elsewhere.

    Zhao, Yang, Wang, Yang, Deng. Graph Debiased Contrastive Learning with Joint Representation Clustering. IJCAI 2021
    (GDCL), by its abstract and published code: k-means, then the kernel, with nu = 0.0001; negatives are drawn from
    clusters other than the anchor's, as if a policy dropped all that "cluster" flags. There the centres are also
    trained, by the divergence to a sharpened q, and some of the own cluster become positives; those are tasks of a loss
    and a policy. The probability a, its use in the suspicion, and `confidence` are ours.

    Args:
        n_clusters: The number of clusters, at least 2: the number of classes, if it is known.
        embed: embed(ids) -> (..., d), the candidates' vectors. None: `negatives.vectors`.
        embed_anchors: embed_anchors(anchors (B,)) -> (B, d), for queries without vectors.
        rule: "cluster": a slot is flagged if its nearest centre is the anchor's, the rule of the paper.
            "probability": suspicion is a.
        freedom: nu of the kernel, the degrees of freedom, above 0.
        confidence: A slot is flagged only if the largest q of slot and anchor are at least this. With "cluster" only.
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
        rule: str = "cluster",
        freedom: float = 1.0,
        confidence: float = 0.0,
        iterations: int = 25,
        restarts: int = 3,
    ) -> None:
        self.n_clusters = check_whole("n_clusters", n_clusters, 2)
        check_function("embed", embed)
        check_function("embed_anchors", embed_anchors)
        check_one_of("rule", rule, RULES)
        self.freedom = check_number("freedom", freedom, above=0, finite=True)
        self.confidence = check_number("confidence", confidence, at_least=0, at_most=1)
        if confidence and rule == "probability":
            advice = 'Leave it out, or use rule="cluster".'
            raise_invalid("confidence", 'left out with rule="probability"', confidence, advice)
        self.embed, self.embed_anchors, self.rule = embed, embed_anchors, rule
        self.iterations = check_whole("iterations", iterations, 1)
        self.restarts = check_whole("restarts", restarts, 1)
        self.centres: NDArray[np.float32] | None = None

    def update(self, vectors: Any, *, rng: np.random.Generator) -> None:
        """Find the centres.

        Args:
            vectors: (n, d) the current vectors of all points.
            rng: The generator for the starting points.

        Raises:
            NaysayError: If there are fewer vectors than clusters, or all are equal; rng has not moved then.
        """
        check_generator(rng)
        points = as_vectors("vectors", to_numpy(vectors), ("n", "d"))
        if len(points) < self.n_clusters:
            raise_invalid("vectors", f"at least {self.n_clusters}, one for each cluster", len(points))
        if (points == points[0]).all():
            raise_invalid("vectors", "different vectors", f"{len(points)} equal ones")
        settings = {"iterations": self.iterations, "restarts": self.restarts, "key": int(key_from(rng))}
        self.centres = spread_centroids(points, self.n_clusters, **settings)

    def assign(self, vectors: Any) -> NDArray[np.float64]:
        """Return (n, n_clusters) q, the probability of each cluster, for (n, d) vectors."""
        given = np.asarray(to_numpy(vectors))
        points = as_vectors("vectors", given, (len(np.atleast_1d(given)), "d"))
        return self._assigned("vectors", points, self._fitted())

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) in [0, 1], by the rule."""
        check_query_and_negatives(query, negatives)
        centres = self._fitted()  # one set for the whole result, even if another thread updates it
        vectors, places = slot_vectors(negatives, self.embed)
        if not len(vectors):
            return as_suspicion(np.zeros(negatives.shape), negatives)
        slots = self._assigned("negatives.vectors" if self.embed is None else "embed", vectors, centres)
        anchors = self._assigned("query.vectors", self._anchors(query), centres)
        together = np.clip(best_products(anchors[:, None], slots, places), 0.0, 1.0)
        if self.rule == "probability":
            return as_suspicion(together, negatives)
        same = anchors.argmax(axis=1)[:, None] == slots.argmax(axis=1)[places]
        same &= (anchors.max(axis=1)[:, None] >= self.confidence) & (slots.max(axis=1)[places] >= self.confidence)
        return as_suspicion(np.where(same, SUSPICION_THRESHOLD, 0.0) + SUSPICION_THRESHOLD * together, negatives)

    @for_checkpoints
    def state(self) -> dict[str, Any]:
        """Return the centres (n_clusters, d); empty before the first update."""
        return {} if self.centres is None else {"centres": self.centres.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, or centres from elsewhere. Nothing changes if they do not fit."""
        if isinstance(state, Mapping) and not state:
            self.centres = None
            return
        centres = read_state(state, {"centres": Entry((self.n_clusters, "d"))})["centres"]
        with np.errstate(over="ignore"):
            narrow = centres.astype(np.float32)
        self.centres = as_vectors("centres", narrow, (self.n_clusters, "d"))

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
