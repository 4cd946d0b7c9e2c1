"""How many negatives: is quality best near K*, does a schedule of k beat a fixed one, and does `Online` find K*?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import naysay as ns
from benchmarks import measures, readers
from benchmarks.pairs import PairModel, fit, made, split_by_anchor
from benchmarks.study import Claim, Found, Job, Settings, Study

TOP, WITHIN_TOP = 20, 10  # of a list
PROBED, MOST = 2000, 1000  # pairs of a probe; the largest k
PEAKS: dict[str, Callable[[int], int]] = {
    "K*": lambda best: best,
    "4 K*": lambda best: 4 * best,
    "half of K*": lambda best: round((best + 1) / 2),  # the mean of a schedule from 1 to K* and back
}
STEPS, PROBES = 1000, 20  # of a simulated run


class Likes(NamedTuple):
    """Likes to train on, to choose by and to report, and in the same parts what was seen and not liked."""

    train: ns.Positives
    validation: ns.Positives
    test: ns.Positives
    disliked: dict[str, ns.Positives]


class Arm(NamedTuple):
    """k negatives, or a schedule up to the k that `peak` names: a key of PEAKS.

    turning   the share of the run after which k falls again; 0 for a fixed k
    """

    k: int = 0
    peak: str = ""
    turning: float = 0.0


def world(folder: Path, seed: int, _settings: Settings) -> Likes:
    """ml-100k: 4 and 5 stars are likes."""
    liked, disliked = readers.ratings(folder)
    parts = dict(zip(("train", "validation", "test"), split_by_anchor(disliked, seed), strict=True))
    return Likes(*split_by_anchor(liked, seed), parts)


def run(job: Job) -> Found:
    """Train with uniform negatives, or with items that the user rated low; probe both AUCs through training."""
    data, settings, arm = job.world, job.settings, job.arm
    peak = min(MOST, PEAKS[arm.peak](job.earlier["k = 1"]["best_k"])) if arm.peak else arm.k
    schedule = ns.quantity.adaptive(peak, settings["steps"], arm.turning) if arm.turning else None
    model = PairModel(data.train, settings["dim"], job.seed, biases=settings["biases"])
    sampler = made(settings["sampler"], model, data.train, disliked=data.disliked["train"])
    best: dict[str, Any] = {"validation": -1.0}
    last: dict[str, float] = {}
    curves: dict[str, list[float]] = {"train": [], "validation": []}

    def look(step: int) -> None:
        vectors = model.anchors.detach(), model.items.detach()
        if settings["within"]:
            quality = ranked_within(model, data, "validation")["quality"]
        else:
            quality = measures.ranked(*vectors, data.validation, TOP, known=data.train)["recall"]
        if quality > best["validation"]:
            best.update(validation=quality, best_step=step)
            best.update(test_of(model, data, within=settings["within"]))
        last["validation"] = quality
        for part in curves:
            curves[part].append(probe(model, data, part, job.seed))

    cost = fit(model, data.train, sampler, schedule or (lambda _: peak), settings, job.seed, look)
    tested = test_of(model, data, within=settings["within"])
    found = {"k": peak, **best, "last": tested["quality"], "last_ndcg": tested["ndcg"], **cost}
    if settings["within"]:  # scored at the last step, so chosen there too
        found["validation"] = last["validation"]
    if not arm.peak and arm.k == 1:
        converged = int(np.argmax(curves["validation"]))
        trained = max(curves["train"][converged], 0.501)  # a model that has learned nothing says nothing about k
        said = ns.quantity.estimate(trained, curves["validation"][: converged + 1])
        found |= {
            "best_k": said.k,
            "train_auc": trained,
            "validation_auc": max(curves["validation"]),
        }
    return found


def test_of(model: PairModel, data: Likes, *, within: bool) -> dict[str, float]:
    """The quality of the test part: recall@20 of all items, or the AUC within what the user rated."""
    if within:
        return ranked_within(model, data, "test")
    known = data.train.union(data.validation)
    found = measures.ranked(model.anchors.detach(), model.items.detach(), data.test, TOP, known=known)
    return {"quality": found["recall"], "ndcg": found["ndcg"]}


def probe(model: PairModel, data: Likes, part: str, seed: int) -> float:
    """The AUC of some pairs of a part over uniform items that are not liked."""
    liked = getattr(data, part)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(liked))[:PROBED]
    anchors, items = (torch.from_numpy(ids[rows].astype(np.int64)) for ids in liked.pairs())
    free = ns.pools.Everything(data.train.union(data.validation).union(data.test))
    drawn = free.draw(ns.Query(anchors), 8, rng=ns.rng_for(seed))
    drawn_ids = torch.as_tensor(np.asarray(drawn.ids)).clamp(min=0)
    with torch.no_grad():
        scores = model.score(anchors, torch.cat([items[:, None], drawn_ids], dim=1)).numpy()
    return float(((scores[:, :1] > scores[:, 1:]) + 0.5 * (scores[:, :1] == scores[:, 1:])).mean())


def ranked_within(model: PairModel, data: Likes, part: str) -> dict[str, float]:
    """Means over users, among held-out likes and what they rated low: the AUC, and nDCG@10."""
    liked, disliked = getattr(data, part), data.disliked[part]
    with torch.no_grad():
        scores = (model.anchors @ model.items.T + model.biases).numpy()
    aucs, ndcgs = [], []
    for user in np.flatnonzero((liked.count() > 0) & (disliked.count() > 0)):
        higher, lower = (scores[user, _row(known, user)] for known in (liked, disliked))
        aucs.append(measures.auc(higher, lower))
        order = np.argsort(-np.concatenate([lower, higher]), kind="stable")[:WITHIN_TOP]  # ties: the disliked first
        gains = 1 / np.log2(np.arange(WITHIN_TOP) + 2)
        ndcgs.append(float(gains[np.flatnonzero(order >= len(lower))].sum() / gains[: len(higher)].sum()))
    return {"quality": float(np.mean(aucs)), "ndcg": float(np.mean(ndcgs))}


def _row(known: ns.Positives, anchor: int) -> Any:
    return known.indices[known.indptr[anchor] : known.indptr[anchor + 1]].astype(np.int64)


# ---- Online on simulated runs ----------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A simulated run: separations that grow from `start` towards `labels` in training and `end` in validation.

    shape   of the curve; only "exponential" is what the fit of `Online` assumes
    """

    labels: float
    end: float = 0.0
    length: float = 3.0
    pairs: int = 1000
    negatives: int = 8
    start: float = 0.0
    shape: str = "exponential"
    jump: float = 0.0


def growth(case: Case, share: Any) -> Any:
    """The progress of a curve at a share of the run, from 0 towards 1."""
    t = case.length * share
    if case.shape == "power":
        return 1 - 1 / (1 + t)
    if case.shape == "two rates":
        return 1 - 0.6 * np.exp(-4 * t) - 0.4 * np.exp(-t / 2)
    if case.shape == "overfits":  # loses an eighth of its height over the second half
        return 1 - np.exp(-t) - 0.25 * np.maximum(share - 0.5, 0)
    return 1 - np.exp(-t)


def simulate(job: Job) -> Found:
    """Record probes of normal scores, and compare the first and last answers with that of the noiseless curve."""
    case: Case = job.arm
    ends = {"validation": case.end or case.labels, "training": case.labels}
    until = min(1.0, 3 / case.length) if case.shape == "exponential" else 1.0
    reached = case.start + (ends["validation"] - case.start) * growth(case, np.linspace(0, until, 60))
    known = ns.quantity.estimate(ns.quantity.auc(case.labels), ns.quantity.auc(reached)).curve
    rng, online, first = np.random.default_rng(job.seed), ns.quantity.Online(STEPS), None
    for share in np.linspace(0, 1, PROBES + 1):
        for split, end in ends.items():
            level = case.start + (end - case.start) * growth(case, share) + case.jump * rng.standard_normal()
            positive = rng.standard_normal(case.pairs) + level
            online.record(round(share * STEPS), positive, rng.standard_normal((case.pairs, case.negatives)), split)
        if first is None and online.ready:
            first = online.estimate()
    found: Found = {"known_k": int(known.argmax()) + 1, "answered": float(first is not None)}
    if first is not None:
        for name, answer in (("first", first), ("last", online.estimate())):
            lost = 100 * float(1 - known[answer.k - 1] / known.max())
            covered = float(answer.low <= found["known_k"] <= answer.high)
            found |= {f"{name}_k": answer.k, f"{name}_lost_percent": lost, f"{name}_covered": covered}
        found["first_at_percent"] = 100 * first.steps_seen / STEPS
    return found


CASES = {
    **{f"separation {mu:g}": Case(mu) for mu in (0.75, 1, 1.5, 2, 2.4, 3)},
    **{f"separation {mu:g}, validation lower": Case(mu, 0.85 * mu) for mu in (1, 2, 3)},
    **{f"separation {mu:g}, 200 pairs": Case(mu, 0.85 * mu, pairs=200) for mu in (1, 2, 3)},
    **{f"separation {mu:g}, pretrained": Case(mu, 0.85 * mu, start=0.5 * mu) for mu in (1, 2, 3)},
    **{f"separation {mu:g}, jumps": Case(mu, 0.85 * mu, jump=0.1) for mu in (1, 2, 3)},
    **{
        f"separation 2, {shape}": Case(2, 1.7, length, shape=shape)
        for shape, length in {"power": 5.0, "two rates": 3.0, "overfits": 6.0}.items()
    },
}

# ---- declarations ----------------------------------------------------------------------------------------------------
FIXED = {f"k = {k}": Arm(k) for k in (1, 4, 16, 256)}
ADAPTIVE = {
    "adaptive": Arm(peak="K*", turning=0.1),
    "adaptive, turning at 0.02": Arm(peak="K*", turning=0.02),
    "adaptive, turning at 0.5": Arm(peak="K*", turning=0.5),
}
SCHEDULES = {
    "K*": Arm(peak="K*"),
    "falling": Arm(peak="K*", turning=1e-9),
    "turning at 2 %": Arm(peak="K*", turning=0.02),
    "turning at 10 %": Arm(peak="K*", turning=0.1),
    "turning at 30 %": Arm(peak="K*", turning=0.3),
    "equal pairs": Arm(peak="half of K*"),
}
SETTINGS = {"dim": 64, "steps": 1000, "every": 25, "batch": 1024, "loss": "info_nce", "biases": False, "within": False}
WITHIN = {**SETTINGS, "sampler": "Static(Local(disliked))", "biases": True, "within": True, "every": 100, "decay": 1e-5}
GRID = tuple({"lr": lr, "decay": decay} for lr in (0.003, 0.01) for decay in (1e-5, 3e-5, 1e-4))
QUICK = {"dim": 8, "steps": 4, "every": 2, "batch": 256}
MEASURES = ("quality", "last", "validation", "k", "best_step", "milliseconds_a_step")

STUDIES = (
    Study(
        name="quantity-likes",
        protocol="""\
Is quality best near K*, and is a schedule of k better than any fixed one (Wu, Wu and Huang, Rethinking InfoNCE,
Figs. 2 to 4, 9, 10, 12)? Matrix factorisation of the likes of ml-100k, uniform negatives, recall@20. K* of a seed
is the paper's: a run with k = 1, converged where its validation AUC is highest. A schedule rises to K* and falls to
1. Rate and decay: on a split of its own, by the best validation recall, for each fixed k; K*, 4 K* and schedules
take those of k = 16. The test part is measured at the best validation step, and at the last one.""",
        data=("ml-100k",),
        world=world,
        run=run,
        arms={**FIXED, "K*": Arm(peak="K*"), "4 K*": Arm(peak="4 K*"), **ADAPTIVE},
        seeds=(0, 1, 2),
        measures=MEASURES,
        claims=(
            Claim("K* is better than k = 1", "K*", "k = 1", "quality"),
            Claim("K* is better than k = 256", "K*", "k = 256", "quality"),
            Claim("a schedule is better than K*", "adaptive", "K*", "quality"),
            Claim("turning at 10 % is better than at 50 %", "adaptive", "adaptive, turning at 0.5", "quality"),
        ),
        settings={**SETTINGS, "sampler": "Static(Everything(train))", "decay": 1e-5},
        quick=QUICK,
        grid=GRID,
        tuned_like=dict.fromkeys(("K*", "4 K*", *ADAPTIVE), "k = 16"),
    ),
    Study(
        name="quantity-disliked",
        protocol="""\
Does quality fall beyond K* where negatives were seen and not liked, so that more of them are more false ones?
ml-100k: likes are 4 and 5 stars, negatives are the same user's lower ratings (`Local`), factorisation with biases.
Both are split 80 / 10 / 10 for each user. AUC per user of held-out likes over held-out lower ratings, at the last step
of 1,000; nDCG@10 of the same lists beside it.
Rate and decay: for each k on a split of its own, by the validation AUC at the last step. K* is that of the run with
k = 1.""",
        data=("ml-100k",),
        world=world,
        run=run,
        arms={f"k = {k}": Arm(k) for k in (1, 2, 4, 8, 16, 32)},
        seeds=tuple(range(10)),
        measures=("last", "last_ndcg", "quality", *MEASURES[2:], "best_k", "train_auc"),
        claims=(
            Claim("8 negatives are better than 1", "k = 8", "k = 1", "last"),
            Claim("32 negatives are worse than 8", "k = 32", "k = 8", "last", -1),
        ),
        settings=WITHIN,
        quick=QUICK,
        grid=GRID,
    ),
    Study(
        name="quantity-disliked-schedule",
        protocol="""\
Is a schedule of k better than a fixed one, where its decline is judged? Data, model and measures of
quantity-disliked, at the last step. K* is that of the run with k = 1. A schedule rises to K* over 2, 10 or 30 % of
the steps and falls to 1 at the end; "falling" starts at K*. "equal pairs" is a fixed k with as many scored pairs as
the schedule has on average. Rate and decay: for k = 1 and k = 8 on a split of their own, all others take those of
k = 8.""",
        data=("ml-100k",),
        world=world,
        run=run,
        arms={
            "k = 1": Arm(1),
            "k = 8": Arm(8),
            **SCHEDULES,
        },
        seeds=tuple(range(10)),
        measures=("last", "last_ndcg", "quality", *MEASURES[2:]),
        claims=(
            Claim("a schedule is better than K*", "turning at 10 %", "K*", "last"),
            Claim("a schedule is better than a fixed k of as many pairs", "turning at 10 %", "equal pairs", "last"),
            Claim("turning at 10 % is better than at 30 %", "turning at 10 %", "turning at 30 %", "last"),
        ),
        settings=WITHIN,
        quick=QUICK,
        grid=GRID,
        tuned_like=dict.fromkeys(SCHEDULES, "k = 8"),
    ),
    Study(
        name="quantity-online",
        protocol="""\
How soon and how well does `quantity.Online` find the best k? Runs of 20 evenly spaced probes and one before step 0
are simulated: a probe draws positives from N(mu(t), 1) and negatives from N(0, 1). The known answer is that of the
noiseless curve. Lost: how much lower the effectiveness of the answered k is than that of the best, in per cent.""",
        data=(),
        world=lambda folder, seed, settings: None,
        run=simulate,
        arms=CASES,
        seeds=tuple(range(50)),
        measures=("first_lost_percent", "last_lost_percent", "first_covered", "last_covered", "answered", "known_k"),
    ),
)
