"""Options of a wrong type are one sentence, whatever the type: never an error of NumPy's or of Python's."""

from contextlib import suppress

import numpy as np
import pytest
import torch

import naysay as ns
from naysay import NaysayError, pools

KNOWN = ns.Positives.from_pairs([0, 1, 2], [0, 1, 2], 3, 3)
GRAPH = ns.Positives.from_edges([0, 1], [1, 2])
TRIPLES = [[0, 0, 1], [1, 0, 2]]
SHARED = {"distinct": True, "on_short": "pad"}
WRONG = [
    *("x", b"x", None, 1.5, -1, True, [], {}, object(), [1, "a"], np.nan, np.array("x"), [[1], [2, 3]], 10**30),
    *(
        (1, 2, 3),
        {1, 2},
        np.array([None]),
        np.ones((2, 2)),
        torch.tensor(2.5),
        1j,
        slice(1),
        range(3),
        [None],
        [np.nan],
    ),
]
MADE = [
    (pools.Everything, {"positives": KNOWN, "weights": None, **SHARED}),
    (pools.InBatch, {"positives": KNOWN, **SHARED}),
    (pools.Memory, {"size": 3, "positives": KNOWN, **SHARED}),
    (pools.Local, {"lists": [[0], [1], [2]], "positives": KNOWN, **SHARED}),
    (pools.KHop, {"graph": GRAPH, "hops": 2, "positives": None, **SHARED}),
    (pools.Walks, {"graph": GRAPH, "length": 2, "walks": 3, "positives": None, **SHARED}),
    (pools.PageRank, {"graph": GRAPH, "ranks": (0, 2), "restart": 0.1, "tolerance": 1e-3, **SHARED}),
    (pools.Corruption, {"triples": TRIPLES, "known": None, "sides": ("head",), "choice": "uniform", **SHARED}),
    (pools.Corruption, {"triples": TRIPLES, "domains": None, "ranges": None, "n_entities": 3, "n_relations": 1}),
    (pools.popularity, {"counts": [1, 2], "power": 0.5}),
    (pools.log_uniform, {"n_items": 3, "counts": [1, 2, 3]}),
    (ns.Positives.from_pairs, {"anchors": [0], "items": [0], "n_anchors": 2, "n_items": 2, "item_names": None}),
    (ns.Positives.from_edges, {"sources": [0], "targets": [1], "n_nodes": 3, "directed": True, "self_pairs": False}),
    (ns.Positives.from_csr, {"indptr": [0, 1], "indices": [0], "n_items": 2}),
    (ns.Positives.load, {"path": "nowhere"}),
    (KNOWN.contains, {"anchors": [0], "items": [0], "relation": "any"}),
    (KNOWN.nth_negative, {"anchors": [0], "ranks": [0]}),
    (ns.Triples, {"triples": TRIPLES, "n_entities": 3, "n_relations": 1, "entity_names": None}),
    (ns.Triples([["a", "b", "c"]]).ids, {"names": [["a", "b", "c"]]}),
    (ns.Triples([["a", "b", "c"]]).names, {"ids": [[0, 0, 1]]}),
    (ns.Vocabulary(["a"]).ids, {"names": ["a"]}),
    (pools.Memory(3, KNOWN).push, {"ids": [0], "owners": [0], "vectors": None}),
    (pools.Memory(3).restore, {"state": None}),
    (pools.Everything(KNOWN).draw, {"query": ns.Query([0]), "n": 1, "rng": ns.rng_for(0)}),
    (pools.Everything(KNOWN).draw_pairs, {"n": 1, "rng": ns.rng_for(0), "distinct": True}),
    (pools.Walks(GRAPH).endpoints, {"anchors": [0], "count": 2, "rng": ns.rng_for(0)}),
]


@pytest.mark.parametrize(("make", "good"), MADE, ids=lambda value: getattr(value, "__qualname__", ""))
def test_a_wrong_type_is_one_sentence(make, good):
    for name in good:
        for wrong in WRONG:
            with suppress(NaysayError):
                assert repr(make(**{**good, name: wrong}))
