"""The small data that the rows of the catalogue name: known pairs, a model's scores, a graph, triples, texts.

`from naysay.catalog.world import positives, score` makes the printed code of a row run as it is; put your own data in
the place of these names. Anchors, items, nodes of the graph and images all have the ids 0 to 399, so that each name
goes with each other one. Entities of the triples have the ids 0 to 59. The data are planted: an anchor has four true
items, two of them are known, the other two are false negatives that detectors can find.

Names that need torch (`z`, `model`, ...) are in `naysay.catalog.torch_world`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.arrays import is_torch, to_numpy, to_torch
from naysay.pools import Everything, Memory, Walks
from naysay.positives import Positives
from naysay.rng import rng_for
from naysay.samplers import jigsaw
from naysay.testing import planted_world
from naysay.triples import Triples
from naysay.types import Negatives, Query

N, WIDTH, BATCH, DEPTH = 400, 16, 64, 50
n_anchors = n_items = n_nodes = N
n_entities, n_relations = 60, 4
candidates, trials, margin, rho, scale = 32, 32, 0.5, 1.0, 0.1 * N  # settings that depend on the data
steps, epoch = 1000, 16  # the steps of a run, and those of an epoch: for what changes during training
_planted = planted_world(N, N, WIDTH, per_anchor=4, known_share=0.5, noise=0.2, spread=0.5)
_rng = np.random.default_rng(0)


def _for_tensors(function: Callable[..., NDArray[Any]]) -> Callable[..., Any]:
    """A function of arrays that answers in torch if it is asked in torch, as score functions must."""

    def call(*arguments: Any) -> Any:
        answer = function(*(to_numpy(one) if is_torch(one) else one for one in arguments))
        return to_torch(answer, arguments[0].device) if is_torch(arguments[0]) else answer

    return call


# ---- known pairs, and a model of anchors and items ----

positives = _planted.known  # two known items of each anchor
is_false_negative = _planted.is_false_negative  # of pairs (B,), (B, K): what a human would say
anchor_vectors, item_vectors = _planted.anchor_vectors, _planted.item_vectors
counts = positives.item_counts()
pool = Everything(positives)
labelled_anchors, labelled_items = positives.pairs()


@_for_tensors
def score(anchors: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    """The model: (B,) anchors and (B, n) items to (B, n); of triples (B, 3) and corrupted ones (B, n, 3), TransE."""
    if ids.ndim == 3:
        head, relation, tail = np.moveaxis(ids, -1, 0)
        moved = item_vectors[head] + relation_vectors[relation]
        return np.asarray(-np.linalg.norm(moved - item_vectors[tail], axis=-1))
    return np.asarray(np.einsum("bd,bnd->bn", anchor_vectors[anchors], item_vectors[ids]))


custom_score = score  # where a method has a score of its own; here it is the model's


@_for_tensors
def similarity(positives: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    """Of items, images or entities (B,) to others (B, n)."""
    return np.asarray(np.einsum("bd,bnd->bn", item_vectors[positives], item_vectors[ids]))


@_for_tensors
def probability(anchors: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    """The score as a number above 0: its sigmoid."""
    return np.asarray(1 / (1 + np.exp(-score(anchors, ids))))


@_for_tensors
def softplus_score(anchors: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    """log(1 + e^score), the reward of GraphGAN."""
    return np.asarray(np.logaddexp(0.0, score(anchors, ids)))


@_for_tensors
def sigmoid_score(anchors: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    """2 sigmoid(score) - 1, the reward of IRGAN."""
    return np.asarray(np.tanh(score(anchors, ids) / 2))


@_for_tensors
def embed(ids: NDArray[Any]) -> NDArray[Any]:
    """The vectors of items."""
    return np.asarray(item_vectors[ids])


@_for_tensors
def embed_anchors(anchors: NDArray[Any]) -> NDArray[Any]:
    """The vectors of anchors."""
    return np.asarray(anchor_vectors[anchors])


@_for_tensors
def score_pairs(anchors: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    """A better, slower model: one score of each pair, (n,) and (n,) to (n,)."""
    return np.asarray((anchor_vectors[anchors] * item_vectors[ids]).sum(axis=1))


def review_pairs(pairs: Any) -> NDArray[Any]:
    """A reviewer: how surely each item belongs to its anchor, from 0 to 1."""
    return np.asarray(np.clip(score_pairs(pairs.anchors, pairs.items), 0.0, 1.0))


def target(own: Any, step: int) -> Any:
    """The score that a negative should have: a little below that of the positive."""
    return own - 0.1


def towards_anchor(query: Query, *, signs: bool = False) -> Any:
    """(B, 1, d) the direction in which a loss of dot products rises most: the anchors' unit vectors, or their signs."""
    vectors = (embed_anchors(query.anchors) if query.vectors is None else query.vectors)[:, None]
    if signs:
        return vectors.sign() if is_torch(vectors) else np.sign(vectors)
    return vectors / (vectors**2).sum(-1)[..., None] ** 0.5


def query_of(anchors: NDArray[np.int64], step: int = 0) -> Query:
    """A query of some anchors, each with the first of its known items and with its vector."""
    return Query(anchors, positives=positives.indices[2 * anchors], vectors=anchor_vectors[anchors], step=step)


query = query_of(np.arange(BATCH), step=400)
labelled_scores = score_pairs(labelled_anchors, labelled_items)
positive_scores = labelled_scores.reshape(N, 2).min(axis=1)  # the lower one of each anchor
_everything = anchor_vectors @ item_vectors.T
_unlabelled = np.where(positives.contains(np.arange(N), np.tile(np.arange(N), (N, 1))), -np.inf, _everything)
lists = np.argsort(-_unlabelled, axis=1, kind="stable")[:, :DEPTH]  # what a search finds, best first, without positives
list_scores = np.take_along_axis(_everything, lists, axis=1)
negatives = Negatives(lists[:BATCH], scores=list_scores[:BATCH])  # of `query`, to be judged
random_ids = _rng.integers(0, N, (N, 100))
background = score(np.arange(N), random_ids)  # of random items
neighbours = np.argsort(-(item_vectors @ item_vectors.T), axis=1)[:, 1:11]  # the ten items nearest to each
memory = Memory(256, positives)  # a queue of earlier batches
memory.push(np.arange(256), np.full(256, -1), vectors=item_vectors[:256])
batch_and_corpus = np.concatenate([query.positives, _rng.integers(0, N, 16)])  # the batch's items, and 16 of any


def snapshot() -> NDArray[Any]:
    """What `Refresh` encodes with: a copy of the model's weights."""
    return np.eye(WIDTH, dtype=np.float32)


def encode(weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(items, anchors) by these weights."""
    return item_vectors @ weights, anchor_vectors @ weights


# ---- more feedback, ties and groups ----


def _some(per_anchor: int) -> Positives:
    """Random pairs of different ids that are not known positives."""
    pairs = np.argwhere(_rng.random((N, N)) < per_anchor / N).T
    new = ~positives.contains(pairs[0], pairs[1][:, None])[:, 0] & (pairs[0] != pairs[1])
    return Positives.from_pairs(pairs[0][new], pairs[1][new], N, N)


viewed, of_friends = _some(20), _some(20)  # viewed and not taken; taken by friends
ties = Positives.from_edges(_rng.integers(0, N, (1200, 2)), n_nodes=N)  # who knows whom
clusters = np.argmax(item_vectors @ item_vectors[:8].T, axis=1)  # of items, images or entities; eight of them
group_shares = np.array([0.45, 0.55])  # of the negatives, for popular and other items
is_popular = counts >= np.median(counts)
_seen = viewed.union(positives).contains(np.arange(N), np.tile(np.arange(N), (N, 1)))
_others = np.argsort(_rng.random((N, N)) + _seen, axis=1)[:, :29]  # random items that were neither viewed nor taken
shown_and_others = np.concatenate([viewed.indices[viewed.indptr[:-1], None], _others], axis=1)


@_for_tensors
def same_cluster(positives: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    """1.0 where both are in one cluster."""
    return np.asarray(clusters[positives][:, None] == clusters[ids], np.float64)


@_for_tensors
def exposure_reward(anchors: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
    """High for items that the model scores low, and for those that were shown."""
    return np.asarray(2.5 * viewed.contains(anchors, ids) - probability(anchors, ids))


# ---- texts and images ----

views = Positives.from_pairs(np.arange(N), np.arange(N), N, N)  # each image is its own positive
image_query = Query(np.arange(BATCH), positives=np.arange(BATCH))
image_negatives = Everything(views).draw(image_query, DEPTH, rng=rng_for(seed=0))
support_views = item_vectors[:, None] + 0.1 * _rng.standard_normal((N, 8, WIDTH))  # eight more views of each image
item_texts = [f"Document {i % 200}" + "." * (i // 200) for i in range(N)]  # each twice, with and without a full stop
anchor_texts = [f"document {i}" for i in range(N)]
_images, _encoder = _rng.random((N, 8, 8)), _rng.standard_normal((64, WIDTH))


@_for_tensors
def _encoded(images: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(images.reshape(*images.shape[:-2], 64) @ _encoder)


def make(query: Query, ids: Any, rng: np.random.Generator) -> Any:
    """Vectors of inputs that are changed first: images whose quarters are in another order."""
    flat = to_numpy(ids).ravel() if is_torch(ids) else ids.ravel()
    made = _encoded(jigsaw(_images[flat], 2, rng=rng)).reshape(*ids.shape, WIDTH)
    return to_torch(made, ids.device) if is_torch(ids) else made


def noisy(query: Query, ids: Any, rng: np.random.Generator) -> Any:
    """The vectors of items with noise."""
    made = item_vectors[to_numpy(ids) if is_torch(ids) else ids] + 0.01 * rng.standard_normal((*ids.shape, WIDTH))
    return to_torch(made, ids.device) if is_torch(ids) else made


# ---- a graph ----

_edges = _rng.integers(0, N, (800, 2))
graph = Positives.from_edges(_edges, n_nodes=N)
edge_counts = _rng.integers(1, 9, graph.count().sum())  # how often the ends of each edge meet
node_query = Query(_edges[:BATCH, 0], positives=_edges[:BATCH, 1], vectors=item_vectors[_edges[:BATCH, 0]], step=400)
_ends = Walks(graph, length=3).endpoints(np.arange(N), 20, rng=rng_for(seed=0))
visits = np.bincount(_ends[_ends >= 0], minlength=N)  # of random walks
is_item = np.arange(N) < 350  # the other nodes are no items

# ---- triples ----

triples = np.unique(_rng.integers(0, (n_entities, n_relations, n_entities), (400, 3)), axis=0)
train, valid = triples[:-30], triples[-30:]
known_triples = Triples(train, n_entities=n_entities, n_relations=n_relations)
relation_vectors = 0.1 * _rng.standard_normal((n_relations, WIDTH))
triple_query = Query(train[:BATCH])


@_for_tensors
def asked(triples: NDArray[Any]) -> NDArray[Any]:
    """(B, 32): the vectors of head and relation, which a generator of tails sees."""
    return np.concatenate([item_vectors[triples[:, 0]], relation_vectors[triples[:, 1]]], axis=1)
