"""How many negatives: is quality best near K*, does a schedule of k beat a fixed one, and does `Online` find K*?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import naysay as ns
from benchmarks import measures, readers
from benchmarks.pairs import PairModel, fit, made, split_by_anchor
from benchmarks.study import Claim, Found, Job, Settings, Study

TOP, PROBED, MOST = 20, 2000, 1000  # of a list; pairs of a probe; the largest k
STEPS, PROBES = 1000, 20  # of a simulated run


class Likes(NamedTuple):
    """Likes to train on, to choose by and to report, and what was seen and not liked."""

    train: ns.Positives
    validation: ns.Positives
    test: ns.Positives
    disliked: ns.Positives


class Arm(NamedTuple):
    """k negatives, or a schedule up to the k that `peak` names: "K*", or "4 K*".

    turning   the share of the run after which k falls again; 0 for a fixed k
    """

    k: int = 0
    peak: str = ""
    turning: float = 0.0


def world(folder: Path, seed: int, _settings: Settings) -> Likes:
    """ml-100k: 4 and 5 stars are likes."""
    liked, disliked = readers.ratings(folder)
    return Likes(*split_by_anchor(liked, seed), disliked)


def run(job: Job) -> Found:
    """Train with uniform negatives, or with items that the user rated low; probe both AUCs through training."""
    data, settings, arm = job.world, job.settings, job.arm
    peak = min(MOST, {"K*": 1, "4 K*": 4}[arm.peak] * job.earlier["k = 1"]["best_k"]) if arm.peak else arm.k
    schedule = ns.quantity.adaptive(peak, settings["steps"], arm.turning) if arm.turning else None
    model = PairModel(data.train, settings["dim"], job.seed, biases=settings["biases"])
    sampler = made(settings["sampler"], model, data.train, disliked=data.disliked)
    best: dict[str, Any] = {"validation": -1.0}
    curves: dict[str, list[float]] = {"train": [], "validation": []}

    def look(step: int) -> None:
        vectors = model.anchors.detach(), model.items.detach()
        quality = ranked_within(model, data, "validation") if settings["within"] else None
        recall = quality or measures.ranked(*vectors, data.validation, TOP, known=data.train)["recall"]
        if recall > best["validation"]:
            best.update(validation=recall, best_step=step)
            best.update(test_of(model, data, within=settings["within"]))
        for part in curves:
            curves[part].append(probe(model, data, part, job.seed))

    cost = fit(model, data.train, sampler, schedule or (lambda _: peak), settings, job.seed, look)
    found = {"k": peak, **best, "last": test_of(model, data, within=settings["within"])["quality"], **cost}
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
        return {"quality": ranked_within(model, data, "test")}
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


def ranked_within(model: PairModel, data: Likes, part: str) -> float:
    """The mean over users of the AUC of their held-out likes over what they rated low."""
    liked = getattr(data, part)
    found = []
    with torch.no_grad():
        for user in np.flatnonzero((liked.count() > 0) & (data.disliked.count() > 0)):
            scores = [
                model.score(torch.tensor([user]), torch.from_numpy(_row(known, user))[None])[0].numpy()
                for known in (liked, data.disliked)
            ]
            found.append(measures.auc(*scores))
    return float(np.mean(found))


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
SETTINGS = {"dim": 64, "steps": 1000, "every": 25, "batch": 1024, "loss": "info_nce", "biases": False, "within": False}
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
AUC per user of held-out likes over lower ratings, at the last step. Rate and decay: for each k on a split of its
own, by validation.""",
        data=("ml-100k",),
        world=world,
        run=run,
        arms={f"k = {k}": Arm(k) for k in (1, 2, 4, 8, 16, 32)},
        seeds=tuple(range(10)),
        measures=("last", "quality", *MEASURES[2:]),
        claims=(
            Claim("8 negatives are better than 1", "k = 8", "k = 1", "last"),
            Claim("32 negatives are worse than 8", "k = 32", "k = 8", "last", -1),
        ),
        settings={**SETTINGS, "sampler": "Static(Local(disliked))", "biases": True, "within": True, "decay": 1e-5},
        quick=QUICK,
        grid=GRID,
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
