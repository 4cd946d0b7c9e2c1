"""repr shows every setting: its name and value, an array by its shape, a function by its name."""

import dataclasses
import inspect

import numpy as np
import pytest

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


class Optimizer:
    """A stand-in: torch's own fill several lines."""

    param_groups = ()

    def __repr__(self):
        return "Optimizer()"


MEMBERS = {name: ns.detectors.Absolute(0.7) for name in "ab"}
SHORT = {"on_short": "raise"}
# Every setting of every class, none of them its default.
SETTINGS = {
    "samplers": {
        "AdaptiveOversampling": {"positives": KNOWN, "item_factors": VECTORS, "embed": embed, "scale": 2.5, **SHORT},
        "Bank": {"pool": POOL, "n_items": 9, "momentum": 0.25, "initial": VECTORS},
        "Cached": {
            "pool": POOL,
            "score": score,
            "size": 4,
            "fresh": 5,
            "keep": "top",
            "choose": "top",
            "history": 3,
            "bonus": 0.25,
            "seed": 7,
            **SHORT,
        },
        "DistanceWeighted": {
            "pool": POOL,
            "score": score,
            "candidates": 7,
            "dim": 3,
            "cutoff": 0.25,
            "nonzero_loss_cutoff": 1.25,
            **SHORT,
        },
        "Dynamic": {"pool": POOL, "score": score, "candidates": 7, "temperature": 0.25, **SHORT},
        "Exposed": {"levels": {"one": KNOWN}, "weights": (2.5,), "unobserved": POOL, "share": 0.25, **SHORT},
        "Factors": {"n_anchors": 3, "n_items": 9, "d": 5, "rate": 0.25, "decay": 0.125, "bias": False, "seed": 7},
        "TripleFactors": {
            "n_entities": 3,
            "n_relations": 2,
            "d": 5,
            "kind": "complex",
            "rate": 0.25,
            "decay": 0.125,
            "seed": 7,
        },
        "Perceptron": {
            "embed": embed,
            "d": 2,
            "n_items": 9,
            "hidden": 5,
            "rate": 0.25,
            "decay": 0.125,
            "seed": 7,
        },
        "TorchModule": {"module": score, "optimizer": Optimizer()},
        "Learned": {
            "pool": POOL,
            "generator": ns.samplers.Factors(3, 9),
            "reward": score,
            "candidates": 7,
            "temperature": 0.25,
            "baseline": "greedy",
            "slots": 3,
            "entropy": 0.125,
            "entropy_floor": 2.5,
            "distinct": True,
            "seed": 7,
            **SHORT,
        },
        "AdversarialBank": {
            "size": 4,
            "d": 3,
            "step": 0.25,
            "temperature": 0.125,
            "momentum": 0.75,
            "decay": 0.5,
            "initial": np.ones((4, 3)),
            "seed": 7,
        },
        "Generated": {
            "base": ns.samplers.Static(POOL),
            "embed": embed,
            "generator": score,
            "optimizer": Optimizer(),
            "loss": where,
            "pull": 0.25,
            "stay": 0.125,
            "diversity": 0.5,
            "noise": 5,
            "seed": 7,
            "embed_anchors": embed,
        },
        "GraphPolicy": {
            "graph": GRAPH,
            "generator": ns.samplers.Factors(4, 4),
            "reward": score,
            "hops": 3,
            "positives": GRAPH,
            "width": 5,
            "start": "positive",
            "items": np.ones(4, bool),
            "seed": 7,
            **SHORT,
        },
        "Decomposed": {
            "positives": KNOWN,
            "factors": 3,
            "temperature": 0.25,
            "seed": 7,
            **SHORT,
        },
        "MarkovChain": {
            "positives": KNOWN,
            "score": score,
            "neighbours": np.zeros((9, 2), int),
            "uniform": 0.25,
            "power": 0.75,
            "target": "softmax",
            "temperature": 2.5,
            "steps": 7,
            **SHORT,
        },
        "Perturbed": {
            "base": ns.samplers.Static(POOL),
            "embed": embed,
            "radius": 0.25,
            "norm": "inf",
            "loss": where,
            "embed_anchors": embed,
        },
        "Transformed": {"base": ns.samplers.Static(POOL), "make": embed},
        "Judged": {
            "sampler": ns.samplers.Static(POOL),
            "detector": MEMBERS,
            "threshold": 0.75,
            "rule": "mean",
            "refill": 3.5,
            **SHORT,
        },
        "MixGCF": {
            "pool": POOL,
            "embed": embed,
            "candidates": 7,
            "embed_anchors": embed,
            "mix": (0.25, 0.75),
            "pooling": "sum",
            **SHORT,
        },
        "MixKG": {
            "pool": POOL,
            "score": None,
            "embed": embed,
            "candidates": 7,
            "n_hard": 3,
            "by": "entity",
            "mix": (0.25, 0.75),
            **SHORT,
        },
        "Mixed": {"parts": {"one": ns.samplers.Static(POOL)}, "shares": (2.5,), "duplicates": "keep", **SHORT},
        "MoCHi": {
            "pool": POOL,
            "embed": embed,
            "n_hard": 3,
            "candidates": 7,
            "embed_anchors": embed,
            "anchor_share": 0.25,
            "mix": (0.25, 0.75),
            "anchor_mix": (0.125, 0.25),
            **SHORT,
        },
        "NearPositive": {
            "pool": POOL,
            "score": score,
            "candidates": 7,
            "top_m": 3,
            "limit": 0.5,
            "first": score,
            "shortlist": 5,
            **SHORT,
        },
        "NearTarget": {
            "pool": POOL,
            "score": score,
            "candidates": 7,
            "target": score,
            "sharpness": 0.25,
            **SHORT,
        },
        "Ring": {
            "pool": POOL,
            "score": score,
            "candidates": ns.quantity.Linear(5, 7, 100),
            "keep": (0.25, 0.5),
            "where": where,
            "refill": True,
            **SHORT,
        },
        "SemiHard": {
            "pool": POOL,
            "score": score,
            "candidates": 7,
            "margin": 0.25,
            "choose": "random",
            "otherwise": "easy",
            **SHORT,
        },
        "SoftmaxWeights": {"pool": POOL, "score": score, "temperature": 0.25, "correct": False},
        "Static": {"pool": POOL},
        "UserOriented": {"pool": POOL, "positives": KNOWN},
        "Warp": {
            "pool": POOL,
            "score": score,
            "trials": 7,
            "margin": 0.25,
            "mode": "lightfm",
            "n_items": 9,
            **SHORT,
        },
    },
    "pools": {
        "Cache": {"n_anchors": 3, "size": 4, "positives": KNOWN, "distinct": False, **SHORT},
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
        "Fading": {
            "lists": np.array([[1, 2], [3, 4], [5, 6]]),
            "scores": np.zeros((3, 2)),
            "active": 1,
            "positives": KNOWN,
            "fade": 1.25,
            "level": 0.75,
            "check": 17,
            **SHORT,
        },
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
        "StreamingFrequency": {"size": 17, "rate": 0.25, "hashes": 3, "initial": 2.5, "unseen": 7.5},
        "TieWalks": {
            "ties": GRAPH,
            "consumed": ns.Positives.from_pairs([0], [1], 4, 5),
            "stop": 0.25,
            "depth": 7,
            "walks": 11,
            "distinct": False,
            **SHORT,
        },
        "WeightedWalks": {
            "graph": GRAPH,
            "weights": np.ones(4),
            "length": 7,
            "walks": 5,
            "positives": GRAPH,
            "distinct": False,
            **SHORT,
        },
        "Walks": {"graph": GRAPH, "length": 7, "walks": 5, "positives": GRAPH, "distinct": False, **SHORT},
    },
    "batches": {
        "BatchSampler": {"batches": ns.batches.Shuffled(17, 3), "seed": 7, "rank": 2, "ranks": 5},
        "ByLoss": {"n": 17, "size": 3, "pressure": 2.5},
        "Grouped": {"groups": np.arange(17), "size": 6, "per_batch": 3},
        "Shuffled": {"n": 17, "size": 3, "forbid": np.arange(17)},
        "RandomWalkBatches": {"n": 17, "size": 3, "neighbours": 5, "candidates": 7, "restart": 0.25, "cover": False},
    },
    "detectors": {
        "Absolute": {"high": 0.75},
        "Calibrated": {"alpha": 0.125, "standardise": True},
        "Combined": {"detectors": MEMBERS, "rule": "mean"},
        "Duplicates": {
            "item_texts": ["a", "b"],
            "jaccard": 0.75,
            "shared_ids": True,
            "punctuation": False,
            "shingle": 3,
        },
        "Ecdf": {"scores": np.arange(5.0), "positive_scores": np.arange(5.0), "beta": 0.125, "floor": 0.0625},
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
        "ScoreSketch": {"size": 17},
        "Scoreboard": {"threshold": 0.75, "bins": 7, "confidence": 0.875},
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
