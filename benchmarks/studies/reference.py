"""How near does a converged run of naysay's lab come to a published figure? One model for each of three domains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

import naysay as ns
from benchmarks import readers
from benchmarks.study import TUNING_SEED, Found, Job, Settings, Study
from naysay.lab._run import Run
from naysay.lab.arms import parts_of, read_arms

PICTURES = 10_000
OF_RUN = ("rows", "done", "points", "best", "best_value", "seconds", "processor_seconds")  # what a run changes


def codex(folder: Path, _seed: int, settings: Settings) -> ns.lab.LinkPrediction:
    """CoDEx-S in its published parts."""
    data = readers.arrays(folder, "codex-s", "triples.npz")
    parts = [data[part] for part in ("train", "valid", "test")]
    n_entities, n_relations = (1 + max(int(part[:, columns].max()) for part in parts) for columns in ([0, 2], [1]))
    train, validation, test = (ns.Triples(part, n_entities, n_relations) for part in parts)
    graph = ns.lab.KnowledgeGraph(train, validation, test)
    return ns.lab.LinkPrediction(graph, "rotate", dim=settings["dim"], batch=settings["batch"])


def yelp(folder: Path, seed: int, settings: Settings) -> ns.lab.Recommendation:
    """yelp2018 with its published test part; a tenth of the training pairs is for validation."""
    known, test = readers.yelp(folder)
    users, items = known.pairs()
    held = np.random.default_rng(seed).random(len(users)) < 0.1
    sizes = known.n_anchors, known.n_items
    train, validation = (ns.Positives.from_pairs(users[rows], items[rows], *sizes) for rows in (~held, held))
    data = ns.lab.Interactions(train, validation, test)
    return ns.lab.Recommendation(data, settings["model"], dim=settings["dim"], batch=settings["batch"])


def cifar(folder: Path, _seed: int, settings: Settings) -> ns.lab.ImageContrast:
    """10,000 training pictures of CIFAR-10, 1,000 others for validation, and the published test part."""
    images, classes = readers.pictures(folder, "cifar-10", "train")
    test_images, test_classes = readers.pictures(folder, "cifar-10", "test")
    chosen = np.random.default_rng(0).permutation(len(images))[: PICTURES + 1000]
    parts = np.repeat([0, 1, 2], [PICTURES, 1000, len(test_images)])
    pictures = np.concatenate([images[chosen], test_images]).transpose(0, 2, 3, 1)
    data = ns.lab.Images(pictures, np.concatenate([classes[chosen], test_classes]), parts)
    return ns.lab.ImageContrast(data, batch=settings["batch"])


def run(job: Job) -> Found:
    """Train by one arm of `compare`, measured every few steps; a run that was stopped goes on where it was."""
    task, settings = job.world, job.settings
    steps = settings["steps"] // 4 if job.seed == TUNING_SEED else settings["steps"]
    arm = read_arms([job.arm], task, parts_of(task, job.seed, steps), task.defaults)[0]
    training = Run(task, arm, settings["lr"], job.seed, steps)
    file = job.folder / f"{job.seed}-{settings['lr']:g}.pt"
    if file.exists():
        restore(training, torch.load(file, weights_only=False))
    while training.done < steps:
        training.train(min(settings["every"], steps - training.done))
        training.validate()
        print(f"{arm.name}, {settings['lr']:g}: {training.points[-1]}", flush=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(state(training), file)
    curve = [(point.step, round(point.value, 4), round(point.processor_seconds, 1)) for point in training.points]
    best = max(training.points, key=lambda point: point.value)
    found = {"validation": best.value, "best_step": best.step, "curve": curve}
    return {**training.result().test, **found}


def state(training: Run) -> dict[str, Any]:
    """All that a run has changed since its start. Arms without a state of their own: a sampler that learns has one."""
    return {
        "network": training.model.network.state_dict(),
        "optimiser": training.optimiser.state_dict(),
        "order": training.order.bit_generator.state,
        **{name: getattr(training, name) for name in OF_RUN},
    }


def restore(training: Run, kept: dict[str, Any]) -> None:
    """Go on with a run."""
    training.model.network.load_state_dict(kept["network"])
    training.optimiser.load_state_dict(kept["optimiser"])
    training.order.bit_generator.state = kept["order"]
    for name in OF_RUN:
        setattr(training, name, kept[name])


COMMON = """\
A reference run of `naysay.lab`, with the sampler, loss and model that `compare` trains. The learning rate is chosen by
validation on another seed, with a quarter of the steps; the test part is measured once, at the step of the best
validation measure."""
KNOWLEDGE = f"""\
{COMMON} RotatE on CoDEx-S, self-adversarial loss (margin 9, alpha 1), 32 corruptions of a triple, 64 complex
coordinates, batch 512, 10,000 steps, which is 156 epochs. Published on this data by Safavi and Koutra (2020): MRR 0.354
for TransE, 0.404 for RESCAL, 0.444 for ConvE and TuckER, 0.465 for ComplEx, each tuned by hundreds of trials; RotatE
was not run. Not blind: pilots of 1,000 steps on the validation part had MRR 0.34 with margin 9, 0.33 with margin 3."""
YELP = f"""\
{COMMON} {{model}} on yelp2018, BPR with one uniform negative (k = 1), 64 coordinates, batch {{batch}}. Published:
{{text}} (He et al., LightGCN, SIGIR 2020), after up to 1,000 epochs of batches of 2,048. Here a
tenth of the training pairs is held out for validation."""
PICTURE = f"""\
{COMMON} SimCLR on 10,000 pictures of CIFAR-10 at 32 x 32, all other views of a batch of 256 as negatives, temperature
0.2, 4,000 steps, which is 102 epochs. Measured: 20 nearest neighbours, and a linear probe on 3,000 labels. Published:
94.0 % for a linear probe (Chen et al. 2020, appendix B.9) with ResNet-50, all 50,000 pictures and labels, and 1,000
epochs; here the encoder has three convolutions, so that a large distance is expected."""
RATES = ({"lr": 3e-3}, {"lr": 1e-2})


def recommender(model: str, text: str, batch: int, steps: int, every: int, rates: tuple[Settings, ...]) -> Study:
    """One model on yelp2018."""
    return Study(
        name=f"reference-yelp-{model}",
        protocol=YELP.format(model=model, batch=batch, text=text),
        data=("yelp2018",),
        world=yelp,
        run=run,
        arms={"BPR, k = 1": "BPR:1"},
        seeds=(0,),
        measures=("recall@20", "ndcg@20", "validation", "best_step"),
        settings={"model": model, "dim": 64, "batch": batch, "steps": steps, "every": every},
        quick={"dim": 4, "steps": 2, "every": 1},
        grid=rates,
    )


STUDIES = (
    Study(
        name="reference-codex-rotate",
        protocol=KNOWLEDGE,
        data=("codex-s",),
        world=codex,
        run=run,
        arms={"RotatE": "RotatE:32"},
        seeds=(0,),
        measures=("mrr", "hits@10", "hits@1", "validation", "best_step"),
        settings={"dim": 128, "batch": 512, "steps": 10_000, "every": 500},
        quick={"dim": 8, "steps": 2, "every": 1},
        grid=RATES,
    ),
    recommender("mf", "recall@20 0.0433 and NDCG@20 0.0354 for matrix factorisation", 16_384, 8000, 400, RATES),
    recommender(
        "lightgcn", "recall@20 0.0622 and NDCG@20 0.0504 for LightGCN of two layers", 16_384, 1200, 100, RATES[1:]
    ),
    Study(
        name="reference-cifar-simclr",
        protocol=PICTURE,
        data=("cifar-10",),
        world=cifar,
        run=run,
        arms={"SimCLR": "SimCLR"},
        seeds=(0,),
        measures=("linear probe", "k-NN accuracy", "validation", "best_step"),
        settings={"batch": 256, "steps": 4000, "every": 200},
        quick={"batch": 32, "steps": 2, "every": 1},
        grid=RATES,
    ),
)
