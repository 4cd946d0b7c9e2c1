"""Images: incremental detection of false negatives, debiased and hard negatives of a batch, percentiles of hardness."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import naysay as ns
from benchmarks import measures, pictures
from benchmarks.pictures import World
from benchmarks.study import Claim, Found, Job, Settings, Study

Labels = NDArray[np.int64]


def world(folder: Path, _seed: int, settings: Settings) -> World:
    """The same pictures for all seeds."""
    return pictures.world(folder, settings)


def views(images: Tensor, generator: torch.Generator, settings: Settings) -> Tensor:
    """A random view of each."""
    return pictures.view(images, generator, smallest=settings["crop"], mirror=settings["mirror"])


# ---- incremental detection, and the losses of a batch ----------------------------------------------------------------


class InBatch(NamedTuple):
    """One way to treat the other pictures of a batch.

    labels    "clusters", true "classes", or "" for none
    accept    an expression of `naysay.detectors`, or a number: the share of pseudo-labels that is accepted
    attract   whether the same labels join the positives; else they leave the denominator
    prior     the share of false negatives that a debiased loss expects
    beta      how much more hard negatives count
    """

    labels: str = ""
    accept: str = "LinearAcceptance()"
    attract: bool = False
    prior: float = 0.0
    beta: float = 0.0


def in_batch(job: Job) -> Found:
    """Train one encoder by SimCLR, and evaluate it."""
    given, settings, arm = job.world, job.settings, job.arm
    images, truth = given.train.images, given.train.classes.numpy()
    count, batch = len(images), min(settings["batch"], len(images))
    each, epochs = count // batch, settings["epochs"]
    encoder = pictures.encoder_of(given, settings, job.seed)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=settings["lr"], weight_decay=1e-4)
    rates = pictures.cosine_rates(epochs * each, settings["lr"])
    kinds = len(np.unique(truth))
    detector = None
    if arm.labels == "clusters":
        accept = eval(arm.accept, dict(vars(ns.detectors)))  # text of a declaration
        clusters = [min(count, round(times * kinds)) for times in settings["clusters"]]
        more = {"accept": accept, "restarts": settings["restarts"], "seed": job.seed}
        detector = ns.detectors.Incremental(count, clusters, settings["temperature"], **more)
    labels: Labels = truth[None] if arm.labels == "classes" else np.full((1, count), -1)
    generator = torch.Generator().manual_seed(job.seed)
    partner = torch.arange(2 * batch).roll(batch)
    halfway = {}
    for epoch in range(epochs):
        for step, rows in enumerate(torch.randperm(count, generator=generator)[: each * batch].split(batch)):
            both = torch.cat([views(images[rows], generator, settings) for _ in range(2)])
            optimiser.param_groups[0]["lr"] = rates[epoch * each + step]
            optimiser.zero_grad()
            loss_of(arm, encoder(both), partner, labels[:, rows.repeat(2).numpy()], settings["temperature"]).backward()
            optimiser.step()
        if detector is not None and (epoch + 1) % settings["update_every"] == 0 and epoch + 1 < epochs:
            detector.update(encoder.features(images), (epoch + 1) / epochs)
            labels = detector.labels
        if epoch + 1 == max(1, epochs // 2):
            halfway["half_nmi"] = clustering(encoder, given, job.seed)
    found = pictures.accuracies(given, encoder, settings["labelled"])
    found |= {**halfway, "nmi": clustering(encoder, given, job.seed)}
    if detector is not None and (labels >= 0).any():
        rates_of = ns.detectors.detection_rates(labels, truth)
        found["recall"] = 100 * float(np.mean(rates_of.true_positive))
        found["kept"] = 100 * float(np.mean(rates_of.true_negative))
    if {"plain", "oracle eliminate"} <= job.earlier.keys():
        plain, oracle = (job.earlier[name]["accuracy"] for name in ("plain", "oracle eliminate"))
        if oracle != plain:
            found["gap_percent"] = 100 * (found["accuracy"] - plain) / (oracle - plain)
    return found


def loss_of(arm: InBatch, z: Tensor, partner: Tensor, labels: Labels, temperature: float) -> Tensor:
    """The mean loss of a batch."""
    if not arm.labels:
        losses = ns.losses.in_batch(z, partner=partner, temperature=temperature, prior=arm.prior, beta=arm.beta)
    else:
        losses = (ns.losses.attract if arm.attract else ns.losses.eliminate)(
            z, partner, labels, temperature=temperature
        )
    return losses.mean()


def clustering(encoder: pictures.Encoder, given: World, seed: int) -> float:
    """NMI of k-means of the features with the classes, in per cent."""
    truth = given.train.classes.numpy()
    last = ns.detectors.Incremental(len(truth), len(np.unique(truth)), seed=seed)
    last.update(encoder.features(given.train.images), progress=1.0)
    return 100 * measures.mutual_information(np.asarray(last.assigned)[0], truth)


# ---- percentiles of hardness -----------------------------------------------------------------------------------------


class Percentiles(NamedTuple):
    """Entries of the queue from percentile `low` to `high` (0 easiest, 1 hardest), kept alone or removed.

    only        remove only those that have the anchor's class ("same")
    at_random   percentiles of random numbers in place of scores
    """

    low: float = 0.0
    high: float = 1.0
    remove: bool = False
    only: str = ""
    at_random: bool = False
    trained: bool = True


def percentiles(job: Job) -> Found:
    """Train one encoder by MoCo with a part of its queue, and evaluate it."""
    given, settings, arm = job.world, job.settings, job.arm
    images, classes = given.train.images, given.train.classes
    encoder = pictures.encoder_of(given, settings, job.seed)
    slow = copy.deepcopy(encoder).requires_grad_(requires_grad=False)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=settings["lr"], weight_decay=1e-4)
    generator, chance = (torch.Generator().manual_seed(number) for number in (job.seed, 1000 + job.seed))
    size = settings["queue"] + settings["spare"]
    memory = ns.pools.Memory(size)
    first = torch.randperm(len(images), generator=generator)[:size]
    encoder(images[first])  # running statistics: the queue is full, and of this encoder, before the first step
    slow.load_state_dict(encoder.state_dict())
    slow.eval()  # a batch's own statistics would mark its positives; MoCo shuffles the batch instead
    memory.push(first.numpy(), vectors=slow(views(images[first], generator, settings)))
    order = torch.empty(0, dtype=torch.int64)
    shares = []
    for rate in pictures.cosine_rates(settings["steps"], settings["lr"]) if arm.trained else ():
        if len(order) < settings["batch"]:
            order = torch.cat([order, torch.randperm(len(images), generator=generator)])
        rows, order = order[: settings["batch"]], order[settings["batch"] :]
        follow(slow, encoder, settings["momentum"])
        anchors = encoder(views(images[rows], generator, settings))
        positives = slow(views(images[rows], generator, settings))
        owners = torch.from_numpy(np.asarray(memory.owners))
        scores = anchors @ memory.vectors.T
        valid, same = owners != rows[:, None], classes[owners] == classes[rows, None]
        left = kept_negatives(scores.detach(), valid, same, arm, chance)
        if settings["spare"]:  # the same number for all arms, also after a removal
            left &= left.cumsum(dim=1) <= settings["queue"]
        own = (anchors * positives).sum(dim=1)
        loss = ns.losses.info_nce(own, scores, temperature=settings["temperature"], mask=left).mean()
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        memory.push(rows.numpy(), vectors=positives)
        shares.append(float((left & same).sum() / left.sum().clamp(min=1)))
    found = pictures.accuracies(given, encoder, settings["labelled"])
    return found | {"same_class_percent": 100 * float(np.mean(shares[len(shares) // 2 :])) if shares else 0.0}


@torch.no_grad()
def follow(slow: pictures.Encoder, encoder: pictures.Encoder, momentum: float) -> None:
    """Move a slow copy towards the encoder, its running statistics too."""
    for kept, new in zip(slow.state_dict().values(), encoder.state_dict().values(), strict=True):
        if kept.is_floating_point():
            kept.lerp_(new, 1 - momentum)


def kept_negatives(scores: Tensor, valid: Tensor, same: Tensor, arm: Percentiles, chance: torch.Generator) -> Tensor:
    """(B, M) bool: which entries of the queue an arm leaves to each anchor; invalid ones count as the easiest."""
    ranked = torch.rand(scores.shape, generator=chance) if arm.at_random else scores
    ordered = ranked.masked_fill(~valid, -2.0).sort(dim=1).values  # cosines are at least -1
    size = scores.shape[1]

    def score_at(share: float) -> Tensor:
        place = round(share * size)
        return ordered[:, place : place + 1] if place < size else torch.full((len(scores), 1), torch.inf)

    inside = (ranked >= score_at(arm.low)) & (ranked < score_at(arm.high))
    if arm.only:
        inside &= same
    return valid & (~inside if arm.remove else inside)


# ---- declarations ----------------------------------------------------------------------------------------------------
DETECTION = {
    "plain": InBatch(),
    "oracle attract": InBatch("classes", attract=True),
    "oracle eliminate": InBatch("classes"),
    "linear to 100 %": InBatch("clusters"),
    "linear to 100 %, attract": InBatch("clusters", attract=True),
    "constant 100 %": InBatch("clusters", "1.0"),
    "step to 100 %": InBatch("clusters", "StepAcceptance()"),
    **{f"linear to {share} %": InBatch("clusters", f"LinearAcceptance({share / 100})") for share in (25, 50, 75)},
}
LOSSES = {
    "plain": InBatch(),
    "debiased": InBatch(prior=0.1),
    **{f"hard, beta {beta:g}": InBatch(prior=0.1, beta=beta) for beta in (0.5, 1.0, 2.0)},
}
HARDEST = 0.001
QUEUE = {
    "untrained": Percentiles(trained=False),
    "all": Percentiles(),
    "only 95-100 %": Percentiles(0.95),
    "only 90-95 %": Percentiles(0.9, 0.95),
    "only 85-90 %": Percentiles(0.85, 0.9),
    "only 50-55 %": Percentiles(0.5, 0.55),
    "only 5 % at random": Percentiles(0.95, at_random=True),
    "all but 95-100 %": Percentiles(0.95, remove=True),
    "all but 90-100 %": Percentiles(0.9, remove=True),
    "all but 99.9-100 %": Percentiles(1 - HARDEST, remove=True),
    "all but the same class": Percentiles(remove=True, only="same"),
    "all but 99.9-100 %, same class": Percentiles(1 - HARDEST, remove=True, only="same"),
}
FASHION = {
    "data": "fashion-mnist",
    "side": 14,
    "validation": 5000,
    "test": 10_000,
    "labelled": None,
    "width": 16,
    "layers": 3,
    "pooled": False,
    "crop": 0.5,
    "mirror": True,
    "lr": 4e-3,
    "temperature": 0.2,
}
SIMCLR = {"train": 2560, "batch": 256, "epochs": 100, "update_every": 4, "clusters": (1,), "restarts": 1}
MOCO = {"train": 6144, "batch": 64, "steps": 1200, "queue": 4096, "spare": 0, "momentum": 0.99}
QUICK = {
    "train": 256,
    "validation": 64,
    "test": 64,
    "batch": 64,
    "width": 4,
    "labelled": None,
    "epochs": 2,
    "update_every": 1,
    "clusters": (1,),
    "steps": 2,
    "queue": 128,
    "restarts": 1,
}
HARDEST_ARMS = ("all", "all but 99.9-100 %", "all but the same class")
OF_DETECTION = ("accuracy", "validation", "nmi", "half_nmi", "recall", "kept", "gap_percent")
CLAIMS_OF_DETECTION = (
    Claim("eliminating pseudo-labels is better than plain (Table 6)", "linear to 100 %", "plain", "accuracy"),
    Claim("attracting them is better than plain (Table 6)", "linear to 100 %, attract", "plain", "accuracy"),
    Claim("linear is better than constant (Fig. 6)", "linear to 100 %", "constant 100 %", "accuracy"),
    Claim("linear is better than a step (Fig. 6)", "linear to 100 %", "step to 100 %", "accuracy"),
)
CLAIMS_OF_LOSSES = (
    Claim("a debiased loss is better than plain (Fig. 7)", "debiased", "plain", "accuracy"),
    Claim("hard negatives are better than a debiased loss (Fig. 7)", "hard, beta 1", "debiased", "accuracy"),
)
CLAIMS_OF_HARDEST = tuple(
    Claim(f"{text} ({measure})", arm, "all", measure)
    for text, arm in (
        ("the hardest 0.1 % hurt (Table 1)", "all but 99.9-100 %"),
        ("the same class hurts (Table 1)", "all but the same class"),
    )
    for measure in ("accuracy", "top_5")
)
CLAIMS_OF_PERCENTILES = (
    Claim("the hardest 5 % are sufficient (Fig. 2)", "only 95-100 %", "all", "accuracy", 0, 1.0),
    Claim("the hardest 5 % are necessary (Fig. 2)", "all but 95-100 %", "all", "accuracy", -1),
    Claim("the hardest 0.1 % hurt (Table 1)", "all but 99.9-100 %", "all", "accuracy"),
    Claim("the same class hurts (Table 1)", "all but the same class", "all", "accuracy"),
)


def declared(
    name: str,
    text: str,
    run: Any,
    arms: Any,
    measured: Any,
    claims: Any,
    seeds: int = 5,
    grid: Any = (),
    **settings: Any,
) -> Study:
    """One study of pictures."""
    shape = "averaged" if settings.get("pooled") else "flattened"
    shared = f"A small convolutional encoder, maps {shape}; accuracy of a linear probe in per cent."
    return Study(
        name=f"images-{name}",
        protocol=f"{text} {shared}",
        data=(settings.get("data", FASHION["data"]),),
        world=world,
        run=run,
        arms=arms,
        seeds=tuple(range(seeds)),
        measures=measured,
        claims=claims,
        settings={**FASHION, **settings},
        quick=QUICK,
        grid=grid,
    )


IFND = """\
Does incremental detection of false negatives improve an encoder (Chen et al., ICLR 2022, Tables 5 and 6, Fig. 6)?
SimCLR on {}; pseudo-labels by k-means, accepted by their confidence. Oracles know the classes."""
GATE = """
Run first: 3 seeds of "plain" and of the oracles. The other arms are run only if the oracle that eliminates gains 2
points and NMI at half time is 75 or more: else nothing could show. Then 5 seeds of all, 8 of linear and step."""
CAI = """\
Which negatives of a queue does an encoder need (Cai et al. 2020, Figs. 2 and 3, Tables 1, A1, A2)? MoCo on {}; each
arm removes some percentiles of each anchor's queue, ordered by score. A picture's own older entries are never
negatives."""
REFILLED = """ What is removed is refilled from 512 further entries, so that all arms have
16,384."""
HCL = """\
Are debiased (DCL) and hard (HCL) negatives of the batch better than plain ones (Yang et al., Fig. 7; Robinson et
al. 2021)? SimCLR on {}, at the temperature {}."""
POOLED = {"pooled": True, "crop": 0.2}
STUDIES = (
    *(
        declared(
            *(f"detection-{10**parts}", IFND.format(f"{10**parts} classes of Fashion-MNIST"), in_batch),
            *(DETECTION, OF_DETECTION, CLAIMS_OF_DETECTION),
            **SIMCLR,
            parts=parts,
        )
        for parts in (1, 2)
    ),
    declared(
        *(
            "detection-mnist",
            IFND.format("pairs of MNIST digits, 100 classes, without mirroring; probe on 2,000 labels") + GATE,
        ),
        *(in_batch, DETECTION, OF_DETECTION, CLAIMS_OF_DETECTION, 8),
        **{
            **SIMCLR,
            "train": 20_000,
            "batch": 512,
            "epochs": 205,
            "update_every": 5,
            "clusters": (1, 3, 10),
            "restarts": 5,
        },
        **{**POOLED, "crop": 0.4, "mirror": False, "data": "mnist", "parts": 2, "labelled": 2000},
    ),
    declared(
        *("detection-cifar", IFND.format("10,000 pictures of CIFAR-10") + GATE),
        *(in_batch, DETECTION, OF_DETECTION, CLAIMS_OF_DETECTION, 8),
        **{**SIMCLR, "train": 10_000, "epochs": 103, "update_every": 5, "clusters": (1, 3, 10), "restarts": 5},
        **{**POOLED, "data": "cifar-10", "parts": 1, "side": 32, "layers": 4},
    ),
    *(
        declared(
            *(
                f"hardest-{temperature:g}",
                CAI.format(f"20,000 pictures of 100 classes of Fashion-MNIST, temperature {temperature:g}") + REFILLED,
            ),
            *(percentiles, {name: QUEUE[name] for name in HARDEST_ARMS}),
            *(("accuracy", "top_5", "validation", "same_class_percent"), CLAIMS_OF_HARDEST, 8),
            **{**MOCO, "train": 20_000, "steps": 4000, "queue": 16_384, "spare": 512},
            **POOLED,
            parts=2,
            temperature=temperature,
        )
        for temperature in (0.07, 0.2)
    ),
    *(
        declared(
            *(f"percentiles-{temperature:g}", CAI.format(f"100 classes of Fashion-MNIST, temperature {temperature:g}")),
            *(percentiles, QUEUE, ("accuracy", "validation", "same_class_percent"), CLAIMS_OF_PERCENTILES, 3),
            **MOCO,
            parts=2,
            temperature=temperature,
        )
        for temperature in (0.2, 0.07)
    ),
    declared(
        *("percentiles-pooled", CAI.format("100 classes of Fashion-MNIST, crops of 20 to 100 %, 4,000 steps")),
        *(percentiles, QUEUE, ("accuracy", "validation", "same_class_percent"), CLAIMS_OF_PERCENTILES),
        **{**MOCO, "steps": 4000},
        **POOLED,
        parts=2,
    ),
    declared(
        *(
            "in-batch-fashion",
            HCL.format("10 classes of Fashion-MNIST", "0.2 for all arms"),
            in_batch,
            LOSSES,
            OF_DETECTION[:3],
        ),
        CLAIMS_OF_LOSSES,
        **SIMCLR,
        parts=1,
    ),
    declared(
        *(
            "in-batch-cifar",
            HCL.format("10,000 pictures of CIFAR-10", "0.5 for all arms"),
            in_batch,
            LOSSES,
            OF_DETECTION[:3],
        ),
        CLAIMS_OF_LOSSES,
        **{**SIMCLR, "train": 10_000, "epochs": 103},
        **{**POOLED, "data": "cifar-10", "parts": 1, "side": 32, "layers": 4, "temperature": 0.5},
    ),
    declared(
        *("in-batch-cifar-tuned", HCL.format("10,000 pictures of CIFAR-10", "that is best for each by validation")),
        *(in_batch, LOSSES, OF_DETECTION[:3], CLAIMS_OF_LOSSES),
        grid=tuple({"temperature": temperature} for temperature in (0.1, 0.2, 0.5)),
        **{**SIMCLR, "train": 10_000, "epochs": 103},
        **{**POOLED, "data": "cifar-10", "parts": 1, "side": 32, "layers": 4},
    ),
)
