"""The compared rules, each with its usual setting and a range of its parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import naysay as ns
from naysay.detectors._slots import by_probability
from naysay.types import Detector

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
SKIPS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 400)
ALPHAS = (
    0.02,
    0.05,
    0.1,
    0.15,
    0.2,
    0.25,
    0.3,
    0.35,
    0.4,
    0.45,
    0.5,
    0.55,
    0.6,
    0.65,
    0.7,
    0.75,
    0.8,
    0.85,
    0.9,
    0.95,
    0.98,
)
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
MARGINS = (-0.6, -0.4, -0.3, -0.2, -0.15, -0.1, -0.05, 0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
FALSE_SHARES = (
    0.0001,
    0.0002,
    0.0004,
    0.0007,
    0.001,
    0.0015,
    0.002,
    0.003,
    0.005,
    0.007,
    0.01,
    0.015,
    0.02,
    0.03,
    0.05,
    0.1,
)
POSTERIORS = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999, 0.9999, 0.999999, 1 - 1e-9)
CLUSTERS = (2, 4, 8, 16, 32, 64, 128, 256)
COSINES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)
HIGHS = tuple(np.round(np.linspace(0.06, 0.9, 43), 2).tolist())
_SEEN = 200_000  # scores that shares and mixtures are fitted to


@dataclass(frozen=True, eq=False)
class Bench:
    """What rules may use: the evaluated anchors, and nothing about hidden positives.

    scores       (B, n) of the anchors with all documents;  known  (B, n) what is excluded
    anchor_vectors, item_vectors, texts   in the space of the scores
    calibration  (m,) scores of labelled positives of other anchors, one of each
    deviations   (m,) the same in deviations above the mean of their anchor's row
    mean, deviation   (B,) of the anchors' rows
    groups       clusterings of all documents, by how many clusters
    """

    scores: Floats
    known: NDArray[np.bool_]
    anchor_vectors: Floats
    item_vectors: Floats
    texts: list[str]
    calibration: Floats
    deviations: Floats
    mean: Floats
    deviation: Floats
    groups: dict[int, ns.detectors.SoftClusters]
    rng: np.random.Generator
    query: ns.Query = field(init=False)
    negatives: ns.Negatives = field(init=False)
    own: Floats = field(init=False)
    pairs: ns.Positives = field(init=False)
    sample: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Build the query: all documents except the known ones."""
        anchors, items = np.nonzero(self.known)
        places = np.arange(self.known.shape[1])
        made = {
            "query": ns.Query(np.arange(len(self.scores)), vectors=self.anchor_vectors),
            "negatives": ns.Negatives(np.where(self.known, -1, places), scores=self.scores),
            "own": ns.detectors.lowest_scores(anchors, self.scores[self.known], len(self.scores)),
            "pairs": ns.Positives.from_pairs(anchors, items, *self.known.shape),
            "sample": self.rng.permutation(self.scores[~self.known])[:_SEEN],
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)


Flags = NDArray[np.bool_]
Move = Callable[[float], Flags]


@dataclass(frozen=True, eq=False)
class Rule:
    """A detector by its parameter.

    make    bench -> a function of the parameter that answers with (B, n): what the rule flags
    grid    the range that the parameter is moved over
    usual   what it is set to without looking, by the names of the rows
    """

    make: Callable[[Bench], Move]
    grid: tuple[float, ...]
    usual: dict[str, float]

    @property
    def settings(self) -> list[float]:
        """All that is tried."""
        return sorted({*self.grid, *self.usual.values()})


def suspicion_of(detector: Detector, bench: Bench) -> Floats:
    """(B, n) the suspicion of all that is not known."""
    return np.asarray(detector.suspicion(bench.query, bench.negatives), np.float64)


def by_detector(make: Callable[[Bench, float], Any]) -> Callable[[Bench], Move]:
    """A rule that is another detector for each parameter."""
    return lambda bench: lambda parameter: suspicion_of(make(bench, parameter), bench) >= 0.5


def _bands(bench: Bench, share: float) -> Detector:
    chosen = ns.detectors.choose_thresholds(bench.sample, false_share=share)
    return ns.detectors.Bands(chosen.low, chosen.high)


def _standardised(bench: Bench, alpha: float) -> Detector:
    # The calibration anchors stand behind those that are evaluated, with scores that are standardised already.
    n, m = len(bench.mean), len(bench.deviations)
    table = np.concatenate([bench.mean, np.zeros(m)]), np.concatenate([bench.deviation, np.ones(m)])
    judge = ns.detectors.Calibrated(alpha, standardise=True)
    return judge.fit(bench.deviations, n + np.arange(m), background=table)


def _mixture(bench: Bench) -> Move:
    kinds = ns.detectors.Mixture(bounds=(-1, 1), iterations=100)
    kinds.update(bench.sample)
    suspicion = suspicion_of(kinds, bench)
    return lambda threshold: suspicion >= threshold


def _near(bench: Bench) -> Move:
    # Suspicion rises with the cosine, so one call serves every threshold.
    suspicion = suspicion_of(
        ns.detectors.Duplicates(item_vectors=bench.item_vectors, positives=bench.pairs, cosine=0.5), bench
    )
    return lambda cosine: suspicion >= by_probability(np.array(cosine), 0.5, 2)


def text_duplicates(bench: Bench) -> Flags:
    """(B, n) documents whose text is that of a known positive, or nearly."""
    return suspicion_of(ns.detectors.Duplicates(item_texts=bench.texts, positives=bench.pairs), bench) >= 0.5


def clusterings(item_vectors: Floats) -> dict[int, ns.detectors.SoftClusters]:
    """The documents in several numbers of clusters, from 2 on."""
    found = {}
    for n_clusters in (n for n in CLUSTERS if n <= len(item_vectors) // 2):
        found[n_clusters] = ns.detectors.SoftClusters(n_clusters, lambda ids: item_vectors[ids])
        found[n_clusters].update(item_vectors, rng=ns.rng_for(0))
    return found


def rules(groups: dict[int, ns.detectors.SoftClusters]) -> dict[str, Rule]:
    """All rules. MaxScore, Bands, Calibrated and Mixture have one threshold for all anchors."""
    d: Any = ns.detectors
    most = max(groups)
    return {
        "rank window": Rule(by_detector(lambda b, n: d.RankWindow(int(n))), SKIPS, {"naive": 0, "rank window, 10": 10}),
        "absolute": Rule(by_detector(lambda b, high: d.MaxScore(high)), HIGHS, {"absolute, 0.7": 0.7}),
        "margin": Rule(by_detector(lambda b, m: d.Margin(m, b.own)), MARGINS, {"margin, 0.05": 0.05}),
        "share of the positive": Rule(
            by_detector(lambda b, share: d.ShareOfPositive(b.own, share)), SHARES, {"95 % of the positive": 0.95}
        ),
        "bands": Rule(by_detector(_bands), FALSE_SHARES, {"bands, 0.1 %": 0.001}),
        "calibrated": Rule(
            by_detector(lambda b, alpha: d.Calibrated(alpha).fit(b.calibration)),
            ALPHAS,
            {"calibrated, 0.05": 0.05, "calibrated, 0.1": 0.1},
        ),
        "calibrated, by anchor": Rule(
            by_detector(_standardised), ALPHAS, {"calibrated by anchor, 0.05": 0.05, "calibrated by anchor, 0.1": 0.1}
        ),
        "mixture": Rule(_mixture, POSTERIORS, {"mixture, 0.5": 0.5}),
        "clusters": Rule(
            by_detector(lambda b, n: b.groups[int(n)]), tuple(groups), {f"clusters, {min(32, most)}": min(32, most)}
        ),
        "near a positive": Rule(_near, COSINES, {"near a positive, 0.98": 0.98}),
    }
