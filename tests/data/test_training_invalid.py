"""Batches, loaders, several processes and checks: calls that are refused, and which parameter the error names."""

import numpy as np
import pytest

import naysay as ns
from naysay.batches import BatchSampler, ByLoss, Grouped, RandomWalkBatches, Shuffled
from naysay.distributed import WholeBatch, observe_all, update_on_first

KNOWN = ns.Positives.from_pairs([0, 0, 1, 2], [0, 1, 2, 3], n_items=9)
STATIC = ns.samplers.Static(ns.pools.Everything(KNOWN))
LOADED = {"positives": KNOWN, "sampler": STATIC, "batch_size": 2}
TWO_TIMES = tuple(part[:2] for part in (*KNOWN.pairs(), np.arange(2)))
QUERY, NEGATIVES = ns.Query([0, 1]), ns.Negatives(np.array([[5, 6], [7, -1]]))
LABELLED = ns.detectors.Duplicates(item_texts=[f"t{item}" for item in range(9)], positives=KNOWN)

INVALID = [
    (Shuffled, {"n": 3, "size": 2, "forbid": [0, 1]}, "forbid"),
    (Shuffled, {"n": 3, "size": 2, "forbid": [0, 1, -2]}, "forbid"),
    (Shuffled, {"n": 3, "size": 2, "forbid": ns.Positives.from_pairs([0], [5])}, "forbid"),
    (Shuffled(3, 2).plan, {"epoch": -1, "rng": ns.rng_for(0)}, "epoch"),
    (Grouped, {"groups": [0, -1], "size": 2}, "groups"),
    (Grouped, {"groups": [0, 1], "size": 4, "per_batch": 3}, "per_batch"),
    (ByLoss, {"n": 3, "size": 2, "pressure": 0.5}, "pressure"),
    (ByLoss(3, 2).observe, {"rows": [3], "losses": [0.1]}, "rows"),
    (ByLoss(3, 2).observe, {"rows": [0], "losses": [np.inf]}, "losses"),
    (ByLoss(3, 2).restore, {"state": {"losses": [1.0]}}, "losses"),
    (ByLoss(3, 2).restore, {"state": {}}, "state"),
    (RandomWalkBatches, {"n": 9, "size": 2, "neighbours": 5, "candidates": 3}, "candidates"),
    (RandomWalkBatches, {"n": 9, "size": 2, "restart": 2}, "restart"),
    (RandomWalkBatches, {"n": 3, "size": 5, "cover": False}, "size"),
    (RandomWalkBatches(3, 2).update, {"vectors": np.ones(3), "rng": ns.rng_for(0)}, "vectors"),
    (RandomWalkBatches(3, 2, neighbours=1).restore, {"state": {"links": [[3], [0], [0]]}}, "links"),
    (BatchSampler, {"batches": Shuffled(3, 2), "rank": 1}, "rank"),
    (ns.data.loader, LOADED | {"sampler": ns.samplers.Static}, "sampler"),
    (ns.data.loader, LOADED | {"k": -1}, "k"),
    (ns.data.loader, LOADED | {"shuffle": "no"}, "shuffle"),
    (ns.data.loader, LOADED | {"rank": 1}, "ranks"),
    (ns.data.loader, LOADED | {"times": ([0], [1])}, "times"),
    (ns.data.loader, LOADED | {"times": TWO_TIMES}, "times"),
    (
        ns.data.loader,
        LOADED | {"positives": ns.Triples(np.array([[0, 0, 1]])), "times": ([0], [1], [2])},
        "times",
    ),
    (ns.data.loader, LOADED | {"workers": -1}, "workers"),
    (ns.data.loader, LOADED | {"batch_size": 400, "drop_last": True}, "positives"),
    (WholeBatch, {"sampler": ns.samplers.Static}, "sampler"),
    (WholeBatch, {"sampler": STATIC.pool}, "sampler"),
    (WholeBatch(STATIC).restore, {"state": {"a": 1}}, "state"),
    (observe_all, {"part": STATIC.pool, "query": ns.Query([0]), "negatives": None}, "part"),
    (update_on_first, {"part": STATIC, "ids": [0], "rows": np.ones((1, 1)), "update": print}, "part"),
    (
        update_on_first,
        {"part": ns.detectors.Incremental(2, 1), "ids": [0, 1], "rows": np.ones((1, 1)), "update": print},
        "ids",
    ),
    (ns.check_pool, {"pool": object()}, "pool"),
    (ns.check_pool, {"pool": ns.pools.Everything(KNOWN, on_short="raise")}, "pool"),
    (ns.check_pool, {"pool": ns.pools.InBatch()}, "anchors"),
    (ns.check_pool, {"pool": STATIC.pool, "positives": [1]}, "positives"),
    (ns.check_pool, {"pool": STATIC.pool, "anchors": []}, "anchors"),
    (ns.check_pool, {"pool": STATIC.pool, "anchors": [[1, 2]]}, "anchors"),
    (ns.check_pool, {"pool": STATIC.pool, "without": ("randomnes",)}, "without"),
    (ns.check_sampler, {"sampler": STATIC.pool, "positives": KNOWN}, "sampler"),
    (ns.check_loss, {"loss": "bpr"}, "loss"),
    (ns.check_detector, {"detector": object(), "query": QUERY, "negatives": NEGATIVES}, "detector"),
    (ns.check_detector, {"detector": LABELLED, "query": [0], "negatives": NEGATIVES}, "query"),
    (ns.check_detector, {"detector": LABELLED, "query": QUERY, "negatives": NEGATIVES.ids}, "negatives"),
    (ns.check_detector, {"detector": LABELLED, "query": ns.Query([1]), "negatives": NEGATIVES}, "query"),
    (
        ns.check_detector,
        {"detector": LABELLED, "query": QUERY, "negatives": ns.Negatives(np.full((2, 2), -1))},
        "negatives",
    ),
    (
        ns.check_detector,
        {"detector": LABELLED, "query": QUERY, "negatives": NEGATIVES, "without": ("shap",)},
        "without",
    ),
    (ns.planted_world, {"dimensions": 2.5}, "dimensions"),
    (ns.planted_world, {"n_items": 5, "per_anchor": 6}, "per_anchor"),
    (ns.planted_world, {"noise": float("nan")}, "noise"),
    (ns.planted_world, {"spread": float("inf")}, "spread"),
    (ns.planted_world, {"anisotropy": "0.5"}, "anisotropy"),
    (ns.planted_world, {"anisotropy": 1.0}, "anisotropy"),
    (ns.planted_world, {"anisotropy": 0.5, "dimensions": 1}, "dimensions"),
    (ns.planted_world, {"seed": -1}, "seed"),
]


@pytest.mark.parametrize(("call", "kwargs", "parameter"), INVALID)
def test_an_invalid_call_names_its_parameter(call, kwargs, parameter):
    with pytest.raises(ns.NaysayError) as caught:
        call(**kwargs)
    assert caught.value.parameter == parameter
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [{"batch_size": 16}, {"ranks": 2}, {"seed": 1}, {"step": -1}, {"step": None}])
def test_a_state_of_another_run_changes_nothing(change):
    loader = ns.data.loader(**LOADED)
    with pytest.raises(ns.NaysayError) as caught:
        loader.restore(loader.state() | change)
    assert (caught.value.parameter, loader.step) == ("state", 0)
