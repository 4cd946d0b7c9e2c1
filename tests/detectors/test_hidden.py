"""Positives that are hidden: which they are, what a detector is shown, and what the share of flagged ones is worth."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import naysay as ns
from naysay.detectors import hidden_positives
from naysay.testing import planted_world

WORLD = planted_world(400, 300, per_anchor=12, known_share=0.5, noise=0.5)
SPLIT = WORLD.known.split(0.3, rng=ns.rng_for(0))
QUERY = ns.Query(np.arange(400))


def pairs_of(known, relation="positive"):
    anchors, items = known.pairs()
    kept = known.contains(anchors, items, relation=relation)
    return set(zip(anchors[kept].tolist(), items[kept].tolist(), strict=True))


class Recorder:
    """Suspect by score, and remember what was shown."""

    def suspicion(self, query, negatives):
        self.query, self.negatives = query, negatives
        if negatives.scores is None:
            return 0.0 * negatives.ids + (negatives.ids % 3 == 0) * 0.5
        scores = negatives.scores
        return scores.clamp(0, 1).double() if isinstance(scores, torch.Tensor) else np.clip(scores, 0, 1).astype(float)


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


def test_a_split_is_repeatable_moves_the_generator_by_one_key_and_keeps_names():
    known = ns.Positives.from_pairs(["a", "a", "a", "b"], ["x", "y", "z", "x"])
    one, same = (known.split(0.5, rng=ns.rng_for(3)) for _ in range(2))
    assert pairs_of(one.hidden) == pairs_of(same.hidden)
    kept = known.split(0.9, rng=ns.rng_for(3), keep_one=True).kept
    assert kept.contains(["b"], ["x"]).all()
    assert one.hidden.anchor_names is known.anchor_names
    used, fresh = ns.rng_for(5), ns.rng_for(5)
    WORLD.known.split(0.5, rng=used)
    fresh.integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True)
    assert used.integers(1 << 40) == fresh.integers(1 << 40)


# ---- hidden_positives -----------------------------------------------------------------------------------------------


def test_one_hidden_positive_of_each_anchor_is_shown_and_counted():
    detector = Recorder()
    query = ns.Query(np.concatenate([QUERY.anchors, QUERY.anchors[:50]]))  # some anchors come twice
    found = hidden_positives(detector, query, SPLIT.hidden, rng=ns.rng_for(1), score=WORLD.scores, threshold=0.4)
    shown = detector.negatives
    having = [a for a in range(400) if SPLIT.hidden.count([a])[0]]
    assert detector.query.anchors.tolist() == having
    assert shown.shape == (len(having), 1)
    assert SPLIT.hidden.contains(having, shown.ids).all()
    assert np.array_equal(shown.scores, WORLD.scores(np.array(having), shown.ids))
    each = [int(SPLIT.hidden.count([anchor])[0]) for anchor in having]
    share = sum(n for n, score in zip(each, shown.scores[:, 0], strict=True) if score >= 0.4) / sum(each)
    size = sum(each) ** 2 / sum(n * n for n in each)
    assert (found.estimate, found.n) == (pytest.approx(share), len(having))
    exact = stats.beta.ppf(
        [0.025, 0.975], [share * size, share * size + 1], [size - share * size + 1, size - share * size]
    )
    assert (found.low, found.high) == pytest.approx(tuple(exact))
    assert found.notes == (f"{450 - len(having)} of 450 rows have no hidden positive, or repeat an anchor: left out",)
    assert 0 < share < 1


def test_anchors_with_one_positive_count_and_many_hidden_ones_weigh_more():
    """Anchors with one positive are hard, those with three easy: the truth over unlabelled pairs is held."""
    held, promised = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        counts = np.where(np.arange(300) % 2, 1, 3)
        anchors = np.repeat(np.arange(300), counts)
        easy = rng.random(len(anchors)) < np.where(counts == 1, 0.3, 0.9)[anchors]
        known = ns.Positives.from_pairs(anchors, np.arange(len(anchors)), 300, len(anchors))
        for keep_one in (False, True):
            hidden = known.split(0.3, rng=ns.rng_for(seed), keep_one=keep_one).hidden
            found = hidden_positives(Flags(easy), ns.Query(np.arange(300)), hidden, rng=ns.rng_for(seed, 1))
            inside = found.low <= easy.mean() <= found.high
            held, promised = held + (inside and not keep_one), promised + (inside and keep_one)
    assert held >= 36
    assert promised < 20


class Flags:
    """Flags some items."""

    def __init__(self, flagged):
        self.flagged = flagged

    def suspicion(self, query, negatives):
        return self.flagged[negatives.ids].astype(float)


def test_it_is_asked_about_along_with_the_negatives_of_its_row():
    drawn = ns.pools.Everything(SPLIT.kept).draw(QUERY, 5, rng=ns.rng_for(2))
    ids = drawn.ids.copy()
    ids[::3, 2] = -1
    vectors = WORLD.item_vectors[np.maximum(ids, 0)]
    negatives = ns.Negatives(ids, scores=WORLD.scores(QUERY.anchors, ids), vectors=vectors)
    query = ns.Query(QUERY.anchors, positives=SPLIT.kept.indices[SPLIT.kept.indptr[:-1]], vectors=WORLD.anchor_vectors)
    seen = []

    def embed(asked):
        seen.append(asked)
        return WORLD.item_vectors[asked]

    def score(anchors, asked):
        seen.append(asked)
        return WORLD.scores(anchors, asked)

    detector = Recorder()
    functions = {"score": score, "embed": embed}
    found = hidden_positives(detector, query, SPLIT.hidden, rng=ns.rng_for(1), negatives=negatives, **functions)
    alone = hidden_positives(Recorder(), query, SPLIT.hidden, rng=ns.rng_for(1), score=score)
    assert found == alone  # the same hidden ones, whatever else is in the row
    having = np.flatnonzero(SPLIT.hidden.count() > 0)
    shown = detector.negatives
    assert np.array_equal(shown.ids[:, 1:], ids[having])
    assert np.array_equal(shown.scores[:, 1:], negatives.scores[having])
    assert (shown.scores[shown.ids < 0] == 0).all()
    assert np.array_equal(shown.vectors[:, 0], WORLD.item_vectors[shown.ids[:, 0]])
    assert np.array_equal(detector.query.positives, query.positives[having])
    assert np.array_equal(detector.query.vectors, WORLD.anchor_vectors[having])
    assert all((asked >= 0).all() for asked in seen)  # functions never see -1


def test_torch_is_asked_in_torch():
    query = ns.Query(torch.arange(400))
    detector = Recorder()
    drawn = ns.pools.Everything(SPLIT.kept).draw(QUERY, 3, rng=ns.rng_for(2))
    ids = drawn.ids.copy()
    ids[0] = -1

    def embed(asked):
        assert isinstance(asked, torch.Tensor)
        return torch.tensor(WORLD.item_vectors)[asked]

    options = {"negatives": ns.Negatives(torch.tensor(ids)), "score": WORLD.scores, "embed": embed}
    found = hidden_positives(detector, query, SPLIT.hidden, rng=ns.rng_for(1), **options)
    assert isinstance(detector.negatives.scores, torch.Tensor)
    assert detector.negatives.vectors.shape[:2] == detector.negatives.shape
    assert found == hidden_positives(Recorder(), QUERY, SPLIT.hidden, rng=ns.rng_for(1), score=WORLD.scores)


def test_the_interval_holds_the_true_rate():
    """Of positives that nobody labelled, on worlds whose truth is known. At least 57 of 60 are to be expected."""
    held, runs = 0, 60
    for seed in range(runs):
        world = planted_world(150, 100, per_anchor=10, known_share=0.4, noise=0.6, seed=seed)
        split = world.known.split(0.3, rng=ns.rng_for(seed))
        anchors = np.arange(150)
        found = hidden_positives(
            Recorder(), ns.Query(anchors), split.hidden, rng=ns.rng_for(seed, 1), score=world.scores, threshold=0.4
        )
        scores = world.anchor_vectors @ world.item_vectors.T
        never = np.zeros(scores.shape, bool)
        never[world.truth.pairs()] = True
        never[world.known.pairs()] = False
        truth = np.mean([(scores[a][never[a]] >= 0.4).mean() for a in anchors])
        held += found.low <= truth <= found.high
        assert found.high - found.low < 0.2
    assert held >= 54, held
