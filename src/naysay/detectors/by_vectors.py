"""Detectors by vectors: SoftClusters, by the anchor's cluster, and SupportViews, by several views of the anchor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from naysay._state import Entry, read_state
from naysay.arrays import for_checkpoints, to_numpy, without_gradients
from naysay.checks import (
    check_all,
    check_generator,
    check_number,
    check_one_of,
    check_whole,
    first_bad,
    public,
    raise_invalid,
)
from naysay.detectors._clusters import in_parallel, kmeans
from naysay.detectors._suspicion import (
    as_suspicion,
    check_function,
    check_query_and_negatives,
    filled_slots,
    like,
    query_anchors,
)
from naysay.rng import key_from
from naysay.text import described
from naysay.types import Array, MadeOf, Negatives, Query

Embed = Callable[[Array], Array]  # embed(ids (...)) -> (..., d), in the array type of the ids
AGGREGATES = ("max", "mean")
_BLOCK = 1 << 22  # numbers at a time
_SEEDS = 1 << 31  # of faiss
_OUTSIDE = 0.49  # the largest suspicion of a slot outside the row's top


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
        points = _as_vectors("vectors", to_numpy(vectors), ("n", "d"))
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
        vectors, places = _slot_vectors(negatives, self.embed)
        if not len(vectors):
            return as_suspicion(np.zeros(negatives.shape), negatives)
        slots = self._assigned("negatives.vectors" if self.embed is None else "embed", vectors, centres)
        anchors = self._assigned("query.vectors", self._anchors(query), centres)
        together = np.clip(_best_products(anchors[:, None], slots, places), 0.0, 1.0)
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
            return _as_vectors("query.vectors", np.asarray(to_numpy(query.vectors)), (len(query), "d"))
        if self.embed_anchors is None:
            advice = "Pass Query(anchors, vectors=...), or `embed_anchors` to the detector."
            raise_invalid("query.vectors", "given", None, advice)
        return _as_vectors("embed_anchors", _embedded(self.embed_anchors, query.anchors), (len(query), "d"))

    def _assigned(self, parameter: str, vectors: NDArray[Any], found: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n, n_clusters) q, in blocks of points."""
        centres = found.astype(np.float64)
        _check_width(parameter, vectors, centres.shape[1], "the centres'")
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


@final
@public
class SupportViews(MadeOf):
    """Suspect the negatives of a row that are most similar to the views of the anchor, above a threshold.

        score_j    = max (or mean) over v of cos(view_v(anchor), j)
        g(s)       = (s + 1) / (2 (t + 1)) below the threshold t,   1/2 + (s - t) / (2 (1 - t)) from it on
        suspicion  = g(score_j) for the row's top,   min(g(score_j), 0.49) for the others

    Of equal scores the earlier slot ranks higher. The threshold is a cosine of *this* encoder: check `scores` of known
    positives first. `embed` is called once for each id in the batch.

    Huynh, Kornblith, Walter, Maire, Khademi. Boosting Contrastive Self-Supervised Learning with False Negative
    Cancellation. WACV 2022 (FNC), by its abstract and published code, of which the defaults are. That code also counts
    the anchor's own two views, and requires a score strictly above the threshold.

    Args:
        views: views(anchors (B,)) -> (B, S, d), vectors of S views of each anchor, e.g. other crops of the image; or
            an array (n_anchors, S, d) of them.
        embed: embed(ids) -> (..., d), the candidates' vectors. None: `negatives.vectors`.
        top: The largest number of flagged slots in a row. None: any number.
        threshold: The smallest cosine of a flagged slot, from -1 (only `top` decides) to below 1.
        aggregate: "max" or "mean" over the views.

    Examples:
        >>> import numpy as np, naysay as ns
        >>> views = np.array([[[1.0, 0.0], [0.6, 0.8]]])                          # two views of anchor 0
        >>> items = np.array([[0.8, 0.6], [0.0, 1.0], [-1.0, 0.0]])
        >>> detector = SupportViews(views, lambda ids: items[ids], top=2, threshold=0.8)
        >>> detector.scores(ns.Query([0]), ns.Negatives(np.array([[0, 1, 2, -1]]))).round(2)
        array([[ 0.96,  0.8 , -0.6 ,  0.  ]])
        >>> detector.suspicion(ns.Query([0]), ns.Negatives(np.array([[0, 1, 2, -1]]))).round(2)
        array([[0.9 , 0.5 , 0.11, 0.  ]])
    """

    _made_of = ("views", "embed")

    def __init__(
        self,
        views: Any,
        embed: Embed | None = None,
        *,
        top: int | None = 10,
        threshold: float = 0.7,
        aggregate: str = "max",
    ) -> None:
        check_function("embed", embed)
        check_one_of("aggregate", aggregate, AGGREGATES)
        self.threshold = check_number("threshold", threshold, at_least=-1, below=1, advice="It is a cosine.")
        if not callable(views):
            views = _as_vectors("views", views, ("n", "S", "d"))
        self.views, self.embed = views, embed
        self.top = None if top is None else check_whole("top", top, 1)
        self.aggregate = aggregate

    def suspicion(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) in [0, 1]: at least 1/2 where a slot is in its row's top and reaches the threshold."""
        scores, threshold = self._scores(query, negatives), self.threshold
        below = 0.5 * (scores + 1) / (threshold + 1) if threshold > -1 else np.zeros_like(scores)
        suspicion = np.where(scores < threshold, below, 0.5 + 0.5 * (scores - threshold) / (1 - threshold))
        if self.top is not None and self.top < scores.shape[1]:
            order = np.argsort(np.where(filled_slots(negatives), -scores, np.inf), axis=1, kind="stable")
            others = order[:, self.top :]
            limited = np.minimum(np.take_along_axis(suspicion, others, axis=1), _OUTSIDE)
            np.put_along_axis(suspicion, others, limited, axis=1)
        return as_suspicion(suspicion, negatives)

    def scores(self, query: Query, negatives: Negatives) -> Array:
        """Return (B, K) the cosine of each slot with the anchor's views, from -1 to 1; 0 in empty slots."""
        return like(self._scores(query, negatives), negatives.ids)

    def _scores(self, query: Query, negatives: Negatives) -> NDArray[np.float64]:
        check_query_and_negatives(query, negatives)
        vectors, places = _slot_vectors(negatives, self.embed)
        if not len(vectors):
            return np.zeros(negatives.shape)
        views = self._views(query)
        _check_width("views", views, vectors.shape[1], "the candidates'")
        views = _unit("views", views)
        if self.aggregate == "mean":  # the mean of dot products is the dot product with the mean
            views = views.mean(axis=1, keepdims=True)
        vectors = _unit("negatives.vectors" if self.embed is None else "embed", vectors)
        cosines = _best_products(views, vectors, places).astype(np.float64)
        return np.where(filled_slots(negatives), np.clip(cosines, -1.0, 1.0), 0.0)

    def _views(self, query: Query) -> NDArray[Any]:
        """(B, S, d) the views of the query's anchors."""
        if callable(self.views):
            return _as_vectors("views", _embedded(self.views, query.anchors), (len(query), "S", "d"))
        advice = "For triples, pass a function as `views`."
        return np.asarray(self.views[query_anchors(query, len(self.views), "rows of views", advice)])

    __repr__ = described


# ---- vectors of slots -----------------------------------------------------------------------------------


def _embedded(function: Embed, ids: Array) -> Any:
    """Call a user's function with ids, without gradients; returns NumPy."""
    with without_gradients(ids):
        return to_numpy(function(ids))


def _as_vectors(parameter: str, values: Any, shape: tuple[int | str, ...]) -> NDArray[Any]:
    """Check finite floating-point numbers of a shape, where a letter is any length above 0. float16 becomes float32."""
    vectors = to_numpy(values)
    wanted = f"vectors of shape ({', '.join(map(str, shape))})"
    if not isinstance(vectors, np.ndarray):
        raise_invalid(parameter, wanted, f"a {type(vectors).__name__}")
    if vectors.ndim != len(shape) or not all(
        length > 0 if isinstance(size, str) else length == size
        for size, length in zip(shape, vectors.shape, strict=True)
    ):
        raise_invalid(parameter, wanted, f"shape {vectors.shape}")
    if vectors.dtype.kind != "f":
        raise_invalid(parameter, "vectors of floating-point numbers", f"dtype {vectors.dtype}")
    check_all(parameter, vectors, np.isfinite(vectors), "finite")
    return vectors if vectors.dtype.itemsize >= 4 else vectors.astype(np.float32)


def _slot_vectors(negatives: Negatives, embed: Embed | None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """(n, d) vectors, and (B, K) the index of each slot's vector, 0 for empty slots. n is 0 if all slots are empty.

    `embed` is called with each id once. Without it, the vectors are `negatives.vectors`.
    """
    filled = filled_slots(negatives)
    places = np.zeros(filled.shape, np.intp)
    if not filled.any():
        return np.zeros((0, 1)), places
    if embed is not None:
        ids, places[filled] = np.unique(np.asarray(to_numpy(negatives.ids))[filled], return_inverse=True)
        return _as_vectors("embed", _embedded(embed, like(ids, negatives.ids)), (len(ids), "d")), places
    if negatives.vectors is None:
        advice = "Pass `embed` to the detector, or use a sampler that returns vectors."
        raise_invalid("negatives.vectors", "given without `embed`", None, advice)
    vectors = np.asarray(to_numpy(negatives.vectors))
    if vectors.strides[0] == 0 and len(vectors) > 1:  # a view that all rows share: not copied for each
        slots = filled.any(axis=0)
        places[:] = np.maximum(np.cumsum(slots) - 1, 0)
        vectors = vectors[0, slots]
    else:
        places[filled] = np.arange(np.count_nonzero(filled))
        vectors = vectors[filled]
    return _as_vectors("negatives.vectors", vectors, (len(vectors), "d")), places


def _check_width(parameter: str, vectors: NDArray[Any], width: int, of: str) -> None:
    """Raise unless vectors have the dimension of those they are compared with."""
    if vectors.shape[-1] != width:
        raise_invalid(parameter, f"vectors of dimension {width}, like {of}", vectors.shape[-1])


def _unit(parameter: str, vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors of norm 1 along the last axis. A zero vector raises an error."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if (lengths == 0).any():
        raise_invalid(parameter, "vectors other than 0", first_bad(lengths[..., 0], lengths[..., 0] == 0))
    return np.asarray(vectors / lengths)


def _best_products(views: NDArray[Any], vectors: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """(B, K) the largest dot product of a row's views (B, S, d) with the vector of each slot, in blocks of rows."""
    rows, n_views, width = views.shape
    best = np.zeros(places.shape, np.result_type(views, vectors))
    size = max(1, _BLOCK // max(1, places.shape[1] * (width + n_views)))
    for first in range(0, rows if best.size else 0, size):
        part = slice(first, first + size)
        products = vectors[places[part]] @ views[part].transpose(0, 2, 1)
        best[part] = products.max(axis=2)
    return best
