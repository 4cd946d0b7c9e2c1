"""What the samplers for PyKEEN and PyTorch Geometric cost, against those libraries' own in the same process.

It runs in the environment of `make test-integrations`, which has both libraries. One thread, generated data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.speed.harness import Options, Row, alternate, command

ENTITIES, RELATIONS, TRIPLES = 15_000, 200, 270_000
NODES, EDGES = 50_000, 1_000_000
BATCHES = (256, 4096)
SLOTS = {"uniform": (1, 4, 16, 64), "bernoulli": (1, 16), "typed": (1, 16)}  # {choice: K}
NEGATIVES = 40_960  # of a repetition, at least
Runs = dict[str, Callable[[], int]]


def pykeen_runs(choice: str, batch: int, k: int) -> Runs:
    """Ours, and PyKEEN's without and with its two filters."""
    from pykeen.sampling import BasicNegativeSampler, BernoulliNegativeSampler, PseudoTypedNegativeSampler

    from naysay.integrations.pykeen import ExactNegativeSampler

    rng = np.random.default_rng(0)
    sizes = (ENTITIES, RELATIONS, ENTITIES)
    popular = [np.floor(size * rng.random(TRIPLES) ** 2).astype(np.int64) for size in sizes]
    triples = torch.from_numpy(np.unique(np.stack(popular, axis=1), axis=0))
    given: dict[str, Any] = {"num_entities": ENTITIES, "num_relations": RELATIONS, "num_negs_per_pos": k}
    peers = (BasicNegativeSampler, BernoulliNegativeSampler, PseudoTypedNegativeSampler)
    peer = dict(zip(SLOTS, peers, strict=True))[choice]
    samplers = {"naysay": ExactNegativeSampler(mapped_triples=triples, choice=choice, **given)}
    for name, options in {
        "PyKEEN, not filtered": {},
        "PyKEEN, Bloom filter": {"filtered": True},
        "PyKEEN, set of triples": {"filtered": True, "filterer": "python-set"},
    }.items():
        samplers[name] = peer(mapped_triples=triples, **given, **options)
    batches = torch.from_numpy(rng.integers(0, len(triples), (max(1, NEGATIVES // (batch * k)), batch)))

    def run(sampler: Any) -> int:
        return sum(sampler.sample(triples[rows])[0][..., 0].numel() for rows in batches)

    return {name: (lambda sampler=sampler: run(sampler)) for name, sampler in samplers.items()}


def pyg_runs(structured: bool) -> Runs:  # noqa: FBT001
    """Ours, and the function of PyG of the same name, for all edges of one graph."""
    from torch_geometric import utils

    from naysay.integrations import pyg

    edges = torch.from_numpy(np.random.default_rng(0).integers(0, NODES, (2, EDGES)))
    name = "structured_negative_sampling" if structured else "negative_sampling"
    return {
        "naysay": lambda: getattr(pyg, name)(edges, NODES)[-1].numel(),
        "PyG": lambda: getattr(utils, name)(edges, NODES)[-1].numel(),
    }


def measured(runs: Runs, repeats: int) -> dict[str, float]:
    """Nanoseconds of processor time for a negative, the best of some repetitions."""
    found, _ = alternate(runs, repeats)
    return {name: 1e9 * row["cpu_seconds"] / row["negatives"] for name, row in found.items()}


def pykeen(options: Options) -> list[Row]:
    """By kind of corruption, batch and K."""
    warnings.simplefilter("ignore")
    cases = [(choice, batch, k) for choice in SLOTS for batch in BATCHES for k in SLOTS[choice]][: options.size(100, 1)]
    rows = ((choice, batch, k, measured(pykeen_runs(choice, batch, k), options.repeats)) for choice, batch, k in cases)
    return [{"choice": choice, "batch": batch, "k": k, "nanoseconds": times} for choice, batch, k, times in rows]


def pyg(options: Options) -> Row:
    """By function."""
    warnings.simplefilter("ignore")
    functions = {"negative_sampling": False, "structured_negative_sampling": True}
    return {name: measured(pyg_runs(structured), options.repeats) for name, structured in functions.items()}


SIZES = {"entities": ENTITIES, "relations": RELATIONS, "triples": TRIPLES, "nodes": NODES, "edges": EDGES}
RESULTS = {"integrations": {"sizes": SIZES, "pykeen": pykeen, "pyg": pyg}}

if __name__ == "__main__":
    command(__doc__, RESULTS)
