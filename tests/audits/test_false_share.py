"""The share of false negatives: its formulas in plain loops, and the interval against worlds whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from family_world import families, with_planted
from plain_audit import scores_of

import naysay as ns
from naysay._intervals import most_share
from naysay.audits import _false_share as module
from naysay.audits._false_share import CorpusSample, false_share, sample_corpus
from naysay.audits._posterior import judged_by_vectors, placed
from naysay.audits._training_set import scores_by_vectors, training_set
from naysay.detectors import ShareOfPositive, lowest_scores, unlabelled_share
from naysay.search import open_vectors
from naysay.testing.worlds import ENCODERS


def with_ids(world, ids):
    """Negatives of a world as a training set, without scores."""
    base = training_set(ns.mine(world.anchor_vectors, world.item_vectors, world.known, 1, judge=None), None)
    return replace(base, ids=ids, scores=None, positive_scores=None, problem=None)


def estimates(world, sets, seed=0):
    """{how: share} of some sets over a world. The posterior is fitted once: it does not depend on the set."""
    queries, corpus = (open_vectors(side) for side in (world.anchor_vectors, world.item_vectors))
    shares, judged = {}, None
    for how, ids in sets.items():
        found = with_ids(world, ids)
        scores = scores_by_vectors(found, queries, corpus, "cosine", ns.rng_for(seed))
        sample = sample_corpus(queries, corpus, world.known, scores, "cosine", ns.rng_for(seed, 1))
        if judged is None:
            judged = judged_by_vectors(found, scores, queries, corpus, world.known, "cosine", seed)
        shares[how] = false_share(scores, sample, placed(judged, ids), np.zeros(ids.shape, bool), ids >= 0)
    return shares


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
    found = false_share(scores, corpus, None, proven, scores.filled)
    sure = proven.sum() / scores.filled.sum()
    expected = plain_by_sample(scores, corpus, scores.filled & ~proven, scores.positives.astype(np.float64))
    assert found.low == pytest.approx(sure)
    assert (found.estimate, found.high) == pytest.approx(tuple(sure + (1 - sure) * part for part in expected))
    assert found.low <= found.estimate <= found.high <= 1
    assert found.bound


def test_with_scores_alone_there_is_a_bound_if_no_judge_chose():
    rng = np.random.default_rng(0)
    negatives = rng.normal(0, 0.3, (200, 4)).astype(np.float32)
    negatives[:60, 0] += 1
    positives = rng.normal(1, 0.3, 200).astype(np.float32)
    every = np.ones((200, 4), bool)
    found = false_share(scores_of(negatives, positives, np.arange(200)), None, None, ~every, every)
    known = unlabelled_share(negatives, positives.astype(np.float64))
    assert (found.estimate, found.high, found.n, found.bound) == (known.estimate, known.high, 200, True)
    assert found.low <= 60 / 800 <= found.high < 0.15
    assert any("no judge chose the negatives" in sentence for sentence in found.assumptions)
    assert "cannot be compared with this one by scores alone" in found.notes[0]


@pytest.mark.parametrize("rule", ["threshold", "share"])
def test_scores_that_look_judged_give_no_number(rule):
    """A judged set (0.4 % false) was ranked at 70 %, and an unjudged one (6.6 %) at 10 %."""
    rng = np.random.default_rng(0)
    positives = rng.normal(1, 0.3, 300).astype(np.float32)
    limit = np.full(300, np.quantile(positives, 0.05)) if rule == "threshold" else 0.95 * positives
    negatives = np.minimum(rng.normal(0.6, 0.3, (300, 4)), limit[:, None]).astype(np.float32)
    every = np.ones((300, 4), bool)
    found = false_share(scores_of(negatives, positives, np.arange(300)), None, None, ~every, every)
    assert np.isnan(found.estimate)
    assert (found.low, found.high, found.bound) == (0, 1, True)
    assert found.notes[0].startswith("unknown: hardly any negative scores as high as its anchor's positive")
    assert "a judge left the false ones out: scores alone cannot tell" in found.notes[0]


def test_what_is_unknown_is_said():
    all_slots = np.ones((30, 2), bool)
    proven = np.zeros((30, 2), bool)
    proven[0, 0] = True

    def found(scores, proven=proven):
        return false_share(scores, None, None, proven, all_slots)

    nothing = found(None)
    assert np.isnan(nothing.estimate)
    assert (nothing.low, nothing.high) == (1 / 60, 1.0)
    assert nothing.notes == ("unknown: 0 anchors have a positive with a score, 19 are needed",)
    few = found(scores_of(np.zeros((30, 2)), np.arange(18.0), np.arange(18)))
    assert few.notes[0].startswith("unknown: 18 anchors")
    apart = found(scores_of(np.zeros((30, 2)), 1 + np.arange(30.0), np.arange(30)))
    assert np.isnan(apart.estimate)
    assert (apart.low, apart.high) == (1 / 60, 1.0)
    equal = scores_of(np.ones((30, 2)), np.ones(30), np.arange(30))
    assert (found(equal).notes, found(equal).high) == (("unknown: all scores are equal",), 1.0)
    certain = found(equal, all_slots)
    assert (certain.low, certain.estimate, certain.high, certain.notes) == (1.0, 1.0, 1.0, ())


# ---- against the truth ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"near": 0.5}, {"near": 0.75}, {"near": 1.0}, {"sizes": (1, 1, 1, 2, 3, 8)}], ids=str
)
def test_the_interval_holds_the_truth_whatever_the_set_was_selected_by(options):
    """By rank, a threshold, a share of the positive, at random, or with false ones put in at random."""
    world = families(seed=1, **options)
    found = sets(world)
    found |= {f"{how}, planted": with_planted(world, found[how], 0.1) for how in ("uniform", "judged")}
    for how, share in estimates(world, found).items():
        assert share.low <= world.false_negative_rate(np.arange(len(found[how])), found[how]) <= share.high, how
        assert share.high < 1, how


def test_an_encoder_that_does_not_separate_gives_a_bound():
    for seed, encoder in enumerate(list(ENCODERS.values())[::2]):
        world = ns.planted_world(250, 600, seed=seed, per_anchor=8, known_share=0.5, **encoder)
        found = sets(world, seed)
        for how, share in estimates(world, found, seed).items():
            assert share.low <= world.false_negative_rate(np.arange(250), found[how]) <= share.high, how
            assert share.bound, how
            assert any(note.startswith("only an upper") for note in share.notes), how


def test_a_good_encoder_is_not_far_off():
    world = families(400, seed=1)
    found = sets(world)
    shares = estimates(world, found)
    for how, share in shares.items():
        truth = world.false_negative_rate(np.arange(400), found[how])
        assert not share.bound
        assert truth / 2 <= share.estimate <= 3 * truth + 0.001, how
        said = " ".join(share.notes)
        assert ("something other than nearness chose" in said) == (how != "nearest")
        assert ("If false negatives were put in at random, more are" in said) == (how != "nearest")
    assert shares["nearest"].estimate > 4 * shares["judged"].estimate
    assert shares["nearest"].estimate > 0.1 > shares["uniform"].estimate


def test_a_large_corpus_has_a_bound(monkeypatch):
    """A small sample of the corpus holds none of the few candidates that matter, and shows nothing."""
    for name, value in (("_PAIRS", 4000), ("_ROWS", 100)):
        monkeypatch.setattr(module, name, value)
    world = families(150, sizes=(1,), others=4000)
    share = estimates(world, {"nearest": ns.mine(world.anchor_vectors, world.item_vectors, world.known, 8).ids})
    assert (share["nearest"].low, share["nearest"].bound) == (0, False)
    assert share["nearest"].high < 0.5


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
