"""Which negatives train the best recommender: samplers, their candidates, powers of popularity, caches, mixing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import naysay as ns
from benchmarks import measures, readers
from benchmarks.pairs import PairModel, fit, made, some_anchors, split_by_anchor
from benchmarks.study import Claim, Found, Job, Settings, Study

TOP = 20


class Split(NamedTuple):
    """Pairs to train on, to choose by, and to report."""

    train: ns.Positives
    validation: ns.Positives
    test: ns.Positives


class Arm(NamedTuple):
    """A sampler as an expression of `benchmarks.pairs.made`, and how many negatives."""

    sampler: str
    k: int = 1


def likes(folder: Path, seed: int, _settings: Settings) -> Split:
    """Ratings of 4 and 5 stars of ml-100k."""
    return Split(*split_by_anchor(readers.ratings(folder)[0], seed))


def yelp(folder: Path, seed: int, settings: Settings) -> Split:
    """yelp2018 with its published test part; a tenth of the training pairs is for validation."""
    known, test = readers.yelp(folder)
    users, items = known.pairs()
    kept = users % settings["share"] == 0
    users, items = users[kept], items[kept]
    held = np.random.default_rng(seed).random(len(users)) < 0.1
    sizes = known.n_anchors, known.n_items
    train, validation = (ns.Positives.from_pairs(users[part], items[part], *sizes) for part in (~held, held))
    test_users, test_items = test.pairs()
    asked = test_users % settings["share"] == 0
    return Split(
        train, some_anchors(validation, 500), ns.Positives.from_pairs(test_users[asked], test_items[asked], *sizes)
    )


def generator_of(job: Job) -> dict[str, Any]:
    """A trained uniform model as the generator of an arm that learns, as IRGAN starts; nothing for the others."""
    if "generator" not in job.arm.sampler:
        return {}
    settings, train = job.settings, job.world.train
    started = PairModel(train, settings["dim"], job.seed)
    uniform = made("Static(Everything(train))", started, train)
    fit(started, train, uniform, lambda _: 1, settings, job.seed, lambda step: None)

    def generator(anchors: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        started.encode()
        return started.score(anchors, ids)

    return {"generator": generator, "optimizer": torch.optim.Adam(started.parameters(), lr=settings["lr"] / 10)}


def run(job: Job) -> Found:
    """Train one arm; the test part is measured at the step of the best validation recall, and at the last one."""
    world, settings = job.world, job.settings
    model = PairModel(world.train, settings["dim"], job.seed, hops=settings["hops"])
    sampler = made(job.arm.sampler, model, world.train, **generator_of(job))
    best: dict[str, Any] = {"validation": -1.0}

    def look(step: int) -> None:
        vectors = model.anchors.detach(), model.items.detach()
        recall = measures.ranked(*vectors, world.validation, TOP, known=world.train)["recall"]
        if recall > best["validation"]:
            best.update(validation=recall, best_step=step, vectors=vectors)

    held_out = world.validation.union(world.test)
    cost = fit(model, world.train, sampler, lambda _: job.arm.k, settings, job.seed, look, held_out)
    known = world.train.union(world.validation)
    tested = measures.ranked(*best.pop("vectors"), world.test, TOP, known=known)
    last = measures.ranked(model.anchors.detach(), model.items.detach(), world.test, TOP, known=known)
    return {**tested, "last_recall": last["recall"], **best, **cost}


ANY = "Everything(train, distinct=False)"
UNIFORM, HARD, MIXED = "uniform", "DNS(16)", "MixGCF(16)"
THREE = {
    UNIFORM: Arm("Static(Everything(train))"),
    HARD: Arm(f"Dynamic({ANY}, score, candidates=16)"),
    MIXED: Arm("MixGCF(Everything(train), embed, candidates=16)"),
}
STATIC = {
    f"popularity^{power:g}": Arm(f"Static(Everything(train, popularity(train, {power:g})))")
    for power in (0.25, 0.5, 0.75, 1.0)
} | {f"uniform, k = {k}": Arm("Static(Everything(train))", k) for k in (4, 8, 64)}
SCORED = {
    "DNS(4)": Arm(f"Dynamic({ANY}, score, candidates=4)"),
    "DNS(64)": Arm(f"Dynamic({ANY}, score, candidates=64)"),
    "DNS(16), softmax": Arm(f"Dynamic({ANY}, score, candidates=16, temperature=0.5)"),
    "cache": Arm("Cached(Everything(train), score, size=16, fresh=16)"),
    "WARP": Arm(f"Warp({ANY}, score, trials=16)"),
}
ARMS = {**THREE, **STATIC, **SCORED}
LEARNED = "Learned(Everything(train, distinct=False), generator, optimizer, score, candidates=64)"
LONG = {
    **THREE,
    **{name: arm for name, arm in STATIC.items() if name.startswith("popularity")},
    "cache": Arm("Cached(Everything(train), score, size=50, fresh=50)"),
    "learned": Arm(LEARNED),
}
TUNED_LIKE = dict.fromkeys(STATIC, UNIFORM) | dict.fromkeys((*SCORED, "learned"), HARD)
MEASURES = ("recall", "ndcg", "last_recall", "validation", "best_step", "false_percent", "milliseconds_a_step")
SETTINGS = {
    "dim": 64,
    "hops": 0,
    "steps": 600,
    "every": 50,
    "batch": 4096,
    "decay": 0.0,
    "loss": "info_nce",
    "share": 1,
}
QUICK = {"dim": 8, "steps": 4, "every": 2, "batch": 512, "share": 64}
GRID = tuple({"lr": lr, "decay": decay} for lr in (0.003, 0.01, 0.03, 0.1) for decay in (1e-6, 1e-5))
PROTOCOL = """\
Do samplers differ in quality and speed as the review of negative sampling has it (Yang et al., Figs. 1, 4, 5)?
{data} InfoNCE, which is BPR for k = 1; all arms have k = 1 but those with another k in their name. Recall@20 of the
test part at the step of the best validation recall, and at the last step. Learning rate and weight decay: on a
split of its own, by validation recall, for uniform, DNS(16) and MixGCF(16); static samplers take those of uniform,
hard ones those of DNS(16)."""
CLAIMS = (
    Claim("hard negatives are better than uniform ones (Fig. 5)", HARD, UNIFORM, "recall"),
    Claim("mixed negatives are better than hard ones (Fig. 5)", MIXED, HARD, "recall"),
)
MORE_CLAIMS = (
    Claim("popularity^0.75 is worse than uniform on this data (Fig. 4)", "popularity^0.75", UNIFORM, "recall", -1),
    Claim("a cache is better than uniform (Fig. 5)", "cache", UNIFORM, "recall"),
    Claim("64 candidates are better than 4 (Fig. 5)", "DNS(64)", "DNS(4)", "recall"),
)


def declared(name: str, data: str, world: Any, arms: dict[str, Arm], text: str, claims: Any, **settings: Any) -> Study:
    """One study on one data set with one model."""
    return Study(
        name=name,
        protocol=PROTOCOL.format(data=text),
        data=(data,),
        world=world,
        run=run,
        arms=arms,
        seeds=(0, 1, 2),
        measures=MEASURES,
        claims=claims,
        settings={**SETTINGS, **settings},
        quick=QUICK,
        grid=GRID,
        tuned_like=TUNED_LIKE,
    )


STUDIES = (
    declared(
        *("recommendation-ml-100k", "ml-100k", likes, ARMS),
        text="Matrix factorisation of the likes (4 and 5 stars) of ml-100k; a tenth each for validation and test.",
        claims=CLAIMS[:1] + MORE_CLAIMS,
        batch=1024,
        steps=1000,
        every=25,
    ),
    declared(
        *("recommendation-yelp-mf", "yelp2018", yelp, ARMS),
        text="Matrix factorisation of one in four users of yelp2018 with its published test part.",
        claims=CLAIMS[:1] + MORE_CLAIMS,
        share=4,
    ),
    declared(
        *("recommendation-yelp-long", "yelp2018", yelp, LONG),
        text="Matrix factorisation of all users of yelp2018 with its published test part, 6,000 steps of 32,768 pairs.",
        claims=(
            *CLAIMS,
            *MORE_CLAIMS[:2],
            Claim("a learned sampler is better than uniform (Fig. 5)", "learned", UNIFORM, "recall"),
        ),
        batch=32_768,
        steps=6000,
        every=500,
    ),
    declared(
        *("recommendation-yelp-lightgcn", "yelp2018", yelp, THREE),
        text="LightGCN with two hops of one in eight users of yelp2018 with its published test part.",
        claims=CLAIMS,
        share=8,
        hops=2,
    ),
)
