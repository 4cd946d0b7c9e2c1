"""The five domains by the name of their task: what reads their data with which options, and generated data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay._commands import CompareOptions
from naysay.checks import raise_invalid, shown, with_parameter
from naysay.lab._task import Task
from naysay.lab.graphs import Graph, NodeEmbedding, read_graph, split_edges
from naysay.lab.images import ImageContrast, Images, read_images
from naysay.lab.knowledge_graph import KnowledgeGraph, LinkPrediction, read_triples, split_triples
from naysay.lab.recommendation import Interactions, Recommendation, read_interactions, split_by_user
from naysay.lab.retrieval import Retrieval, TextPairs, read_texts, split_by_document
from naysay.rng import rng_for
from naysay.testing.worlds import planted_world

_PARTS = ("validation", "test")
_OF_DATA = (*_PARTS, "split", "liked", "corpus", "query_vectors", "corpus_vectors", "labels")


@final
@dataclass(frozen=True)
class Kind:
    """A task, its data, the function that reads it with the options that it takes, and generated data by seed."""

    task: type[Task]
    data: type
    read: Callable[..., Any]
    options: tuple[str, ...]
    generated: Callable[[int], Any]


def data_of(kind: Kind, data: Any, options: CompareOptions) -> Any:
    """The data of a task: given, read, or generated."""
    values = {name: getattr(options, name) for name in _OF_DATA}
    used, why = kind.options, f"for the task {kind.task.name!r}"
    if options.quick:
        used, why = (), "with `quick`"
    elif isinstance(data, kind.data):
        used, why = (), "with data in memory"
    unused = {name: value for name, value in values.items() if name not in used}
    if options.quick:
        unused |= {"data": data, "budget": options.budget}
    for name, value in unused.items():
        if _is_given(name, value):
            raise_invalid(name, f"left out {why}", repr(str(value)) if isinstance(value, Path) else shown(value))
    if options.quick:
        return kind.generated(options.seed)
    if data is None:
        raise_invalid("data", "a file, or a folder", "nothing", "Or pass `quick`.")
    if isinstance(data, kind.data):
        return data
    for other in KINDS.values():
        if isinstance(data, other.data):
            raise_invalid("task", f"{other.task.name!r} for {other.data.__name__}", repr(kind.task.name))
    with with_parameter("data", instead_of="path"):
        return kind.read(data, **{name: values[name] for name in kind.options}, seed=options.seed)


def _is_given(name: str, value: Any) -> bool:
    """Whether an option is not its default; the value may be an array."""
    usual = getattr(CompareOptions(), name, None)
    return value is not None if usual is None else bool(value != usual)


def _interactions(seed: int) -> Interactions:
    """500 users and 1,500 items in clusters, of different popularity."""
    world = planted_world(500, 1500, per_anchor=24, noise=0.3, spread=0.8)
    return split_by_user(*world.truth.pairs(), seed=seed)


def _triples(seed: int) -> KnowledgeGraph:
    """400 entities are points, and each of 8 relations is a step: its tails are the four nearest to the end of it."""
    rng = rng_for(seed=0)
    points, steps = rng.standard_normal((400, 5)), rng.standard_normal((8, 5))
    distances = np.linalg.norm((points[:, None] + steps)[:, :, None] - points, axis=3)
    fourth = np.sort(distances, axis=2)[:, :, 3:4]
    return split_triples(np.argwhere(distances <= fourth), 400, 8, seed=seed)


def _texts(seed: int) -> TextPairs:
    """1,000 queries with one known document of three, by vectors half of whose coordinates mean nothing."""
    world = planted_world(1000, 2000, per_anchor=3, known_share=0.34, noise=0.2, spread=0.8)
    rng = rng_for(seed=0)
    queries, documents = (
        np.hstack([vectors, 0.12 * rng.standard_normal(vectors.shape, np.float32)])
        for vectors in (world.anchor_vectors, world.item_vectors)
    )
    parts = split_by_document(world.known, seed=seed)
    return TextPairs(*parts, query_vectors=queries, document_vectors=documents)


def _graph(seed: int) -> Graph:
    """800 nodes in 8 classes; most edges are within a class."""
    rng = rng_for(seed=0)
    labels, ends = np.arange(800) % 8, rng.integers(0, 800, (40_000, 2))
    same_class = labels[ends[:, 0]] == labels[ends[:, 1]]
    kept = rng.random(len(ends)) < np.where(same_class, 0.5, 0.03)
    return split_edges(ends[kept], 800, labels=labels, seed=seed)


def _images(seed: int) -> Images:
    """1,500 images of 16 x 16 in 6 classes: stripes of one direction and width, at any place, in any light."""
    rng = rng_for(seed=0)
    labels, pixels = rng.integers(0, 6, 1500), np.arange(16)
    angle, turns = np.pi / 3 * (labels % 3), 1 + 1.5 * (labels // 3)
    across = np.cos(angle)[:, None, None] * pixels + np.sin(angle)[:, None, None] * pixels[:, None]
    waves = np.sin(across * (np.pi * turns / 8)[:, None, None] + rng.uniform(0, 7, (1500, 1, 1)))
    light = rng.uniform(0.1, 0.3, (1500, 1, 1)) * waves + 0.3 * rng.standard_normal(waves.shape)
    return Images(np.clip(0.5 + light, 0, 1), labels, seed=seed)


KINDS = {
    kind.task.name: kind
    for kind in (
        Kind(Recommendation, Interactions, read_interactions, (*_PARTS, "split", "liked"), _interactions),
        Kind(LinkPrediction, KnowledgeGraph, read_triples, _PARTS, _triples),
        Kind(NodeEmbedding, Graph, read_graph, (*_PARTS, "labels"), _graph),
        Kind(ImageContrast, Images, read_images, (), _images),
        Kind(Retrieval, TextPairs, read_texts, (*_PARTS, "corpus", "query_vectors", "corpus_vectors"), _texts),
    )
}
