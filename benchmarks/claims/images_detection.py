"""Whether incremental detection of false negatives improves an encoder, and what decides it.

python -m benchmarks.claims.images_detection DATA [--parts 1 2] [--seeds 5] [--arms NAME ...] [--epochs E] [--out FILE]

DATA is a folder with the four files of Fashion-MNIST. SimCLR trains a small encoder on pictures of 10 classes (1 part)
or 100 (2 parts, `picture_worlds`) without their classes, once per arm; arms of one seed have the same initial weights,
batches and views. Accuracy is that of a linear probe on the test pictures; choices go by the validation pictures.

    plain                     every other picture of the batch is a negative: row [a] of Table 6
    constant, step, linear    acceptance of pseudo-labels, k-means with k = the number of classes: rows [b] to [g]
    attract                   linear acceptance, and same labels join the positives: row [h]
    oracle                    true classes: all false negatives leave the denominator, or join the positives (SupCon)

The other arms ask why: acceptance that follows the sum of learning rates, a flat rate, other k, features averaged over
views, pseudo-labels without their errors, and plain training that costs as much as the most costly arm.

Every finished run is a line of FILE with the ending .jsonl; a second call with the same settings continues. Seeds are
in the outer loop, so that a study that is cut short has all arms of the first seeds.

Chen, Hung, Tseng, Chien, Yang. Incremental False Negative Detection for Contrastive Learning. ICLR 2022: Tables 5, 6,
Figs. 1, 6.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.claims.detection_summary import draw, summary
from benchmarks.claims.picture_worlds import PARTS, World, cosine_rates, kept_or_run, missing, parser, world
from benchmarks.detectors.mutual_information import normalised_mutual_information
from benchmarks.harness import RESULTS, write
from benchmarks.training.image_encoder import Encoder, view
from benchmarks.training.images import Kept, processor_minutes
from naysay.detectors import detection_rates
from naysay.detectors.incremental import Accept, Incremental, LinearAcceptance, StepAcceptance
from naysay.losses import attract, eliminate, in_batch

Labels = NDArray[np.int64]
LINEAR = LinearAcceptance()


@dataclass(frozen=True)
class Arm:
    """One way to treat false negatives.

    labels     "clusters", "right clusters" (those of another class than most of their cluster get none), true
               "classes" or "groups"; None for plain
    clusters   k, in multiples of the number of classes
    views      pictures are clustered as they are (0), or by the mean feature of so many views
    matched    progress is the share of the sum of learning rates, not of epochs
    longer     multiplies the epochs
    prior      the share of false negatives that a debiased loss expects, without labels
    beta       how much more hard negatives count, without labels
    """

    labels: str | None = "clusters"
    attract: bool = False
    accept: Accept = LINEAR
    clusters: tuple[float, ...] = (1,)
    views: int = 0
    matched: bool = False
    flat: bool = False
    longer: float = 1.0
    prior: float = 0.0
    beta: float = 0.0


_CAREFUL = Arm(accept=StepAcceptance(0.2, 0.5), clusters=(2,), views=8)
ARMS = {
    "plain": Arm(None),
    "oracle attract": Arm("classes", attract=True),
    "oracle eliminate": Arm("classes"),
    "linear to 100 %": Arm(),
    "linear to 100 %, attract": Arm(attract=True),
    "k = 2 x classes, 8 views, half accepted": _CAREFUL,
    "linear to 100 %, wrong labels removed": Arm("right clusters"),
    "step to 100 %, wrong labels removed": Arm("right clusters", accept=StepAcceptance()),
    "plain, 1.3 x the epochs": Arm(None, longer=1.3),
    "constant 100 %": Arm(accept=1.0),
    "step to 100 %": Arm(accept=StepAcceptance()),
    "linear to 25 %": Arm(accept=LinearAcceptance(0.25)),
    "linear to 50 %": Arm(accept=LinearAcceptance(0.5)),
    "linear to 75 %": Arm(accept=LinearAcceptance(0.75)),
    "linear to 100 %, by learning rate": Arm(matched=True),
    "linear to 100 %, k = (1, 3, 10) x classes": Arm(clusters=(1, 3, 10)),
    "linear to 100 %, k = (0.5, 1, 2) x classes": Arm(clusters=(0.5, 1, 2)),
    "oracle attract, groups": Arm("groups", attract=True),
    "plain, flat rate": Arm(None, flat=True),
    "linear to 100 %, flat rate": Arm(flat=True),
    "k = 2 x classes, 8 views, half accepted, flat rate": Arm(**{**vars(_CAREFUL), "flat": True}),
}
# With 100 classes: what the claims need.
SECOND = (*list(ARMS)[:11], "linear to 100 %, k = (1, 3, 10) x classes", "oracle attract, groups")


@dataclass(frozen=True)
class Settings:
    """What all runs share; `every` is the epochs between two clusterings."""

    parts: int
    train: int = 2560
    validation: int = 5000
    epochs: int = 100
    every: int = 4
    batch: int = 256
    width: int = 16
    temperature: float = 0.2
    rate: float = 4e-3

    @classmethod
    def of(cls, parts: int, given: dict[str, Any]) -> Settings:
        """Those of a command."""
        return cls(parts, *(given[field.name] for field in fields(cls)[1:]))


def run(arm: Arm, seed: int, given: World, settings: Settings) -> dict[str, Any]:
    """Train one encoder, and evaluate it."""
    start, images = time.process_time(), given.train.images
    count, batch = len(images), min(settings.batch, len(images))
    encoder = given.encoder(settings.width, seed)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=settings.rate, weight_decay=1e-4)
    epochs, each = round(arm.longer * settings.epochs), count // batch
    rates = cosine_rates(epochs * each, settings.rate, flat=arm.flat)
    done = rates.cumsum() / rates.sum() if arm.matched else np.arange(1, len(rates) + 1) / len(rates)
    truth = given.train.classes.numpy()
    kinds = len(np.unique(truth))
    detector = _detector(arm, count, kinds, settings.temperature, seed)
    fixed = {"classes": truth, "groups": given.groups(given.train.classes).numpy()}.get(arm.labels or "")
    labels: Labels = np.full((1, count), -1) if fixed is None else fixed[None]
    generator, other = (torch.Generator().manual_seed(number) for number in (seed, 1000 + seed))
    partner = torch.arange(2 * batch).roll(batch)
    through: list[dict[str, Any]] = []
    for epoch in range(epochs):
        order = torch.randperm(count, generator=generator)[: each * batch].split(batch)
        for step, rows in enumerate(order, start=epoch * each):
            both = torch.cat([view(images[rows], generator), view(images[rows], generator)])
            optimiser.param_groups[0]["lr"] = rates[step]
            optimiser.zero_grad()
            _loss(arm, encoder(both), partner, labels[:, rows.repeat(2).numpy()], settings.temperature).backward()
            optimiser.step()
        due = (epoch + 1) % settings.every == 0 and epoch + 1 < epochs  # later labels would not be used
        if detector is not None and due:
            detector.update(_features(encoder, images, arm.views, other), min(1.0, float(done[(epoch + 1) * each - 1])))
            labels = _right(detector.labels, truth) if arm.labels == "right clusters" else detector.labels
            weight = float(rates[(epoch + 1) * each :][: settings.every * each].sum() / rates.sum())
            through.append({"epoch": epoch + 1, "weight": round(weight, 5)} | quality(labels, detector.assigned, truth))
    last = Incremental(count, kinds, seed=seed)
    last.update(encoder.features(images), progress=1.0)
    found = given.measures(encoder) | {"nmi": 100 * normalised_mutual_information(last.assigned[0], truth)}
    return found | {"processor_seconds": time.process_time() - start} | ({"through": through} if through else {})


def _detector(arm: Arm, count: int, kinds: int, temperature: float, seed: int) -> Incremental | None:
    if arm.labels is None or "clusters" not in arm.labels:
        return None
    clusters = [min(count, max(2, round(times * kinds))) for times in arm.clusters]
    return Incremental(count, clusters, temperature, accept=arm.accept, seed=seed)


def _loss(arm: Arm, z: Tensor, partner: Tensor, labels: Labels, temperature: float) -> Tensor:
    """The mean loss of a batch."""
    if arm.labels is None:
        return in_batch(z, partner=partner, temperature=temperature, prior=arm.prior, beta=arm.beta).mean()
    return (attract if arm.attract else eliminate)(z, partner, labels, temperature=temperature).mean()


def _features(encoder: Encoder, images: Tensor, views: int, generator: torch.Generator) -> Tensor:
    """(n, 128) what is clustered."""
    if not views:
        return encoder.features(images)
    return torch.stack([encoder.features(view(images, generator)) for _ in range(views)]).mean(dim=0)


def _table(labels: Labels, classes: Labels) -> NDArray[np.int64]:
    """(clusters, classes) how many labelled samples."""
    known = labels >= 0
    shape = int(labels.max(initial=0)) + 1, int(classes.max()) + 1
    places = labels[known] * shape[1] + classes[known]
    return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape)


def _right(labels: Labels, classes: Labels) -> Labels:
    """Labels without those of samples whose class is not the most frequent one of their cluster."""
    most = [_table(row, classes).argmax(axis=1) for row in labels]
    return np.where([top[row] == classes for top, row in zip(most, labels, strict=True)], labels, -1)


def quality(labels: Labels, assigned: Labels, classes: Labels) -> dict[str, Any]:
    """How good labels are, in per cent: MTPR, MTNR, the precision of flagged pairs, and NMI of whole clusterings."""
    rates = detection_rates(labels, classes)
    tables = [_table(row, classes) for row in labels]
    right = np.array([(table * (table - 1)).sum() for table in tables], float)
    flagged = np.array([(table.sum(axis=1) * (table.sum(axis=1) - 1)).sum() for table in tables], float)
    found = {
        "recall": rates.true_positive,
        "kept": rates.true_negative,
        "precision": np.divide(right, flagged, out=np.zeros_like(right), where=flagged > 0),
        "nmi": normalised_mutual_information(assigned, classes),
    }
    return {name: (100 * np.asarray(value)).round(2).tolist() for name, value in found.items()}


def main() -> None:
    """Run what is missing, and write results/claims_detection.json."""
    args = parser(__doc__ or "", ARMS, Settings, seeds=5).parse_args()
    torch.set_num_threads(1)
    target = args.out or RESULTS / "claims_detection.json"
    settings = {parts: Settings.of(parts, vars(args)) for parts in PARTS}
    kept = {parts: Kept(target.with_suffix(".jsonl"), asdict(one)) for parts, one in settings.items()}
    worlds = {parts: world(args.data, parts, args.train, args.validation) for parts in args.parts}
    for seed in range(args.seeds):
        for parts, seen in worlds.items():
            for name in args.arms or (ARMS if parts == 1 else SECOND):
                kept_or_run(kept[parts], name, seed, partial(run, ARMS[name], seed, seen, settings[parts]))
    result = {
        "processor_minutes": processor_minutes(target.with_suffix(".jsonl")),
        "settings": asdict(settings[1]) | {"parts": PARTS},
        "worlds": {
            str(parts): {"not_run": missing(ARMS if parts == 1 else SECOND, kept[parts].rows)}
            | summary(kept[parts].rows, list(ARMS))
            for parts in PARTS
        },
    }
    draw(result, write("claims_detection", result, args.out).with_suffix(".svg"))


if __name__ == "__main__":
    main()
