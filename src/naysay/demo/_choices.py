"""The tutorial's second half: how many negatives, where a line through the scores lies, and who finds the duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import detectors, pools, quantity
from naysay.demo.tutorial import Encoder, Lesson, Pairs, Split, Trainer, duplicates_of
from naysay.rng import rng_for
from naysay.types import Detector, Query


def auc(encoder: Encoder, pairs: Pairs, seed: int) -> float:
    """How often a name is closer to its own document than to a random one; 20 for each name."""
    drawn = pools.Everything(pairs.known).draw(Query(np.arange(len(pairs))), 20, rng=rng_for(seed, worker=5))
    names, documents = encoder.vectors(pairs.queries), encoder.vectors(pairs.documents)
    others = np.einsum("bd,bkd->bk", names, documents[drawn.ids])
    return float((others < (names * documents).sum(axis=1, keepdims=True))[drawn.mask].mean())


def how_many(parts: Split, steps: int, seed: int) -> quantity.Estimate:
    """The best number of random negatives, by the AUCs of a run with one; validation AUCs at ten even intervals."""
    trainer, curve = Trainer(parts.train, steps, seed), []
    for _ in range(10):
        trainer.random(steps // 10, 1)
        curve.append(auc(trainer.encoder, parts.validation, seed))
    return quantity.estimate(auc(trainer.encoder, parts.train, seed), curve, k_max=10_000)


def own_scores(encoder: Encoder, pairs: Pairs) -> NDArray[Any]:
    """(n,) the score of each name with its own document."""
    return np.asarray((encoder.vectors(pairs.queries) * encoder.vectors(pairs.documents)).sum(axis=1))


def line_of(found: Lesson, pairs: Pairs) -> detectors.Calibrated:
    """The score from which on 95 % of positives lie that the encoder was not trained on: those of `pairs`."""
    return detectors.Calibrated(alpha=0.05).fit(own_scores(found.halfway, pairs))


def let_through(found: Lesson, line: detectors.Calibrated, pairs: Pairs) -> float:
    """The share of other positives below the line: what its promise of 5 % comes to."""
    return float((own_scores(found.halfway, pairs) < line.high).mean())


def detected(found: Lesson, line: detectors.Calibrated, pairs: Pairs) -> dict[str, detectors.Evaluation]:
    """What each detector makes of the plain hard negatives, against the truth: equal docstrings are false negatives."""
    query, negatives = Query(np.arange(len(pairs)), positives=np.arange(len(pairs))), found.plain.negatives()
    every: dict[str, Detector] = {"Duplicates, by text": duplicates_of(pairs), "Calibrated, by score": line}
    return {name: detectors.evaluate(one, query, negatives, pairs.library.text_of) for name, one in every.items()}
