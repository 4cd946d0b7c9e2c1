"""A detector's own threshold: everything that acts on its suspicion acts there, alone and beside others."""

import numpy as np
import pytest
from posterior_worlds import planted

import naysay as ns

QUERY = ns.Query([0, 1])
NEGATIVES = ns.Negatives(np.array([[0, 1, 2, 3], [0, 1, 2, 3]]), scores=np.array([[0.1, 0.2, 0.3, 0.6]] * 2))


class ByScore:
    """Suspicion is the score; flagged from a threshold of its own on."""

    def __init__(self, at=None):
        if at is not None:
            self.suspicion_threshold = at

    def suspicion(self, query, negatives):
        return np.where(negatives.ids >= 0, negatives.scores, 0.0)


class Listed:
    """A sampler that returns the first candidates of each anchor's list."""

    def __init__(self, scores):
        self.scores = scores

    def sample(self, query, k, *, rng):
        ids = np.tile(np.arange(k), (len(query), 1))
        return ns.Negatives(ids, scores=self.scores[np.asarray(query.anchors)][:, :k])


def kept(detector, policy="drop", **options):
    sampler = ns.samplers.Judged(Listed(NEGATIVES.scores), detector, policy, **options)
    return sampler.sample(QUERY, 2 if policy == "drop" else 4, rng=ns.rng_for(0))


@pytest.mark.parametrize("policy", ["drop", "ignore", "attract"])
@pytest.mark.parametrize(("at", "good"), [(None, [0, 1, 2]), (0.3, [0, 1]), (0.15, [0])])
def test_judged_acts_at_the_threshold_of_its_detector(policy, at, good):
    taken = kept(ByScore(at), policy)
    expected = good[:2] if policy == "drop" else good
    assert [ids[mask].tolist() for ids, mask in zip(taken.ids, taken.mask, strict=True)] == [expected] * 2
    assert kept(ByScore(at), policy, threshold=0.25).mask.sum() == 4


def test_judged_asks_for_the_threshold_at_every_step():
    detector = ByScore(0.15)
    sampler = ns.samplers.Judged(Listed(NEGATIVES.scores), detector, "ignore")
    before = sampler.sample(QUERY, 4, rng=ns.rng_for(0)).mask.sum()
    detector.suspicion_threshold = 0.5
    assert (before, sampler.sample(QUERY, 4, rng=ns.rng_for(0)).mask.sum()) == (2, 6)


def test_combined_detectors_flag_at_their_own_thresholds():
    both = ns.detectors.Combined({"strict": ByScore(0.15), "plain": ByScore()})
    found = both.judge(QUERY, NEGATIVES)
    assert found.flags() == {"strict": 6, "plain": 2}
    assert both.suspicion_threshold == 0.5
    assert kept(both, "ignore").mask.sum(axis=1).tolist() == [1, 1]
    all_of_them = ns.detectors.Combined({"strict": ByScore(0.15), "plain": ByScore()}, "all")
    assert kept(all_of_them, "ignore").mask.sum(axis=1).tolist() == [3, 3]
    alone = ns.detectors.Combined({"strict": ByScore(0.15)})
    assert (alone.suspicion_threshold, alone.judge(QUERY, NEGATIVES).flags()) == (0.15, {"strict": 6})
    nested = ns.detectors.Combined({"outer": alone, "plain": ByScore()})
    assert nested.judge(QUERY, NEGATIVES).flags() == {"outer": 6, "plain": 2}


def test_evaluations_and_hidden_positives_use_it():
    truth = np.array([[False, True, True, True]] * 2)
    rates = ns.detectors.evaluate(ByScore(0.15), QUERY, NEGATIVES, truth)
    assert (rates.flagged, rates.recall, rates.threshold) == (6, 1.0, 0.15)
    assert ns.detectors.evaluate(ByScore(0.15), QUERY, NEGATIVES, truth, threshold=0.5).flagged == 2
    hidden = ns.Positives.from_pairs([0, 1], [1, 1], 2, 4)
    caught = [
        ns.detectors.hidden_positives(
            ByScore(at), QUERY, hidden, rng=ns.rng_for(0), score=lambda anchors, ids: NEGATIVES.scores[0][ids]
        ).estimate
        for at in (0.15, None)
    ]
    assert caught == [1.0, 0.0]


def test_mining_drops_at_it():
    corpus = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
    mined = ns.mine(corpus[:1], corpus, None, 4, judge=ByScore(0.7), keep_own_text=True)
    assert mined.ids.tolist() == [[2, 3, -1, -1]]


def test_judged_by_a_posterior_keeps_its_target():
    """Half of what the posterior cuts has a suspicion below 0.5: the share of false negatives is that of its cut."""
    scores, own, truth, _ = planted(0, anchors=1500, items=400, hidden=3, shift=3.0)
    detector = ns.detectors.Posterior(k=8, false_share=0.05, positive_scores=own).fit(scores, own)
    assert detector.suspicion_threshold < 0.4
    anchors = np.arange(len(own))
    for rule in (detector, {"posterior": detector}, {"posterior": detector, "absolute": ns.detectors.MaxScore(99.0)}):
        sampler = ns.samplers.Judged(Listed(scores), rule, refill=5)
        taken = sampler.sample(ns.Query(anchors), 8, rng=ns.rng_for(0)).ids
        assert truth[anchors[:, None], taken].mean() == pytest.approx(0.05, abs=0.02)
