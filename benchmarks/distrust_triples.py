"""Triples: held-out true ones must be flagged, and verified false ones, however plausible, kept.

ComplEx is trained on the training triples against all other entities: what is held out is a negative there, as
unlabelled positives are. Lines are fitted to the validation triples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from distrust_hardness import auc, rounded, share_of
from distrust_readers import Floats, Ids
from torch import Tensor

import naysay as ns
from naysay.detectors.calibrated import least_positives
from naysay.types import Detector

WIDTH, BATCH, RATE, DECAY = 128, 1024, 0.1, 0.05
ALPHAS, BACKGROUND = (0.05, 0.1, 0.2), 256
ASKED = ("valid", "test", "valid_negatives", "test_negatives")


class ComplEx:
    """How likely a tail is of a head and a relation, and the head of the tail: the sum of the two log-probabilities.

    Each is a softmax over all entities of Re sum_i e_h,i w_r,i conj(e_t,i), with a vector for each relation and one for
    its inverse. The raw score says less: a common entity scores high with everything.

    Trouillon, Welbl, Riedel, Gaussier, Bouchard. ICML 2016; inverses and N3: Lacroix, Usunier, Obozinski. ICML 2018.
    """

    def __init__(self, n_entities: int, n_relations: int, seed: int) -> None:
        """Small normal vectors, real parts first; relation r + n_relations is the inverse of r."""
        start = torch.Generator().manual_seed(seed)
        sizes = (n_entities, 2 * n_relations)
        self.entity, self.relation = (0.01 * torch.randn(n, 2 * WIDTH, generator=start) for n in sizes)
        self.parameters = [self.entity.requires_grad_(), self.relation.requires_grad_()]
        self.inverse = n_relations

    def asking(self, heads: Tensor, relations: Tensor) -> Tensor:
        """(n, d) e_h w_r, whose products with all entities are the scores of all tails."""
        (a, b), (c, d) = (part.chunk(2, dim=-1) for part in (self.entity[heads], self.relation[relations]))
        return torch.cat([a * c - b * d, a * d + b * c], dim=-1)

    def size(self, triples: Tensor) -> Tensor:
        """The mean of the third powers of the vectors' moduli (N3), to be kept small."""
        parts = (self.entity[triples[:, 0]], self.relation[triples[:, 1]], self.entity[triples[:, 2]])
        cubes = ((part.chunk(2, dim=-1)[0] ** 2 + part.chunk(2, dim=-1)[1] ** 2 + 1e-12) ** 1.5 for part in parts)
        return sum((cube.sum(dim=-1).mean() for cube in cubes), torch.zeros(()))

    @torch.no_grad()
    def tails(self, heads: Ids, relations: Ids) -> Floats:
        """(n, entities) the scores of all tails, a block of rows at a time."""
        found = np.empty((len(heads), len(self.entity)))
        for relation in np.unique(relations).tolist():
            rows = np.flatnonzero(relations == relation)
            found[rows] = self.matrix(relation)[torch.from_numpy(heads[rows])].double().numpy()
        return found

    @torch.no_grad()
    def scores(self, triples: Ids) -> Floats:
        """(n,) of triples (n, 3)."""
        found = np.empty(len(triples))
        for relation in np.unique(triples[:, 1]).tolist():
            rows = np.flatnonzero(triples[:, 1] == relation)
            heads, tails = (torch.from_numpy(triples[rows, side]) for side in (0, 2))
            found[rows] = self.matrix(relation)[heads, tails].double().numpy()
        return found

    def matrix(self, relation: int) -> Tensor:
        """(entities, entities) the scores of all heads and tails of a relation."""
        every = torch.arange(len(self.entity))
        forward, backward = (
            (self.asking(every, torch.full_like(every, one)) @ self.entity.T).log_softmax(dim=1)
            for one in (relation, relation + self.inverse)
        )
        return forward + backward.T


def trained(train: Ids, sizes: tuple[int, int], steps: int, seed: int) -> ComplEx:
    """A model after so many steps of `info_nce` against all other entities, in both directions."""
    model, order = ComplEx(*sizes, seed), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adagrad(model.parameters, lr=RATE)
    there = torch.from_numpy(train)
    back = torch.stack([there[:, 2], there[:, 1] + sizes[1], there[:, 0]], dim=1)
    every = torch.cat([there, back])
    for _ in range(steps):
        true = every[torch.randint(0, len(every), (BATCH,), generator=order)]
        scores = model.asking(true[:, 0], true[:, 1]) @ model.entity.T
        own = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, true[:, 2:], value=True)
        loss = ns.losses.info_nce(scores[own], scores, temperature=1.0, mask=~own).mean() + DECAY * model.size(true)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


class Asked:
    """The scores of all that is asked about, by (head, relation), each with the scores of some random tails."""

    def __init__(self, data: dict[str, Ids], model: ComplEx, n_entities: int, rng: np.random.Generator) -> None:
        """Score everything once."""
        parts = [data[name] for name in ASKED]
        base = 1 + max(int(part[:, 1].max()) for part in parts)
        keys = np.concatenate([part[:, 0] * base + part[:, 1] for part in parts])
        found, places = np.unique(keys, return_inverse=True)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        self.anchors = dict(zip(ASKED, np.split(places.reshape(-1), ends), strict=True))
        self.tails = {name: data[name][:, 2] for name in ASKED}
        self.relations = {name: data[name][:, 1] for name in ASKED}
        self.scores = {name: model.scores(data[name]) for name in ASKED}
        random = rng.integers(0, n_entities, (len(found), BACKGROUND))
        self.background = np.take_along_axis(model.tails(found // base, found % base), random, axis=1)

    def suspicion(self, detector: Detector, name: str) -> Floats:
        """(n,) what a detector says of each triple of a set."""
        negatives = ns.Negatives(self.tails[name][:, None], scores=self.scores[name][:, None])
        return np.asarray(detector.suspicion(ns.Query(self.anchors[name]), negatives))[:, 0]

    def flagged(self, detector: Detector, name: str) -> Ids:
        """(keys, 2): how many triples of each (head, relation) are flagged, and how many there are."""
        where = self.anchors[name]
        hits = np.bincount(where, self.suspicion(detector, name) >= 0.5, len(self.background))
        return np.stack([hits, np.bincount(where, minlength=len(self.background))])


def detectors(asked: Asked, rng: np.random.Generator) -> dict[str, Detector]:
    """All that is asked. The last two look at verified false triples too, which nobody has in life."""
    d: Any = ns.detectors
    whose, scores = asked.anchors["valid"], asked.scores["valid"]
    made: dict[str, Detector] = {}
    for alpha in ALPHAS:
        made[f"calibrated, {alpha:g}"] = d.Calibrated(alpha).fit(scores, whose, rng=rng)
        judge = d.Calibrated(alpha, standardise=True)
        made[f"calibrated by (head, relation), {alpha:g}"] = judge.fit(
            scores, whose, background=asked.background, rng=rng
        )
        lines = relation_lines(asked, lambda true, false, alpha=alpha: _calibrated(true, alpha))
        made[f"calibrated in each relation, {alpha:g}"] = d.Bands(lines, lines)
    bands = d.choose_thresholds(asked.background.ravel())
    made["bands, 0.1 %"] = d.Bands(bands.low, bands.high)
    kinds = d.Mixture("normal", rounds=100)
    kinds.update(asked.background)
    made["mixture, 0.5"] = kinds
    line = best_line(scores, asked.scores["valid_negatives"])
    made["one line, by both kinds of labels"] = d.Bands(line, line)
    lines = relation_lines(asked, lambda true, false: best_line(true, false) if len(true) and len(false) else line)
    made["a line for each relation, by both kinds"] = d.Bands(lines, lines)
    return made


def _calibrated(true: Floats, alpha: float) -> float:
    """A line that holds alpha; with too few positives for that, one that suspects everything."""
    if len(true) < least_positives(alpha) or true.min() == true.max():
        return -np.inf
    return ns.detectors.Calibrated(alpha).fit(true).high


def relation_lines(asked: Asked, choose: Callable[..., float]) -> Floats:
    """(keys,) a line for each (head, relation), chosen by the labels of its relation."""
    found = np.empty(1 + max(int(part.max()) for part in asked.relations.values()))
    kinds = ("valid", "valid_negatives")
    for relation in range(len(found)):
        found[relation] = choose(*(asked.scores[kind][asked.relations[kind] == relation] for kind in kinds))
    lines = np.empty(len(asked.background))
    for name, whose in asked.anchors.items():
        lines[whose] = found[asked.relations[name]]
    return lines


def best_line(true: Floats, false: Floats) -> float:
    """The line with the fewest mistakes: true ones below it, and false ones at or above it."""
    lines = np.unique(np.concatenate([true, false]))
    below = [np.searchsorted(np.sort(scores), lines, side="left") for scores in (true, false)]
    return float(lines[(below[0] + len(false) - below[1]).argmin()])


def mean_reciprocal_rank(model: ComplEx, data: dict[str, Ids], n_entities: int) -> float:
    """Of the test triples' tails among all that are not known to be true, ties half."""
    known = ns.Triples(np.concatenate([data[name] for name in ("train", "valid", "test")]), n_entities)
    total = 0.0
    for start in range(0, len(data["test"]), 256):
        rows = data["test"][start : start + 256]
        every = rows[:, None].repeat(n_entities, axis=1)
        every[:, :, 2] = np.arange(n_entities)
        scores = model.tails(rows[:, 0], rows[:, 1])
        own = np.take_along_axis(scores, rows[:, 2:], axis=1)
        false = ~known.contains(every.reshape(-1, 3)).reshape(scores.shape)
        total += (1 / (1 + ((scores > own) & false).sum(axis=1) + 0.5 * ((scores == own) & false).sum(axis=1))).sum()
    return total / len(data["test"])


def within(asked: Asked, scores: dict[str, Floats]) -> float:
    """The AUC within a relation, a mean over relations by how many of the rarer kind they have."""
    found, weights = [], []
    for relation in np.unique(asked.relations["test"]):
        true, false = (scores[name][asked.relations[name] == relation] for name in ("test", "test_negatives"))
        if len(true) and len(false):
            found.append(auc(true, false))
            weights.append(min(len(true), len(false)))
    return float(np.average(found, weights=weights))


def study(data: dict[str, Ids], seeds: int, steps: int, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Several models, and each detector on the held-out true and the verified false triples."""
    whole = np.concatenate(list(data.values()))
    sizes = int(whole[:, [0, 2]].max()) + 1, int(whole[:, 1].max()) + 1
    flags: dict[str, dict[str, list[Any]]] = {}
    bounds: dict[str, float] = {}
    measures: dict[str, list[float]] = {"mrr": [], "auc": [], "auc_standardised": [], "auc_in_relation": []}
    for seed in range(seeds):
        model = trained(data["train"], sizes, steps, seed)
        asked = Asked(data, model, sizes[0], np.random.default_rng(seed))
        for name, detector in detectors(asked, np.random.default_rng(seed)).items():
            for kind in ("test", "test_negatives"):
                flags.setdefault(name, {}).setdefault(kind, []).append(asked.flagged(detector, kind))
            bounds[name] = getattr(detector, "bound", np.nan)
        mean, spread = asked.background.mean(axis=1), asked.background.std(axis=1, ddof=1)
        standard = {n: (s - mean[asked.anchors[n]]) / spread[asked.anchors[n]] for n, s in asked.scores.items()}
        measures["mrr"].append(mean_reciprocal_rank(model, data, sizes[0]))
        measures["auc"].append(auc(asked.scores["test"], asked.scores["test_negatives"]))
        measures["auc_standardised"].append(auc(standard["test"], standard["test_negatives"]))
        measures["auc_in_relation"].append(within(asked, asked.scores))
        say(f"model {seed}")
    rows = {}
    for name, kinds in flags.items():
        sums = {kind: np.sum(runs, axis=0) for kind, runs in kinds.items()}
        row = {kind: share_of(hits, there, there.sum() / seeds) for kind, (hits, there) in sums.items()}
        row["promised_percent"] = None if np.isnan(bounds[name]) else rounded(100 * bounds[name])
        # The promise is about one positive of each anchor, so anchors with many count no more than others here.
        hits, there = sums["test"]
        row["test_by_anchor_percent"] = rounded(100 * (hits[there > 0] / there[there > 0]).mean())
        rows[name] = row
    return {
        "entities": sizes[0],
        "relations": sizes[1],
        **{name: len(part) for name, part in data.items()},
        "model": f"ComplEx, {WIDTH} wide, {steps} steps of {BATCH} triples against all entities",
        "models": seeds,
        "measures": {name: [rounded(value, 4) for value in values] for name, values in measures.items()},
        "flagged": rows,
    }
