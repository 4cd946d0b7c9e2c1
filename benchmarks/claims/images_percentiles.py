"""Which negatives of a queue an encoder needs, by their percentile of hardness and by their class.

python -m benchmarks.claims.images_percentiles DATA [--parts 2] [--seeds 3] [--arms NAME ...] [--steps N] [--out FILE]

DATA is a folder with the four files of Fashion-MNIST. MoCo trains a small encoder on pictures of 100 classes (2 parts,
`picture_worlds`) or 10 (1 part): two views of a picture are anchor and positive, and the negatives are a queue of the
vectors of a slow copy of the encoder. For each anchor the queue is ordered by its score, the dot product; each arm
removes some percentiles, as if they were not in the queue. A picture's own older entries are never its negatives. All
runs of one seed have the same initial weights, batches and views.

Accuracy is that of a linear probe on the test pictures. Every finished run is a line of FILE with the ending .jsonl; a
second call with the same settings continues. Seeds are in the outer loop.

Cai, Frankle, Schwab, Morcos. Are all negatives created equal in contrastive instance discrimination? 2020: Figs. 2, 3,
Tables 1, A1, A2. There the queue has 65,536 entries and 0.1 % of them have the anchor's class; here about 1 % (2 parts)
or 10 % (1 part). The slow encoder normalises by running statistics, so that a batch's own statistics do not mark its
positives (MoCo shuffles the batch instead).
"""

from __future__ import annotations

import copy
import time
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.claims.percentiles_summary import draw, summary
from benchmarks.claims.picture_worlds import World, cosine_rates, kept_or_run, missing, parser, world
from benchmarks.harness import RESULTS, write
from benchmarks.training.image_encoder import view
from benchmarks.training.images import Kept, processor_minutes
from naysay.losses import info_nce
from naysay.pools import Memory
from naysay.samplers import momentum_update

HARDEST = 0.001


@dataclass(frozen=True)
class Arm:
    """Negatives from percentile `low` to `high` (0 easiest, 1 hardest), kept alone or removed; then by class.

    only       remove only those of the interval that have ("same") or have not ("other") the anchor's class
    at_random  percentiles of random numbers in place of scores
    trained    False: the encoder as it starts, to show what training gains at all
    """

    low: float = 0.0
    high: float = 1.0
    remove: bool = False
    only: str | None = None
    at_random: bool = False
    trained: bool = True


ARMS = {
    "untrained": Arm(trained=False),
    "all": Arm(),
    "only 95-100 %": Arm(0.95, 1),
    "all but 95-100 %": Arm(0.95, 1, remove=True),
    "all but 99.9-100 %": Arm(1 - HARDEST, 1, remove=True),
    "all but the same class": Arm(remove=True, only="same"),
    "all but 99.9-100 %, same class": Arm(1 - HARDEST, 1, remove=True, only="same"),
    "all but 99.9-100 %, other classes": Arm(1 - HARDEST, 1, remove=True, only="other"),
    "only 90-95 %": Arm(0.9, 0.95),
    "only 85-90 %": Arm(0.85, 0.9),
    "all but 90-100 %": Arm(0.9, 1, remove=True),
    "all but 0-99.9 %, same class": Arm(0, 1 - HARDEST, remove=True, only="same"),
    "only 5 % at random": Arm(0.95, 1, at_random=True),
    "all but 90-95 %": Arm(0.9, 0.95, remove=True),
}
# Which arms run for how many parts at which temperature: all at the paper's default, Table 1 at its low one, Fig. 3
# between; with 10 classes, where a tenth of the queue has the anchor's class, the main ones.
STUDIES = {
    (2, 0.2): tuple(ARMS),
    (2, 0.07): (*list(ARMS)[1:8], "all but 0-99.9 %, same class"),
    (2, 0.1): ("all", "all but 95-100 %", "all but 99.9-100 %"),
    (1, 0.2): tuple(ARMS)[:6],
}


@dataclass(frozen=True)
class Settings:
    """What all runs share."""

    parts: int
    temperature: float
    train: int = 6144
    validation: int = 5000
    steps: int = 1200
    batch: int = 64
    queue: int = 4096
    width: int = 16
    momentum: float = 0.99
    rate: float = 4e-3


_SHARED = tuple(field.name for field in fields(Settings))[2:]


def kept_negatives(scores: Tensor, valid: Tensor, same: Tensor, arm: Arm, generator: torch.Generator) -> Tensor:
    """(B, M) bool: which entries of the queue an arm leaves to each anchor.

    Percentiles are of the M scores of a row, those that are not valid included as the easiest. `keep_hardest` of
    naysay.losses makes the same choice with a stable sort of places, which takes ten times as long.
    """
    ranked = torch.rand(scores.shape, generator=generator) if arm.at_random else scores
    ordered = np.sort(ranked.masked_fill(~valid, -2.0).numpy(), axis=1)  # cosines are at least -1
    places = [round(end * scores.shape[1]) for end in (arm.low, arm.high)]
    low, high = (torch.from_numpy(_cut(ordered, place)) for place in places)
    inside = (ranked >= low) & (ranked < high)
    if arm.only is not None:
        inside &= same if arm.only == "same" else ~same
    return valid & (~inside if arm.remove else inside)


def _cut(ordered: np.ndarray, place: int) -> np.ndarray:
    """(B, 1) the lowest score at or above a place of the order; infinity after the last."""
    return ordered[:, place, None] if place < ordered.shape[1] else np.full((len(ordered), 1), np.inf, np.float32)


def run(arm: Arm, seed: int, given: World, settings: Settings) -> dict[str, Any]:
    """Train one encoder, and evaluate it."""
    start, images, classes = time.process_time(), given.train.images, given.train.classes
    encoder = given.encoder(settings.width, seed)
    slow = copy.deepcopy(encoder).requires_grad_(requires_grad=False)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=settings.rate, weight_decay=1e-4)
    generator, other = (torch.Generator().manual_seed(number) for number in (seed, 1000 + seed))
    memory = Memory(settings.queue)
    first = torch.randperm(len(images), generator=generator)[: settings.queue]
    encoder(images[first])  # running statistics: the queue is full, and of this encoder, before the first step
    momentum_update(encoder, slow, 0.0)
    slow.eval()
    memory.push(first.numpy(), vectors=slow(view(images[first], generator)))
    order = torch.empty(0, dtype=torch.int64)
    shares = []
    for rate in cosine_rates(settings.steps, settings.rate) if arm.trained else ():
        if len(order) < settings.batch:
            order = torch.cat([order, torch.randperm(len(images), generator=generator)])
        rows, order = order[: settings.batch], order[settings.batch :]
        momentum_update(encoder, slow, settings.momentum)
        anchors = encoder(view(images[rows], generator))
        positives = slow(view(images[rows], generator))
        owners = torch.from_numpy(memory.owners)
        scores = anchors @ memory.vectors.T
        valid, same = owners != rows[:, None], classes[owners] == classes[rows, None]
        left = valid if arm == Arm() else kept_negatives(scores.detach(), valid, same, arm, other)
        loss = info_nce((anchors * positives).sum(dim=1), scores, temperature=settings.temperature, mask=left)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        loss.mean().backward()
        optimiser.step()
        memory.push(rows.numpy(), vectors=positives)
        shares.append([float(left.float().mean()), float((left & same).sum() / left.sum().clamp(min=1))])
    later = np.mean(shares[len(shares) // 2 :], axis=0) if shares else np.zeros(2)
    found = given.measures(encoder) | {"left": 100 * later[0], "same_class": 100 * later[1]}
    return found | {"processor_seconds": time.process_time() - start}


def main() -> None:
    """Run what is missing, and write results/claims_percentiles.json."""
    command = parser(__doc__ or "", ARMS, Settings, seeds=3)
    command.add_argument("--temperatures", type=float, nargs="+", default=(0.2, 0.07, 0.1))
    args = command.parse_args()
    torch.set_num_threads(1)
    target, given = args.out or RESULTS / "claims_percentiles.json", vars(args)
    settings = {study: Settings(*study, *(given[name] for name in _SHARED)) for study in STUDIES}
    kept = {study: Kept(target.with_suffix(".jsonl"), asdict(one)) for study, one in settings.items()}
    worlds = {parts: world(args.data, parts, args.train, args.validation) for parts in args.parts}
    wanted = {study: STUDIES[study] for study in STUDIES if study[0] in worlds and study[1] in args.temperatures}
    for seed in range(args.seeds):
        for study, names in wanted.items():
            for name in args.arms or names:
                kept_or_run(kept[study], name, seed, partial(run, ARMS[name], seed, worlds[study[0]], settings[study]))
    result = {
        "processor_minutes": processor_minutes(target.with_suffix(".jsonl")),
        "settings": {name: given[name] for name in _SHARED},
        "studies": [
            {"parts": study[0], "temperature": study[1], "not_run": missing(names, kept[study].rows)}
            | {"arms": summary(kept[study].rows, list(ARMS))}
            for study, names in STUDIES.items()
        ],
    }
    draw(result, write("claims_percentiles", result, args.out).with_suffix(".svg"))


if __name__ == "__main__":
    main()
