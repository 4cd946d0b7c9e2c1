"""Which negatives train the best vectors of nodes: powers of the degree, nodes some steps away, random walks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import naysay as ns
from benchmarks import measures, readers
from benchmarks.pairs import PairModel, fit, made
from benchmarks.study import Claim, Found, Job, Settings, Study


class Graph(NamedTuple):
    """Edges to train on, and (n, 2) edges and as many pairs that are none, for validation and test."""

    train: ns.Positives
    parts: dict[str, tuple[Any, Any]]


def world(folder: Path, seed: int, settings: Settings) -> Graph:
    """A published split, or a tenth of the edges by chance for validation and for test."""
    data = readers.arrays(folder, settings["data"], "graph.npz")
    edges, n_nodes = data["edges"], int(data["n_nodes"])
    if "test_pos" in data:
        parts = {part: (data[f"{part}_pos"], data[f"{part}_neg"]) for part in ("valid", "test")}
        return Graph(ns.Positives.from_edges(edges[:, 0], edges[:, 1], n_nodes), parts)
    rng = np.random.default_rng(seed)
    order, tenth = rng.permutation(len(edges)), len(edges) // 10
    every = ns.Positives.from_edges(edges[:, 0], edges[:, 1], n_nodes)
    parts = {}
    for place, part in enumerate(("valid", "test")):
        others = ns.pools.Everything(every).draw_pairs(tenth, rng=ns.rng_for(seed, place))
        parts[part] = edges[order[place * tenth : (place + 1) * tenth]], np.stack(others, axis=1)
    kept = edges[order[2 * tenth :]]
    return Graph(ns.Positives.from_edges(kept[:, 0], kept[:, 1], n_nodes), parts)


def run(job: Job) -> Found:
    """The AUC of held-out edges over pairs that are none, at the step of the best validation."""
    graph, settings = job.world, job.settings
    model = PairModel(graph.train, settings["dim"], job.seed)
    sampler = made(job.arm, model, graph.train)
    best: dict[str, Any] = {"validation": -1.0}

    def quality(part: str) -> float:
        anchors, items = model.anchors.detach().numpy(), model.items.detach().numpy()
        scores = [(anchors[pairs[:, 0]] * items[pairs[:, 1]]).sum(axis=1) for pairs in graph.parts[part]]
        return measures.auc(*scores)

    def look(step: int) -> None:
        value = quality("valid")
        if value > best["validation"]:
            best.update(validation=value, best_step=step, auc=quality("test"))

    cost = fit(model, graph.train, sampler, lambda _: settings["k"], settings, job.seed, look)
    return {**best, **cost}


ARMS = {
    "uniform": "Static(Everything(train))",
    **{
        f"degree^{power:g}": f"Static(Everything(train, popularity(train, {power:g})))"
        for power in (0.25, 0.5, 0.75, 1.0)
    },
    "two steps away": "Static(KHop(train, 2))",
    "random walks": "Static(Walks(train, 2, positives=train))",
    "DNS(16)": "Dynamic(Everything(train, distinct=False), score, candidates=16)",
}

STUDIES = tuple(
    Study(
        name=f"graph-{data}",
        protocol=f"""\
Which power of the degree, and which hard negatives, train the best vectors of nodes (Yang et al., Fig. 4)? Two
vectors for each node of {data}, InfoNCE with k = 5. AUC of held-out edges over pairs that are no edges, at the step
of the best validation AUC; learning rate by validation for each arm, hard ones take that of DNS(16).""",
        data=(data,),
        world=world,
        run=run,
        arms=ARMS,
        seeds=(0, 1, 2, 3, 4),
        measures=("auc", "validation", "best_step", "milliseconds_a_step"),
        claims=(
            Claim("degree^0.75 is better than uniform", "degree^0.75", "uniform", "auc"),
            Claim("hard negatives are better than uniform ones", "DNS(16)", "uniform", "auc"),
        ),
        settings={
            "data": data,
            "dim": 64,
            "k": 5,
            "steps": 2000,
            "every": 100,
            "batch": 4096,
            "loss": "info_nce",
            "decay": 1e-6,
        },
        quick={"dim": 8, "steps": 2, "every": 1, "batch": 128},
        grid=tuple({"lr": lr} for lr in (0.003, 0.01, 0.03)),
        tuned_like={"two steps away": "DNS(16)", "random walks": "DNS(16)"},
    )
    for data in ("ca-astroph", "blogcatalog")
)
