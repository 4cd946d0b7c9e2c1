"""What dynamic negative sampling costs in a training step, alone and against RecBole in the same run.

    python -m benchmarks.speed.dynamic --peers DIR [--repeats 7] [--steps 10] [--threads 1 2]

--peers   where benchmarks/peers/setup.sh put the environment recbole_train

Matrix factorisation, d = 64, dense Adam, on generated data ten times the size of ml-100k.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import naysay as ns
from benchmarks.harness import Peer, alternate, write
from benchmarks.speed.worlds import Pairs, recommendation
from naysay.samplers import Dynamic, in_blocks
from naysay.types import Negatives, Query

BATCH, WIDTH, CANDIDATES, K = 4096, 64, 64, 8
N_USERS, N_ITEMS, N_PAIRS = 9_430, 16_820, 1_000_000
OURS = ("draw", "choice", "loss")


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

    def draw(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
        """As the pool's."""
        with self.clock.times("draw"):
            return self.pool.draw(query, n, rng=rng)

    def draw_candidates(self, query: Query, n: Any, *, rng: np.random.Generator) -> Negatives:
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
        self.user, self.item = (nn.Parameter(0.1 * torch.randn(n, WIDTH, generator=start)) for n in (n_users, n_items))
        self.optimiser = torch.optim.Adam([self.user, self.item], lr=1e-3)
        self.clock, self.k, self.steps, self.done = Clock(), k, steps, 0
        score = in_blocks(self.score) if blocks else self.score
        self.sampler = Dynamic(Timed(pool, self.clock), score, CANDIDATES, **how)
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


def cost(training: Training, repeats: int) -> dict[str, Any]:
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


def costs(world: Pairs, known: ns.Positives, repeats: int, steps: int) -> dict[str, Any]:
    """The cost of each way to choose, from distinct and from independent candidates."""
    pools = {"": ns.pools.Everything(known), ", independent": ns.pools.Everything(known, distinct=False)}
    ways: dict[str, dict[str, Any]] = {
        "highest": {},
        "softmax": {"temperature": 0.5},
        "among": {"top_m": 16},
        "highest, scored in blocks": {"blocks": True},
    }
    rows = {
        way + name: cost(Training(world, pool, K, steps, **how), repeats)
        for way, how in ways.items()
        for name, pool in pools.items()
    }
    for name, row in rows.items():
        parts = ", ".join(f"{part} {row[part]:.1f}" for part in ("step", "scoring", *OURS, "backward", "optimiser"))
        print(f"  {name:38s} share {100 * row['share']:.1f} %   ms: {parts}")
    return rows


def against_recbole(
    world: Pairs, known: ns.Positives, peers: Path, folder: Path, repeats: int, steps: int, threads: int
) -> dict[str, Any]:
    """Whole training steps per second with one negative of 64 candidates, both with replacement."""
    users, items, n_users, n_items = world
    data = folder / "dynamic.npz"
    sizes = {"n_users": n_users, "n_items": n_items, "batch": BATCH, "width": WIDTH, "candidates": CANDIDATES}
    np.savez(data, users=users, items=items, steps=steps, **sizes)
    loose = ns.pools.Everything(known, distinct=False)
    runs = {
        "naysay": Training(world, loose, 1, steps).run,
        "naysay distinct": Training(world, ns.pools.Everything(known), 1, steps).run,
        "naysay, scored in blocks": Training(world, loose, 1, steps, blocks=True).run,
    }
    peer = Peer(peers, "recbole_train", data, "dynamic", threads)
    rows = alternate(runs, [peer], repeats)
    peer.stop()
    for name, row in rows.items():
        if "seconds" in row:
            row["steps_per_second"] = steps / row["seconds"]
            theirs = rows["recbole_train"].get("per_second")
            ratio = f"{row['per_second'] / theirs:6.1f} x RecBole" if theirs else ""
            print(f"  {name:38s} {row['steps_per_second']:8.2f} steps/s {ratio}")
        else:
            print(f"  {name:38s} {row['missing']}")
    return rows


def main() -> None:
    """Run both and write results/dynamic.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    world = recommendation(N_USERS, N_ITEMS, N_PAIRS)
    known = ns.Positives.from_pairs(*world)
    sizes = {"users": N_USERS, "items": N_ITEMS, "pairs": len(known), "batch": BATCH, "width": WIDTH}
    result: dict[str, Any] = {**sizes, "candidates": CANDIDATES, "k": K, "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        for threads in args.threads:
            ns.set_threads(threads)
            torch.set_num_threads(threads)
            print(f"--- {threads} thread{'s' if threads > 1 else ''}")
            result[f"threads_{threads}"] = {
                "cost": costs(world, known, args.repeats, args.steps),
                "against_recbole": against_recbole(
                    world, known, args.peers, Path(folder), args.repeats, args.steps, threads
                ),
            }
    write("dynamic", result, args.out)


if __name__ == "__main__":
    main()
