"""The share of false negatives: its formulas in plain loops, and the interval against worlds whose truth is known."""

import numpy as np
import pytest
from plain_audit import scores_of

import naysay as ns
from naysay.auditing import _false_share as module
from naysay.auditing._false_share import CorpusSample, false_share, sample_corpus
from naysay.auditing._training_set import scores_by_vectors, training_set
from naysay.detectors import ShareOfPositive, lowest_scores, unlabelled_share
from naysay.detectors.rate import most_share
from naysay.search import open_vectors
from naysay.testing.worlds import ENCODERS

CLEAN = {"per_anchor": 4, "known_share": 0.25, "noise": 0.1, "spread": 1.0}


def audited(world, ids, seed=0):
    """The scores of a set over a world, and the sample of its corpus."""
    base = ns.mine(world.anchor_vectors, world.item_vectors, world.known, 1, judge=None)
    found = training_set(base, None)
    found = type(found)(**{name: getattr(found, name) for name in found.__slots__} | {"ids": ids})
    queries, corpus = (open_vectors(side) for side in (world.anchor_vectors, world.item_vectors))
    scores = scores_by_vectors(found, queries, corpus, "cosine", ns.rng_for(seed))
    return scores, sample_corpus(queries, corpus, world.known, scores, "cosine", ns.rng_for(seed, 1))


def sets(world, seed=0):
    """{how: ids}: uniform, nearest, below a calibrated threshold, below 95 % of the positive, from the top 50."""
    sides = world.anchor_vectors, world.item_vectors, world.known
    anchors, items = world.known.pairs()
    lowest = lowest_scores(anchors, world.scores(anchors, items[:, None])[:, 0])
    query = ns.Query(np.arange(len(sides[0])))
    return {
        "uniform": ns.pools.Everything(world.known).draw(query, 8, rng=ns.rng_for(seed, 2)).ids,
        "nearest": ns.mine(*sides, 8, judge=None).ids,
        "judged": ns.mine(*sides, 8).ids,
        "share": ns.mine(*sides, 8, judge=ShareOfPositive(lowest, 0.95)).ids,
        "top 50": ns.mine(*sides, 8, judge=None, depth=50, select="random", seed=seed).ids,
    }


# ---- the formulas ---------------------------------------------------------------------------------------------------


def plain_by_sample(scores, corpus, rest, positives):
    """(estimate, high) by loops over positives and candidates."""
    prior = unlabelled_share(corpus.scores, positives, mask=corpus.is_candidate, confidence=1 - 2 * 0.05 / 3)
    ordered = sorted(corpus.scores[corpus.is_candidate].tolist())
    taken = [
        score
        for row in corpus.anchors.tolist()
        for score, use in zip(scores.negatives[row], rest[row], strict=True)
        if use
    ]
    chances = []
    for score in positives.tolist():
        place = sum(other < score for other in ordered)
        first, last = ordered[max(place - 32, 0)], ordered[min(place + 32, len(ordered) - 1)]
        there = sum(first <= other <= last for other in ordered)
        inside = sum(first <= other <= last for other in taken)
        chances.append(min(1.0, inside * corpus.share / there))
    each = len(ordered) / corpus.share / len(taken)
    most = most_share(sum(chances), len(chances), 0.05 / 3)
    return min(1.0, prior.estimate * each * np.mean(chances)), min(1.0, prior.high * each * most)


@pytest.mark.parametrize("seed", range(4))
def test_with_a_corpus_sample_it_agrees_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    negatives = rng.normal(0.5, 0.4, (30, 3)).round(2).astype(np.float32)
    negatives[rng.random((30, 3)) < 0.1] = np.nan
    scores = scores_of(negatives, rng.normal(1, 0.3, 30).round(2), np.arange(30))
    anchors = np.sort(rng.permutation(30)[:20])
    corpus = CorpusSample(anchors, rng.normal(0, 0.4, (20, 50)).round(2).astype(np.float32), rng.random((20, 50)) < 0.9,
                scores.positives[anchors], 200)  # fmt: skip
    proven = scores.filled & (rng.random((30, 3)) < 0.1)
    found = false_share(scores, corpus, proven, scores.filled)
    sure = proven.sum() / scores.filled.sum()
    expected = plain_by_sample(scores, corpus, scores.filled & ~proven, scores.positives.astype(np.float64))
    assert found.low == pytest.approx(sure)
    assert (found.estimate, found.high) == pytest.approx(tuple(sure + (1 - sure) * part for part in expected))
    assert found.low <= found.estimate <= found.high <= 1


def test_with_scores_alone_positives_above_all_negatives_say_nothing():
    rng = np.random.default_rng(0)
    negatives = np.minimum(rng.normal(0, 0.3, (200, 4)), 0.8).astype(np.float32)
    positives = rng.normal(0.8, 0.4, 200)
    scores = scores_of(negatives, positives, np.arange(200))
    found = false_share(scores, None, np.zeros((200, 4), bool), np.ones((200, 4), bool))
    below = np.float32(positives)[np.float32(positives) <= negatives.max()].astype(np.float64)
    known = unlabelled_share(negatives, below)
    assert (found.estimate, found.high, found.n) == pytest.approx((known.estimate, known.high, len(below)))
    assert 50 < len(below) < 150
    assert any("one threshold for all anchors" in sentence for sentence in found.assumptions)


def test_what_is_unknown_is_said():
    all_slots = np.ones((30, 2), bool)
    proven = np.zeros((30, 2), bool)
    proven[0, 0] = True
    nothing = false_share(None, None, proven, all_slots)
    assert (nothing.estimate, nothing.low, nothing.high) == (1 / 60, 1 / 60, 1.0)
    assert nothing.notes == ("unknown: 0 anchors have a positive with a score, 19 are needed",)
    few = false_share(scores_of(np.zeros((30, 2)), np.arange(18.0), np.arange(18)), None, proven, all_slots)
    assert few.notes[0].startswith("unknown: 18 anchors")
    apart = false_share(scores_of(np.zeros((30, 2)), 1 + np.arange(30.0), np.arange(30)), None, proven, all_slots)
    assert apart.notes[0].startswith("unknown: only 0 of 30 positives score as low as a negative")
    assert (apart.estimate, apart.high) == (1 / 60, 1.0)
    equal = false_share(scores_of(np.ones((30, 2)), np.ones(30), np.arange(30)), None, proven, all_slots)
    assert (equal.notes, equal.high) == (("unknown: all scores are equal",), 1.0)
    certain = false_share(scores_of(np.ones((30, 2)), np.ones(30), np.arange(30)), None, all_slots, all_slots)
    assert (certain.low, certain.estimate, certain.high, certain.notes) == (1.0, 1.0, 1.0, ())


# ---- against the truth ----------------------------------------------------------------------------------------------


def test_the_interval_holds_the_truth_whatever_the_set_was_selected_by():
    covered = bounded = 0
    for seed, encoder in enumerate([*list(ENCODERS.values())[::2], CLEAN]):
        world = ns.planted_world(250, 600, seed=seed, **({"per_anchor": 8, "known_share": 0.5} | encoder))
        for ids in sets(world, seed).values():
            truth = world.false_negative_rate(np.arange(250), ids)
            found = false_share(*audited(world, ids, seed), np.zeros(ids.shape, bool), ids >= 0)
            covered += found.low <= truth <= found.high
            bounded += found.high < 1
    assert covered == 20  # it is conservative; the seeds are fixed
    assert bounded >= 8


def test_a_good_encoder_is_not_far_off():
    world = ns.planted_world(600, 1500, seed=1, **CLEAN)
    for how, ids in sets(world).items():
        truth = world.false_negative_rate(np.arange(600), ids)
        found = false_share(*audited(world, ids), np.zeros(ids.shape, bool), ids >= 0)
        assert truth / 2 <= found.estimate <= 6 * truth, how


def test_a_judge_lowers_the_estimate():
    world = ns.planted_world(400, 1500, seed=2, **CLEAN)
    ids = sets(world)
    share = {how: false_share(*audited(world, ids[how]), ids[how] < -1, ids[how] >= 0).estimate for how in ids}
    assert share["nearest"] > 5 * share["judged"]
    assert share["nearest"] > 0.1 > share["uniform"]


# ---- the sample of the corpus ---------------------------------------------------------------------------------------

WORLD = ns.planted_world(40, 60, per_anchor=6, known_share=0.5)


def sample_of(world, scores, metric="cosine", seed=0):
    queries, corpus = (open_vectors(side) for side in (world.anchor_vectors, world.item_vectors))
    return sample_corpus(queries, corpus, world.known, scores, metric, ns.rng_for(seed))


def scores_in(world):
    anchors, items = world.known.pairs()
    return scores_of(np.zeros((world.known.n_anchors, 1)), world.scores(anchors, items[:, None])[:, 0], anchors)


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
def test_a_small_corpus_is_module_whole(metric):
    scores = scores_in(WORLD)
    seen = sample_of(WORLD, scores, metric)
    assert (seen.anchors.tolist(), seen.documents, seen.share) == (list(range(40)), 60, 1.0)
    known = {*zip(*(side.tolist() for side in WORLD.known.pairs()), strict=True)}
    for place, anchor in enumerate(seen.anchors.tolist()):
        for item in range(60):
            one, other = WORLD.anchor_vectors[anchor].astype(float), WORLD.item_vectors[item].astype(float)
            score = -np.linalg.norm(one - other) if metric == "l2" else one @ other
            assert seen.scores[place, item] == pytest.approx(score, abs=1e-6)
            assert seen.is_candidate[place, item] == ((anchor, item) not in known)
    assert seen.positives.tolist() == scores.positives[scores.one_each].tolist()


def test_of_a_large_corpus_an_even_part(monkeypatch):
    for name, value in (("_PAIRS", 200), ("_ROWS", 20), ("_ANCHORS", 30)):
        monkeypatch.setattr(module, name, value)
    scores = scores_in(WORLD)
    whole = WORLD.anchor_vectors.astype(float) @ WORLD.item_vectors.T.astype(float)
    seen = np.zeros(60)
    for seed in range(60):
        part = sample_of(WORLD, scores, seed=seed)
        assert part.scores.shape == (10, 20)
        assert part.share == pytest.approx(1 / 3)
        assert (np.diff(part.anchors) > 0).all()
        columns = np.abs(whole[part.anchors[0]][:, None] - part.scores[0]).argmin(axis=0)
        seen[columns] += 1
        assert np.abs(whole[part.anchors][:, columns] - part.scores).max() < 1e-6
    assert seen.min() > 5  # each is as likely: 20 of 60 times
    assert sample_of(WORLD, scores_of([[0.0]], [np.nan], [0])) is None
