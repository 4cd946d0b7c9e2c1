"""Are 100 answers worth more than any model of the scores? Planted worlds, in which the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from benchmarks.readers import Floats, Ids, unit
from benchmarks.study import Claim, Found, Job, Settings, Study

K, TARGET, TOO_MANY = 8, 0.05, 0.07
DIM, PER_TOPIC, OTHERS = 32, 20, 4  # of planted worlds; other items for each anchor
KINDS = ("none", "even", "natural")
NOISE = {"weak": 1.0, "medium": 0.6, "strong": 0.35}  # of the encoder, by its quality
LABELS = ("random", "easiest", "hardest")
CELLS = [(kind, encoder, labels) for kind in KINDS for encoder in NOISE for labels in LABELS]


class World(NamedTuple):
    """Unit vectors, the labelled item of each anchor, and the anchor that each item belongs to, -1 for none."""

    queries: Floats
    items: Floats
    labels: Ids
    owner: Ids

    def is_positive(self, anchors: Ids, items: Ids) -> NDArray[np.bool_]:
        """Whether pairs belong together."""
        return np.asarray(self.owner[items] == anchors)


def planted(_: Path, seed: int, settings: Settings) -> World:
    """The world of a seed, whose kind is the cell of that number.

    none: one positive of each anchor, which is labelled. even: three. natural: one, or 5 to 20 for a tenth of the
    anchors. The labelled one is random, or that with the highest or the lowest score.
    """
    kind, encoder, how = CELLS[seed % len(CELLS)]
    n, noise = settings["anchors"], NOISE[encoder]
    rng = np.random.default_rng([seed, 29])

    def near(centres: Any, distance: float) -> Any:
        return unit(centres + distance * rng.normal(size=centres.shape) / np.sqrt(DIM))

    counts = np.full(n, {"none": 1, "even": 3}.get(kind, 1))
    if kind == "natural":
        counts = np.where(rng.random(n) < 0.9, 1, rng.integers(5, 21, n))
    centres = unit(rng.normal(size=(n // PER_TOPIC, DIM)))
    topics, others = (near(centres[rng.integers(0, len(centres), m)], 0.7) for m in (n, OTHERS * n))
    owner = np.repeat(np.arange(n), counts)
    items = np.concatenate([near(topics[owner], noise), near(others, noise)])
    queries = near(topics, noise)
    scores = (queries[owner] * items[: len(owner)]).sum(axis=1)
    order = {"random": rng.random(len(owner)), "easiest": -scores, "hardest": scores}[how]
    by_anchor = np.lexsort((order, owner))
    labels = by_anchor[np.unique(owner[by_anchor], return_index=True)[1]]
    return World(queries, items, labels, np.concatenate([owner, np.full(OTHERS * n, -1)]))


def run(job: Job) -> Found:
    """Mine by one arm: (judge, answers, share of wrong answers, whether someone checks)."""
    world: World = job.world
    judge, answers, wrong, checked = job.arm
    rng = np.random.default_rng([job.seed, 30])

    def trusted(pairs: Any) -> Any:
        return world.is_positive(pairs.anchors, pairs.items).astype(float)

    def reviewer(pairs: Any) -> Any:
        return np.where(rng.random(len(pairs)) < wrong, 1 - trusted(pairs), trusted(pairs))

    options: dict[str, Any] = {"judge": judge, "seed": job.seed}
    if answers:
        options |= {"reviewer": [reviewer, trusted] if checked else reviewer, "review": answers}
    positives: Any = world.labels
    if judge == "oracle":
        known = np.flatnonzero(world.owner >= 0)
        positives, options["judge"] = (world.owner[known], known), None
    mined = ns.mine(world.queries, world.items, positives, K, **options)
    rows, slots = np.nonzero(mined.ids >= 0)
    true_share = float(world.is_positive(rows, mined.ids[rows, slots]).mean())
    found = {
        "true_share": true_share,
        "too_many": float(true_share > TOO_MANY),
        "hardness": float(mined.scores[mined.ids >= 0].mean()),
        "answers": 0.0 if mined.reviewed is None else float(len(mined.reviewed)),
    }
    if "oracle" in job.earlier:
        found["hardness_lost"] = 1 - found["hardness"] / job.earlier["oracle"]["hardness"]
    share = None if judge == "oracle" else mined.false_share
    found["told"] = float(share is not None)
    found["covered"] = float(share is None or share.low <= true_share <= share.high)
    found["half_width"] = 0.5 if share is None else (share.high - share.low) / 2
    return found


ARMS = {
    "oracle": ("oracle", 0, 0.0, False),
    "nearest": (None, 0, 0.0, False),
    "share 0.95": ("share:0.95", 0, 0.0, False),
    "auto": ("auto", 0, 0.0, False),
    "50 answers": ("auto", 50, 0.0, False),
    "100 answers": ("auto", 100, 0.0, False),
    "300 answers": ("auto", 300, 0.0, False),
    "1000 answers": ("auto", 1000, 0.0, False),
    "300 answers, 5 % wrong, checked": ("auto", 300, 0.05, True),
    "300 answers, 10 % wrong, checked": ("auto", 300, 0.1, True),
    "300 answers, 20 % wrong, checked": ("auto", 300, 0.2, True),
    "300 answers, 10 % wrong, alone": ("auto", 300, 0.1, False),
}
PROTOCOL = """
27 kinds of planted worlds, one a seed (27 seeds a round): one positive an anchor, three, or one for nine tenths and 5
to 20 for the others; a weak, medium or strong encoder; the labelled positive random, the easiest or the hardest.
1,000 anchors, k = 8, target 5 %. Arms: an oracle that knows every positive (asking about every pair); the nearest;
share 0.95; judge="auto" by labels; a reviewer with 50, 100, 300 and 1,000 answers; with 300 answers of which 5, 10 or
20 % are wrong, at random, and a second reviewer who is right and checks yes answers; with 10 % wrong and nobody to
check. Measured on what is returned: the true share of false negatives, whether it is above 7 %, whether the 95 %
interval holds it (an arm that says that it cannot tell counts as covered; "told" counts the others), half the width
of the interval, the mean score lost against the oracle, and the answers that were asked for. A weak encoder with many
false negatives is expected to cost hardness.
"""
STUDIES = (
    Study(
        name="review-planted",
        protocol=PROTOCOL,
        data=(),
        world=planted,
        run=run,
        arms=ARMS,
        seeds=tuple(range(2 * len(CELLS))),
        measures=("true_share", "too_many", "covered", "told", "half_width", "hardness_lost", "answers"),
        claims=(
            Claim(
                "100 answers return fewer false negatives than the nearest", "100 answers", "nearest", "true_share", -1
            ),
            Claim("100 answers cost less hardness than auto", "100 answers", "auto", "hardness_lost", -1),
            Claim("100 answers cost less hardness than share 0.95", "100 answers", "share 0.95", "hardness_lost", -1),
            Claim("intervals of 100 answers cover no less than those of auto", "100 answers", "auto", "covered", 1),
            Claim("300 answers have shorter intervals than 100", "300 answers", "100 answers", "half_width", -1),
        ),
        settings={"anchors": 1000},
        quick={"anchors": 200},
    ),
)
