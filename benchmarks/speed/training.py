"""Training steps: what a hard sampler costs in one, and whole steps against RecBole and PyKEEN by their own trainers.

dynamic    matrix factorisation, d = 64, dense Adam, on generated data ten times the size of ml-100k: the parts of a
           step with Dynamic, and steps per second against RecBole's dynamic sampling
training   TransE with 16 corruptions by naysay in a plain torch loop, against PyKEEN's training loop
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import naysay as ns
from benchmarks.speed.harness import Options, Peer, Row, alternate, command
from benchmarks.speed.worlds import Pairs, recommendation
from benchmarks.studies.knowledge_graphs import Model, world

BATCH, DIM, CANDIDATES, K = 4096, 64, 64, 8
N_USERS, N_ITEMS, N_PAIRS = 9_430, 16_820, 1_000_000
TRIPLES, CORRUPTIONS = 2048, 16  # of a step of TransE
OURS = ("draw", "choice", "loss")
WAYS: dict[str, dict[str, Any]] = {
    "highest": {},
    "softmax": {"temperature": 0.5},
    "among": {"top_m": 16},
    "highest, scored in blocks": {"blocks": True},
}


class Clock:
    """Seconds by name."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def times(self, name: str) -> Iterator[None]:
        """Count the block under a name."""
        start = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - start


class Timed:
    """A pool whose draws are counted."""

    def __init__(self, pool: ns.pools.Everything, clock: Clock) -> None:
        """Keep both."""
        self.pool, self.clock, self.distinct = pool, clock, pool.distinct

    def draw(self, query: ns.Query, n: Any, *, rng: np.random.Generator) -> ns.Negatives:
        """As the pool's."""
        with self.clock.times("draw"):
            return self.pool.draw(query, n, rng=rng)

    def draw_candidates(self, query: ns.Query, n: Any, *, rng: np.random.Generator) -> ns.Negatives:
        """As the pool's."""
        with self.clock.times("draw"):
            return self.pool.draw_candidates(query, n, rng=rng)


class Training:
    """A model and its loop: `steps` steps at a call."""

    def __init__(
        self, world: Pairs, pool: ns.pools.Everything, k: int, steps: int, *, blocks: bool = False, **how: Any
    ) -> None:
        """Small random vectors, and one order of the pairs; blocks: score some rows at a time."""
        users, items, n_users, n_items = world
        self.users, self.items = torch.from_numpy(users), torch.from_numpy(items)
        start = torch.Generator().manual_seed(0)
        self.user, self.item = (nn.Parameter(0.1 * torch.randn(n, DIM, generator=start)) for n in (n_users, n_items))
        self.optimiser = torch.optim.Adam([self.user, self.item], lr=1e-3)
        self.clock, self.k, self.steps, self.done = Clock(), k, steps, 0
        score = ns.samplers.in_blocks(self.score) if blocks else self.score
        self.sampler = ns.samplers.Dynamic(Timed(pool, self.clock), score, CANDIDATES, **how)
        self.order = np.random.default_rng(0).permutation(len(users))

    def score(self, anchors: Tensor, ids: Tensor) -> Tensor:
        """Dot products of the anchors with the candidates."""
        with self.clock.times("scoring"):
            return torch.einsum("bd,bnd->bn", self.vectors(self.user, anchors), self.vectors(self.item, ids))

    @staticmethod
    def vectors(table: Tensor, ids: Tensor) -> Tensor:
        """Rows of a table."""
        return nn.functional.embedding(ids, table)

    def step(self) -> int:
        """Draw, forward, loss, backward, optimiser; how many negatives there were."""
        first = self.done * BATCH % (len(self.order) - BATCH)
        rows = torch.from_numpy(self.order[first : first + BATCH])
        users, items, times = self.users[rows], self.items[rows], self.clock.times
        with times("sampler"):
            query = ns.Query(users, positives=items, step=self.done)
            negatives = self.sampler.sample(query, self.k, rng=ns.rng_for(0, self.done))
        with times("forward"):
            anchors = self.vectors(self.user, users)
            positive = (anchors * self.vectors(self.item, items)).sum(dim=1)
            scores = torch.einsum("bd,bkd->bk", anchors, self.vectors(self.item, negatives.ids))
        with times("loss"):  # and its gradient in the scores
            value = ns.losses.bpr(positive, scores, mask=negatives.mask).mean()
            gradients = torch.autograd.grad(value, (positive, scores))
        with times("backward"):
            self.optimiser.zero_grad()
            torch.autograd.backward((positive, scores), gradients)
        with times("optimiser"):
            self.optimiser.step()
        self.done += 1
        return int(negatives.mask.sum())

    def run(self) -> int:
        """`steps` steps."""
        with self.clock.times("step"):
            return sum(self.step() for _ in range(self.steps))


def cost(training: Training, repeats: int) -> Row:
    """The split of the fastest of several repetitions, in milliseconds per step, and the sampler's share."""
    training.run()
    found = []
    for _ in range(repeats):
        training.clock.seconds.clear()
        training.run()
        found.append({name: 1e3 * value / training.steps for name, value in training.clock.seconds.items()})
    best = min(found, key=lambda split: split["step"])
    best["choice"] = best.pop("sampler") - best["draw"] - best["scoring"]
    best["share"] = sum(best[name] for name in OURS) / best["step"]
    return best


def dynamic(threads: int, options: Options) -> Row:
    """The cost of each way to choose, and steps per second with one of 64 candidates against RecBole."""
    options = options.use_threads(threads)
    given = recommendation(options.size(N_USERS, 300), options.size(N_ITEMS, 400), options.size(N_PAIRS, 9000))
    steps, known = options.size(10, 1), ns.Positives.from_pairs(*given)
    pools = {"": ns.pools.Everything(known), ", independent": ns.pools.Everything(known, distinct=False)}
    costs = {
        way + name: cost(Training(given, pool, K, steps, **how), options.repeats)
        for way, how in WAYS.items()
        for name, pool in pools.items()
    }
    users, items, n_users, n_items = given
    arrays = {"users": users, "items": items, "n_users": n_users, "n_items": n_items, "steps": steps}
    arrays |= {"batch": BATCH, "width": DIM, "candidates": CANDIDATES}
    runs = {
        "naysay": Training(given, pools[", independent"], 1, steps).run,
        "naysay distinct": Training(given, pools[""], 1, steps).run,
        "naysay, scored in blocks": Training(given, pools[", independent"], 1, steps, blocks=True).run,
    }
    rows, _ = alternate(runs, options.repeats, [Peer(options, "recbole_train", arrays, "dynamic")])
    for row in rows.values():
        row |= {"steps_per_second": steps / row["seconds"]} if "seconds" in row else {}
    return {"cost": costs, "against_recbole": rows}


def transe(options: Options) -> Row:
    """Training steps of TransE on FB15k-237, with equal batches, negatives, width, loss and Adam."""
    options = options.use_threads(1)
    graph = world(options.data, 0, {"data": "fb15k-237"})  # type: ignore[arg-type]
    steps = options.size(20, 1)
    model = Model("transe", graph.train.n_entities, graph.train.n_relations, DIM, 0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    pool, triples = (
        ns.pools.Corruption(graph.train),
        np.random.default_rng(0).permutation(graph.train.array).astype(np.int64),
    )

    def run() -> int:
        for step in range(steps):
            rows = torch.from_numpy(triples[step * TRIPLES : (step + 1) * TRIPLES])
            query = ns.Query(rows, step=step)
            negatives = pool.draw(query, CORRUPTIONS, rng=ns.rng_for(0, step)).like(query)
            corrupted = torch.as_tensor(pool.corrupted(query, negatives)).clamp(min=0)
            optimiser.zero_grad()
            ns.losses.info_nce(model(rows), model(corrupted), mask=negatives.mask).mean().backward()
            optimiser.step()
        return steps * TRIPLES * CORRUPTIONS

    numbers = {"n_entities": graph.train.n_entities, "n_relations": graph.train.n_relations, "batch": TRIPLES}
    arrays = {"known": triples, "steps": steps, "width": DIM, "k": CORRUPTIONS, **numbers}
    peers = []
    for case, name in (("train", "pykeen"), ("train_filtered", "pykeen, filtered")):
        peer = Peer(options, "pykeen", arrays, case)
        peer.name = name
        peers.append(peer)
    rows, _ = alternate({"naysay": run}, options.repeats, peers)
    return {"steps": steps, "batch": TRIPLES, "negatives": CORRUPTIONS, "width": DIM, "rows": rows}


SIZES = {"users": N_USERS, "items": N_ITEMS, "pairs": N_PAIRS, "batch": BATCH, "width": DIM, "candidates": CANDIDATES}
RESULTS = {
    "dynamic": {**SIZES, "k": K, **{f"threads_{n}": partial(dynamic, n) for n in (1, 2)}},
    "training": {"transe": transe},
}

if __name__ == "__main__":
    command(__doc__, RESULTS)
