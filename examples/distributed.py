"""Train on several processes with the negatives, thresholds and loss of one process that has the whole batch.

Start it with `torchrun --nproc-per-node 2 examples/distributed.py`. Without torchrun it is one process: the same lines.

Prints:
    step 0: 256 rows, loss 3.1044, mean threshold 0.9500
    step 39: 256 rows, loss 2.1304, mean threshold 0.4024
"""

import os

import numpy as np
import torch

import naysay as ns

known = ns.Positives.from_pairs(*np.random.default_rng(0).integers(0, (100, 400), size=(2000, 2)).T, 100, 400)


class Cosines(torch.nn.Module):
    """Vectors of users and items."""

    def __init__(self) -> None:
        super().__init__()
        vectors = np.random.default_rng(1).standard_normal((500, 16), np.float32)
        self.tables = torch.nn.ParameterList(torch.from_numpy(vectors).split([100, 400]))

    def forward(self, anchors: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """(B, n) the cosines of users (B,) and items (B, n)."""
        one, other = (torch.nn.functional.normalize(table, dim=1) for table in self.tables)
        return torch.einsum("bd,bnd->bn", one[anchors], other[ids])


if __name__ == "__main__":
    rank, processes = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    plain = model = Cosines()
    if processes > 1:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(plain)  # averages gradients over processes
    score = ns.distributed.in_shares(plain)  # each row is scored in one process
    sampler = ns.distributed.WholeBatch(ns.samplers.Dynamic(ns.pools.Everything(known), score, candidates=16))
    detector = ns.detectors.LearnedQuantile(100, alpha=0.2)
    for step in range(40):
        rng = ns.rng_for(0, step)  # the same in all processes
        rows = np.array_split(rng.permutation(len(known))[:256], processes)[rank]
        query = ns.Query(*(torch.from_numpy(part[rows]) for part in known.pairs()), step=step)
        negatives = sampler.sample(query, 4, rng=rng)
        ns.distributed.observe_all(detector, query, negatives)
        scores = model(query.anchors, torch.cat([query.positives[:, None], negatives.ids], 1))
        losses = ns.losses.info_nce(scores[:, 0], scores[:, 1:], temperature=0.2)
        losses.mean().backward()
        for table in plain.parameters():
            table.data, table.grad = table.data - 20 * table.grad, None
        whole, mean = ns.losses.gather_rows(losses.detach()).rows, detector.thresholds[detector.seen > 0].mean()
        if rank == 0 and step % 39 == 0:
            print(f"step {step}: {len(whole)} rows, loss {whole.mean():.4f}, mean threshold {mean:.4f}", flush=True)
    if processes > 1:
        torch.distributed.destroy_process_group()
        os._exit(0)  # gloo has threads left, which abort a process if they need Python while it ends
