"""mine: from vectors to negatives, against plain loops; the rule it takes by itself; explained, and drawn anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import check_counts, plain_scores, vectors

import naysay as ns
from naysay.detectors import Calibrated, MaxScore
from naysay.mining.mine import mine

METRICS = ("cosine", "dot", "l2")
ARRAYS = ("ids", "scores", "rank", "suspicion", "source", "kept_by", "positive_scores", "thresholds", "counts")
WORLD = ns.planted_world(120, 300, per_anchor=10, noise=0.3, seed=3)
QUERIES, CORPUS = WORLD.anchor_vectors.astype(np.float32), WORLD.item_vectors.astype(np.float32)
SCORES = plain_scores(QUERIES, CORPUS)


def same(one, other):
    return all(np.array_equal(getattr(one, n), getattr(other, n), equal_nan=n in ARRAYS[-3:]) for n in ARRAYS)


def known_pairs(some, n, items):
    return ns.Positives.from_pairs(*np.array(some, int).reshape(-1, 2).T, n, items)


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=14)


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["top", "random", "softmax", "spread", "groups", "mmr"]),
    st.sampled_from(["pad", "drop", "relax", "random"]),
    PAIRS,
    st.booleans(),
)
def test_laws(seed, select, on_short, positives, same_ids):
    corpus = vectors(10, 3, seed, values=[-1, 0, 1])
    queries = corpus if same_ids else vectors(6, 3, seed + 1, values=[-1, 0, 1])
    n = len(queries)
    known = known_pairs(positives, n, 10)
    options = {"temperature": 0.2} if select == "softmax" else {}
    if select == "groups":
        options["groups"] = np.arange(10) % 3
    asked = {"judge": MaxScore(0.4), "select": select, "on_short": on_short, "same_ids": same_ids, "seed": seed}
    mined = mine(queries, corpus, known, 4, **asked, **options)
    assert not known.contains(np.arange(n), mined.ids).any()
    if same_ids:
        assert not (mined.ids == np.arange(n)[:, None]).any()
    for row in mined.ids:
        taken = row[row >= 0].tolist()
        assert len(set(taken)) == len(taken)
        assert (row[len(taken) :] == -1).all()  # empty slots are at the end
    check_counts(mined.candidates)
    marks = np.array([*mined.kept_names, "none"])[mined.kept_by]
    assert ((mined.scores <= np.float32(0.4)) | (marks == "relaxed") | ~mined.mask).all()
    assert ((marks == "none") == ~mined.mask).all()
    late = np.isin(marks, [name for name in ("relaxed", "random") if name != select])
    assert not (late[:, :-1] & (marks[:, 1:] == select)).any()  # what fills a row up stands behind what was selected
    assert set(marks.ravel()) <= {
        select,
        "none",
        *({"relaxed", "random"} & {{"relax": "relaxed"}.get(on_short, on_short)}),
    }
    assert same(mined, mine(queries, corpus, known, 4, **asked, **options))
    if on_short == "drop":
        assert set(np.count_nonzero(mined.mask, axis=1)) <= {0, 4}
    scores = plain_scores(queries, corpus)
    assert (mined.scores[mined.mask] == np.take_along_axis(scores, mined.ids, 1)[mined.mask]).all()


# ---- the rule it takes by itself ------------------------------------------------------------------------


def test_calibrated_is_fitted_to_one_positive_of_each_anchor():
    mined = mine(QUERIES, CORPUS, WORLD.known, 5, judge="calibrated")
    assert isinstance(mined.judge, Calibrated)
    assert (mined.judge.alpha, mined.judge.n, mined.rule) == (0.05, 120, mined.judge.describe())
    assert (mined.thresholds == mined.judge.high).all()
    for row in (0, 7, 60):  # the best below the threshold, however deep
        free = [i for i in range(300) if not WORLD.known.contains([row], [i])[0] and SCORES[row, i] < mined.judge.high]
        assert mined.ids[row].tolist() == sorted(free, key=lambda i, row=row: (-SCORES[row, i], i))[:5]


def test_scores_that_tell_nothing_apart_suspect_nobody():
    mined = mine(np.ones((3, 2)), np.ones((4, 2)), [0, 1, 2], 2, keep_own_text=True)
    assert "suspicious" not in mined.dropped


# ---- duplicates, sources, windows, rescoring -----------------------------------------------------------------


def test_other_sources_are_scored_and_ranked_by_themselves():
    other = np.stack([np.random.default_rng(row).permutation(300)[:20] for row in range(120)])
    other[0, 5:] = -1
    mined = mine(
        QUERIES, CORPUS, WORLD.known, 6, judge=None, sources={"words": other}, quotas={"search": 4, "words": 2}, depth=4
    )
    assert mined.source_names == ("search", "words")
    assert not WORLD.known.contains(np.arange(120), mined.ids).any()
    scores = SCORES
    for row in range(120):
        for slot in range(6):
            i, source = mined.ids[row, slot], mined.source[row, slot]
            if i >= 0:
                assert mined.scores[row, slot] == scores[row, i]
            if source == 1:
                free = [item for item in other[row] if item >= 0 and not WORLD.known.contains([row], [item])[0]]
                assert free[mined.rank[row, slot] - 1] == i
                assert i not in mined.ids[row][mined.source[row] == 0]
    assert (np.count_nonzero(mined.source == 0, axis=1) == 4).all()
    assert mined.dropped["positive"].sum() > 0
    assert mined.dropped["repeated"].sum() > 0


def test_random_ones_are_judged_too():
    line = float(np.quantile(SCORES, 0.5))
    mined = mine(QUERIES, CORPUS, WORLD.known, 10, judge=MaxScore(line), depth=10, on_short="random")
    assert (mined.scores[mined.mask] <= line).all()
    assert 0 < mined.missing.sum() < 1200
    assert mined.short == np.count_nonzero(mined.missing)
    assert "negatives are random." in mined.notes[0]
    assert mine(QUERIES, CORPUS, WORLD.known, 10, judge=None, depth=3, on_short="random").mask.all()


# ---- what comes of it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("judges", [(None, "max_score:0.4"), ("max_score:0.4", "none"), ("share:0.95", "bands:0,0.4")])
def test_judging_again_is_mining_with_the_other_judge(judges):
    first, other = judges
    corpus = np.concatenate([CORPUS, CORPUS[:150]])  # copies, which a judge drops
    again = mine(QUERIES, corpus, WORLD.known, 5, judge=first).rethreshold(judge=other)
    anew = mine(QUERIES, corpus, WORLD.known, 5, judge=other)
    assert same(again, anew)
    assert {name: count.tolist() for name, count in again.dropped.items()} == {
        name: count.tolist() for name, count in anew.dropped.items()
    }


def test_another_judge_asks_no_reviewer():
    def is_known(pairs):
        return WORLD.known.contains(pairs.anchors, pairs.items)

    reviewed = mine(QUERIES, CORPUS, WORLD.known, 3, reviewer=is_known, review=20)
    again = reviewed.rethreshold(judge="share:0.95")
    assert same(again, mine(QUERIES, CORPUS, WORLD.known, 3, judge="share:0.95"))
    assert again.reviewed is None


def test_a_detector_that_judges_again_is_shown_the_vectors():
    class ByVectors:
        def suspicion(self, query, negatives):
            np.testing.assert_array_equal(query.vectors, QUERIES[query.anchors])
            return np.zeros(negatives.shape)

    mined = mine(QUERIES, CORPUS, WORLD.known, 3, judge="share:0.95").rethreshold(judge=ByVectors())
    assert (mined.rank == [1, 2, 3]).all()
