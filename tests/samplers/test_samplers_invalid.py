"""Invalid settings and queries of all samplers: each error names its parameter, before any work is done."""

import numpy as np
import pytest
import torch

import naysay as ns
from naysay import samplers

KNOWN = ns.Positives.from_pairs([0, 1], [0, 1], 2, 6)
POOL = ns.pools.Everything(KNOWN)
INDEPENDENT = ns.pools.Everything(KNOWN, distinct=False)
STATIC = samplers.Static(POOL)
CORRUPTION = ns.pools.Corruption([[0, 0, 1], [1, 0, 2]], n_entities=6)
GRAPH = ns.Positives.from_edges([0, 1], [1, 2], 6)
STAR = ns.Positives.from_edges([2, 2, 2], [0, 1, 3], 6)
VECTORS = np.eye(6, 3)
QUERY = ns.Query([0, 1], positives=[0, 1], vectors=VECTORS[:2])
BARE = ns.Query([0, 1])
WITHOUT_ONE = ns.Query([0, 1], positives=[0, -1], vectors=VECTORS[:2])  # the second row has no positive
TIMED_POOL = ns.pools.Everything(KNOWN, times=([0, 1], [0, 1], [5, 5]))
TIMED = ns.Query([0, 1], times=[1, 9])
WEIGHT = torch.zeros(6, requires_grad=True)
OPTIMIZER = torch.optim.SGD([WEIGHT], 0.1)


def score(anchors, ids):
    return ids * 1.0


def embed(ids):
    return VECTORS[ids]


def in_torch(ids):
    return torch.from_numpy(VECTORS)[ids]


def generator(anchors, ids):
    return WEIGHT[ids]


def not_finite(anchors, ids):
    return torch.where(ids == 3, torch.nan, WEIGHT[ids])


def make(query, ids, rng):
    return VECTORS[ids]


class Answers:
    """A sampler that returns what it was given."""

    def __init__(self, **arrays):
        self.arrays = arrays

    def sample(self, query, k, *, rng):
        counts = np.broadcast_to(k, len(query))
        width = int(counts.max(initial=0))
        ids = np.where(np.arange(width) < counts[:, None], 1, -1)
        return ns.Negatives(
            ids, **{name: np.broadcast_to(one, (*ids.shape, len(one))) for name, one in self.arrays.items()}
        )


# What makes a valid sampler of each class; a row of a table changes one setting.
VALID = {
    "Static": {"pool": POOL},
    "Dynamic": {"pool": POOL, "score": score, "candidates": 5},
    "SemiHard": {"pool": POOL, "score": score, "candidates": 5, "margin": 1.0},
    "NearPositive": {"pool": POOL, "score": score, "candidates": 5},
    "NearTarget": {"pool": POOL, "score": score, "candidates": 5, "target": lambda own, step: own},
    "PercentileRange": {"pool": POOL, "score": score, "candidates": 5, "keep": (0.1, 0.9)},
    "DistanceWeighted": {"pool": POOL, "score": score, "candidates": 5, "dim": 3},
    "Warp": {"pool": POOL, "score": score, "trials": 5},
    "SoftmaxWeights": {"pool": INDEPENDENT, "score": score, "rho": 1.0},
    "MoCHi": {"pool": POOL, "embed": embed, "n_hard": 2, "candidates": 5},
    "MixKG": {"pool": POOL, "score": score, "embed": embed, "candidates": 5, "n_hard": 2},
    "MixGCF": {"pool": POOL, "embed": embed, "candidates": 3},
    "Cached": {"pool": POOL, "score": score, "size": 3, "fresh": 3},
    "Bank": {"pool": POOL, "n_items": 6},
    "Mixed": {"parts": {"a": STATIC, "b": STATIC}, "shares": (1, 1)},
    "MultiFeedback": {"levels": {"a": KNOWN}, "weights": (1,), "unobserved": POOL},
    "Judged": {"sampler": STATIC, "detector": ns.detectors.Duplicates(item_texts=list("abcdef"))},
    "Learned": {"pool": POOL, "generator": generator, "optimizer": OPTIMIZER, "reward": score},
    "GraphPolicy": {"graph": GRAPH, "generator": generator, "optimizer": OPTIMIZER, "reward": score},
    "Generated": {"base": STATIC, "embed": embed, "generator": make, "optimizer": OPTIMIZER, "loss": make},
    "Transformed": {"base": STATIC, "make": make},
    "AdaptiveOversampling": {"positives": KNOWN, "item_factors": VECTORS, "embed": embed, "scale": 1.0},
    "MarkovChain": {"positives": KNOWN, "score": score, "target": "softmax"},
}
PART_OF_ALL = {"pool": 3, "score": 3, "on_short": "pat", "embed": 3, "embed_anchors": 3, "generator": 3, "optimizer": 3}
NUMBER = {"candidates": 0, "temperature": -1.0, "seed": -1, "top_m": 0, "n_hard": 0, "mix": (0.5, 0.2)}

SETTINGS = [
    ("Static", {"pool": ns.pools.Everything}, "pool"),  # a class
    ("Dynamic", {"ceiling": 0.5}, "ceiling"),
    ("Dynamic", {"ceiling": 0, "temperature": 1.0}, "ceiling"),
    ("Dynamic", {"top_m": 2, "temperature": 1.0}, "top_m"),
    ("Dynamic", {"top_m": 6}, "top_m"),
    ("Dynamic", {"temperature": np.inf}, "temperature"),
    ("Dynamic", {"candidates": True}, "candidates"),
    ("SemiHard", {"margin": 0}, "margin"),
    ("SemiHard", {"choose": "any"}, "choose"),
    ("SemiHard", {"otherwise": "any"}, "otherwise"),
    ("SemiHard", {"candidates": None}, "candidates"),
    ("NearPositive", {"first": score}, "shortlist"),
    ("NearPositive", {"first": 3, "shortlist": 2}, "first"),
    ("NearPositive", {"first": score, "shortlist": 6}, "shortlist"),
    ("NearPositive", {"first": score, "shortlist": 3, "top_m": 4}, "top_m"),
    ("NearPositive", {"limit": np.nan}, "limit"),
    ("NearTarget", {"target": 0.5}, "target"),
    ("NearTarget", {"sharpness": -1}, "sharpness"),
    ("PercentileRange", {"keep": None}, "keep"),
    ("PercentileRange", {"remove": (0.1, 0.2)}, "keep"),
    ("PercentileRange", {"keep": (0.5, 0.5)}, "keep"),
    ("PercentileRange", {"keep": None, "remove": (0.5, 1.5)}, "remove"),
    ("PercentileRange", {"where": 3}, "where"),
    ("DistanceWeighted", {"dim": 1}, "dim"),
    ("DistanceWeighted", {"cutoff": 0}, "cutoff"),
    ("DistanceWeighted", {"cutoff": 1.5}, "nonzero_loss_cutoff"),
    ("Warp", {"trials": 0}, "trials"),
    ("Warp", {"margin": -1}, "margin"),
    ("Warp", {"n_items": 0}, "n_items"),
    ("Warp", {"pool": ns.pools.InBatch()}, "n_items"),
    ("SoftmaxWeights", {"rho": None}, "rho"),
    ("SoftmaxWeights", {"temperature": 1.0}, "rho"),
    ("SoftmaxWeights", {"rho": 0}, "rho"),
    ("SoftmaxWeights", {"pool": POOL}, "pool"),
    ("SoftmaxWeights", {"correct": "no"}, "correct"),
    ("MoCHi", {"anchor_share": 2}, "anchor_share"),
    ("MoCHi", {"anchor_mix": (-1.5, 0)}, "anchor_mix"),
    ("MixKG", {"by": "entity"}, "score"),
    ("MixKG", {"by": "scor"}, "by"),
    ("MixGCF", {"pooling": "men"}, "pooling"),
    ("MixGCF", {"mix": 0.5}, "mix"),
    ("Cached", {"pool": ns.pools.InBatch()}, "pool"),
    ("Cached", {"size": 0}, "size"),
    ("Cached", {"fresh": 1.5}, "fresh"),
    ("Cached", {"keep": "best"}, "keep"),
    ("Cached", {"choose": "any"}, "choose"),
    ("Cached", {"every": 0}, "every"),
    ("Cached", {"keep": "top", "temperature": 2.0}, "temperature"),
    ("Cached", {"bonus": 1.0}, "bonus"),
    ("Cached", {"history": 1, "choose": "top"}, "history"),
    ("Cached", {"history": 2}, "history"),
    ("Cached", {"history": 2, "choose": "top", "pool": ns.pools.Local([[1], [2]])}, "history"),
    ("Bank", {"n_items": 2**62}, "n_items"),
    ("Bank", {"momentum": 1.5}, "momentum"),
    ("Bank", {"initial": np.ones((5, 2))}, "initial"),
    ("Bank", {"initial": np.ones((6, 2), int)}, "initial"),
    ("Bank", {"initial": np.full((6, 2), np.nan)}, "initial"),
    ("Mixed", {"parts": {}}, "parts"),
    ("Mixed", {"parts": [3]}, "parts"),
    ("Mixed", {"parts": {"a": samplers.Static}}, "parts"),
    ("Mixed", {"parts": {1: STATIC}}, "parts"),
    ("Mixed", {"parts": {str(i): STATIC for i in range(128)}}, "parts"),
    ("Mixed", {"shares": (1,)}, "shares"),
    ("Mixed", {"shares": 1}, "shares"),
    ("Mixed", {"shares": (0, 0)}, "shares"),
    ("Mixed", {"shares": (-1, 2)}, "shares"),
    ("Mixed", {"shares": (1, np.nan)}, "shares"),
    ("Mixed", {"shares": (1, "1")}, "shares"),
    ("Mixed", {"duplicates": "dropp"}, "duplicates"),
    ("MultiFeedback", {"levels": {}}, "levels"),
    ("MultiFeedback", {"levels": {"a": [1]}}, "levels"),
    ("MultiFeedback", {"levels": {"a": KNOWN, "b": GRAPH}}, "levels"),
    ("MultiFeedback", {"weights": (1, 1)}, "weights"),
    ("MultiFeedback", {"share": 1.5}, "share"),
    ("MultiFeedback", {"unobserved": 3}, "unobserved"),
    ("Judged", {"sampler": POOL}, "sampler"),
    ("Judged", {"detector": 3}, "detector"),
    ("Judged", {"detector": ns.detectors.Duplicates}, "detector"),
    ("Judged", {"policy": "remove"}, "policy"),
    ("Judged", {"threshold": 2}, "threshold"),
    ("Judged", {"rule": "max"}, "rule"),
    ("Judged", {"refill": 0.5}, "refill"),
    ("Judged", {"policy": "ignore", "refill": 2}, "refill"),
    ("Judged", {"policy": "ignore", "on_short": "pad"}, "on_short"),
    ("Learned", {"reward": 3}, "reward"),
    ("Learned", {"baseline": "greedy"}, "baseline"),
    ("Learned", {"slots": 0}, "slots"),
    ("Learned", {"entropy": -1}, "entropy"),
    ("Learned", {"pool": ns.pools.InBatch()}, "candidates"),
    ("GraphPolicy", {"graph": KNOWN}, "graph"),
    ("GraphPolicy", {"hops": 5}, "hops"),
    ("GraphPolicy", {"width": 0}, "width"),
    ("GraphPolicy", {"start": "item"}, "start"),
    ("GraphPolicy", {"stop": "late"}, "stop"),
    ("GraphPolicy", {"positives": ns.Positives.from_pairs([0], [0], 6, 7)}, "positives"),
    ("GraphPolicy", {"items": np.ones(6)}, "items"),
    ("Generated", {"base": 3}, "base"),
    ("Generated", {"loss": 3}, "loss"),
    ("Generated", {"pull": -1}, "pull"),
    ("Generated", {"diversity": 1.0}, "noise"),
    ("Transformed", {"base": 3}, "base"),
    ("Transformed", {"make": 3}, "make"),
    ("AdaptiveOversampling", {"positives": [1]}, "positives"),
    ("AdaptiveOversampling", {"item_factors": VECTORS[1:]}, "item_factors"),
    ("AdaptiveOversampling", {"item_factors": VECTORS * np.nan}, "item_factors"),
    ("AdaptiveOversampling", {"scale": 0}, "scale"),
    ("MarkovChain", {"positives": 3}, "positives"),
    ("MarkovChain", {"uniform": 0}, "uniform"),
    ("MarkovChain", {"uniform": lambda step: 0.5}, "uniform"),
    ("MarkovChain", {"power": -1}, "power"),
    ("MarkovChain", {"target": "sum"}, "target"),
    ("MarkovChain", {"neighbours": np.zeros((5, 2), int)}, "neighbours"),
    ("MarkovChain", {"neighbours": np.full((6, 2), 6)}, "neighbours"),
    *[
        (name, {setting: bad}, setting)
        for name, given in VALID.items()
        for setting, bad in (PART_OF_ALL | NUMBER).items()
        if setting in getattr(getattr(samplers, name), "__dataclass_fields__", given)
        and (name, setting) not in {("SoftmaxWeights", "temperature"), ("Generated", "mix")}
    ],
]


@pytest.mark.parametrize(
    ("name", "change", "parameter"), SETTINGS, ids=[f"{name}-{parameter}" for name, _, parameter in SETTINGS]
)
def test_an_invalid_setting_is_named(name, change, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        getattr(samplers, name)(**{**VALID[name], **change})
    assert caught.value.parameter == parameter
    assert str(caught.value).startswith(f"{name}: `{parameter}` must be ")


# A sampler, what it is asked, and the parameter that the error names.
QUERIES = [
    *[
        (name, {}, (query, k, rng), parameter)
        for name in VALID
        for query, k, rng, parameter in ((QUERY, -1, ns.rng_for(0), "k"), (QUERY, 1, 0, "rng"))
    ],
    ("Dynamic", {}, ([0], 1), "query"),
    ("Dynamic", {"top_m": 2}, (QUERY, [1, 3]), "k"),
    ("Dynamic", {"top_m": 2}, (QUERY, 2.5), "k"),
    ("Dynamic", {"candidates": lambda step: 0}, (QUERY, 1), "candidates"),
    ("Dynamic", {"candidates": None}, (QUERY, 1), "candidates"),
    ("Dynamic", {"top_m": lambda step: 6}, (QUERY, 1), "top_m"),
    ("Dynamic", {"score": lambda anchors, ids: None}, (QUERY, 1), "score"),
    ("Dynamic", {"score": lambda anchors, ids: ids[:, :1] * 1.0}, (QUERY, 1), "score"),
    ("Dynamic", {"score": lambda anchors, ids: ids * np.nan}, (QUERY, 1), "score"),
    ("SemiHard", {}, (BARE, 1), "query.positives"),
    ("NearPositive", {}, (BARE, 1), "query.positives"),
    (
        "NearPositive",
        {"pool": ns.pools.Corruption([[0, 0, 1]], sides=("relation", "tail"), n_relations=3)},
        (ns.Query([[0, 0, 1]] * 9), 1),
        "pool",
    ),
    ("NearTarget", {"target": lambda own, step: own[:1]}, (QUERY, 1), "target"),
    ("NearTarget", {"target": lambda own, step: own + np.inf}, (QUERY, 1), "target"),
    ("PercentileRange", {"where": lambda query, ids: [True]}, (QUERY, 1), "where"),
    ("PercentileRange", {"where": lambda query, ids: ids}, (QUERY, 1), "where"),
    ("PercentileRange", {"keep": lambda step: (1, 0)}, (QUERY, 1), "keep"),
    ("DistanceWeighted", {}, (QUERY, 1), "score"),  # which are no cosines
    ("DistanceWeighted", {"cutoff": lambda step: 1.5}, (QUERY, 1), "nonzero_loss_cutoff"),
    ("SoftmaxWeights", {"pool": ns.pools.InBatch(distinct=False)}, (QUERY, 1), "pool"),  # without log_q
    ("MoCHi", {}, (BARE, 1), "query.vectors"),
    ("MoCHi", {"embed": None}, (QUERY, 1), "embed"),
    ("MoCHi", {}, (ns.Query([0], vectors=VECTORS[:1, :2]), 1), "query.vectors"),
    ("MoCHi", {}, (ns.Query([0], vectors=VECTORS[:1] * np.nan), 1), "query.vectors"),
    ("MixKG", {"pool": CORRUPTION}, (ns.Query([[0, 0, 1]] * 9), 1), "pool"),  # two sides
    ("MixKG", {"score": None, "by": "entity"}, (BARE, 1), "query.positives"),
    ("MixKG", {"score": None, "by": "entity"}, (WITHOUT_ONE, 1), "query.positives"),
    ("MixGCF", {}, (BARE, 1), "query.positives"),
    ("MixGCF", {}, (WITHOUT_ONE, 1), "query.positives"),
    ("MixGCF", {"embed": lambda ids: VECTORS[ids].astype(int)}, (QUERY, 1), "embed"),
    ("MixGCF", {"embed": lambda ids: VECTORS[ids][:1]}, (QUERY, 1), "embed"),
    ("MixGCF", {"embed": lambda ids: torch.tensor(VECTORS)[ids]}, (QUERY, 1), "embed"),
    ("MixGCF", {"embed": lambda ids: VECTORS[ids] * np.nan}, (QUERY, 1), "embed"),
    ("Cached", {}, (QUERY, 4), "k"),
    ("Cached", {}, (ns.Query([2]), 1), "anchors"),
    ("Mixed", {"shares": [lambda step: -1, 1]}, (QUERY, 1), "shares"),
    ("Mixed", {"parts": {"a": Answers(vectors=[1.0]), "b": Answers()}}, (QUERY, 2), "parts"),
    ("Mixed", {"parts": {"a": Answers(vectors=[1.0]), "b": Answers(vectors=[1.0, 2.0])}}, (QUERY, 2), "parts"),
    ("MultiFeedback", {}, (BARE, 1), "query.positives"),
    ("Learned", {"generator": lambda anchors, ids: WEIGHT}, (QUERY, 1), "generator"),
    ("Learned", {"generator": not_finite}, (QUERY, 1), "generator"),
    ("Learned", {"pool": ns.pools.InBatch(), "candidates": lambda step: None}, (QUERY, 1), "candidates"),
    ("GraphPolicy", {"generator": not_finite, "graph": STAR}, (QUERY, 1), "generator"),
    ("GraphPolicy", {}, (ns.Query([6]), 1), "anchors"),
    ("GraphPolicy", {"start": "positive"}, (BARE, 1), "query.positives"),
    ("Generated", {"embed": in_torch, "generator": lambda *parts: parts[2][:1]}, (QUERY, 1), "generator"),
    ("Transformed", {"make": lambda query, ids, rng: VECTORS}, (QUERY, 1), "make"),
    ("AdaptiveOversampling", {}, (ns.Query([2]), 1), "anchors"),
    ("AdaptiveOversampling", {"embed": lambda anchors: VECTORS}, (QUERY, 1), "embed"),
    ("AdaptiveOversampling", {"embed": lambda anchors: VECTORS[anchors] * np.nan}, (QUERY, 1), "embed"),
    ("MarkovChain", {"target": "power", "score": lambda anchors, ids: ids * -1.0}, (QUERY, 1), "score"),
]


@pytest.mark.parametrize(
    ("name", "change", "asked", "parameter"), QUERIES, ids=[f"{name}-{parameter}" for name, _, _, parameter in QUERIES]
)
def test_an_invalid_query_is_named(name, change, asked, parameter):
    sampler = getattr(samplers, name)(**{**VALID[name], **change})
    query, k, rng = asked if len(asked) == 3 else (*asked, ns.rng_for(0))
    with pytest.raises(ns.NaysayError) as caught:
        sampler.sample(query, k, rng=rng)
    assert caught.value.parameter == parameter


CALLS = [
    (samplers.Bank(POOL, 6).observe, {"query": QUERY, "negatives": None}, "vectors"),
    (samplers.Bank(POOL, 6).observe, {"query": BARE, "negatives": None, "vectors": VECTORS[:2]}, "query.positives"),
    (
        samplers.Bank(POOL, 6, initial=VECTORS).observe,
        {"query": QUERY, "negatives": None, "vectors": np.ones((2, 2))},
        "vectors",
    ),
    (
        samplers.Cached(POOL, score, 2, 2, choose="top", history=2).observe,
        {"query": QUERY, "positive_scores": [1.0]},
        "positive_scores",
    ),
    (samplers.AdaptiveOversampling(KNOWN, VECTORS, embed, 1.0).update, {"item_factors": VECTORS[1:]}, "item_factors"),
    (samplers.in_blocks, {"score": 3}, "score"),
    (samplers.in_blocks, {"score": score, "candidates": 0}, "candidates"),
    (samplers.StoredVectors, {"metric": "l2"}, "metric"),
    (samplers.StoredVectors, {"embed": 3}, "embed"),
    (samplers.jigsaw, {"images": np.ones((1, 3, 4)), "rng": ns.rng_for(0)}, "images"),
    (samplers.jigsaw, {"images": np.ones((1, 4, 4)), "parts": 1, "rng": ns.rng_for(0)}, "parts"),
    (samplers.jigsaw, {"images": np.ones((1, 4, 4)), "rng": 3}, "rng"),
    (samplers.shuffled, {"vectors": np.ones(3), "rng": ns.rng_for(0)}, "vectors"),
    (samplers.noise, {"n": -1, "dim": 2, "rng": ns.rng_for(0)}, "n"),
    (samplers.noise, {"n": 1, "dim": 0, "rng": ns.rng_for(0)}, "dim"),
    (samplers.ascend, {"vectors": np.ones((1, 2)), "loss": torch.sum}, "vectors"),
    (samplers.ascend, {"vectors": torch.ones(1, 2), "loss": torch.sum, "size": 0}, "size"),
    (samplers.ascend, {"vectors": torch.ones(1, 2), "loss": torch.sum, "norm": "l1"}, "norm"),
    (samplers.momentum_update, {"online": 3, "target": torch.nn.Linear(1, 1)}, "online"),
    (samplers.momentum_update, {"online": torch.nn.Linear(1, 1), "target": torch.nn.Linear(1, 2)}, "target"),
    (
        samplers.momentum_update,
        {"online": torch.nn.Linear(1, 1), "target": torch.nn.Linear(1, 1), "momentum": 2},
        "momentum",
    ),
]


@pytest.mark.parametrize(("call", "given", "parameter"), CALLS)
def test_an_invalid_call_is_named(call, given, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        call(**given)
    assert caught.value.parameter == parameter


def test_samplers_that_cannot_exclude_by_time_say_so_though_their_pool_can():
    learned = samplers.Learned(TIMED_POOL, generator, OPTIMIZER, score)
    for sampler in (learned, samplers.Cached(TIMED_POOL, score, 3, 3)):
        with pytest.raises(ns.NaysayError) as caught:
            sampler.sample(TIMED, 1, rng=ns.rng_for(0))
        assert caught.value.parameter == "query.times"
        assert "Only Everything" not in str(caught.value)


def test_stored_vectors_are_only_for_pools_that_store_them():
    for score_by, query, parameter in (
        (samplers.StoredVectors(), QUERY, "pool"),
        (samplers.StoredVectors(), BARE, "query.vectors"),
    ):
        with pytest.raises(ns.NaysayError) as caught:
            samplers.Dynamic(POOL, score_by, 3).sample(query, 1, rng=ns.rng_for(0))
        assert caught.value.parameter == parameter
    memory = ns.pools.Memory(3)
    memory.push([1, 2], vectors=VECTORS[:2])
    with pytest.raises(ns.NaysayError) as caught:
        samplers.SemiHard(memory, samplers.StoredVectors(), 2, 1.0).sample(QUERY, 1, rng=ns.rng_for(0))
    assert caught.value.parameter == "score"  # it has no `embed` for the positives
    with pytest.raises(ns.NaysayError) as caught:
        samplers.Cached(POOL, samplers.StoredVectors(), 2, 2).observe(QUERY)
    assert caught.value.parameter == "score"


SHORT = {
    "Dynamic": {},
    "SemiHard": {"margin": 1e-9},
    "NearPositive": {"limit": -1.0},
    "NearTarget": {},
    "PercentileRange": {"keep": (0.0, 0.1)},
    "Warp": {"margin": 0},
    "MoCHi": {"candidates": 1},
    "MixGCF": {},
    "MixKG": {},
    "Cached": {},
    "MultiFeedback": {"share": 1.0},
    "Mixed": {},
    "Learned": {},
    "MarkovChain": {},
    "AdaptiveOversampling": {},
}


@pytest.mark.parametrize("name", SHORT)
def test_a_row_that_stays_short_raises_if_it_must_not(name):
    full = ns.Positives.from_pairs([0] * 6 + [1], [*range(6), 1], 2, 6)
    swapped = {"pool": ns.pools.Everything(full), "positives": full, "unobserved": ns.pools.Everything(full)}
    parts = {"a": samplers.Static(ns.pools.Everything(full))}
    settings = {**VALID[name], **{key: value for key, value in swapped.items() if key in VALID[name]}, **SHORT[name]}
    if name == "Mixed":
        settings = {"parts": parts, "shares": (1,)}
    sampler = getattr(samplers, name)(**settings, on_short="raise")
    with pytest.raises(ns.NaysayError, match=r"row 0 has 0 candidates left of the 1 requested"):
        sampler.sample(QUERY, 1, rng=ns.rng_for(0))
