"""Whether clusters of a model's own features find its false negatives, and whether the model improves.

python -m benchmarks.training.images DATA [--seeds 3] [--epochs E] [--train N] [--arms NAME ...] [--out FILE]

DATA is a folder with the four files of Fashion-MNIST. SimCLR trains a small encoder on the first N images without
their classes, once per arm; arms of one seed have the same initial weights, batches and views.

    plain              InfoNCE: every other image of the batch is a negative, one in ten of them false
    eliminate          Incremental's labels after each epoch, linear acceptance; same labels leave the denominator
    attract            the same labels; same labels join the positives
    oracle eliminate   true classes: all false negatives leave the denominator
    oracle attract     true classes: supervised contrast (SupCon), the paper's oracle
    posterior 0.5      pairs with a posterior of 0.5 and more leave the denominator (`image_posterior`); also 0.9

Every finished run is a line of FILE with the ending .jsonl, and a second call with the same settings continues.

Accuracy is that of a linear probe on the test images. The true-positive rate is the share of false negatives that are
found, the true-negative rate the share of negatives kept (the paper's MTPR and MTNR), over all pairs of training
images, for each granularity, after each epoch. "Closed" is the share of the gap between plain and an oracle, of means
over seeds. 95 % CI by Student's t over seeds; differences to plain are paired by seed.

Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022: Table 5 has
accuracy and oracle, Table 6 detection and both losses.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t as student
from torch import Tensor

from benchmarks.detectors.mutual_information import normalised_mutual_information
from benchmarks.harness import RESULTS, write
from benchmarks.training.image_encoder import Encoder, Pictures, pictures, probe, view
from benchmarks.training.image_posterior import PosteriorPairs
from naysay.detectors import detection_rates
from naysay.detectors.incremental import Incremental
from naysay.losses import attract, eliminate, in_batch

ARMS = ("plain", "eliminate", "attract", "oracle eliminate", "oracle attract")
ORACLES = ARMS[3:]
POSTERIORS = {"posterior 0.5": 0.5, "posterior 0.9": 0.9}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """What all runs share."""

    train: int
    epochs: int
    batch: int
    width: int
    temperature: float
    rate: float
    clusters: tuple[int, ...]


def loss_of(
    arm: str, z: Tensor, partner: Tensor, labels: NDArray[np.int64], temperature: float, mask: Tensor | None = None
) -> Tensor:
    """The mean loss of a batch; labels (G, rows) are the detector's, or the truth for an oracle."""
    if arm == "plain" or arm in POSTERIORS:
        return in_batch(z, partner=partner, temperature=temperature, mask=mask).mean()
    loss = eliminate if arm.endswith("eliminate") else attract
    return loss(z, partner, labels, temperature=temperature).mean()


def run(arm: str, seed: int, train: Pictures, test: Pictures, settings: Settings) -> dict[str, Any]:
    """Train one encoder, and evaluate it."""
    start = time.perf_counter()
    count, batch = len(train.images), min(settings.batch, len(train.images))
    encoder = Encoder(settings.width, seed)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=settings.rate, weight_decay=1e-4)
    steps = settings.epochs * (count // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.rate, total_steps=steps, pct_start=0.1)
    generator = torch.Generator().manual_seed(seed)
    classes = train.classes.numpy()
    detector = Incremental(count, settings.clusters, settings.temperature, seed=seed)
    pairs = PosteriorPairs(count, len(np.unique(classes)), POSTERIORS[arm], seed) if arm in POSTERIORS else None
    partner = torch.arange(2 * batch).roll(batch)
    through: list[dict[str, Any]] = []
    found_pairs: list[dict[str, Any]] = []
    for epoch in range(settings.epochs):
        for rows in torch.randperm(count, generator=generator)[: count // batch * batch].split(batch):
            both = torch.cat([view(train.images[rows], generator), view(train.images[rows], generator)])
            ids = rows.repeat(2).numpy()
            labels = classes[None, ids] if arm in ORACLES else detector.labels[:, ids]
            optimiser.zero_grad()
            mask = None if pairs is None else pairs.mask(ids)
            loss_of(arm, encoder(both), partner, labels, settings.temperature, mask).backward()
            optimiser.step()
            schedule.step()
        if pairs is not None:
            pairs.update(encoder, train.images)
            found_pairs.append(pairs.quality(classes) | {"epoch": epoch + 1})
        elif arm not in ORACLES and arm != "plain":
            detector.update(encoder.features(train.images), progress=(epoch + 1) / settings.epochs)
            through.append(quality(detector, classes) | {"epoch": epoch + 1})
    features = encoder.features(train.images)
    final = Incremental(count, len(np.unique(classes)), seed=seed)
    final.update(features, progress=1.0)
    found = {
        "accuracy": 100 * probe(features, train.classes, encoder.features(test.images), test.classes),
        "nmi": 100 * normalised_mutual_information(final.assigned[0], classes),
        "seconds": time.perf_counter() - start,
    }
    found |= {"pairs": found_pairs} if found_pairs else {}
    return found | ({"through": through} if through else {})


def quality(detector: Incremental, classes: NDArray[np.int64]) -> dict[str, Any]:
    """What the labels after an epoch would find and lose, in per cent, for each granularity."""
    rates = detection_rates(detector.labels, classes)
    return {
        "accepted": int(np.count_nonzero(detector.labels[0] >= 0)),
        "true_positive": (100 * rates.true_positive).round(2).tolist(),
        "true_negative": (100 * rates.true_negative).round(2).tolist(),
        "nmi": (100 * normalised_mutual_information(detector.assigned, classes)).round(2).tolist(),
    }


def spread(values: list[float]) -> dict[str, Any]:
    """The mean, its interval of 95 %, and all values."""
    array = np.array(values)
    half = (
        float("nan") if len(array) < 2 else student.ppf(0.975, len(array) - 1) * array.std(ddof=1) / len(array) ** 0.5
    )
    return {"mean": round(float(array.mean()), 3), "half_interval": _number(half), "values": array.round(3).tolist()}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def summary(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Arms side by side."""
    accuracy = {arm: np.array([one["accuracy"] for one in of_arm]) for arm, of_arm in runs.items()}
    plain = accuracy["plain"]
    found: dict[str, Any] = {}
    for arm, of_arm in runs.items():
        row = {"accuracy": spread(accuracy[arm].tolist()), "nmi": spread([one["nmi"] for one in of_arm])}
        if arm != "plain":
            row["over_plain"] = spread((accuracy[arm] - plain).tolist())
        if "through" in of_arm[0]:
            last = [one["through"][-1] for one in of_arm]
            for name in ("true_positive", "true_negative"):
                row[f"last_{name}"] = np.mean([one[name] for one in last], axis=0).round(2).tolist()
                # Of the labels that training used: those after the last epoch came too late.
                used = [np.mean([one[name] for one in each["through"][:-1]], axis=0) for each in of_arm]
                row[f"mean_{name}"] = np.mean(used, axis=0).round(2).tolist() if len(of_arm[0]["through"]) > 1 else None
        if "pairs" in of_arm[0]:
            for name in ("precision", "recall"):
                used = [np.mean([one[name] for one in each["pairs"][:-1]]) for each in of_arm]
                row[f"mean_{name}"] = round(float(np.mean(used)), 2)
        if arm != "plain" and arm not in ORACLES:
            row["closed_percent"] = {oracle: closed(accuracy, arm, oracle) for oracle in ORACLES if oracle in accuracy}
        found[arm] = row
    return found


def closed(accuracy: dict[str, Floats], arm: str, oracle: str) -> float | None:
    """The share of the gap between plain and an oracle that an arm closes; None if the oracle is not better."""
    gap = float((accuracy[oracle] - accuracy["plain"]).mean())
    gain = float((accuracy[arm] - accuracy["plain"]).mean())
    return round(100 * gain / gap, 1) if gap > 0 else None


def main() -> None:
    """Run all arms and write results/images.json after every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--clusters", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--arms", nargs="+", default=list(ARMS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    train, test = pictures(args.data, "train").first(args.train), pictures(args.data, "t10k")
    settings = Settings(
        len(train.images), args.epochs, args.batch, args.width, args.temperature, args.rate, tuple(args.clusters)
    )
    runs: dict[str, list[dict[str, Any]]] = {arm: [] for arm in args.arms}
    kept = Kept((args.out or RESULTS / "images.json").with_suffix(".jsonl"), asdict(settings))
    start, total, made = time.perf_counter(), args.seeds * len(runs), 0
    for seed in range(args.seeds):
        for arm, of_arm in runs.items():
            found = kept.get(arm, seed)
            if found is None:
                found = kept.add(arm, seed, run(arm, seed, train, test, settings))
                made += 1
            of_arm.append(found)
            left = (time.perf_counter() - start) / max(made, 1) * (total - sum(map(len, runs.values()))) / 60
            last = found.get("through", [{}])[-1]
            rates = f"found {last['true_positive']} kept {last['true_negative']}" if last else ""
            shown = f"{found['accuracy']:.2f} % nmi {found['nmi']:.1f}"
            print(f"seed {seed} {arm:17s} {shown} {found['seconds']:.0f} s, {left:.0f} min left {rates}", flush=True)
        # What is written holds for the seeds so far: a run that is cut short loses one seed, not all.
        result = {"settings": asdict(settings), "seeds": seed + 1, "test": len(test.images)}
        if "plain" in runs:
            write("images", result | {"arms": summary(runs), "runs": runs}, args.out)


class Kept:
    """Finished runs as lines of a file."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        """Read those of the same settings."""
        self.path, self.settings = path, json.loads(json.dumps(settings))
        lines = path.read_text().splitlines() if path.is_file() else []
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        self.rows = {(row["arm"], row["seed"]): row["found"] for row in rows if row["settings"] == self.settings}

    def get(self, arm: str, seed: int) -> dict[str, Any] | None:
        """What a run found, or None."""
        return self.rows.get((arm, seed))

    def add(self, arm: str, seed: int, found: dict[str, Any]) -> dict[str, Any]:
        """Keep a run at once."""
        with self.path.open("a") as file:
            row = {"arm": arm, "seed": seed, "settings": self.settings, "found": found}
            file.write(json.dumps(row, default=float) + "\n")
        self.rows[arm, seed] = found
        return found


def processor_minutes(path: Path, data: str | None = None) -> float:
    """Of all runs of a file, also of those in which settings were chosen; or of those whose settings name some data."""
    rows = (json.loads(line) for line in path.read_text().splitlines() if line.endswith("}"))
    spent = sum(row["found"]["processor_seconds"] for row in rows if data in (None, row["settings"].get("data")))
    return round(float(spent) / 60, 1)


if __name__ == "__main__":
    main()
