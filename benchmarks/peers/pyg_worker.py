"""Time PyG's ``negative_sampling``: pairs of nodes that are not edges of a graph."""

import time
from typing import Any

import numpy as np
import torch
from protocol import Data, Repeat, serve
from torch_geometric.utils import negative_sampling


def prepare(data: Data, _case: str) -> tuple[float, Repeat]:
    """Take the graph as it is: PyG keeps no structure between calls, so nothing is built."""
    n_nodes, n = int(data["n_nodes"]), int(data["n"])
    source, target = data["edge_index"]
    known = source * n_nodes + target
    edge_index = torch.from_numpy(data["edge_index"])

    def repeat() -> dict[str, Any]:
        start = time.perf_counter()
        drawn = negative_sampling(edge_index, n_nodes, num_neg_samples=n)
        seconds = time.perf_counter() - start
        source, target = drawn.numpy()
        leaks = np.isin(source * n_nodes + target, known).sum()
        return {"seconds": seconds, "negatives": source.size, "leaks": int(leaks)}

    return 0.0, repeat


if __name__ == "__main__":
    serve("pyg", "torch-geometric", ["non_edges"], prepare)
