"""Pairs that a person reviewed: what `mine` takes, how pairs are drawn, and what the interval says."""

import numpy as np

from naysay.mining import mine

RNG = np.random.default_rng(0)
N = 200
TOPICS = RNG.normal(size=(N, 16))
CORPUS = np.concatenate(
    [(TOPICS[:, None] + 0.5 * RNG.normal(size=(N, 3, 16))).reshape(-1, 16), RNG.normal(size=(600, 16))]
)
LABELLED = 3 * np.arange(N) + RNG.integers(0, 3, N)


def mined(**given):
    return mine(TOPICS, CORPUS, LABELLED, 4, **given)


def test_pairs_are_drawn_among_the_nearest_that_may_be_taken():
    found = mined(rank_range=(3, None), min_score=0.3)
    nearest = mined(rank_range=(3, None), min_score=0.3, judge=None)
    pairs = {(row, item) for row, ids in enumerate(nearest.ids.tolist()) for item in ids if item >= 0}
    drawn = found.pairs_to_review(10**6)
    assert {*zip(drawn.anchors.tolist(), drawn.items.tolist(), strict=True)} == pairs
    some = found.pairs_to_review(150)
    assert len(some.anchors) == 150
    assert {*zip(some.anchors.tolist(), some.items.tolist(), strict=True)} < pairs
    again = mined(rank_range=(3, None), min_score=0.3).pairs_to_review(150)
    assert again.items.tolist() == some.items.tolist()
    other = mined(rank_range=(3, None), min_score=0.3, seed=1).pairs_to_review(150)
    assert other.items.tolist() != some.items.tolist()
    assert (np.diff(some.anchors) < 0).any()  # not in order: the first of them are a sample, too


def test_what_was_reviewed_is_not_drawn_again():
    first = mined().pairs_to_review(80)
    second = mined(reviewed=(first.anchors, first.items, first.items < 0)).pairs_to_review(10**6)
    both = [{*zip(part.anchors.tolist(), part.items.tolist(), strict=True)} for part in (first, second)]
    assert not both[0] & both[1]
    assert len(both[1]) == 4 * N - 80


def test_reviewed_false_negatives_are_left_out_whatever_they_score():
    first = mined()
    anchors, items = np.arange(5), first.ids[:5, 0]
    second = mined(reviewed=(anchors, items, np.ones(5, int)), on_short="relax")
    assert not (second.ids[:5] == items[:, None]).any()
    assert second.dropped["ignored"][:5].tolist() == [1] * 5


def test_few_anchors_cannot_be_corrected_and_the_rule_says_what_was_found():
    found = mine(
        TOPICS[:12], CORPUS, LABELLED[:12], 4, reviewed=([0, 1, 2, 3], [1, 2, 3, 4], [True, False, False, False])
    )
    assert found.rule.startswith("By labels and 4 reviewed pairs")
    assert "1 of 4 reviewed pairs are false negatives: 25.0 % (95 % CI 0.63 to 80.6)" in found.rule


def test_pairs_of_other_candidates_do_not_count():
    """A review of other vectors may hold pairs that are not listed: they are left out where false, and else no use."""
    plain = mined()
    far = np.array([700, 800])
    found = mined(reviewed=([0, 1], far, [False, False]), depth=60)
    assert found.judge.summary.before.estimate == plain.judge.summary.before.estimate
