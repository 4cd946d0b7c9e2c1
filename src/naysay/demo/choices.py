"""The tutorial's second half: how many negatives, the score threshold, and which detector finds the duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import detectors, pools, quantity
from naysay.demo.tutorial import Encoder, Lesson, Pairs, Split, Trainer, duplicates_of
from naysay.rng import rng_for
from naysay.types import Detector, Query


def auc(encoder: Encoder, pairs: Pairs, seed: int) -> float:
    """Return how often a name is closer to its own document than to a random one; 20 random ones per name."""
    drawn = pools.Everything(pairs.known).draw(Query(np.arange(len(pairs))), 20, rng=rng_for(seed, worker=5))
    names, documents = encoder.vectors(pairs.queries), encoder.vectors(pairs.documents)
    others = np.einsum("bd,bkd->bk", names, documents[drawn.ids])
    return float((others < (names * documents).sum(axis=1, keepdims=True))[drawn.mask].mean())


def how_many(parts: Split, steps: int, seed: int) -> quantity.Estimate:
    """Estimate the best number of random negatives from a run with one, with its validation AUC measured ten times."""
    trainer, curve = Trainer(parts.train, steps, seed), []
    for _ in range(10):
        trainer.random(steps // 10, 1)
        curve.append(auc(trainer.encoder, parts.validation, seed))
    return quantity.estimate(auc(trainer.encoder, parts.train, seed), curve, k_max=10_000)


def positive_scores(encoder: Encoder, pairs: Pairs) -> NDArray[Any]:
    """Return (n,) the score of each name with its own document."""
    return np.asarray((encoder.vectors(pairs.queries) * encoder.vectors(pairs.documents)).sum(axis=1))


def calibrated(lesson: Lesson, held_out: Pairs) -> detectors.Calibrated:
    """Return a threshold that 95 % of the held-out positives reach, which the encoder was not trained on."""
    return detectors.Calibrated(alpha=0.05).fit(positive_scores(lesson.halfway, held_out))


def miss_rate(lesson: Lesson, detector: detectors.Calibrated, pairs: Pairs) -> float:
    """Return the share of other positives below the threshold, which is calibrated for 5 %."""
    return float((positive_scores(lesson.halfway, pairs) < detector.high).mean())


def evaluated(lesson: Lesson, by_score: detectors.Calibrated, pairs: Pairs) -> dict[str, detectors.Evaluation]:
    """Evaluate each detector on the plain hard negatives; names with equal docstrings are the false negatives."""
    query, negatives = Query(np.arange(len(pairs)), positives=np.arange(len(pairs))), lesson.plain.negatives()
    both: dict[str, Detector] = {"Duplicates, by text": duplicates_of(pairs), "Calibrated, by score": by_score}
    return {name: detectors.evaluate(one, query, negatives, pairs.library.text_of) for name, one in both.items()}
