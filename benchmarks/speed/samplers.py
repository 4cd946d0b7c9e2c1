"""What a step of every sampler of the catalogue costs, as a multiple of a step of Dynamic on the same data.

The `parts` of each row of methods.toml that is like no other are made on one world: pairs, a graph or triples. A step
is sample, and observe where the sampler has it, for the same batch and the same k. Dynamic scores 32 candidates, by dot
products of d = 64 in torch, in blocks, on one thread; other samplers have as many as their row says, or 32. Ratios are
of processor time, the best of several, with a step of Dynamic before each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import naysay as ns
from benchmarks.speed.harness import Options, Row, alternate, command
from benchmarks.speed.worlds import recommendation
from naysay import catalog

BATCH, K, DIM, CANDIDATES = 1024, 8, 64, 32
N_USERS, N_ITEMS, N_PAIRS = 6_040, 3_706, 1_000_000
N_NODES, N_EDGES = 20_000, 100_000
N_ENTITIES, N_RELATIONS, N_TRIPLES = 14_541, 237, 272_000
CLASSES = {"low": 0.5, "medium": 2.0}  # up to so many times Dynamic; above that it is "high"
ENOUGH = 5.0  # processor seconds of a step: slower ones are measured on fewer rows, also for Dynamic
FEW = 32
World = dict[str, Any]
LARGE = {  # the sizes of their papers, where those of the small world would show nothing
    "MoCHi": lambda pool, embed, n_hard: ns.samplers.MoCHi(pool, embed, n_hard=1024),
}


def vectors(n: int, seed: int) -> Tensor:
    """Random vectors of length 1 and above 0, so that scores are above 0, too, which some samplers need."""
    made = torch.randn(n, DIM, generator=torch.Generator().manual_seed(seed)).abs()
    return torch.nn.functional.normalize(made, dim=1)


def pair_model(n_anchors: int, n_items: int) -> World:
    """What a model of pairs gives to samplers: scores, and vectors of anchors and items."""
    of_anchor, of_item = vectors(n_anchors, 0), vectors(n_items, 1)

    def score(anchors: Tensor, ids: Tensor) -> Tensor:
        return torch.einsum("bd,bnd->bn", of_anchor[anchors], torch.nn.functional.embedding(ids, of_item))

    def similarity(items: Tensor, ids: Tensor) -> Tensor:
        return torch.einsum("bd,bnd->bn", of_item[items], torch.nn.functional.embedding(ids, of_item))

    def embed(ids: Any) -> Tensor:
        return torch.nn.functional.embedding(torch.as_tensor(ids), of_item)

    def embed_anchors(ids: Any) -> Tensor:
        return torch.nn.functional.embedding(torch.as_tensor(ids), of_anchor)

    scored = {"score": ns.samplers.in_blocks(score), "embed": embed, "embed_anchors": embed_anchors}
    scored["similarity"] = ns.samplers.in_blocks(similarity)
    return {**scored, "of_anchor": of_anchor, "of_item": of_item}


def pairs() -> World:
    """Users and items."""
    users, items, n_users, n_items = recommendation(N_USERS, N_ITEMS, N_PAIRS)
    positives = ns.Positives.from_pairs(users, items, n_users, n_items)
    rng, model, net = np.random.default_rng(0), pair_model(n_users, n_items), torch.nn.Linear(3 * DIM, DIM)
    pool, of_item = ns.pools.Everything(positives), model["of_item"]
    users_of = rng.integers(0, n_users, (2, 50_000))
    viewed = ns.Positives.from_pairs(
        rng.integers(0, n_users, 300_000), rng.integers(0, n_items, 300_000), n_users, n_items
    )
    memory = ns.pools.Memory(65_536, positives)
    entries = np.tile(np.arange(n_items), 18)[:65_536]
    memory.push(entries, np.full(len(entries), -1), vectors=of_item[entries])
    here = {
        "positives": positives,
        "known": positives,
        "pool": pool,
        "n_anchors": n_users,
        "n_items": n_items,
        "counts": positives.item_counts(),
        "candidates": CANDIDATES,
        "dim": DIM,
        "margin": 0.5,
        "rho": 1.0,
        "trials": CANDIDATES,
        "scale": 0.05 * n_items,
        "size": 65_536,
        "item_vectors": of_item.numpy(),
        "anchor_vectors": model["of_anchor"].numpy(),
        "viewed": viewed,
        "memory": memory,
        "positive_scores": np.full(n_users, 0.9),
        "probability": model["score"],  # which is above 0 here
        "target": lambda own, step: own - 0.1,
        "lists": (-(model["of_anchor"] @ of_item.T)).topk(100, dim=1).indices.numpy(),
        "neighbours": (of_item @ of_item.T).topk(11, dim=1).indices[:, 1:].numpy(),
        "ties": ns.Positives.from_pairs(*users_of, n_users, n_users),
        "make": lambda ids, rng: model["embed"](ids) + 0.01,
        "network": net,
        "optimizer": torch.optim.Adam(net.parameters()),
        "triplet_loss": lambda user, liked, made: ns.losses.bpr((user * liked).sum(-1), (user[:, None] * made).sum(-1)),
        "user_table": model["embed_anchors"],
        "item_table": model["embed"],
    }
    order = rng.permutation(len(users))[:BATCH]
    anchors = torch.from_numpy(users[order])
    query = ns.Query(anchors, positives=torch.from_numpy(items[order]), vectors=model["of_anchor"][anchors], step=1)
    return {**model, **here, "query": query, "dynamic": ns.samplers.Dynamic(pool, model["score"], CANDIDATES)}


def graph() -> World:
    """The nodes of a random graph."""
    edges = np.random.default_rng(1).integers(0, N_NODES, (2, N_EDGES))
    known, model = ns.Positives.from_edges(*edges, N_NODES), pair_model(N_NODES, N_NODES)
    query = ns.Query(torch.from_numpy(edges[0][:BATCH]), positives=torch.from_numpy(edges[1][:BATCH]), step=1)
    dynamic = ns.samplers.Dynamic(ns.pools.Everything(known), model["score"], CANDIDATES)
    weights = np.random.default_rng(2).integers(1, 9, known.count().sum())
    nodes = {"n_nodes": N_NODES, "is_item": np.ones(N_NODES, bool), "edge_counts": weights, "positives": known}
    return {**model, **nodes, "graph": known, "query": query, "dynamic": dynamic}


def triples() -> World:
    """Triples of random entities, with the scores of DistMult."""
    train = np.random.default_rng(2).integers(0, (N_ENTITIES, N_RELATIONS, N_ENTITIES), (N_TRIPLES, 3))
    entity, relation = vectors(N_ENTITIES, 2), vectors(N_RELATIONS, 3)

    def score(asked: Tensor, corrupted: Tensor) -> Tensor:
        head, of, tail = (corrupted[..., part] for part in range(3))
        return (entity[head] * relation[of] * entity[tail]).sum(-1)

    def embed(ids: Tensor) -> Tensor:
        return torch.nn.functional.embedding(ids, entity)

    pool = ns.pools.Corruption(train)
    dynamic = ns.samplers.Dynamic(pool, ns.samplers.in_blocks(score), CANDIDATES)
    query = ns.Query(torch.from_numpy(train[:BATCH]), step=1)
    here = {"train": train, "triples": train, "valid": train[:1000], "score": dynamic.score, "embed": embed}
    return {**here, "query": query, "dynamic": dynamic}


def shape_of(method: catalog.Method) -> str:
    """Which world the composition of a row needs."""
    return "triples" if "Corruption(" in method.parts else "graph" if "(graph" in method.parts else "pairs"


def sampler_of(method: catalog.Method, world: World) -> Any:
    """The parts of a row on a world; without what the row does before its first draw, and without a loss."""
    names = {**vars(ns.samplers), **vars(ns.pools), **vars(ns.detectors), "torch": torch, "np": np, **LARGE, **world}
    return eval(method.parts, names)  # text of the package


def step_of(sampler: Any, world: World, batch: int) -> Callable[[], int]:
    """A step of `batch` rows: sample, and observe where there is one."""
    whole = world["query"]
    parts = {"anchors": whole.anchors, "positives": whole.positives, "vectors": whole.vectors}
    query = ns.Query(**{name: part[:batch] for name, part in parts.items() if part is not None}, step=1)
    # Vectors that a sampler keeps may have a dimension of their own.
    width = getattr(sampler, "dim", None) or getattr(sampler, "d", DIM)
    if width != DIM:
        unit = torch.nn.functional.normalize(torch.randn(batch, width), dim=1)
        query = ns.Query(query.anchors, positives=query.positives, vectors=unit, step=1)
    beside = {"positive_scores": torch.zeros(batch), "vectors": query.vectors}

    def step() -> int:
        negatives = sampler.sample(query, K, rng=ns.rng_for(0, 1))
        if hasattr(sampler, "observe"):
            sampler.observe(query, negatives, **beside)
        return int((negatives.ids >= 0).sum())

    return step


def measure(sampler: Any, world: World, options: Options) -> Row:
    """The processor seconds of a step of the sampler and of Dynamic, the best of several, and their ratio."""
    few = step_of(sampler, world, FEW)
    few()  # compiles
    start = time.process_time()
    few()
    expected = (time.process_time() - start) * BATCH / FEW
    batch = FEW if options.quick or expected > ENOUGH else BATCH
    steps = {"dynamic": step_of(world["dynamic"], world, batch), "own": step_of(sampler, world, batch)}
    rows, answers = alternate(steps, 1 if expected > 1 else options.repeats)
    seconds = {name: row["cpu_seconds"] for name, row in rows.items()}
    ratio = seconds["own"] / seconds["dynamic"]
    costs = {"dynamic_seconds": seconds["dynamic"], "seconds": seconds["own"], "ratio": ratio}
    return {**costs, "batch": batch, "negatives": answers["own"], "class": cost_class(ratio)}


def cost_class(ratio: float) -> str:
    """The class of a ratio: low, medium or high."""
    return next((name for name, limit in CLASSES.items() if ratio <= limit), "high")


def methods(options: Options) -> Row:
    """All samplers that are like no other."""
    options = options.use_threads(1)
    worlds = {"pairs": pairs(), "graph": graph(), "triples": triples()}
    rows = {}
    for method in (one for question in ("where", "which") for one in catalog.methods(question) if not one.like):
        shape = shape_of(method)
        rows[method.name] = {"data": shape, **measure(sampler_of(method, worlds[shape]), worlds[shape], options)}
        print(f"{method.name:24s} {rows[method.name]['ratio']:8.2f} x Dynamic", flush=True)
    return rows


SIZES = {"batch": BATCH, "k": K, "width": DIM, "candidates": CANDIDATES, "classes": CLASSES}
RESULTS = {"costs": {**SIZES, "methods": methods}}

if __name__ == "__main__":
    command(__doc__, RESULTS)
