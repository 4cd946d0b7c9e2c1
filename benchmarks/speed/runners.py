"""Are the models that `naysay compare` trains as fast as those of the libraries people train with?

python -m benchmarks.speed.runners DATA --peers DIR [--parts NAME ...] [--repeats 7] [--steps 20]

Matrix factorisation on yelp2018 against RecBole, TransE on FB15k-237 against PyKEEN, and LightGCN's propagation
against torch.sparse. Whole training steps are timed, without start-up and loading, and scaled to an epoch. Each
comparison alternates in one run and keeps the best of several repetitions, on the wall clock and in processor seconds.
Then where the time of our steps goes, and what torch.optim.SparseAdam would give. Writes results/runners.json.

DATA has yelp2018/interactions.npz and fb15k-237/triples.npz.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import naysay as ns
from benchmarks.harness import RESULTS, Peer, alternate, write
from benchmarks.speed.runner_steps import WIDTH, K, optimisers, split, started, steps_of, touched_rows

BATCHES = {"ours": 4096, "RecBole's": 128}  # pairs of a step; RecBole's 2,048 rows are 128 pairs with 16 negatives
TRIPLES = 2048
PARTS = ("factorisation", "transe", "propagation", "steps")
EQUAL = {"negatives": K, "width": WIDTH, "optimiser": "Adam over all vectors"}
UNEQUAL = {
    "recbole": [
        "loss: InfoNCE over the 16 negatives here, BPR of each pair of positive and negative there",
        "negatives: distinct in a row here, with replacement there; known positives are excluded by both",
        "Adam: fused here, torch's default there",
        "here the mean hardness of the negatives is recorded in every step, too",
    ],
    "pykeen": [
        "negatives: known triples are drawn again here; there they stay, or are masked if filtered",
        "Adam: fused here, torch's default there",
        "here the mean hardness of the negatives is recorded in every step, too",
    ],
}


def interactions(folder: Path) -> ns.lab.Interactions:
    """The training pairs of yelp2018; the test pairs, in halves, are held out."""
    with np.load(folder / "yelp2018" / "interactions.npz") as file:
        train, test = (
            [file[f"{part}_{side}"].astype(np.int64) for side in ("user", "item")] for part in ("train", "test")
        )
    n_users, n_items = (int(max(a.max(), b.max())) + 1 for a, b in zip(train, test, strict=True))
    made = [train, *([ids[first::2] for ids in test] for first in (0, 1))]
    return ns.lab.Interactions(*(ns.Positives.from_pairs(*pairs, n_users, n_items) for pairs in made))


def triples(folder: Path) -> ns.lab.KnowledgeGraph:
    """FB15k-237 in its three parts."""
    with np.load(folder / "fb15k-237" / "triples.npz") as file:
        parts = [file[name].astype(np.int64) for name in ("train", "valid", "test")]
    every = np.concatenate(parts)
    sizes = int(every[:, [0, 2]].max()) + 1, int(every[:, 1].max()) + 1
    return ns.lab.KnowledgeGraph(*(ns.Triples(part, *sizes) for part in parts))


def in_epochs(rows: dict[str, Any], task: Any, steps: int) -> dict[str, Any]:
    """Add epochs per second, on the wall clock and of the processor, and their ratios of ours to each peer."""
    part = steps * task.batch / task.pairs  # of an epoch
    for row in rows.values():
        if "seconds" in row:
            row["epochs_per_second"] = part / row["seconds"]
            row["epochs_per_processor_second"] = part / row["cpu_seconds"]
            row["processor_milliseconds_per_step"] = 1e3 * row["cpu_seconds"] / steps
    for row in rows.values():
        if "seconds" in row:
            row["naysay_is_faster"] = {
                "wall": row["seconds"] / rows["naysay"]["seconds"],
                "processor": row["cpu_seconds"] / rows["naysay"]["cpu_seconds"],
            }
    return rows


def compared(task: Any, peers: list[Peer], repeats: int, steps: int) -> dict[str, Any]:
    """Ours and its peers in turn."""
    try:
        rows = alternate({"naysay": steps_of(started(task), steps)}, peers, repeats)
    finally:
        for peer in peers:
            peer.stop()
    show(rows := in_epochs(rows, task, steps))
    return {"epoch_steps": task.pairs / task.batch, "timed_steps": steps * repeats, "rows": rows}


def show(rows: dict[str, Any]) -> None:
    """A line for each contender."""
    for name, row in rows.items():
        if "missing" in row:
            print(f"  {name:28s} {row['missing']}")
            continue
        ratio = row["naysay_is_faster"]
        speed = f"{row['epochs_per_second']:8.4f} epochs/s, {row['epochs_per_processor_second']:8.4f} of the processor"
        print(f"  {name:28s} {speed}   naysay {ratio['wall']:.2f} x, {ratio['processor']:.2f} x of the processor")


def against_recbole(
    data: ns.lab.Interactions, batch: int, peers: Path, repeats: int, steps: int, threads: int
) -> dict[str, Any]:
    """Matrix factorisation with K negatives by each library's own sampler."""
    task = ns.lab.Recommendation(data, "mf", dim=WIDTH, batch=batch)
    users, items = data.train.pairs()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.npz"
        numbers = {"n_users": data.n_users, "n_items": data.n_items, "batch": task.batch, "width": WIDTH, "k": K}
        np.savez(file, users=users, items=items, steps=steps, **numbers)
        peer = Peer(peers, "recbole_train", file, "uniform", threads)
        found = compared(task, [peer], repeats, steps)
    return {"equal": EQUAL | {"batch": task.batch, "threads": threads}, "unequal": UNEQUAL["recbole"], **found}


def against_pykeen(
    data: ns.lab.KnowledgeGraph, batch: int, peers: Path, repeats: int, steps: int, threads: int
) -> dict[str, Any]:
    """TransE with K corruptions by each library's own sampler; PyKEEN with and without its filter."""
    task = ns.lab.LinkPrediction(data, "transe", dim=WIDTH, batch=batch)
    train = data.train
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "triples.npz"
        numbers = {"n_entities": train.n_entities, "n_relations": train.n_relations, "batch": task.batch}
        known = np.random.default_rng(0).permutation(train.array)
        np.savez(file, known=known, steps=steps, width=WIDTH, k=K, **numbers)
        made = []
        for case in ("train", "train_filtered"):
            peer = Peer(peers, "pykeen", file, case, threads)
            peer.name = "pykeen, filtered" if case == "train_filtered" else "pykeen"  # two rows of one library
            made.append(peer)
        found = compared(task, made, repeats, steps)
    equal = EQUAL | {"batch": task.batch, "threads": threads, "loss": "InfoNCE", "score": "Euclidean distance"}
    return {"equal": equal, "unequal": UNEQUAL["pykeen"], **found}


def propagation(data: ns.lab.Interactions, repeats: int) -> dict[str, Any]:
    """LightGCN's vectors of all layers and their gradient, ours and by torch.sparse.mm in both of its forms."""
    network = ns.lab.LightGCN(data.train, 0, dim=WIDTH, hops=2)
    graph: Any = network.graph
    slopes = torch.randn(network.vectors.shape, generator=torch.Generator().manual_seed(0))

    def ours() -> int:
        network.vectors.grad = None
        network.pooled(network.layers()).backward(slopes)  # type: ignore[no-untyped-call]
        return 1

    def plain(matrix: Any) -> int:
        network.vectors.grad = None
        found = [network.vectors]
        for _ in range(network.hops):
            found.append(torch.sparse.mm(matrix, found[-1]))
        torch.stack(found, dim=1).mean(dim=1).backward(slopes)  # type: ignore[no-untyped-call]
        return 1

    forms = {"torch.sparse, rows (CSR)": graph, "torch.sparse, places (COO)": graph.to_sparse_coo().coalesce()}
    ways: dict[str, Callable[[], int]] = {"naysay": ours} | {name: partial(plain, form) for name, form in forms.items()}
    gradients = {}
    for name, way in ways.items():
        way()
        gradients[name] = network.vectors.grad
    rows = alternate(ways, [], repeats)
    for name, row in rows.items():
        row["naysay_is_faster"] = {
            "wall": row["seconds"] / rows["naysay"]["seconds"],
            "processor": row["cpu_seconds"] / rows["naysay"]["cpu_seconds"],
        }
        row["largest_difference"] = float((gradients[name] - gradients["naysay"]).abs().max())  # type: ignore[operator]
        print(f"  {name:28s} {1e3 * row['cpu_seconds']:8.1f} ms   naysay {row['naysay_is_faster']['processor']:.2f} x")
    return {"nodes": len(network.vectors), "edges": 2 * len(data.train), "width": WIDTH, "hops": 2, "rows": rows}


def all_steps(pairs: ns.lab.Interactions, graph: ns.lab.KnowledgeGraph, repeats: int, steps: int) -> dict[str, Any]:
    """Where the time of each model's step goes, and what SparseAdam would change for matrix factorisation."""
    kinds = (("mf", BATCHES["ours"]), ("mf", BATCHES["RecBole's"]), ("lightgcn", BATCHES["ours"]))
    tasks: list[Any] = [ns.lab.Recommendation(pairs, model, dim=WIDTH, batch=batch) for model, batch in kinds]
    tasks.append(ns.lab.LinkPrediction(graph, "transe", dim=WIDTH, batch=TRIPLES))
    found: dict[str, Any] = {}
    for task in tasks:
        row: dict[str, Any] = split(task, repeats, steps)
        if task.model == "mf":
            row["update"] = optimisers(pairs.n_users + pairs.n_items, touched_rows(task), repeats)
        found[f"{task.model}, batch {task.batch:,}"] = row
    return found


def main() -> None:
    """Run all and write results/runners.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="measure these only and keep the others of the file")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    ns.set_threads(args.threads)
    torch.set_num_threads(args.threads)
    how = (args.peers, args.repeats, args.steps, args.threads)
    target = args.out or RESULTS / "runners.json"
    result: dict[str, Any] = {"torch": torch.__version__, "k": K, "width": WIDTH}
    pairs, graph = interactions(args.data), triples(args.data)
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "factorisation": lambda: {name: against_recbole(pairs, batch, *how) for name, batch in BATCHES.items()},
        "transe": lambda: against_pykeen(graph, TRIPLES, *how),
        "propagation": lambda: propagation(pairs, args.repeats),
        "steps": lambda: all_steps(pairs, graph, args.repeats, args.steps),
    }
    for name in args.parts or measures:
        print(name)
        result[name] = measures[name]()
    before = json.loads(target.read_text()) if target.exists() else {}
    result |= {name: before[name] for name in PARTS if name in before and name not in result}
    write("runners", result, args.out)


if __name__ == "__main__":
    main()
