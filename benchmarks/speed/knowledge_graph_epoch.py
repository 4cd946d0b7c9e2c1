"""How long does an epoch of RotatE on FB15k-237 take, ours and PyKEEN's, and a validation of it?

python -m benchmarks.speed.knowledge_graph_epoch DATA --peers DIR [--repeats 3] [--width 64] [--batch 2048] [--k 8]

Both train in one thread, with equal width, batch, number of negatives, loss (self-adversarial, margin 9, temperature
1), score (Euclidean distance) and Adam. Epochs alternate in one run, ours first. An epoch is timed without its first
step: in that of PyKEEN its loader is made. On a machine that does other work the processor seconds tell more than those
of the wall clock. Writes results/knowledge_graph_epoch.json.

DATA has fb15k-237/triples.npz.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import naysay as ns
from benchmarks.harness import Peer, timed, write
from benchmarks.speed.runners import triples

RATE, MARGIN, ALPHA = 1e-2, 9.0, 1.0
UNEQUAL = [
    "negatives: known triples are drawn again here; there they stay, because PyKEEN filters only if asked to",
    "relations: angles here; there complex numbers that are normalised after each step",
    "Adam: fused here, torch's default there",
    "here the mean hardness of the negatives is recorded in every step, too",
]


def epochs_of(task: ns.lab.LinkPrediction, k: int, steps: int) -> Callable[[], int]:
    """A function that trains so many steps, and returns how many negatives they had."""
    learner = task.start(0)
    sampler = ns.samplers.Static(ns.pools.Corruption(task.data.train))
    step_of = learner.with_loss(sampler, ns.losses.self_adversarial, margin=MARGIN, alpha=ALPHA)
    optimiser = torch.optim.Adam(learner.parameters, lr=RATE, fused=True)
    order = np.random.default_rng(0)

    def train() -> int:
        rows = order.permutation(task.pairs)
        for step in range(steps):
            loss, _ = step_of(rows[step * task.batch : (step + 1) * task.batch], k, step=step)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return steps * task.batch * k

    return train


def validations(task: ns.lab.LinkPrediction) -> dict[str, float]:
    """Processor seconds of a validation on a sample, and of the test: filtered ranks among all entities."""
    learner = task.start(0)
    vectors, found = learner.snapshot(), {}
    for part, asked in (("validation", task.validated), ("test", len(task.data.test))):
        learner.measure(vectors, part)  # which may compile
        start = time.process_time()
        learner.measure(vectors, part)
        found |= {f"{part}_triples": float(asked), f"{part}_cpu_seconds": time.process_time() - start}
    return found


def compared(task: ns.lab.LinkPrediction, k: int, peers: Path, repeats: int) -> dict[str, Any]:
    """All epochs of both, in turn."""
    train = task.data.train
    steps = ceil(len(train) / task.batch) - 1
    numbers = {"n_entities": train.n_entities, "n_relations": train.n_relations, "batch": task.batch, "k": k}
    ours = epochs_of(task, k, steps)
    rows: dict[str, list[dict[str, Any]]] = {"naysay": [], "pykeen": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "triples.npz"
        known = np.random.default_rng(0).permutation(train.array)
        np.savez(file, known=known, steps=steps, width=task.dim, margin=MARGIN, alpha=ALPHA, **numbers)
        peer = Peer(peers, "pykeen", file, "rotate", 1)
        if peer.missing:
            raise SystemExit(peer.missing)
        epochs_of(task, k, 2)()  # which may compile
        for _ in range(repeats):
            rows["naysay"].append(timed(ours))
            rows["pykeen"].append(peer.repeat())
        peer.stop()
    ratios = {
        name: median(row[name] for row in rows["pykeen"]) / median(row[name] for row in rows["naysay"])
        for name in ("seconds", "cpu_seconds")
    }
    print(f"pykeen / naysay: {ratios['seconds']:.2f} on the wall clock, {ratios['cpu_seconds']:.2f} of the processor")
    versions = {name: value for name, value in peer.greeting.items() if name != "ready"}
    return {"steps_of_an_epoch": steps + 1, "timed_steps": steps, "epochs": rows, "ratio": ratios, "peer": versions}


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    ns.set_threads(1)
    torch.set_num_threads(1)
    before = os.getloadavg()
    task = ns.lab.LinkPrediction(triples(args.data), "rotate", dim=args.width, batch=args.batch)
    result = {
        "data": repr(task.data),
        "equal": {
            "width": task.dim,
            "batch": task.batch,
            "negatives": args.k,
            "threads": 1,
            "optimiser": "Adam",
            "loss": "self-adversarial",
            "margin": MARGIN,
            "alpha": ALPHA,
            "score": "Euclidean distance",
        },
        "unequal": UNEQUAL,
        **compared(task, args.k, args.peers, args.repeats),
        "ranking": validations(task),
        "load": {"before": before, "after": os.getloadavg()},
        "torch": torch.__version__,
    }
    write("knowledge_graph_epoch", result, args.out)


if __name__ == "__main__":
    main()
