"""PyTorch Geometric: non-edges of a graph, and a target for each edge, with its own signatures.

Prints:
    8 of 20 possible non-edges, 0 are edges
    a non-neighbour for each of 10 edges
    with torch's seed, the same again
"""

import torch
from torch_geometric.data import Data

from naysay.integrations.pyg import negative_sampling, structured_negative_sampling

ring = torch.arange(6)
data = Data(edge_index=torch.stack([ring[:5], ring[1:]]).repeat(1, 2), num_nodes=6)  # each edge twice
data.edge_index[:, 5:] = data.edge_index[:, 5:].flip(0)  # once in each direction

drawn = negative_sampling(data.edge_index, data.num_nodes, num_neg_samples=8)
edges = {tuple(edge) for edge in data.edge_index.T.tolist()}
possible = negative_sampling(data.edge_index, data.num_nodes, num_neg_samples=99).shape[1]
print(
    f"{drawn.shape[1]} of {possible} possible non-edges, {sum(tuple(e) in edges for e in drawn.T.tolist())} are edges"
)

i, j, k = structured_negative_sampling(data.edge_index, data.num_nodes)
if not edges & set(zip(i.tolist(), k.tolist(), strict=True)):
    print(f"a non-neighbour for each of {len(k)} edges")

one, other = (negative_sampling(data.edge_index, 6, generator=torch.Generator().manual_seed(0)) for _ in range(2))
if one.equal(other):
    print("with torch's seed, the same again")
