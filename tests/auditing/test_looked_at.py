"""The look at a corpus and the line by it: against plain loops."""

import numpy as np
import pytest
from plain_audit import scored_of

import naysay as ns
from naysay.auditing import _corpus_sample as looked_at
from naysay.auditing._corpus_sample import Look, look
from naysay.auditing._scored import as_given
from naysay.auditing._threshold import line
from naysay.auditing._training_set import training_set
from naysay.detectors import Bands, Calibrated, choose_thresholds
from naysay.search import open_vectors

WORLD = ns.planted_world(40, 60, per_anchor=6, known_share=0.5)


def seen_of(world, scored, metric="cosine", seed=0):
    queries, corpus = (open_vectors(side) for side in (world.anchor_vectors, world.item_vectors))
    return look(queries, corpus, world.known, scored, metric, ns.rng_for(seed))


def scored_world(world):
    anchors, items = world.known.pairs()
    return scored_of(np.zeros((world.known.n_anchors, 1)), world.scores(anchors, items[:, None])[:, 0], anchors)


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_a_small_corpus_is_looked_at_whole(metric):
    scored = scored_world(WORLD)
    seen = seen_of(WORLD, scored, metric)
    assert (seen.anchors.tolist(), seen.corpus, seen.share) == (list(range(40)), 60, 1.0)
    known = {*zip(*(side.tolist() for side in WORLD.known.pairs()), strict=True)}
    for place, anchor in enumerate(seen.anchors.tolist()):
        for item in range(60):
            one, other = WORLD.anchor_vectors[anchor].astype(float), WORLD.item_vectors[item].astype(float)
            score = -np.linalg.norm(one - other) if metric == "l2" else one @ other
            assert seen.scores[place, item] == pytest.approx(score, abs=1e-6)
            assert seen.free[place, item] == ((anchor, item) not in known)
    assert seen.positives.tolist() == scored.positives[scored.one].tolist()


def test_of_a_large_corpus_an_even_part(monkeypatch):
    for name, value in (("_PAIRS", 200), ("_ROWS", 20), ("_ANCHORS", 30)):
        monkeypatch.setattr(looked_at, name, value)
    scored = scored_world(WORLD)
    whole = WORLD.anchor_vectors.astype(float) @ WORLD.item_vectors.T.astype(float)
    seen = np.zeros(60)
    for seed in range(60):
        part = seen_of(WORLD, scored, seed=seed)
        assert part.scores.shape == (10, 20)
        assert part.share == pytest.approx(1 / 3)
        assert (np.diff(part.anchors) > 0).all()
        columns = np.abs(whole[part.anchors[0]][:, None] - part.scores[0]).argmin(axis=0)
        seen[columns] += 1
        assert np.abs(whole[part.anchors][:, columns] - part.scores).max() < 1e-6
    assert seen.min() > 5  # each is as likely: 20 of 60 times
    assert seen_of(WORLD, scored_of([[0.0]], [np.nan], [0])) is None


# ---- the line -------------------------------------------------------------------------------------------------------


def test_a_calibrated_line_rests_on_one_positive_of_each_anchor():
    mined = ns.mine(WORLD.anchor_vectors, WORLD.item_vectors, WORLD.known, 4, judge=None)
    scored = as_given(training_set(mined, None), None, None, ns.rng_for(0))
    assert scored.anchors[scored.one].tolist() == list(range(40))
    assert len(scored.positives) == 120
    again = [as_given(training_set(mined, None), None, None, ns.rng_for(seed)).one.tolist() for seed in range(5)]
    assert len({*map(tuple, again)}) == 5  # taken at random
    found = line(scored, None, 0.05)
    assert isinstance(found.judge, Calibrated)
    assert found.high == sorted(scored.positives[scored.one].tolist())[1]  # number floor(0.05 * 41) = 2 from below
    assert dict(found.suggested) == {"calibrated": found.high}


def test_the_shares_are_those_of_uniform_pairs_known_ones_included():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1, (50, 200)).astype(np.float32)
    free = rng.random((50, 200)) < 0.7
    seen = Look(np.arange(50), scores, free, np.ones(50, np.float32), 200)
    scored = scored_of(rng.normal(0, 1, (50, 2)), rng.normal(2, 1, 10), np.arange(10))
    found = line(scored, seen, 0.05)
    plain = choose_thresholds(scores[free], n_positives=int((~free).sum()))
    assert dict(found.suggested) == {"low": plain.low, "high": plain.high}
    assert (found.high, found.judge.high) == (plain.high, plain.high)
    assert isinstance(found.judge, Bands)
