"""How many negatives are false: bounds by scores, hidden positives and labels, against plain loops and known truth."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay.detectors import (
    Calibrated,
    false_negative_rate,
    hidden_positives,
    judge_some,
    spot_check,
    unlabelled_share,
)
from naysay.testing import planted_world
from naysay.testing.worlds import ENCODERS

SHARES = (0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)


def plain_bound(rows, positives, error):
    """(bound, value) of the best tail, by loops; rows are lists of scores."""
    n = len(positives)
    falling = sorted(positives, reverse=True)
    held = sorted({round(share * n) for share in SHARES} - {0})
    error_of_each = error / (2 * len(held))
    rows = [row for row in rows if row]
    total = sum(len(row) for row in rows)
    best = None
    for count in held:
        threshold = falling[count - 1]
        parts = [sum(score >= threshold for score in row) for row in rows]
        share = sum(parts) / total
        if len(rows) < 2:
            most = 1.0
        else:
            spread = sum((part - share * len(row)) ** 2 for part, row in zip(parts, rows, strict=True))
            variance = spread / total**2 * len(rows) / (len(rows) - 1)
            least = total**2 / sum(len(row) ** 2 for row in rows)
            if variance > 1e-18:
                size = min(max(share * (1 - share) / variance, least), total)
            else:
                size = total if 0 < share < 1 else least
            size *= (stats.norm.ppf(error_of_each) / stats.t.ppf(error_of_each, len(rows) - 1)) ** 2
            hits = share * size
            most = 1.0 if hits >= size else stats.beta.ppf(1 - error_of_each, hits + 1, size - hits)
        bound = most / stats.beta.ppf(error_of_each, count, n - count + 1)
        if best is None or bound < best[0]:
            best = (bound, share * n / count)
    return best


def plain_rate(rows, kept, positives, passed, confidence):
    """(estimate, high) by loops."""
    error = (1 - confidence) / 3
    bound, value = plain_bound(rows, positives, 2 * error)
    n, hits = len(positives), sum(passed)
    most = 1.0 if hits == n else stats.beta.ppf(1 - error, hits + 1, n - hits)
    ratio = sum(len(row) for row in rows) / sum(sum(row) for row in kept)
    return min(value * hits / n * ratio, 1.0), min(bound * most * ratio, 1.0)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 8), st.integers(1, 40), st.sampled_from([0.8, 0.95]))
@settings(max_examples=30)
def test_the_bound_agrees_with_plain_loops(seed, rows, width, known, confidence):
    rng = np.random.default_rng(seed)
    candidates = rng.normal(0, 1, (rows, width)).round(1)
    mask = rng.random((rows, width)) < 0.8
    mask[0, 0] = True
    positives = rng.normal(1.5, 1, known).round(1)
    lists = [row[filled].tolist() for row, filled in zip(candidates, mask, strict=True)]
    shown = np.where(mask, candidates, np.nan)  # what is in an empty slot is not read
    bound, value = plain_bound(lists, positives.tolist(), 1 - confidence)
    prior = unlabelled_share(shown, positives, mask=mask, confidence=confidence)
    assert (prior.estimate, prior.low, prior.high) == pytest.approx((min(value, 1), 0, min(bound, 1)), rel=1e-9)
    threshold = float(np.median(candidates[mask])) + 0.05
    kept = (candidates < threshold) & mask
    flags = [[score < threshold for score in row] for row in lists]
    expected = plain_rate(lists, flags, positives.tolist(), (positives < threshold).tolist(), confidence)
    found = false_negative_rate(shown, positives, threshold, mask=mask, confidence=confidence)
    assert (found.estimate, found.high, found.n) == pytest.approx((*expected, known), rel=1e-9)
    some = false_negative_rate(
        shown, positives, kept, kept_positives=positives < threshold, mask=mask, confidence=confidence
    )
    assert some == found


def mixture(rng, anchors, width, each, apart, known):
    """Normal scores: which candidates are false negatives is known."""
    false = np.arange(width) < np.minimum(rng.poisson(each, anchors), width)[:, None]
    return rng.standard_normal((anchors, width)) + apart * false, rng.standard_normal(known) + apart, false


@pytest.mark.parametrize(
    ("anchors", "width", "each", "apart", "known"),
    [(200, 30, 1.0, 3.0, 40), (1500, 1, 0.1, 6.0, 300)],
)
def test_the_bound_holds_where_it_is_almost_the_truth(anchors, width, each, apart, known):
    runs, prior_held, rate_held, tight = 40, 0, 0, []
    for seed in range(runs):
        scores, positives, false = mixture(np.random.default_rng(seed), anchors, width, each, apart, known)
        prior = unlabelled_share(scores, positives)
        prior_held += false.mean() <= prior.high
        threshold = np.sort(positives)[max(int(0.05 * (known + 1)) - 1, 0)]
        found = false_negative_rate(scores, positives, threshold)
        rate_held += false[scores < threshold].mean() <= found.high
        tight.append(prior.estimate / max(false.mean(), 1e-9))
    assert prior_held >= 0.95 * runs
    assert rate_held >= 0.95 * runs
    assert 0.9 < np.median(tight) < (1.6 if apart < 5 else 1.1)  # and it is no empty promise


@pytest.mark.parametrize("name", ENCODERS)
def test_the_bound_holds_in_planted_worlds(name):
    """Truth known, negatives that score as high as positives: the bound is wide, never below what is true."""
    world = planted_world(200, 400, per_anchor=8, known_share=1 / 8, seed=0, **ENCODERS[name])
    scores = (world.anchor_vectors @ world.item_vectors.T).astype(np.float64)
    known = np.zeros(scores.shape, bool)
    known[world.known.pairs()] = True
    false = world.is_false_negative(np.arange(200), np.broadcast_to(np.arange(400), scores.shape))
    positives = scores[known]
    prior = unlabelled_share(scores, positives, mask=~known)
    assert false[~known].mean() <= prior.high < 0.6
    threshold = Calibrated(0.05).fit(positives).high
    found = false_negative_rate(scores, positives, threshold, mask=~known)
    assert false[~known & (scores < threshold)].mean() <= found.high < 0.1
    left = np.where(known | (scores >= threshold), -np.inf, scores)
    taken = left >= -np.partition(-left, 4, axis=1)[:, 4:5]
    passed = (positives < threshold) & (positives >= np.where(taken, scores, np.inf).min(axis=1))
    top = false_negative_rate(scores, positives, taken, kept_positives=passed, mask=~known)
    rough = false_negative_rate(scores, positives, taken, mask=~known)
    assert false[taken].mean() <= top.high <= rough.high


def test_slots_of_an_anchor_that_agree_are_worth_less():
    rng = np.random.default_rng(0)
    looks = rng.standard_normal((100, 1)) + 5 * (rng.random((100, 1)) < 0.1)
    positives = rng.standard_normal(500) + 5
    once, alike = unlabelled_share(looks, positives), unlabelled_share(np.repeat(looks, 20, axis=1), positives)
    apart = unlabelled_share(rng.permutation(np.repeat(looks, 20, axis=1).ravel()), positives)
    assert alike.high == pytest.approx(once.high, rel=1e-6)
    assert apart.high < 0.8 * alike.high


def test_an_inconclusive_bound_has_a_note():
    rng = np.random.default_rng(0)
    alike = unlabelled_share(rng.normal(0, 1, (50, 10)), rng.normal(0, 1, 50))
    few = unlabelled_share(rng.normal(0, 1, (50, 10)), [9.0])
    assert alike.high == few.high == 1.0
    assert len(alike.notes) == len(few.notes) == 1
    scores, positives, _ = mixture(rng, 300, 100, 1.0, 2.0, 300)
    nearest = scores >= np.sort(scores, axis=1)[:, -2:-1]
    found = false_negative_rate(scores, positives, nearest)
    assert (found.high, len(found.notes)) == (1.0, 1)
    assert unlabelled_share(scores, positives).notes == ()


WORLD = planted_world(400, 300, per_anchor=12, known_share=0.5, noise=0.5)
SPLIT = WORLD.known.split(0.3, rng=ns.rng_for(0))
QUERY = ns.Query(np.arange(400))


def pairs_of(known, relation="positive"):
    anchors, items = known.pairs()
    kept = known.contains(anchors, items, relation=relation)
    return set(zip(anchors[kept].tolist(), items[kept].tolist(), strict=True))


# ---- Positives.split ------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=40),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=10),
    st.floats(0.01, 0.99),
    st.integers(0, 1000),
    st.booleans(),
)
def test_a_split_hides_a_share_of_each_anchor(positive, ignored, share, seed, keep_one):
    known = ns.Positives.from_pairs([a for a, _ in positive], [i for _, i in positive], 7, 10)
    if ignored:
        known = known.with_ignored([a for a, _ in ignored], [i for _, i in ignored])
    split = known.split(share, rng=np.random.default_rng(seed), keep_one=keep_one)
    kept, hidden = pairs_of(split.kept), pairs_of(split.hidden)
    assert kept | hidden == pairs_of(known)
    assert not kept & hidden
    assert pairs_of(split.kept, "ignore") == pairs_of(known, "ignore")
    assert not pairs_of(split.hidden, "ignore")
    for anchor in range(7):
        count = sum(a == anchor for a, _ in pairs_of(known))
        gone = sum(a == anchor for a, _ in hidden)
        least = max(count - 1, 0) if keep_one else count
        assert min(int(count * share), least) <= gone <= min(int(count * share) + 1, least)
    for part in split.kept, split.hidden:
        assert (part.n_anchors, part.n_items) == (7, 10)
        for anchor in range(7):  # rows are sorted, as everything that looks them up expects
            row = part.indices[part.indptr[anchor] : part.indptr[anchor + 1]]
            assert (np.diff(row) > 0).all()


def test_a_split_hides_every_positive_as_often():
    known = ns.Positives.from_pairs([0] * 6 + [1, 1, 2], [0, 2, 3, 5, 7, 8, 1, 4, 6], 3, 9)
    counts = np.zeros((3, 9))
    for seed in range(800):
        counts[known.split(0.25, rng=np.random.default_rng(seed)).hidden.pairs()] += 1
    assert counts[0].sum() / 800 == pytest.approx(1.5, abs=0.08)  # 6 * 0.25
    assert counts[1].sum() / 800 == pytest.approx(0.5, abs=0.07)
    assert counts[2].sum() / 800 == pytest.approx(0.25, abs=0.06)  # the only one of its anchor, as often
    assert stats.chisquare(counts[0][[0, 2, 3, 5, 7, 8]]).pvalue > 0.001
    assert stats.chisquare(counts[1][[1, 4]]).pvalue > 0.001


# ---- hidden_positives -----------------------------------------------------------------------------------------------


class Recorder:
    """Suspect by score, and remember what it was asked."""

    def suspicion(self, query, negatives):
        self.query, self.negatives = query, negatives
        return np.clip(negatives.numpy().scores, 0, 1).astype(float)


class Flags:
    """Flags some items."""

    def __init__(self, flagged):
        self.flagged = flagged

    def suspicion(self, query, negatives):
        return self.flagged[negatives.ids].astype(float)


def test_one_hidden_positive_of_each_anchor_is_judged_and_counted():
    detector = Recorder()
    query = ns.Query(np.concatenate([QUERY.anchors, QUERY.anchors[:50]]))  # some anchors come twice
    found = hidden_positives(detector, query, SPLIT.hidden, rng=ns.rng_for(1), score=WORLD.scores, threshold=0.4)
    candidates = detector.negatives
    having = [anchor for anchor in range(400) if SPLIT.hidden.count([anchor])[0]]
    assert detector.query.anchors.tolist() == having
    assert candidates.shape == (len(having), 1)
    assert SPLIT.hidden.contains(having, candidates.ids).all()
    assert np.array_equal(candidates.scores, WORLD.scores(np.array(having), candidates.ids))
    weights = [int(SPLIT.hidden.count([anchor])[0]) for anchor in having]
    flagged = [w for w, score in zip(weights, candidates.scores[:, 0], strict=True) if score >= 0.4]
    share = sum(flagged) / sum(weights)
    size = sum(weights) ** 2 / sum(w * w for w in weights)
    hits = share * size
    assert 0 < share < 1
    assert (found.estimate, found.n) == (pytest.approx(share), len(having))
    exact = stats.beta.ppf([0.025, 0.975], [hits, hits + 1], [size - hits + 1, size - hits])
    assert (found.low, found.high) == pytest.approx(tuple(exact))
    assert len(found.notes) == 1  # rows that were left out


def test_anchors_with_one_positive_count_and_many_hidden_ones_weigh_more():
    """Anchors with one positive are hard, those with three easy: the interval holds the truth over unlabelled pairs."""
    covered = {False: 0, True: 0}  # by keep_one, with which the hidden ones are no random part
    for seed in range(40):
        rng = np.random.default_rng(seed)
        counts = np.where(np.arange(300) % 2, 1, 3)
        anchors = np.repeat(np.arange(300), counts)
        easy = rng.random(len(anchors)) < np.where(counts == 1, 0.3, 0.9)[anchors]
        known = ns.Positives.from_pairs(anchors, np.arange(len(anchors)), 300, len(anchors))
        for keep_one in covered:
            hidden = known.split(0.3, rng=ns.rng_for(seed), keep_one=keep_one).hidden
            found = hidden_positives(Flags(easy), ns.Query(np.arange(300)), hidden, rng=ns.rng_for(seed, 1))
            covered[keep_one] += found.low <= easy.mean() <= found.high
    assert covered[False] >= 36
    assert covered[True] < 20


# ---- labels ---------------------------------------------------------------------------------------------------------

DRAWN = ns.pools.Everything(WORLD.known).draw(QUERY, 10, rng=ns.rng_for(0))
DRAWN = replace(DRAWN, scores=WORLD.scores(QUERY.anchors, DRAWN.ids), vectors=WORLD.item_vectors[DRAWN.ids])


def test_labelled_slots_stay_in_their_rows_with_all_their_fields():
    ids = DRAWN.ids.copy()
    ids[::2, 3:] = -1
    query = ns.Query(QUERY.anchors, positives=QUERY.anchors % 7, vectors=WORLD.anchor_vectors)
    asked = []

    def judge(anchors, items):
        asked.extend(zip(anchors.tolist(), items.tolist(), strict=True))
        return WORLD.is_false_negative(anchors, items[:, None])[:, 0]

    found = judge_some(query, replace(DRAWN, ids=ids, dropped={"a reason": 3}), judge, 300, rng=ns.rng_for(1))
    assert found.n == len(asked) == len(set(asked)) == 300  # without replacement
    assert found.negatives.dropped == {}
    rows = found.query.anchors
    assert rows.tolist() == sorted({anchor for anchor, _ in asked})
    assert np.array_equal(found.query.positives, rows % 7)
    assert np.array_equal(found.query.vectors, WORLD.anchor_vectors[rows])
    labelled = [[(anchor, item) in asked for item in ids[anchor].tolist()] for anchor in rows.tolist()]
    assert np.array_equal(found.negatives.ids, np.where(labelled, ids[rows], -1))
    assert np.array_equal(found.negatives.scores, DRAWN.scores[rows])
    assert np.array_equal(found.negatives.vectors, DRAWN.vectors[rows])
    assert np.array_equal(found.truth, WORLD.is_false_negative(rows, found.negatives.ids))


def test_fewer_than_m_are_all_and_every_slot_is_as_likely():
    every = judge_some(QUERY, DRAWN, WORLD.is_false_negative, 10_000, rng=ns.rng_for(1))
    assert every.n == 4000
    assert np.array_equal(every.truth, WORLD.is_false_negative(QUERY.anchors, DRAWN.ids))
    counts = np.zeros((2, 10), int)
    for seed in range(600):
        found = judge_some(ns.Query([0, 1]), ns.Negatives(DRAWN.ids[:2]), lambda _, i: i < 0, 5, rng=ns.rng_for(seed))
        counts[found.query.anchors] += found.negatives.ids >= 0
    assert counts.sum() == 3000
    assert np.abs(counts - 150).max() < 5 * np.sqrt(150)


def test_of_triples_the_judge_gets_the_corrupted_ones():
    triples = np.array([[0, 1, 2], [3, 0, 4]])
    negatives = ns.Negatives(np.array([[5, 5], [9, 6]]), side=np.array([[0, 2], [2, 0]], np.int8))
    pairs = set()

    def judge(given, corrupted):
        pairs.update((tuple(a), tuple(b)) for a, b in zip(given.tolist(), corrupted.tolist(), strict=True))
        return corrupted[:, 0] == 5

    found = judge_some(ns.Query(triples), negatives, judge, 4, rng=ns.rng_for(0))
    first = {((0, 1, 2), (5, 1, 2)), ((0, 1, 2), (0, 1, 5))}
    assert pairs == first | {((3, 0, 4), (3, 0, 9)), ((3, 0, 4), (6, 0, 4))}
    assert found.truth.tolist() == [[True, False], [False, False]]


def test_a_spot_check_labels_negatives_once_each():
    pairs = []

    def judge(anchors, ids):
        pairs.extend(zip(anchors.tolist(), ids.tolist(), strict=True))
        return ids % 4 == 0

    ids = DRAWN.ids.copy()
    ids[:, 3] = -1
    relation = np.zeros(ids.shape, np.int8)
    relation[:, 4] = 2
    negatives = ns.Negatives(ids, relation=relation)
    found = spot_check(QUERY, negatives, judge, 150, rng=ns.rng_for(1))
    eligible = {(a, i) for a, row in enumerate(ids.tolist()) for slot, i in enumerate(row) if slot not in (3, 4)}
    assert len(set(pairs)) == len(pairs) == found.n == 150
    assert set(pairs) <= eligible
    hits = sum(i % 4 == 0 for _, i in pairs)
    exact = stats.binomtest(hits, 150).proportion_ci(0.95, "exact")
    assert (found.estimate, found.low, found.high) == pytest.approx((hits / 150, exact.low, exact.high))
    again = spot_check(ns.Query(torch.arange(400)), negatives.to("cpu"), judge, 150, rng=ns.rng_for(1))
    assert again == found
    everything = spot_check(QUERY, negatives, judge, 10_000, rng=ns.rng_for(1))
    assert everything.low == everything.estimate == everything.high
