"""The five tasks: what reads their data, which options that takes, and generated data for a quick look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay._commands import CompareOptions
from naysay.checks import raise_invalid, shown, with_parameter
from naysay.rng import rng_for
from naysay.tasks.graphs import Graph, read_graph, split_edges
from naysay.tasks.image_contrast import ImageContrast
from naysay.tasks.images import Images, read_images
from naysay.tasks.interactions import Interactions, split_by_user
from naysay.tasks.knowledge_graph import KnowledgeGraph, read_triples, split_triples
from naysay.tasks.link_prediction import LinkPrediction
from naysay.tasks.node_embedding import NodeEmbedding
from naysay.tasks.reading import read_interactions
from naysay.tasks.recommendation import Recommendation
from naysay.tasks.retrieval import Retrieval
from naysay.tasks.texts import TextPairs, read_texts, split_by_document
from naysay.testing.worlds import planted_world

_PARTS = ("validation", "test")
_OF_DATA = (*_PARTS, "split", "liked", "corpus", "query_vectors", "corpus_vectors", "labels")


@final
@dataclass(frozen=True)
class Kind:
    """A task, its data, the function that reads it with the options that it takes, and generated data by seed."""

    task: Any
    data: type
    read: Callable[..., Any]
    options: tuple[str, ...]
    generated: Callable[[int], Any]


def data_of(kind: Kind, data: Any, options: CompareOptions) -> Any:
    """The data of a task: given, read, or generated."""
    usual = CompareOptions()
    given = {name: getattr(options, name) for name in _OF_DATA}
    used = () if options.quick or isinstance(data, kind.data) else kind.options
    for name, value in given.items():
        if _is_given(value, getattr(usual, name)) and name not in used:
            why = "with `quick`" if options.quick else f"for the task {kind.task.name!r}"
            raise_invalid(name, f"left out {why}", _shown(value))
    if options.quick:
        for name, value in {"data": data, "budget": options.budget}.items():
            if _is_given(value, getattr(usual, name, None)):
                raise_invalid(name, "left out with `quick`", _shown(value))
        return kind.generated(options.seed)
    if data is None:
        raise_invalid("data", "a file, or a folder", "nothing", "Or pass `quick`.")
    if isinstance(data, kind.data):
        return data
    others = next((one for one in KINDS.values() if isinstance(data, one.data)), None)
    if others is not None:
        raise_invalid("task", f"{others.task.name!r} for {others.data.__name__}", repr(kind.task.name))
    with with_parameter("data", instead_of="path"):
        return kind.read(data, **{name: given[name] for name in kind.options}, seed=options.seed)


def _is_given(value: Any, usual: Any) -> bool:
    """Whether an option is not its default; the value may be an array."""
    return value is not None if usual is None else bool(value != usual)


def _shown(value: Any) -> str:
    return repr(str(value)) if isinstance(value, Path) else shown(value)


def _interactions(seed: int) -> Interactions:
    """500 users and 1,500 items in clusters, of different popularity."""
    world = planted_world(500, 1500, per_anchor=24, noise=0.3, spread=0.8)
    return split_by_user(*world.truth.pairs(), seed=seed)


def _triples(seed: int) -> KnowledgeGraph:
    """400 entities are points, and each of 8 relations is a step: its tails are the four nearest to the end of it."""
    rng = rng_for(seed=0)
    places, steps = rng.standard_normal((400, 5)), rng.standard_normal((8, 5))
    away = np.linalg.norm((places[:, None] + steps)[:, :, None] - places, axis=3)
    return split_triples(np.argwhere(away <= np.sort(away, axis=2)[:, :, 3:4]), 400, 8, seed=seed)


def _texts(seed: int) -> TextPairs:
    """1,000 queries with one known document of three, by vectors half of whose coordinates mean nothing."""
    world, rng = planted_world(1000, 2000, per_anchor=3, known_share=0.34, noise=0.2, spread=0.8), rng_for(seed=0)
    wide = [
        np.hstack([vectors, 0.12 * rng.standard_normal(vectors.shape, np.float32)])
        for vectors in (world.anchor_vectors, world.item_vectors)
    ]
    parts = split_by_document(world.known, seed=seed)
    return TextPairs(*parts, query_vectors=wide[0], document_vectors=wide[1])


def _graph(seed: int) -> Graph:
    """800 nodes in 8 classes; most edges are within a class."""
    rng = rng_for(seed=0)
    labels, ends = np.arange(800) % 8, rng.integers(0, 800, (40_000, 2))
    same = labels[ends[:, 0]] == labels[ends[:, 1]]
    return split_edges(ends[rng.random(len(ends)) < np.where(same, 0.5, 0.03)], 800, labels=labels, seed=seed)


def _images(seed: int) -> Images:
    """1,500 images of 16 x 16 in 6 classes: stripes of one direction and width, at any place, in any light."""
    rng = rng_for(seed=0)
    labels, at = rng.integers(0, 6, 1500), np.arange(16)
    angle, turns = np.pi / 3 * (labels % 3), 1 + 1.5 * (labels // 3)
    wave = np.cos(angle)[:, None, None] * at + np.sin(angle)[:, None, None] * at[:, None]
    waves = np.sin(wave * (np.pi * turns / 8)[:, None, None] + rng.uniform(0, 7, (1500, 1, 1)))
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
