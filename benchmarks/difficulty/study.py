"""Which negatives are hard for a small encoder, whether the claims of Cai et al. (2020) hold, and what a study costs.

python -m benchmarks.difficulty.study DATA [--seeds 3] [--epochs E] [--train N] [--out FILE]

DATA is a folder with the four files of Fashion-MNIST. SimCLR trains the encoder of `training/images.py` on the first
N images without their classes, once per seed. Some of these images, without augmentation, are anchors and others
negatives; scores are cosines of the projected vectors. The second checkpoint is after half the epochs. Classes form a
tree:

    everything: clothing (tops: T-shirt, pullover, coat, shirt; bottoms and dresses: trouser, dress),
                shoes (sandal, sneaker, ankle boot), bag

The common ancestor of two classes has depth 0 (nothing in common) to 2 (both tops), that of a class with itself 1
(bag), 2 (a shoe) or 3 (a piece of clothing). The figures of the first seed, like the paper's Figs. 4, 5 and 6, are
written beside the JSON. A claim is confirmed if it holds for every seed; 95 % CI over anchors.

The last part measures the time of a study of random vectors; `processor_seconds` depend less on other work.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.harness import RESULTS, write
from benchmarks.training.image_encoder import Encoder, Pictures, pictures, view
from naysay.difficulty import Curve, Study, consistency, study
from naysay.kernels.threads import threads
from naysay.losses import in_batch

NAMES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
# 10 tops, 11 bottoms and dresses, 12 clothing, 13 shoes, 14 everything
TREE = (10, 11, 10, 11, 10, 13, 10, 13, 14, 13, 12, 12, 14, 14, -1)
PARTS = {"bands": "difficulty-4.svg", "percentiles": "difficulty-5.svg", "consistency": "difficulty-6.svg"}
COLD = 0.07  # the lower of the paper's two temperatures


@dataclass(frozen=True)
class Settings:
    """What all runs share."""

    epochs: int
    batch: int
    width: int
    temperature: float
    rate: float
    anchors: int
    negatives: int
    bins: int


@torch.no_grad()
def projected(encoder: Encoder, images: Tensor) -> Tensor:
    """(n, 64) projected vectors of images without augmentation."""
    encoder.eval()
    found = torch.cat([encoder(part) for part in images.split(2000)])
    encoder.train()
    return found


def checkpoints(seed: int, train: Pictures, chosen: Tensor, settings: Settings) -> list[Tensor]:
    """Train one encoder; the projected images after half the epochs, and after all."""
    count, batch = len(train.images), min(settings.batch, len(train.images))
    encoder = Encoder(settings.width, seed)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=settings.rate, weight_decay=1e-4)
    steps = settings.epochs * (count // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.rate, total_steps=steps, pct_start=0.1)
    generator = torch.Generator().manual_seed(seed)
    partner = torch.arange(2 * batch).roll(batch)
    found = []
    for epoch in range(settings.epochs):
        for rows in torch.randperm(count, generator=generator)[: count // batch * batch].split(batch):
            both = torch.cat([view(train.images[rows], generator), view(train.images[rows], generator)])
            optimiser.zero_grad()
            in_batch(encoder(both), partner=partner, temperature=settings.temperature).mean().backward()
            optimiser.step()
            schedule.step()
        if epoch + 1 in (settings.epochs // 2, settings.epochs):
            found.append(projected(encoder, train.images[chosen]))
    return found


def studied(seed: int, train: Pictures, settings: Settings) -> tuple[Study, dict[str, Any]]:
    """The study of one seed, and what does not fit in it."""
    start = time.process_time()
    order = torch.randperm(len(train.images), generator=torch.Generator().manual_seed(100 + seed))
    chosen, n = order[: settings.anchors + settings.negatives], settings.anchors
    early, late = checkpoints(seed, train, chosen, settings)
    trained = time.process_time() - start
    classes = train.classes[chosen].numpy()
    options: dict[str, Any] = {"labels": classes[:n], "negative_labels": classes[n:], "hierarchy": TREE}
    found = study(
        late[:n],
        late[n:],
        other=(early[:n], early[n:]),
        temperature=settings.temperature,
        bins=settings.bins,
        **options,
    )
    cold = study(late[:n], late[n:], temperature=COLD, bins=settings.bins, **options)
    # What the baseline promises, tried: the same scores, shuffled within each anchor.
    scores = np.random.default_rng(seed).permuted((late[:n] @ late[n:].T).numpy(), axis=1)
    extra = {
        "gradient_of_hard": hard_share(found),
        f"gradient_of_hard_at_{COLD}": hard_share(cold),
        "shuffled_once": consistency(scores).shuffled.ratio,
        "training_processor_seconds": round(trained, 1),
    }
    return found, extra


def hard_share(found: Study) -> float:
    """The share of the gradient that goes to the hardest 5 %."""
    return float(found.by_band.gradient.mean[1:].sum())


def rises(curve: Curve, half: int) -> dict[str, Any]:
    """Whether the easiest interval lies above the lowest of the easy half, by more than two errors of the gap."""
    low = int(np.nanargmin(curve.mean[:half]))
    gap = float(curve.mean[0] - curve.mean[low])
    error = float(np.hypot(curve.error[0], curve.error[low]))
    place = [float(curve.low[low]), float(curve.high[low])]
    found = {"easiest": float(curve.mean[0]), "lowest": float(curve.mean[low]), "lowest_at": place}
    return found | {"difference": gap, "error": error, "seen": gap > 2 * error}


def claims(found: Study) -> dict[str, dict[str, Any]]:
    """The paper's claims, and whether one study confirms them."""
    same, depth = found.by_percentile.same_class, found.by_percentile.depth
    bands, score = found.by_band.same_class, found.by_percentile.score
    if same is None or depth is None or bands is None:
        message = "the study has no labels"
        raise RuntimeError(message)
    half = len(score.mean) // 2
    gaps = {name: vars_of(gap) | {"seen": gap.low > 0} for name, gap in found.gaps.items()}
    tests = {"shuffled": found.consistency.shuffled, "within_class": found.consistency.within_class}
    return {
        "hard negatives are more often of the anchor's class than easy ones": gaps["same_class"],
        "most of the hardest 0.1 % are of the anchor's class": {
            "share": float(bands.mean[2]),
            "error": float(bands.error[2]),
            "seen": bool(bands.mean[2] - 2 * bands.error[2] > 0.5),
        },
        "hard negatives are nearer in the hierarchy than easy ones": gaps["depth"],
        "the easy half has cosines below zero": {
            "highest_mean_of_the_half": float(score.mean[half - 1]),
            "easiest": float(score.mean[0]),
            "share_below_zero_in_the_easiest": float(found.by_percentile.below_zero.mean[0]),
            "seen": bool(score.mean[half - 1] < 0),
        },
        "the easiest are nearer in the hierarchy than other easy ones": rises(depth, half),
        "the easiest are slightly more often of the anchor's class than other easy ones": rises(same, half),
        **{
            f"some negatives are hard more often than chance ({name})": vars_of(test)
            | {"seen": test is not None and test.ratio > 1 and test.p_value < 0.001}
            for name, test in tests.items()
        },
    }


def vars_of(result: Any) -> dict[str, Any]:
    """The numbers of a small dataclass."""
    return {name: getattr(result, name) for name in result.__slots__}


def speed(anchors: int, negatives: int, width: int) -> dict[str, Any]:
    """Seconds, processor seconds and memory of studies of random vectors."""
    rng = np.random.default_rng(0)
    one, other = ([rng.standard_normal((n, width), dtype=np.float32) for n in (anchors, negatives)] for _ in range(2))
    labels, negative_labels = (rng.integers(0, 10, n) for n in (anchors, negatives))

    def run(count: int, *, both: bool) -> None:
        study(
            one[0][:count],
            one[1],
            labels=labels[:count],
            negative_labels=negative_labels,
            hierarchy=TREE,
            other=(other[0][:count], other[1]) if both else None,
        )

    rows: dict[str, Any] = {}
    for name, both in (("one checkpoint", False), ("two checkpoints", True)):
        run(300, both=both)
        start, used = time.perf_counter(), time.process_time()
        run(anchors, both=both)
        rows[name] = {
            "seconds": round(time.perf_counter() - start, 2),
            "processor_seconds": round(time.process_time() - used, 2),
        }
        tracemalloc.start()
        run(anchors, both=both)
        rows[name]["peak_megabytes_beside_the_vectors"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 1)
        tracemalloc.stop()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    shape = {"anchors": anchors, "negatives": negatives, "width": width}
    return {**shape, "threads": threads(), "load_average": load, "rows": rows}


def main() -> None:
    """Train, study, draw, and write results/difficulty.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--anchors", type=int, default=2000)
    parser.add_argument("--negatives", type=int, default=2000)
    parser.add_argument("--bins", type=int, default=20)
    parser.add_argument("--timed", type=int, default=10_000, help="anchors of the timed study")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error("--epochs: at least 2, for two checkpoints")
    torch.set_num_threads(1)
    sizes = (args.anchors, args.negatives, args.bins)
    settings = Settings(args.epochs, args.batch, args.width, args.temperature, args.rate, *sizes)
    train = pictures(args.data, "train").first(args.train)
    folder = RESULTS if args.out is None else args.out.parent
    runs: list[dict[str, Any]] = []
    for seed in range(args.seeds):
        found, extra = studied(seed, train, settings)
        if not seed:
            for part, name in PARTS.items():
                found.plot(folder / name, part)
        runs.append({"claims": claims(found), **extra, "study": found.as_dict()})
        print(f"seed {seed}\n{found.gaps}\n{found.drift}\n{extra}", flush=True)
    seen = {claim: all(run["claims"][claim]["seen"] for run in runs) for claim in runs[0]["claims"]}
    result = {
        "settings": vars(args) | {"data": args.data.name, "out": None},
        "hierarchy": {"names": NAMES, "parents": TREE},
        "seen": seen,
        "speed": speed(args.timed, 2000, 128),
        "runs": runs,
    }
    for claim, holds in seen.items():
        print(f"{'seen    ' if holds else 'not seen'} {claim}")
    write("difficulty", result, args.out)


if __name__ == "__main__":
    main()
