"""Triples: held-out true ones must be flagged, and verified false ones, however plausible, kept.

Both models are trained on the training triples alone: held-out triples are negatives there, like unlabelled positives.
Thresholds are fitted to the validation triples; so are the ridge and the features of `Labelled`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import naysay as ns
from benchmarks.hidden_positives.hardness import auc, rounded, share_of
from benchmarks.hidden_positives.readers import Floats, Ids
from benchmarks.hidden_positives.triple_models import BATCH, RIDGE, WIDTH, Attributes, ComplEx, trained
from naysay.detectors.calibrated import least_positives
from naysay.types import Detector

ALPHAS, BACKGROUND, COSTS = (0.05, 0.1, 0.2), 256, (1, 4)
KINDS = ("valid", "valid_negatives")
SETS = (*KINDS, "test", "test_negatives")
Model = ComplEx | Attributes
Told = Callable[[Ids], Floats]  # (n, 3) triples -> (n, f) numbers


class Evaluated:
    """The scores of all evaluated triples, by (head, relation), with the scores of some random tails."""

    def __init__(self, data: dict[str, Ids], model: Model, n_entities: int, rng: np.random.Generator) -> None:
        """Score everything once."""
        parts, self.triples = [data[name] for name in SETS], {name: data[name] for name in SETS}
        base = 1 + max(int(part[:, 1].max()) for part in parts)
        keys = np.concatenate([part[:, 0] * base + part[:, 1] for part in parts])
        found, places = np.unique(keys, return_inverse=True)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        self.anchors = dict(zip(SETS, np.split(places.reshape(-1), ends), strict=True))
        self.tails = {name: data[name][:, 2] for name in SETS}
        self.relations = {name: data[name][:, 1] for name in SETS}
        self.scores = {name: model.scores(data[name]) for name in SETS}
        random = rng.integers(0, n_entities, (len(found), BACKGROUND))
        self.background = np.take_along_axis(model.tails(found // base, found % base), random, axis=1)

    def suspicion(self, detector: Detector, name: str) -> Floats:
        """(n,) what a detector says of each triple of a set."""
        negatives = ns.Negatives(self.tails[name][:, None], scores=self.scores[name][:, None])
        return np.asarray(detector.suspicion(ns.Query(self.anchors[name]), negatives))[:, 0]

    def as_triples(self, *names: str) -> tuple[ns.Query, ns.Negatives]:
        """The triples of some sets as corruptions of their tails."""
        triples, scores = (np.concatenate([part[name] for name in names]) for part in (self.triples, self.scores))
        tails = triples[:, 2:]
        return ns.Query(triples), ns.Negatives(tails, scores=scores[:, None], side=np.full_like(tails, 2))

    def flagged(self, suspicion: Floats, name: str) -> Ids:
        """(2, keys): how many triples of each (head, relation) are flagged, and how many there are."""
        where = self.anchors[name]
        hits = np.bincount(where, suspicion >= 0.5, len(self.background))
        return np.stack([hits, np.bincount(where, minlength=len(self.background))])


def detectors(evaluated: Evaluated, rng: np.random.Generator) -> dict[str, Detector]:
    """All detectors of one score. The last two also use verified false triples."""
    d: Any = ns.detectors
    whose, scores = evaluated.anchors["valid"], evaluated.scores["valid"]
    made: dict[str, Detector] = {}
    for alpha in ALPHAS:
        made[f"calibrated, {alpha:g}"] = d.Calibrated(alpha).fit(scores, whose, rng=rng)
        if evaluated.background.std(axis=1).all():  # the solved model says 0 of all tails of some, and has no deviation
            judge = d.Calibrated(alpha, standardise=True)
            made[f"calibrated by (head, relation), {alpha:g}"] = judge.fit(
                scores, whose, background=evaluated.background, rng=rng
            )
        thresholds = relation_thresholds(evaluated, lambda true, false, alpha=alpha: _calibrated(true, alpha))
        made[f"calibrated in each relation, {alpha:g}"] = d.Bands(thresholds, thresholds)
    bands = d.choose_thresholds(evaluated.background.ravel())
    made["bands, 0.1 %"] = d.Bands(bands.low, bands.high)
    kinds = d.Mixture("normal", iterations=100)
    kinds.update(evaluated.background[evaluated.background != 0])  # 0: the solved model has nothing to say of that tail
    made["mixture, 0.5"] = kinds
    threshold = best_threshold(scores, evaluated.scores["valid_negatives"])
    made["one threshold, by both kinds of labels"] = d.Bands(threshold, threshold)
    thresholds = relation_thresholds(
        evaluated, lambda true, false: best_threshold(true, false) if len(true) and len(false) else threshold
    )
    made["one threshold per relation, by both kinds"] = d.Bands(thresholds, thresholds)
    return made


def _calibrated(true: Floats, alpha: float) -> float:
    """A threshold for alpha; with too few positives, one that flags everything."""
    if len(true) < least_positives(alpha) or true.min() == true.max():
        return -np.inf
    return ns.detectors.Calibrated(alpha).fit(true).high


def relation_thresholds(evaluated: Evaluated, choose: Callable[..., float]) -> Floats:
    """(keys,) a threshold per (head, relation), chosen by the labels of its relation."""
    found = np.empty(1 + max(int(part.max()) for part in evaluated.relations.values()))
    for relation in range(len(found)):
        found[relation] = choose(*(evaluated.scores[kind][evaluated.relations[kind] == relation] for kind in KINDS))
    thresholds = np.empty(len(evaluated.background))
    for name, whose in evaluated.anchors.items():
        thresholds[whose] = found[evaluated.relations[name]]
    return thresholds


def best_threshold(true: Floats, false: Floats) -> float:
    """The threshold with the fewest errors: true triples below it, false ones at or above it."""
    thresholds = np.unique(np.concatenate([true, false]))
    below = [np.searchsorted(np.sort(scores), thresholds, side="left") for scores in (true, false)]
    return float(thresholds[(below[0] + len(false) - below[1]).argmin()])


def mean_reciprocal_rank(model: Model, data: dict[str, Ids], n_entities: int) -> float:
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


def within(evaluated: Evaluated, scores: dict[str, Floats]) -> float:
    """The AUC within a relation, a mean over relations by how many of the rarer kind they have."""
    found, weights = [], []
    for relation in np.unique(evaluated.relations["test"]):
        true, false = (scores[name][evaluated.relations[name] == relation] for name in ("test", "test_negatives"))
        if len(true) and len(false):
            found.append(auc(true, false))
            weights.append(min(len(true), len(false)))
    return float(np.average(found, weights=weights))


def learned(evaluated: Evaluated, told: Told | None = None, cost: float = 1) -> dict[str, Floats]:
    """{set: suspicion} of `Labelled` by both kinds of validation triples: the score, or the features in its place."""
    features = None if told is None else lambda _, corrupted: told(corrupted)
    judge = ns.detectors.Labelled(features=features, scores=told is None, cost=cost)
    true = np.repeat([True, False], [len(evaluated.triples[kind]) for kind in KINDS])[:, None]
    judge.fit(*evaluated.as_triples(*KINDS), true)
    return {name: np.asarray(judge.suspicion(*evaluated.as_triples(name)))[:, 0] for name in SETS[2:]}


def known_counts(train: Ids, sizes: tuple[int, int]) -> Told:
    """Of triples: log(1 + known tails of head and relation), and the same of heads of relation and tail."""
    tables = [np.zeros((sizes[0], sizes[1])) for _ in range(2)]
    for table, side in zip(tables, (0, 2), strict=True):
        np.add.at(table, (train[:, side], train[:, 1]), 1)
    return lambda triples: np.log1p(
        np.stack([table[triples[:, side], triples[:, 1]] for table, side in zip(tables, (0, 2), strict=True)], axis=1)
    )


class Tally:
    """What was flagged, summed over models."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.flags: dict[str, dict[str, list[Ids]]] = {}
        self.bounds: dict[str, float] = {}

    def add(self, name: str, evaluated: Evaluated, suspicion: dict[str, Floats], bound: float = np.nan) -> None:
        """The suspicion that one detector has of the two test sets."""
        for kind, values in suspicion.items():
            self.flags.setdefault(name, {}).setdefault(kind, []).append(evaluated.flagged(values, kind))
        self.bounds[name] = bound

    def rows(self, seeds: int) -> dict[str, Any]:
        """{detector: shares}, with intervals over anchors."""
        found = {}
        for name, kinds in self.flags.items():
            sums = {kind: np.sum(runs, axis=0) for kind, runs in kinds.items()}
            row = {kind: share_of(hits, there, there.sum() / seeds) for kind, (hits, there) in sums.items()}
            row["promised_percent"] = None if np.isnan(self.bounds[name]) else rounded(100 * self.bounds[name])
            # The promise is about one positive of each anchor, so anchors with many count no more than others here.
            hits, there = sums["test"]
            row["test_by_anchor_percent"] = rounded(100 * (hits[there > 0] / there[there > 0]).mean())
            found[name] = row
        return found


def by_relation(evaluated: Evaluated, suspicion: list[dict[str, Floats]], names: list[str]) -> list[dict[str, Any]]:
    """For each relation of the test sets: how many triples of each kind, and how many of them are wrong, on average."""
    found = []
    for relation, title in enumerate(names):
        row: dict[str, Any] = {"relation": title}
        for kind, name in (("true", "test"), ("false", "test_negatives")):
            here = evaluated.relations[name] == relation
            wrong = [((one[name] >= 0.5) != (kind == "true"))[here].sum() for one in suspicion]
            row |= {kind: int(here.sum()), f"{kind}_wrong": rounded(float(np.mean(wrong)), 2)}
        if row["true"] or row["false"]:
            found.append(row)
    return found


def study(
    data: dict[str, Ids], names: list[str], seeds: int, steps: int, *, say: Callable[[str], None]
) -> dict[str, Any]:
    """Several models, and each detector on the held-out true and the verified false triples."""
    whole = np.concatenate(list(data.values()))
    sizes = int(whole[:, [0, 2]].max()) + 1, int(whole[:, 1].max()) + 1
    tallies = {name: Tally() for name in ("ComplEx", "attributes", "both")}
    measures: dict[str, dict[str, list[float]]] = {"ComplEx": {}, "attributes": {}}
    solved, counts, best = Attributes(data["train"], *sizes), known_counts(data["train"], sizes), []
    for seed in range(seeds):
        models: dict[str, Model] = {"ComplEx": trained(data["train"], sizes, steps, seed), "attributes": solved}
        for title, model in models.items():
            evaluated = Evaluated(data, model, sizes[0], np.random.default_rng(seed))
            tally = tallies[title]
            for name, detector in detectors(evaluated, np.random.default_rng(seed)).items():
                suspicion = {kind: evaluated.suspicion(detector, kind) for kind in SETS[2:]}
                tally.add(name, evaluated, suspicion, getattr(detector, "bound", np.nan))
            tally.add("labelled", evaluated, learned(evaluated))
            for name, value in measured(model, evaluated, data, sizes[0]).items():
                measures[title].setdefault(name, []).append(rounded(value, 4))

        def told(triples: Ids, models: dict[str, Model] = models) -> Floats:
            return np.concatenate([*(model.parts(triples) for model in models.values()), counts(triples)], axis=1)

        for cost in COSTS:
            suspicion = learned(evaluated, told, cost)
            tallies["both"].add(f"labelled, by relation, cost {cost}", evaluated, suspicion)
            if cost == 1:
                best.append(suspicion)
        say(f"model {seed}")
    return {
        "entities": sizes[0],
        "relations": sizes[1],
        **{name: len(part) for name, part in data.items()},
        "models": seeds,
        "ComplEx": f"ComplEx, {WIDTH} wide, {steps} steps of {BATCH} triples against all entities",
        "ridge": RIDGE,
        "measures": measures,
        "flagged": {name: tally.rows(seeds) for name, tally in tallies.items()},
        "by_relation": by_relation(evaluated, best, names),
    }


def measured(model: Model, evaluated: Evaluated, data: dict[str, Ids], n_entities: int) -> dict[str, float]:
    """How well a model ranks true tails, and separates true from false."""
    mean, spread = evaluated.background.mean(axis=1), evaluated.background.std(axis=1, ddof=1)
    spread = np.where(spread > 0, spread, 1.0)
    standard = {n: (s - mean[evaluated.anchors[n]]) / spread[evaluated.anchors[n]] for n, s in evaluated.scores.items()}
    return {
        "mrr": mean_reciprocal_rank(model, data, n_entities),
        "auc": auc(evaluated.scores["test"], evaluated.scores["test_negatives"]),
        "auc_standardised": auc(standard["test"], standard["test_negatives"]),
        "auc_in_relation": within(evaluated, evaluated.scores),
    }
