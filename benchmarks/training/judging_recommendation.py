"""Does the posterior help a sampler of hard negatives? Matrix factorisation, with and without a guard.

The negative of a pair is the highest of 16 random items by the model (`Dynamic`). The guard is `Judged` with a
posterior that is fitted again after each epoch to the model's own scores: each user's nearest items that are not liked
in training, and one liked item. Whose likes these are makes two arms: those that the model was trained on, whose scores
are too high, or those of every second user of the validation part, which are no negatives then. A guard acts only where
the posterior has no reason not to be trusted.

The highest scores of such a model are mostly not likes, so the share of labelled likes cannot be estimated, and a guard
by held-out likes states it: likes for validation, of all that were held out. The oracle's guard knows every held-out
like. `IGNORING` neither states a share nor heeds the reason. The other users of the validation part choose the step, in
every arm.

Recall and NDCG at 20 as in `benchmarks.training.recommendation`. The false share is that of held-out likes among the
negatives of a batch, a lower limit of the truth: a user may like more than was rated.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import naysay as ns
from benchmarks.training.factorisation import TOP
from benchmarks.training.recommendation_arms import BATCH, Arm, Run, Settings, together
from naysay.detectors import Posterior
from naysay.lab import Interactions, LightGCN
from naysay.positives import Positives

GUARDS = (
    "uniform",
    "dynamic",
    "dynamic, guard by trained likes",
    "dynamic, guard by held-out likes",
    "dynamic, oracle",
)
IGNORING = "dynamic, guard that ignores its reason"
LISTED, NEAR, REFILL, EVERY = 100, 20, 4.0, 25


def guard_of(arm: str, data: Interactions, calibration: Positives, seed: int) -> tuple[Positives | None, Posterior]:
    """The likes that a guard is fitted to, None for an arm without one, and its posterior."""
    held_out = len(data.validation) / (len(data.validation) + len(data.test))
    labels = {GUARDS[2]: data.train, GUARDS[3]: calibration, IGNORING: calibration}.get(arm)
    return labels, Posterior(NEAR, labelled_share=held_out if arm == GUARDS[3] else None, seed=seed)


def calibration_half(held: Positives) -> tuple[Positives, Positives]:
    """The likes of every second user, to calibrate a guard, and those of the others, to validate."""
    users, items = held.pairs()
    even = users % 2 == 0
    size = held.n_anchors, held.n_items
    parts = [Positives.from_pairs(users[half], items[half], *size) for half in (even, ~even)]
    return parts[0], parts[1]


class Table:
    """A detector that looks suspicion up: (users, items)."""

    def __init__(self, values: NDArray[np.float32]) -> None:
        """At first, as given."""
        self.values = values

    def suspicion(self, query: ns.Query, negatives: ns.Negatives) -> Any:
        """(B, K), 0 for an empty slot."""
        anchors, ids = (np.asarray(torch.as_tensor(part)) for part in (query.anchors, negatives.ids))
        found = np.where(ids >= 0, self.values[anchors[:, None], np.maximum(ids, 0)], 0)
        return torch.from_numpy(found) if isinstance(negatives.ids, torch.Tensor) else found


class Guarded(Run):
    """A run of matrix factorisation whose hard negatives a posterior looks at."""

    def __init__(self, data: Interactions, arm: str, settings: Settings, seed: int, steps: int) -> None:
        """No guard acts before the first epoch has ended."""
        calibration, validated = calibration_half(data.validation)
        super().__init__(data, Arm(arm, arm.partition(",")[0]), settings, seed, steps)
        self.name = arm
        self.validated = validated
        self.model = LightGCN(data.train, seed, hops=0)
        self.optimiser = torch.optim.Adam([self.model.vectors], lr=settings.rate, weight_decay=settings.decay)
        self.labels, self.posterior = guard_of(arm, data, calibration, seed)
        self.epoch, self.fits, self.acted, self.said = max(1, len(data.train) // BATCH), 0, 0, list[float]()
        known = np.zeros((data.n_users, data.n_items), np.float32)
        if arm == "dynamic, oracle":
            known[self.held.pairs()] = 1
        self.table = Table(known)
        if "," in arm:
            self.sampler = ns.samplers.Judged(self.sampler, self.table, threshold=0.5, refill=REFILL)

    def _step(self) -> None:
        super()._step()
        if self.labels is not None and self.done % self.epoch == 0:
            self._fit(self.labels)

    def _fit(self, labels: Positives) -> None:
        """The posterior of each user's nearest items, by the vectors of now."""
        scores = self._scores().numpy().astype(np.float64)
        rng = ns.rng_for(self.seed, self.done)
        order = rng.permutation(len(labels))
        liking, liked = (ids[order] for ids in labels.pairs())
        users, first = np.unique(liking, return_index=True)
        own = scores[users, liked[first]]
        left = scores.copy()
        for part in (self.data.train, labels):
            left[part.pairs()] = -np.inf
        left = left[users]
        ids = np.argsort(-left, axis=1, kind="stable")[:, :LISTED]
        lists = np.take_along_axis(left, ids, axis=1)
        self.posterior.update(lists, own, n_labelled=np.diff(labels.indptr)[users])
        self.fits += 1
        self.table.values = np.zeros(scores.shape, np.float32)
        if labels is not self.data.train:
            self.table.values[labels.pairs()] = 1
        if self.posterior.fitted and (self.name == IGNORING or not self.posterior.reason):
            self.acted += 1
            self.table.values[users[:, None], ids] = self.posterior.posterior(lists, own)
            self.sampler.threshold = self.posterior.threshold
            before = self.posterior.summary.before
            self.said.append(before.estimate if before is not None else np.nan)


def one_run(data: Interactions, row: dict[str, Any]) -> dict[str, Any]:
    """Train and test one arm; `row` has the arm, the seed, the rate and the number of steps."""
    start = time.process_time()
    run = Guarded(data, row["arm"], Settings(row["rate"], 0.0), row["seed"], row["epochs"])
    together([run], row["epochs"], EVERY)
    found = {
        "ndcg": run.tested.ndcg(TOP),
        "recall": run.tested.recall(TOP),
        "validation": run.best.recall,
        "epoch": run.best.step,
        "false_share": float(np.mean([point.false_share for point in run.points])),
        "processor_seconds": time.process_time() - start,
    }
    if run.fits:
        found |= {"acted": run.acted / run.fits}
        found |= {"estimate": float(np.mean(run.said))} if run.said else {}
    return found
