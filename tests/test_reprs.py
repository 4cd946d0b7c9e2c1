"""repr shows every setting: its name and value, an array by its shape, a function by its name."""

import dataclasses
import inspect

import numpy as np
import pytest
from catalog_programs import one_of_each_sampler

import naysay as ns

RNG = np.random.default_rng(0)
KNOWN = ns.Positives.from_pairs([0, 1, 2], [3, 4, 5], n_items=9)
POOL = ns.pools.Everything(KNOWN, distinct=False)
VECTORS = RNG.standard_normal((9, 2))
TRIPLES = np.array([[0, 0, 1], [2, 1, 3]])
GRAPH = ns.Positives.from_pairs([0, 1, 2, 3], [1, 2, 3, 0], 4, 4)


def score(anchors, ids):
    return ids * 1.0


def embed(ids):
    return VECTORS[ids]


def where(query, ids):
    return ids > 0


MEMBERS = {name: ns.detectors.MaxScore(0.7) for name in "ab"}
SHORT = {"on_short": "raise"}
# Every setting of every class, none of them its default.
SETTINGS = {
    "pools": {
        "Corruption": {
            "triples": TRIPLES,
            "known": TRIPLES,
            "sides": ("tail",),
            "n_entities": 11,
            "n_relations": 4,
            "distinct": False,
            **SHORT,
        },
        "Everything": {"positives": KNOWN, "weights": np.arange(1.0, 10.0), "distinct": False, **SHORT},
        "InBatch": {"positives": KNOWN, "distinct": False, **SHORT},
        "KHop": {"graph": GRAPH, "hops": (2, 3), "positives": GRAPH, "distinct": False, **SHORT},
        "Local": {"lists": [[1], [2], [3]], "positives": KNOWN, "distinct": False, **SHORT},
        "Memory": {"size": 17, "positives": KNOWN, "distinct": False, **SHORT},
        "Nearest": {
            "vectors": VECTORS,
            "depth": 5,
            "positives": KNOWN,
            "queries": VECTORS,
            "window": (1, 4),
            "metric": "dot",
            "distinct": False,
            **SHORT,
        },
        "PageRank": {
            "graph": GRAPH,
            "ranks": (1, 3),
            "restart": 0.25,
            "tolerance": 0.125,
            "positives": GRAPH,
            "distinct": False,
            **SHORT,
        },
        "Refresh": {
            "pool": ns.pools.Nearest(VECTORS, 5),
            "snapshot": embed,
            "encode": embed,
            "every": 17,
            "lag": 3,
        },
        "StreamingFrequency": {"size": 17, "rate": 0.25, "initial": 2.5, "unseen": 7.5},
        "Walks": {
            "graph": GRAPH,
            "length": 7,
            "walks": 5,
            "weights": np.ones(4),
            "stop": 0.25,
            "items": ns.Positives.from_pairs([0], [1], 4, 5),
            "exclude_edges": False,
            "distinct": False,
            **SHORT,
        },
    },
    "batches": {
        "BatchSampler": {"batches": ns.batches.Shuffled(17, 3), "seed": 7, "rank": 2, "ranks": 5},
        "ByLoss": {"n": 17, "size": 3, "pressure": 2.5},
        "Grouped": {"groups": np.arange(17), "size": 6, "per_batch": 3},
        "Shuffled": {"n": 17, "size": 3, "forbid": np.arange(17)},
        "RandomWalkBatches": {"n": 17, "size": 3, "neighbours": 5, "candidates": 7, "restart": 0.25, "cover": False},
    },
    "detectors": {
        "MaxScore": {"high": 0.75},
        "Calibrated": {"alpha": 0.125, "standardise": True},
        "Combined": {"detectors": MEMBERS, "rule": "mean"},
        "Duplicates": {
            "item_texts": ["a", "b"],
            "jaccard": 0.75,
            "shared_ids": True,
            "punctuation": False,
            "shingle": 3,
        },
        "Guide": {
            "score_pairs": score,
            "margin": 0.25,
            "relative": True,
            "scale": 2.5,
            "first": 0.75,
            "max_distance": 0.125,
            "budget": 5,
            "total_budget": 9,
            "batch_size": 7,
            "cache_size": 11,
        },
        "Incremental": {
            "n_samples": 12,
            "clusters": (2, 3),
            "temperature": 0.25,
            "confidence": "cluster",
            "iterations": 7,
            "restarts": 3,
            "seed": 5,
        },
        "Labelled": {"l2": 2.5, "cost": 0.25, "false_share": 0.125},
        "LearnedQuantile": {"n_anchors": 3, "alpha": 0.125, "rate": 0.25, "bounds": (-2.5, 2.5), "start": 5},
        "Margin": {"margin": 0.25, "positive_scores": score},
        "Mixture": {"family": "beta", "bounds": (-2.5, 2.5), "iterations": 7, "tolerance": 0.125},
        "Posterior": {
            "k": 7,
            "false_share": 0.25,
            "depth": 30,
            "labelled_share": 0.5,
            "positive_scores": None,
            "alike": score,
            "seed": 5,
        },
        "RankWindow": {"skip": 3},
        "ShareOfPositive": {"share": 0.75, "positive_scores": score},
        "SoftClusters": {"n_clusters": 3, "embed": embed, "embed_anchors": embed, "freedom": 2.5, "iterations": 7},
        "SupportViews": {"views": VECTORS[:, None], "embed": embed, "top": 3, "threshold": 0.75},
    },
    "quantity": {"Online": {"steps": 1000, "labels": "validation", "start": 7, "tolerance": 0.125, "k_max": 77}},
}
DATA = (np.ndarray, list, ns.Positives)  # shown by their sizes
CASES = [(folder, name) for folder, classes in SETTINGS.items() for name in classes]


def part_of(folder, name):
    given = SETTINGS[folder][name]
    kind = getattr(getattr(ns, folder), name)
    parameters = inspect.signature(kind).parameters
    unknown = set(given) - set(parameters)
    assert not unknown
    return kind(**given), {key: value for key, value in given.items() if key not in ("initial", "rule")}


@pytest.mark.parametrize("folder", SETTINGS)
def test_every_class_is_tried(folder):
    """A dataclass with Python's own repr shows all of its fields."""
    exported = (getattr(getattr(ns, folder), name) for name in getattr(ns, folder).__all__)
    classes = {
        kind.__name__
        for kind in exported
        if inspect.isclass(kind) and (not dataclasses.is_dataclass(kind) or hasattr(kind, "sample"))
    }
    assert classes == set(SETTINGS[folder])


@pytest.mark.parametrize(
    ("folder", "name"),
    [pytest.param(*case, id=".".join(case)) for case in CASES],
)
def test_repr_shows_the_settings(folder, name):
    part, given = part_of(folder, name)
    text = repr(part)
    assert "\n" not in text
    assert " at 0x" not in text
    for setting, value in given.items():
        if isinstance(value, DATA):
            continue
        assert setting in text or folder == "pools", (setting, text)  # pools say what they hold: 3 of 17 entries
        shown = value.__name__ if inspect.isfunction(value) else repr(value)
        assert shown in text or (isinstance(value, int) and f"{value:,}" in text), (setting, text)


SAMPLERS = one_of_each_sampler()


@pytest.mark.parametrize("name", SAMPLERS)
def test_repr_of_a_sampler_names_every_argument(name):
    sampler = SAMPLERS[name]
    text = repr(sampler)
    assert text.startswith(f"{name}(")
    wanted = [one for one in inspect.signature(type(sampler)).parameters if one not in ("initial", "rule")]
    assert [one for one in wanted if f"{one}=" not in text] == []
    assert "0x" not in text  # a function is shown by its name
