"""One run of a claim: that of `naysay compare`, with weight decay, probes of the AUC, and k that may change."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import naysay as ns
from naysay.lab import Arm
from naysay.lab._run import Run
from naysay.quantity import Estimate, estimate
from naysay.quantity.online import Online

PAIRS, DRAWN = 2000, 8  # of a probe
Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What decides a run, apart from its arm and its seed.

    data     the name of the task's data
    steps    gradient steps
    every    steps between two measures of the validation part
    rate     the learning rate of Adam
    decay    its weight decay
    tested   whether the test part is measured at the end; not where settings are chosen
    """

    data: str
    steps: int
    every: int
    rate: float
    decay: float
    tested: bool = True


class Scheduled:
    """A sampler that takes k of each step from a function."""

    def __init__(self, sampler: Any, k_at: Callable[[int], float]) -> None:
        """The sampler, and k at a step."""
        self.inner, self.k_at = sampler, k_at

    def sample(self, query: ns.Query, k: Any, *, rng: Any) -> ns.Negatives:
        """(B, K) negatives; the k that is asked for is not used."""
        found: ns.Negatives = self.inner.sample(query, self.k_at(query.step), rng=rng)
        return found


class Observed:
    """A sampler that learns from each batch after it has drawn."""

    def __init__(self, sampler: Any) -> None:
        """The sampler, which has `observe`."""
        self.inner = sampler

    def sample(self, query: ns.Query, k: Any, *, rng: Any) -> ns.Negatives:
        """(B, K) negatives."""
        found: ns.Negatives = self.inner.sample(query, k, rng=rng)
        self.inner.observe(query)
        return found


def uniform(name: str, k: int, k_at: Callable[[int], float] | None = None) -> Arm:
    """Uniform negatives: k of them, or as many as a function of the step says."""
    if k_at is None:
        return Arm(name, k, "Static(Everything(positives))")
    return Arm(name, 1, name, lambda parts: Scheduled(ns.samplers.Static(ns.pools.Everything(parts["known"])), k_at))


class Watched(Run):
    """A run that probes the AUC of training and of validation pairs over uniform negatives, where `probes` are kept."""

    def __init__(self, task: Any, arm: Arm, settings: Settings, seed: int, probes: Online | None = None) -> None:
        """Probe before the first step."""
        super().__init__(task, arm, settings.rate, seed)
        self.optimiser.param_groups[0]["weight_decay"] = settings.decay
        self.probes, data = probes, task.data
        self.free = ns.pools.Everything(data.train.union(data.validation).union(data.test))
        self.answers: list[tuple[int, int]] = []  # (step, k) of the probes after which there was an estimate
        if probes is not None:
            self._probe(probes)

    def validate(self) -> None:
        """Add a point, and a probe."""
        if self.task.name == "text":  # its false share is an estimate that costs more than a run
            self.negatives = None
        super().validate()
        if self.probes is not None:
            self._probe(self.probes)

    def _probe(self, probes: Online) -> None:
        rng = np.random.default_rng([self.seed, self.done])
        self.model.snapshot()  # the vectors of this step, also where they are kept
        for split, pairs in (("validation", self.task.data.validation), ("training", self.task.data.train)):
            chosen = rng.permutation(len(pairs))[:PAIRS]
            anchors, items = (torch.from_numpy(ids[chosen]) for ids in pairs.pairs())
            query = ns.Query(anchors)
            drawn = self.free.draw(query, DRAWN, rng=ns.rng_for(self.seed, self.done, worker=3)).like(query)
            scores = self.model.score(anchors, torch.cat([items[:, None], drawn.ids.clamp(min=0)], dim=1))
            probes.record(self.done, scores[:, 0], scores[:, 1:], split, mask=drawn.mask)
        if probes.ready:
            self.answers.append((self.done, probes.estimate().k))


def trained(task: Any, arm: Arm, settings: Settings, seed: int, probes: Online | None = None) -> Row:
    """A whole run: its measures, its points, and the AUCs of its probes."""
    start = time.process_time()
    run = Watched(task, arm, settings, seed, probes)
    run.to(settings.steps, settings.every, lambda _: None)
    points = {name: [_rounded(getattr(point, name)) for point in run.points] for name in ("step", "value")}
    best = max(run.points, key=lambda point: point.value)
    found: Row = {
        "validation": best.value,
        "best_step": best.step,
        "last": run.points[-1].value,
        "seconds": [_rounded(point.processor_seconds) for point in run.points],
        "milliseconds_a_step": 1e3 * run.processor_seconds / run.done,
        "false_percent": _rounded(100 * np.mean([point.false_share for point in run.points])),
        **points,
    }
    if settings.tested:
        found["test"] = run.model.measure(run.best, "test")
    if probes is not None:
        found |= {f"{name}_auc": [_rounded(value) for value in auc] for name, auc in curves(probes).items()}
        found |= {"answers": run.answers, "why": probes.why}
    return found | {"processor_seconds": time.process_time() - start}


def curves(probes: Online) -> dict[str, list[float]]:
    """The AUCs of validation and of training pairs."""
    kept = probes.state()
    split, auc = np.asarray(kept["split"]), np.asarray(kept["auc"])
    return {name: auc[split == place].tolist() for place, name in enumerate(("validation", "training"))}


def best_k(found: Row) -> Estimate:
    """K* of a run with one negative, converged where its validation AUC is highest, as the paper has it."""
    auc = found["validation_auc"]
    end = auc.index(max(auc))
    return estimate(found["training_auc"][end], auc[: end + 1])


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 5)
