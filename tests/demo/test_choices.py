"""How many negatives, and what the detectors find: against plain loops."""

import numpy as np
import pytest
from planted_library import planted_library

from naysay import pools
from naysay.demo import choices, tutorial
from naysay.lab import retrieval as subwords
from naysay.quantity import estimate
from naysay.rng import rng_for
from naysay.types import Query


@pytest.fixture(autouse=True)
def a_small_encoder(monkeypatch):
    """A step over a small table is fast."""
    monkeypatch.setattr(subwords, "BUCKETS", 2048)
    monkeypatch.setattr(tutorial, "BATCH", 64)


@pytest.fixture
def parts():
    return tutorial.split(planted_library(), 0)


def test_auc_is_how_often_the_positive_is_ahead(parts):
    encoder, pairs = tutorial.Encoder([parts.train.queries, parts.train.documents], rng_for(1)), parts.validation
    drawn = pools.Everything(pairs.known).draw(Query(np.arange(len(pairs))), 20, rng=rng_for(0, worker=5))
    names, documents = encoder.vectors(pairs.queries), encoder.vectors(pairs.documents)
    ahead = [
        names[row] @ documents[pairs.labels[row]] > names[row] @ documents[other]
        for row in range(len(pairs))
        for other in drawn.ids[row].tolist()
        if other >= 0
    ]
    assert choices.auc(encoder, pairs, 0) == pytest.approx(np.mean(ahead), abs=0.01)
    assert len(ahead) > 20 * 20


def test_how_many_is_the_estimate_of_its_own_curve(parts, monkeypatch):
    seen = []
    real = choices.auc
    monkeypatch.setattr(choices, "auc", lambda *given: seen.append(real(*given)) or seen[-1])
    found = choices.how_many(parts, 30, 0)
    *curve, trained = seen
    assert len(curve) == 10
    assert found.k == estimate(trained, curve, k_max=10_000).k


def test_detection_against_loops(parts):
    found = tutorial.lesson(parts, steps=10, seed=0)
    pairs = parts.train
    rows = [
        (
            f" {pairs.runs[anchor]} " in f" {pairs.passages[item]} ",
            score > 0.95 * float(found.plain.positive_scores[anchor]),
        )
        for anchor, (items, scores) in enumerate(
            zip(found.plain.ids.tolist(), found.plain.scores.tolist(), strict=True)
        )
        for item, score in zip(items, scores, strict=True)
        if item >= 0
    ]
    auto, share, text = choices.evaluated(found, pairs).values()
    false = sum(false for false, _ in rows)
    assert false > 50
    assert auto.false_negatives == share.false_negatives == text.false_negatives == false
    assert share.flagged == pytest.approx(sum(flag for _, flag in rows), abs=2)
    assert share.recall == pytest.approx(sum(one and flag for one, flag in rows) / false, abs=0.01)
    assert auto.recall > 0.5
    assert auto.threshold == found.mined.suspicion_threshold
