"""SoftClusters: negatives of the anchor's own cluster, by how surely both belong to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_generator, check_one_of, check_whole, public, raise_invalid, shown
from naysay.detectors._asked_vectors import (
    Embed,
    as_vectors,
    best_products,
    called,
    check_function,
    check_width,
    slot_vectors,
)
from naysay.detectors._kmeans_plus_plus import k_means
from naysay.detectors._slots import SUSPICION_THRESHOLD, as_suspicion, check_asked
from naysay.rng import key_from
from naysay.types import Array, Negatives, Query

RULES = ("cluster", "probability")
_BLOCK = 1 << 22  # numbers at a time


@final
@public
class SoftClusters:
    """Suspect the negatives that lie in the anchor's cluster.

    Anchors and candidates are points of one space, e.g. nodes of a graph. `update` once an epoch finds the centres mu_u
    by k-means; the chance that point z is of cluster u is Student's t kernel, and a pair is of one cluster by chance a:

        q_u(z) = (1 + |z - mu_u|^2 / nu)^(-(nu + 1) / 2) / sum over clusters,      a = sum_u q_u(anchor) q_u(j)

        suspicion = (1 + a) / 2 if both have the same nearest centre and pass the gate, else a / 2     ("cluster")
        suspicion = a                                                                              ("probability")

    The nearest centre has the largest q, whatever nu. Under "cluster" a flagged slot is always above one that is not,
    and within either kind suspicion rises with a. "probability" reaches 1/2 only where q is sharp: with nu = 1 and
    vectors of length 1, whose squared distances are at most 4, all chances are much alike and a is near 1 / n_clusters.
    A very small nu makes q proportional to 1 / distance at any scale, which is sharp next to a centre only.

    A cluster is coarser than a positive: with as many clusters as classes all of the class is flagged, hard true
    negatives with it. More, smaller clusters flag fewer.

    Cost: k-means, O(n n_clusters d) a round of a start; asking, O((B + m) n_clusters d) for the m different ids of the
    batch, each embedded once, and O(B K n_clusters). The state is the centres; restore({"centres": ...}) takes centres
    that were trained elsewhere.

    Zhao, Yang, Wang, Yang, Deng. Graph Debiased Contrastive Learning with Joint Representation Clustering. IJCAI 2021
    (GDCL), as its abstract and published code say: k-means, then the kernel, with nu = 0.0001; negatives are drawn from
    the clusters other than the anchor's, which is what is left if a policy drops all that "cluster" flags. There the
    centres are also trained, by the divergence to a sharpened q, and some of the own cluster join the positives: that
    is a loss's and a policy's. The chance a, its place in the suspicion, and the gate are our reading.

    Args:
        n_clusters: How many clusters, at least 2: the number of classes, where it is known.
        embed: Embed(ids) -> (..., d): the candidates' vectors; None: those that the negatives carry.
        embed_anchors: Embed_anchors(anchors (B,)) -> (B, d), for queries without vectors.
        rule: "cluster": a slot is flagged if its nearest centre is the anchor's, which is the paper's rule;
            "probability": suspicion is the chance itself that both are of one cluster.
        freedom: Nu of the kernel, above 0.
        confidence: Both must have at least this chance of their own cluster to be flagged; 0: no such gate.
        rounds: Iterations of k-means.
        starts: How often it is begun anew; the best is kept.

    Example:
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
        rounds: int = 25,
        starts: int = 3,
    ) -> None:
        """No centres yet."""
        self.n_clusters = check_whole("n_clusters", n_clusters, 2)
        check_function("embed", embed)
        check_function("embed_anchors", embed_anchors)
        check_one_of("rule", rule, RULES)
        for name, value in (("freedom", freedom), ("confidence", confidence)):
            if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
                raise_invalid(name, "a number", shown(value))
        if not 0 < freedom < math.inf:
            raise_invalid("freedom", "finite and above 0", freedom)
        if not 0 <= confidence <= 1:
            raise_invalid("confidence", "between 0 and 1", confidence)
        if confidence and rule == "probability":
            advice = 'Leave it out, or use rule="cluster".'
            raise_invalid("confidence", 'left out with rule="probability", which has no gate', confidence, advice)
        self.embed, self.embed_anchors, self.rule = embed, embed_anchors, rule
        self.freedom, self.confidence = float(freedom), float(confidence)
        self.rounds = check_whole("rounds", rounds, 1)
        self.starts = check_whole("starts", starts, 1)
        self.centres: NDArray[np.float32] | None = None

    def update(self, vectors: Any, *, rng: np.random.Generator) -> None:
        """Find the centres of (n, d) vectors of all points, as they are now; the generator chooses where it starts."""
        check_generator(rng)
        points = as_vectors("vectors", to_numpy(vectors), ("n", "d"))
        if len(points) < self.n_clusters:
            raise_invalid("vectors", f"at least {self.n_clusters}, one for each cluster", len(points))
        if (points == points[0]).all():
            raise_invalid("vectors", "of more than one place", f"{len(points)} equal ones")
        key = int(key_from(rng))  # last: a refusal leaves the generator where it was
        self.centres = k_means(points, self.n_clusters, self.rounds, self.starts, key)

    def assign(self, vectors: Any) -> NDArray[np.float64]:
        """(n, n_clusters) the chance of each cluster, q, for (n, d) vectors."""
        found = np.asarray(to_numpy(vectors))
        return self._assigned("vectors", as_vectors("vectors", found, (len(np.atleast_1d(found)), "d")))

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """(B, K) in [0, 1], by the rule."""
        check_asked(query, negatives)
        self._found()
        vectors, places = slot_vectors(negatives, self.embed)
        if not len(vectors):
            return as_suspicion(np.zeros(negatives.shape), negatives)
        slots = self._assigned("negatives.vectors" if self.embed is None else "embed", vectors)
        anchors = self._assigned("query.vectors", self._anchors(query))
        together = np.clip(best_products(anchors[:, None], slots, places), 0.0, 1.0)
        if self.rule == "probability":
            return as_suspicion(together, negatives)
        same = anchors.argmax(axis=1)[:, None] == slots.argmax(axis=1)[places]
        same &= (anchors.max(axis=1)[:, None] >= self.confidence) & (slots.max(axis=1)[places] >= self.confidence)
        return as_suspicion(np.where(same, SUSPICION_THRESHOLD, 0.0) + SUSPICION_THRESHOLD * together, negatives)

    def state(self) -> dict[str, Any]:
        """The centres (n_clusters, d); empty before the first update."""
        return {} if self.centres is None else {"centres": self.centres.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave, or centres from elsewhere; refused, with nothing changed, if they do not fit."""
        if isinstance(state, Mapping) and not state:
            self.centres = None
            return
        if not isinstance(state, Mapping) or "centres" not in state:
            got = shown(list(state)) if isinstance(state, Mapping) else type(state).__name__
            raise_invalid("state", "what SoftClusters.state gave, with 'centres'", got)
        centres = as_array("centres", to_numpy(state["centres"]))
        self.centres = as_vectors("centres", centres, (self.n_clusters, "d")).astype(np.float32)

    def _found(self) -> NDArray[np.float32]:
        if self.centres is None:
            raise_invalid("centres", "found before", "no update", "Call update(vectors, rng=...) with all vectors.")
        return self.centres

    def _anchors(self, query: Query) -> NDArray[Any]:
        """(B, d) the anchors' vectors: the query's own, or what `embed_anchors` makes of them."""
        if query.vectors is not None:
            return as_vectors("query.vectors", np.asarray(to_numpy(query.vectors)), (len(query), "d"))
        if self.embed_anchors is None:
            advice = "Pass Query(anchors, vectors=...), or embed_anchors to the detector."
            raise_invalid("query.vectors", "given", None, advice)
        return as_vectors("embed_anchors", called(self.embed_anchors, query.anchors), (len(query), "d"))

    def _assigned(self, parameter: str, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """(n, n_clusters) q, in blocks of points."""
        centres = self._found().astype(np.float64)
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
        """The clusters and the rule."""
        known = "no centres" if self.centres is None else f"{self.centres.shape[1]} dimensions"
        return f"SoftClusters({self.n_clusters} clusters, {known}, {self.rule})"
