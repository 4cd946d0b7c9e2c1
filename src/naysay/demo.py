"""The demonstration: negatives for a generated world whose false negatives are known, checked and measured.

Three ways to take negatives, from easy to hard, side by side: how fast they come, that none of them is a known
positive, how close they are to the anchor, and how many are positives that nobody labelled.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from naysay import pools
from naysay.checks import check_whole
from naysay.rng import rng_for
from naysay.testing import World, check_pool, planted_world
from naysay.types import Pool, Query

_K, _BATCH, _NEAREST = 16, 4096, 100


@dataclass(frozen=True, slots=True)
class Line:
    """What one way of drawing gave: negatives per second, known positives among them, and two means."""

    name: str
    per_second: float
    known: int
    false_negative_rate: float
    score: float


def run(*, quick: bool = False, seed: int = 0, console: Console | None = None) -> list[Line]:
    """Make the world, check each pool's promises, draw, and print the table; the lines are returned."""
    check_whole("demo", "seed", seed, 0)
    out = console or Console()
    started = time.perf_counter()
    out.print("Making a world, and compiling loops if this is the first run ...")
    n_anchors, n_items, draws = (2_000, 2_000, 1_000_000) if quick else (20_000, 10_000, 20_000_000)
    world = planted_world(n_anchors, n_items, per_anchor=40, noise=0.5, seed=seed)
    hidden = len(world.truth) - len(world.known)
    out.print(
        f"A generated world: {n_anchors:,} anchors x {n_items:,} items, {len(world.known):,} known positives "
        f"and {hidden:,} that nobody labelled."
    )
    ways: dict[str, Pool] = {
        "uniform": pools.Everything(world.known),
        "popularity^0.75": pools.Everything(world.known, pools.popularity(world.known, 0.75)),
        f"nearest {_NEAREST}": pools.Local(_nearest(world), world.known),
    }
    lines = []
    for name, pool in ways.items():
        check_pool(pool, world.known, seed=seed)
        out.print(f"  {name}: keeps every promise of a pool (naysay.check_pool)")
        lines.append(_measured(name, pool, world, draws, seed))
    out.print(_table(lines, draws))
    easy, hard = lines[0], lines[-1]
    out.print(
        f"Of {draws:,} draws each, {sum(line.known for line in lines)} returned a known positive. Hard negatives are "
        f"{hard.false_negative_rate / max(easy.false_negative_rate, 1e-12):.0f} times as often false as uniform ones."
    )
    out.print(f"{time.perf_counter() - started:.1f} s in all. Next: naysay methods")
    return lines


def _measured(name: str, pool: Pool, world: World, draws: int, seed: int) -> Line:
    """Draw in batches, timing the draws alone, and compare the first batches with the truth."""
    anchors = rng_for(seed, worker=1).integers(0, world.known.n_anchors, (-(-draws // (_K * _BATCH)), _BATCH))
    seconds, known, filled = 0.0, 0, 0
    for step, batch in enumerate(anchors):
        rng = rng_for(seed, step)
        before = time.perf_counter()
        drawn = pool.draw(Query(batch), _K, rng=rng)
        seconds += time.perf_counter() - before
        known += int(world.known.contains(batch, drawn.ids).sum())
        filled += int(np.count_nonzero(drawn.ids >= 0))
    sample = pool.draw(Query(anchors[0]), _K, rng=rng_for(seed))
    rate = world.false_negative_rate(anchors[0], sample.ids)
    score = float(world.scores(anchors[0], sample.ids)[sample.mask].mean())
    return Line(name, filled / seconds, known, rate, score)


def _nearest(world: World) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The items nearest to each anchor by the encoder's vectors, as CSR, a block of anchors at a time."""
    found = []
    for first in range(0, len(world.anchor_vectors), 1024):
        scores = world.anchor_vectors[first : first + 1024] @ world.item_vectors.T
        found.append(np.argpartition(-scores, _NEAREST, axis=1)[:, :_NEAREST])
    nearest = np.concatenate(found)
    return np.arange(len(nearest) + 1) * _NEAREST, nearest.ravel()


def _table(lines: list[Line], draws: int) -> Table:
    table = Table(title=f"{draws:,} negatives each, {_K} per anchor, distinct", title_justify="left")
    for heading in ("negatives from", "M/s", "known", "false negatives", "mean score"):
        table.add_column(heading, justify="left" if heading == "negatives from" else "right")
    for line in lines:
        table.add_row(
            line.name,
            f"{line.per_second / 1e6:.1f}",
            str(line.known),
            f"{line.false_negative_rate:.2%}",
            f"{line.score:.3f}",
        )
    return table
