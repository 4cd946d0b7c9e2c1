"""Does the posterior help a sampler of hard negatives at the size of yelp2018? Matrix factorisation with a guard.

The arms are those of `judging_recommendation`. Scores of all users and items do not fit in memory, so the guard keeps
a list of each user's nearest items. It is made anew after each epoch in which the guard acts.

The published test part is the test. A tenth of the training pairs, drawn by the seed, is the validation part. The
false share is that of held-out likes among the negatives of a batch, a lower limit of the truth.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import naysay as ns
from benchmarks.training.judging_recommendation import IGNORING, LISTED, REFILL, calibration_half, guard_of
from naysay.detectors import Posterior
from naysay.lab import Interactions, Recommendation

CANDIDATES, EVERY, PATIENCE = 16, 250, 3
_FITTED, _BLOCK = 5000, 1024  # users
Ids = NDArray[np.int64]


def read_yelp(folder: Path) -> tuple[Ids, ...] | None:
    """(users, items) to train on and (users, items) to test, or None without the file."""
    path = folder / "interactions.npz"
    if not path.is_file():
        return None
    with np.load(path) as file:
        return tuple(file[name].astype(np.int64) for name in ("train_user", "train_item", "test_user", "test_item"))


def split(pairs: tuple[Ids, ...], seed: int) -> Interactions:
    """A tenth of the training pairs for validation."""
    users, items, test_users, test_items = pairs
    n_users, n_items = (int(max(one.max(), two.max())) + 1 for one, two in ((users, test_users), (items, test_items)))
    held = np.random.default_rng(seed).random(len(users)) < 0.1
    parts = ((users[~held], items[~held]), (users[held], items[held]), (test_users, test_items))
    return Interactions(*(ns.Positives.from_pairs(*part, n_users, n_items) for part in parts))


class Lists:
    """A detector that looks suspicion up in lists of items of each user; 0 for an item that is not listed."""

    def __init__(self, n_items: int) -> None:
        """Nothing is suspected at first."""
        self.n_items = n_items
        self.codes, self.values = np.zeros(0, np.int64), np.zeros(0, np.float32)

    def set(self, users: Ids, ids: Ids, values: NDArray[Any], known: ns.Positives | None = None) -> None:
        """Users (n,), their items (n, m) and the suspicion of these (n, m); pairs of `known` have a suspicion of 1."""
        codes, values = (users[:, None] * self.n_items + ids).ravel(), values.ravel()
        if known is not None:
            anchors, items = known.pairs()
            codes, values = np.append(codes, anchors * self.n_items + items), np.append(values, np.ones(len(items)))
        order = np.argsort(codes)
        self.codes, self.values = codes[order], values[order].astype(np.float32)

    def suspicion(self, query: ns.Query, negatives: ns.Negatives) -> Any:
        """(B, K)."""
        anchors, ids = (np.asarray(torch.as_tensor(part)) for part in (query.anchors, negatives.ids))
        asked = np.where(ids >= 0, anchors[:, None] * self.n_items + ids, -1)
        found = np.zeros(asked.shape, np.float32)
        if len(self.codes):
            place = np.minimum(np.searchsorted(self.codes, asked), len(self.codes) - 1)
            found = np.where(self.codes[place] == asked, self.values[place], 0).astype(np.float32)
        return torch.from_numpy(found) if isinstance(negatives.ids, torch.Tensor) else found


class Guard:
    """The posterior of a model's own scores, fitted once an epoch to users and one of the likes in `labels` of each."""

    def __init__(self, data: Interactions, arm: str, labels: ns.Positives, posterior: Posterior, seed: int) -> None:
        """No guard before the first fit."""
        self.data, self.arm, self.labels, self.lists = data, arm, labels, Lists(data.n_items)
        self.left_out = data.train if labels is data.train else data.train.union(labels)
        self.posterior = posterior
        self.rng, self.fits, self.acted = np.random.default_rng(seed), 0, 0
        self.said: list[float] = []

    @torch.no_grad()
    def fit(self, vectors: torch.Tensor) -> float:
        """Fit to the vectors of users and items, and return the threshold of suspicion."""
        n_users, counts = self.data.n_users, np.diff(self.labels.indptr)
        order = self.rng.permutation(len(self.labels))
        liking, liked = (ids[order] for ids in self.labels.pairs())
        labelled, first = np.unique(liking, return_index=True)
        own = np.full(n_users, np.nan)
        own[labelled] = (vectors[labelled] * vectors[n_users + liked[first]]).sum(dim=1).numpy()
        some = self.rng.permutation(labelled)[:_FITTED]
        self.posterior.update(self._nearest(vectors, some)[1], own[some], n_labelled=counts[some])
        self.fits += 1
        known = None if self.labels is self.data.train else self.labels
        users, ids = np.zeros(0, np.int64), np.zeros((0, LISTED), np.int64)
        values, threshold = np.zeros((0, LISTED)), 0.5
        if self.posterior.fitted and (self.arm == IGNORING or not self.posterior.reason):
            self.acted += 1
            before, threshold = self.posterior.summary.before, self.posterior.threshold
            self.said.append(before.estimate if before is not None else np.nan)
            if threshold < 1:  # else nothing is dropped
                users = np.arange(n_users)
                ids, lists = self._nearest(vectors, users)
                values = self.posterior.posterior(lists, own)
        self.lists.set(users, ids, values, known)
        return threshold

    def _nearest(self, vectors: torch.Tensor, users: Ids) -> tuple[Ids, NDArray[np.float64]]:
        """(n, LISTED) the nearest items of users, without those that are left out, and their scores."""
        left_out, ids, lists = self.left_out, np.zeros((len(users), LISTED), np.int64), np.zeros((len(users), LISTED))
        for start in range(0, len(users), _BLOCK):
            rows = users[start : start + _BLOCK]
            scores = vectors[rows] @ vectors[self.data.n_users :].T
            counts = np.diff(left_out.indptr)[rows]
            inside = np.repeat(left_out.indptr[rows] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            scores[np.repeat(np.arange(len(rows)), counts), left_out.indices[inside].astype(np.int64)] = -torch.inf
            best = scores.topk(LISTED, dim=1)
            ids[start : start + _BLOCK], lists[start : start + _BLOCK] = best.indices.numpy(), best.values.numpy()
        return ids, lists


def _oracle(data: Interactions) -> Lists:
    """Held-out likes, all of them."""
    known = Lists(data.n_items)
    users, items = data.validation.union(data.test).pairs()
    known.set(users, items[:, None], np.ones((len(users), 1)))
    return known


def one_yelp_run(data: Interactions, row: dict[str, Any]) -> dict[str, Any]:
    """Train and test one arm; `row` has the arm, the seed, the rate and the largest number of steps."""
    start, arm, seed = time.process_time(), row["arm"], row["seed"]
    task = Recommendation(data, "mf")
    calibration, task.validated = calibration_half(data.validation)[0], calibration_half(task.validated)[1]
    model = task.start(seed)
    optimiser = torch.optim.Adam(model.parameters, lr=row["rate"])
    labels, posterior = guard_of(arm, data, calibration, seed)
    guard = None if labels is None else Guard(data, arm, labels, posterior, seed)
    sampler: Any = ns.samplers.Static(ns.pools.Everything(data.train))
    if arm != "uniform":
        sampler = ns.samplers.Dynamic(ns.pools.Everything(data.train), model.score, CANDIDATES)
    if "," in arm:
        detector = _oracle(data) if guard is None else guard.lists
        sampler = ns.samplers.Judged(sampler, detector, threshold=0.5, refill=REFILL)
    order, rows, epoch = np.random.default_rng(seed), np.zeros(0, np.int64), task.pairs // task.batch
    best, false = (-1.0, 0, model.snapshot()), []
    for step in range(1, row["epochs"] + 1):
        if len(rows) < task.batch:
            rows = order.permutation(task.pairs)
        now, rows = rows[: task.batch], rows[task.batch :]
        loss, negatives = model.loss(now, sampler, 1, step=step)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % EVERY == 0:
            false.append(model.false_share(now, negatives))
            vectors = model.snapshot()
            recall = model.measure(vectors)[task.measure]
            if recall > best[0]:
                best = recall, step, vectors
            elif step >= best[1] + PATIENCE * EVERY:
                break
        if guard is not None and step % epoch == 0:
            sampler.threshold = guard.fit(model.snapshot())
    tested = model.measure(best[2], "test")
    found = {"ndcg": tested["ndcg@20"], "recall": tested["recall@20"], "validation": best[0], "epoch": best[1]}
    found |= {"false_share": float(np.mean(false)), "processor_seconds": time.process_time() - start}
    if guard is not None and guard.fits:
        found |= {"acted": guard.acted / guard.fits}
        found |= {"estimate": float(np.mean(guard.said))} if guard.said else {}
    return found
