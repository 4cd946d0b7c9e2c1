"""The tutorial's second half: how many negatives, and which detector finds the false ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from naysay import detectors, mining, pools, quantity
from naysay.demo.tutorial import Encoder, Lesson, Pairs, Split, Trainer
from naysay.rng import rng_for
from naysay.types import Detector, Query


def auc(encoder: Encoder, pairs: Pairs, seed: int) -> float:
    """Return how often a question is closer to its answer than to a random passage; 20 random ones per question."""
    drawn = pools.Everything(pairs.known).draw(Query(np.arange(len(pairs))), 20, rng=rng_for(seed, worker=5))
    asked, passages = encoder.vectors(pairs.queries), encoder.vectors(pairs.documents)
    others = np.einsum("bd,bkd->bk", asked, passages[drawn.ids])
    return float((others < (asked * passages[pairs.labels]).sum(axis=1, keepdims=True))[drawn.mask].mean())


def how_many(parts: Split, steps: int, seed: int) -> quantity.Estimate:
    """Estimate the best number of random negatives from a run with one, with its validation AUC measured ten times."""
    trainer, curve = Trainer(parts.train, steps, seed), []
    for _ in range(10):
        trainer.random(steps // 10, 1)
        curve.append(auc(trainer.encoder, parts.validation, seed))
    return quantity.estimate(auc(trainer.encoder, parts.train, seed), curve, k_max=10_000)


def evaluated(lesson: Lesson, pairs: Pairs) -> dict[str, detectors.Evaluation]:
    """Evaluate detectors on the plain hard negatives: all passages that answer the question are false negatives."""
    query, negatives = Query(np.arange(len(pairs)), positives=pairs.labels), lesson.plain.negatives()
    judge: Detector = lesson.mined.judge
    at = lesson.mined.suspicion_threshold
    others: dict[str, Detector] = {
        "share 0.95": detectors.ShareOfPositive(lesson.plain.positive_scores, 0.95),
        "Duplicates, by text": detectors.Duplicates(item_texts=pairs.passages, positives=pairs.known),
    }
    truth = is_false(lesson.plain, pairs)
    found = {"judge auto": detectors.evaluate(judge, query, negatives, truth, threshold=at)}
    return found | {name: detectors.evaluate(one, query, negatives, truth) for name, one in others.items()}


def is_false(mined: mining.Mined, pairs: Pairs) -> NDArray[np.bool_]:
    """Return (n, k) which of the negatives are false: they answer the question."""
    return pairs.relevant.contains(np.arange(len(pairs)), np.maximum(mined.ids, 0)) & mined.mask


def false_share(mined: mining.Mined, pairs: Pairs) -> float:
    """Return the share of the negatives that are false in truth."""
    return float(is_false(mined, pairs).sum() / mined.mask.sum())
