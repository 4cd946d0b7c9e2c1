"""Time PyKEEN's ``BasicNegativeSampler`` with its Bloom filter over the known triples."""

import time
from typing import Any

import numpy as np
import torch
from protocol import Data, Repeat, serve
from pykeen.sampling import BasicNegativeSampler


def prepare(data: Data, case: str) -> tuple[float, Repeat]:
    """Build the sampler on every triple that has to be filtered out."""
    n_entities, n_relations = int(data["n_entities"]), int(data["n_relations"])
    batches = torch.from_numpy(data["batch"])
    triples = torch.from_numpy(data["known"])
    start = time.perf_counter()
    sampler = BasicNegativeSampler(
        mapped_triples=triples,
        num_entities=n_entities,
        num_relations=n_relations,
        num_negs_per_pos=int(data["k"]),
        filtered=True,
        filterer=case,
    )
    build_seconds = time.perf_counter() - start

    def keys(triples: np.ndarray) -> np.ndarray:
        """Give each triple one number."""
        head, relation, tail = np.moveaxis(triples, -1, 0)
        return (head * n_relations + relation) * n_entities + tail

    known = keys(data["known"])

    def repeat() -> dict[str, Any]:
        start = time.perf_counter()
        drawn = [sampler.sample(batch) for batch in batches]
        seconds = time.perf_counter() - start
        negatives = torch.stack([negative for negative, _ in drawn]).numpy()
        kept = torch.stack([mask for _, mask in drawn]).numpy()
        return {
            "seconds": seconds,
            "negatives": kept.size,
            "masked_share": float(1 - kept.mean()),
            "leaks": int(np.isin(keys(negatives[kept]), known).sum()),
        }

    return build_seconds, repeat


if __name__ == "__main__":
    serve("pykeen", "pykeen", ["bloom"], prepare)
