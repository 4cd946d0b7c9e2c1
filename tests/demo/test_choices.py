"""How many negatives, the threshold, and what the detectors find: against plain loops."""

import numpy as np
import pytest
import torch
from planted_library import planted_library

from naysay import pools
from naysay.demo import choices, tutorial
from naysay.quantity import estimate
from naysay.rng import rng_for
from naysay.types import Query


@pytest.fixture(autouse=True)
def small_and_alone(monkeypatch):
    """A step over a small table is fast; in one thread it is also the same each time."""
    monkeypatch.setattr(tutorial, "BUCKETS", 2048)
    monkeypatch.setattr(tutorial, "BATCH", 64)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def parts():
    return tutorial.split(planted_library(), 0)


def test_auc_is_how_often_the_positive_is_ahead(parts):
    encoder, pairs = tutorial.Encoder(parts.train, rng_for(1)), parts.validation
    drawn = pools.Everything(pairs.known).draw(Query(np.arange(len(pairs))), 20, rng=rng_for(0, worker=5))
    names, documents = encoder.vectors(pairs.queries), encoder.vectors(pairs.documents)
    ahead = [
        names[row] @ documents[row] > names[row] @ documents[other]
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
    assert curve[-1] > curve[0]
    assert found.k == estimate(trained, curve, k_max=10_000).k


def test_threshold_and_detection_against_loops(parts):
    found = tutorial.lesson(parts, steps=40, seed=0)
    pairs, held, text_of = parts.train, parts.validation, parts.train.library.text_of
    own = [
        float(name @ document)
        for name, document in zip(
            found.halfway.vectors(held.queries), found.halfway.vectors(held.documents), strict=True
        )
    ]
    by_score = choices.calibrated(found, held)
    assert by_score.high == pytest.approx(sorted(own)[int(0.05 * (len(own) + 1)) - 1], abs=1e-6)
    assert choices.miss_rate(found, by_score, held) < 0.05
    rows = [
        (text_of[item] == text_of[anchor], found.plain.scores[anchor, slot] >= by_score.high)
        for anchor, items in enumerate(found.plain.ids.tolist())
        for slot, item in enumerate(items)
        if item >= 0
    ]
    text_found, score_found = choices.evaluated(found, by_score, pairs).values()
    duplicates = sum(duplicate for duplicate, _ in rows)
    assert duplicates > 50
    assert (text_found.precision, text_found.recall, text_found.flagged) == (1, 1, duplicates)
    assert score_found.flagged == sum(flag for _, flag in rows)
    assert score_found.recall == pytest.approx(sum(duplicate and flag for duplicate, flag in rows) / duplicates)
    assert score_found.precision == pytest.approx(
        sum(duplicate and flag for duplicate, flag in rows) / score_found.flagged
    )
