"""How soon and how well `quantity.Online` finds the best k, on simulated runs whose best k is known.

OPENBLAS_NUM_THREADS=1 python -m benchmarks.quantity.online [--seeds 50] [--workers 2]

A run has 20 evenly spaced probes and one before step 0, of validation and of training pairs. A probe draws n positives
from N(mu'(t), 1) and m negatives for each from N(0, 1). The known answer is that of the noiseless curve.

The last study trains a real model, whose best k is unknown: Online is compared with the paper's own procedure, a run at
k = 1 and then `estimate` on its measured curve.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import naysay as ns
from benchmarks.harness import RESULTS, write
from naysay.quantity import auc, estimate
from naysay.quantity.online import Online, OnlineEstimate

STEPS, PROBES = 1000, 20
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One kind of run.

    labels   mu of the labels, which the training curve tends to
    end      what the validation curve tends to
    length   the run in units of tau
    shape    what the curves look like; only "exponential" is what the fit assumes
    noise    standard deviation by which a model's separation jumps from probe to probe
    frozen   whether all probes score the same pairs
    options  for Online
    """

    labels: float
    length: float
    n: int
    m: int
    end: float = 0.0
    start: float = 0.0
    shape: str = "exponential"
    noise: float = 0.0
    frozen: bool = False
    options: tuple[tuple[str, Any], ...] = ()


def grown(case: Case, share: Floats) -> Floats:
    """The progress of a curve at a share of the run, from 0 towards 1."""
    t = case.length * share
    if case.shape == "power":
        return 1 - 1 / (1 + t)
    if case.shape == "two rates":
        return 1 - 0.6 * np.exp(-4 * t) - 0.4 * np.exp(-t / 2)
    if case.shape == "late":  # a logistic curve: slow at first, then fast
        rise, zero = 1 / (1 + np.exp(3 - 10 * share)), 1 / (1 + np.exp(3))
        return (rise - zero) / (1 - zero)
    if case.shape == "overfits":  # loses an eighth of its height over the second half
        return 1 - np.exp(-t) - 0.25 * np.maximum(share - 0.5, 0)
    return 1 - np.exp(-t)


def followed(case: Case, end: float, share: Floats) -> Floats:
    """The separation at shares of the run."""
    return case.start + (end - case.start) * grown(case, share)


def known(case: Case) -> Floats:
    """(k_max,) v of the noiseless run: up to convergence at 3 tau where that is defined, else the whole run."""
    until = min(1.0, 3 / case.length) if case.shape == "exponential" else 1.0
    reached = followed(case, case.end or case.labels, np.linspace(0, until, 60))
    return estimate(auc(case.labels), auc(reached)).curve


def one_run(case: Case, seed: int) -> dict[str, OnlineEstimate | None]:
    """Its first answer, and the one at the end."""
    rng = np.random.default_rng(seed)
    online = Online(STEPS, **dict(case.options))
    splits = {"validation": case.end or case.labels, "training": case.labels}
    if online.labels == "validation":
        splits.pop("training")
    kept = {split: (rng.standard_normal(case.n), rng.standard_normal((case.n, case.m))) for split in splits}
    first: OnlineEstimate | None = None
    for share in np.linspace(0, 1, PROBES + 1):
        for split, end in splits.items():
            draws = (rng.standard_normal(case.n), rng.standard_normal((case.n, case.m)))
            positive, negatives = kept[split] if case.frozen else draws
            jump = case.noise * rng.standard_normal() if share else 0.0
            online.record(round(share * STEPS), positive + followed(case, end, share) + jump, negatives, split)
        if first is None and online.ready:
            first = online.estimate()
    return {"first": first, "last": online.estimate() if online.ready else None}


def summary(answers: list[OnlineEstimate], v: Floats) -> dict[str, Any]:
    """Answers against the truth."""
    if not answers:
        return {"answers": 0}
    best = int(v.argmax()) + 1
    ks = np.array([found.k for found in answers])
    lost = 100 * (1 - v[ks - 1] / v.max())
    return {
        "answers": len(answers),
        "k_10_50_90": np.quantile(ks, [0.1, 0.5, 0.9], method="nearest").tolist(),
        "lost_percent_mean": round(float(lost.mean()), 2),
        "lost_percent_90": round(float(np.quantile(lost, 0.9)), 2),
        "covered_percent": round(100 * float(np.mean([found.low <= best <= found.high for found in answers])), 1),
        "high_over_low_50": round(float(np.median([found.high / found.low for found in answers])), 2),
        "with_notes_percent": round(100 * float(np.mean([bool(found.notes) for found in answers])), 1),
    }


def row(case: Case, seeds: int) -> dict[str, Any]:
    """All seeds of one case."""
    v = known(case)
    runs = [one_run(case, seed) for seed in range(seeds)]
    first = [run["first"] for run in runs if run["first"] is not None]
    settings = {name: value for name, value in vars(case).items() if value not in (False, 0.0, ())}
    found: dict[str, Any] = {**settings, "options": dict(case.options)} if case.options else settings
    found |= {
        "known_k": int(v.argmax()) + 1,
        "lost_percent_of_k_4": round(100 * float(1 - v[3] / v.max()), 2),
        "seeds": seeds,
        "answered_percent": round(100 * len(first) / seeds, 1),
    }
    if first:
        shares = np.array([answer.steps_seen / STEPS for answer in first])
        tenths = 100 * np.quantile(shares, [0.1, 0.5, 0.9], method="nearest")
        found["first_at_percent_10_50_90"] = tenths.round().tolist()
    found["first"] = summary(first, v)
    found["last"] = summary([run["last"] for run in runs if run["last"] is not None], v)
    return found


def cases() -> dict[str, list[Case]]:
    """The studies: the paper's curve in full, then one departure at a time."""
    sizes = list(product((200, 1000), (1, 8, 32)))
    paper = [Case(mu, length, n, m) for mu in (0.75, 1, 1.5, 2, 2.4, 3) for length in (2, 3, 5) for n, m in sizes]
    some = [Case(mu, 3, n, 8, end=0.85 * mu) for mu in (1, 2, 3) for n in (200, 1000)]
    large = [case for case in some if case.n == 1000]
    shapes: dict[str, float] = {"power": 5, "two rates": 3, "late": 3, "overfits": 6}
    return {
        "paper": paper,
        "gap": some,
        "labels_from_validation": [replace(case, options=(("labels", "validation"),)) for case in some],
        "pretrained": [replace(case, start=start * case.labels) for case in some for start in (0.1, 0.5)],
        "same_pairs": [replace(case, frozen=True, options=(("same_pairs", True),)) for case in some],
        "same_pairs_not_told": [replace(case, frozen=True) for case in some],
        "jumps": [replace(case, noise=noise) for case in large for noise in (0.03, 0.1)],
        "other_shapes": [replace(case, shape=shape, length=shapes[shape]) for shape in shapes for case in large],
    }


def trained(k: float | None, seed: int) -> tuple[Online, list[OnlineEstimate]]:
    """Train embeddings of 3,000 users and 1,000 items by InfoNCE, with k negatives or with Online's k.

    Users have 25 items each, drawn by a softmax of 3 times the dot product of hidden vectors; 5 are held out.
    """
    rng = np.random.default_rng(seed)
    users, items, hidden, size, batch = 3000, 1000, 8, 16, 512
    liking = 3 * rng.standard_normal((users, hidden)) @ rng.standard_normal((items, hidden)).T / np.sqrt(hidden)
    chosen = np.argsort(-liking - rng.gumbel(size=liking.shape), axis=1)[:, :25]
    chosen = rng.permuted(chosen, axis=1)
    parts = {"validation": chosen[:, 20:], "training": chosen[:, :20]}
    pool = ns.pools.Everything(ns.Positives.from_pairs(np.repeat(np.arange(users), 25), chosen.ravel(), users, items))
    tables = [torch.tensor(0.1 * rng.standard_normal((n, size)), requires_grad=True) for n in (users, items)]
    optimiser = torch.optim.Adam(tables, lr=0.003)

    def scores(anchors: Any, ids: Any) -> torch.Tensor:
        """(B, n) dot products; -1 is scored as item 0 and masked later."""
        chosen_items = tables[1][torch.as_tensor(ids).clamp(min=0)]
        return torch.einsum("bd,bnd->bn", tables[0][torch.as_tensor(anchors)], chosen_items)

    online, answers = Online(3000), []
    for step in range(online.steps + 1):
        if step % 150 == 0:
            for split, pairs in parts.items():
                anchors = rng.integers(0, users, 1500)
                drawn = pool.draw(ns.Query(anchors), 8, rng=ns.rng_for(seed, step))
                mine = pairs[anchors, rng.integers(0, pairs.shape[1], len(anchors))]
                positive, negatives = scores(anchors, mine[:, None])[:, 0], scores(anchors, drawn.ids)
                online.record(step, positive, negatives, split, mask=drawn.mask)
            answers += [online.estimate()] if online.ready else []
        if step == online.steps:
            break
        anchors = rng.integers(0, users, batch)
        mine = parts["training"][anchors, rng.integers(0, 20, batch)]
        drawn = ns.samplers.Static(pool).sample(
            ns.Query(anchors), k or online.k_at(step), rng=ns.rng_for(seed + 1, step)
        )
        other = scores(anchors, drawn.ids).masked_fill(~torch.as_tensor(drawn.mask), -torch.inf)
        rows = torch.cat([scores(anchors, mine[:, None]), other], dim=1)
        optimiser.zero_grad()
        (torch.logsumexp(rows, dim=1) - rows[:, 0]).mean().backward()
        optimiser.step()
    return online, answers


def model_row(seed: int) -> dict[str, Any]:
    """Online in one run against the paper's two."""
    torch.set_num_threads(1)
    online, answers = trained(None, seed)
    final = {"online": _held_out(online)}
    records = {k: trained(k, seed)[0] for k in (1, 4)}
    final |= {f"k = {k}": _held_out(record) for k, record in records.items()}
    alone = records[1].state()
    curves = [np.asarray(alone["auc"])[alone["split"] == split] for split in (0, 1)]
    paper = estimate(float(curves[1][-3:].mean()), curves[0])
    found: dict[str, Any] = {"seed": seed, "paper_k": paper.k, "paper_flat": paper.flat, "validation_auc": final}
    for name, answer in (("first", answers[:1]), ("last", answers[-1:])):
        for one in answer:
            lost = 100 * float(1 - paper.curve[one.k - 1] / paper.curve.max())
            at = {
                "at_percent": round(100 * one.steps_seen / online.steps),
                "k": one.k,
                "low": one.low,
                "high": one.high,
            }
            found[name] = at | {"lost_percent": round(lost, 2), "notes": one.notes}
    print(found, flush=True)
    return found


def _held_out(online: Online) -> float:
    """The mean validation AUC of the last five probes."""
    kept = online.state()
    return round(float(np.asarray(kept["auc"])[kept["split"] == 0][-5:].mean()), 4)


def show(name: str, found: dict[str, Any]) -> None:
    """One line."""
    first, last = found["first"], found["last"]
    head = f"{name:24s} mu {found['labels']:<4} {found['length']} tau n {found['n']:4d} m {found['m']:2d}"
    print(head, found.get("shape", ""), f"k* {found['known_k']:3d} answered {found['answered_percent']}", end=" ")
    print("at", found.get("first_at_percent_10_50_90"), end=" ")
    for part in (first, last):
        print("|", *(f"{part.get(key)}" for key in ("k_10_50_90", "lost_percent_mean", "covered_percent")), end=" ")
    print(flush=True)


def main() -> None:
    """Run all studies and write results/online.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--models", type=int, default=5, help="how many times to train a real model")
    parser.add_argument("--workers", type=int, default=2)
    names = ["model", *cases()]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, help="the others stay as they are in the file"
    )
    args = parser.parse_args()
    path = RESULTS / "online.json"
    before = json.loads(path.read_text()) if args.only != names else {}
    result: dict[str, Any] = {name: before[name] for name in names if name not in args.only}
    with ProcessPoolExecutor(args.workers) as workers:
        if "model" in args.only:
            result["model"] = list(workers.map(model_row, range(args.models)))
        for name, wanted in cases().items():
            if name not in args.only:
                continue
            job: Callable[[Case], dict[str, Any]] = partial(row, seeds=args.seeds)
            result[name] = []
            for found in workers.map(job, wanted):
                show(name, found)
                result[name].append(found)
    settings = {"steps": STEPS, "probes": PROBES + 1, "confidence": 0.9, "tolerance": 0.02}
    write("online", {**settings, **{name: result[name] for name in names}})


if __name__ == "__main__":
    main()
