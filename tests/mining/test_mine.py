"""mine: from vectors to negatives, against plain loops; the rule it takes by itself; explained, and drawn anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import check_counts, plain_scores, vectors

import naysay as ns
from naysay.detectors import Bands, Calibrated, Duplicates, MaxScore, ShareOfPositive
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
    assert (mined.judge.alpha, mined.judge.n) == (0.05, 120)
    assert mined.rule == mined.judge.describe()
    assert mined.rule in str(mined)
    assert (mined.thresholds == mined.judge.high).all()
    assert (mined.scores[mined.mask] < mined.judge.high).all()
    scores = SCORES
    own = WORLD.known.indices[: WORLD.known.indptr[1]]
    assert mined.positive_scores[0] == scores[0, own].min()
    for row in (0, 7, 60):  # the best below the line, however deep
        free = [i for i in range(300) if not WORLD.known.contains([row], [i])[0] and scores[row, i] < mined.judge.high]
        free.sort(key=lambda i, row=row: (-scores[row, i], i))
        assert mined.ids[row].tolist() == free[:5]
    false = WORLD.is_false_negative(np.arange(120), mined.ids)
    plain = mine(QUERIES, CORPUS, WORLD.known, 5, judge=None)
    assert false.mean() < 0.2 * WORLD.is_false_negative(np.arange(120), plain.ids).mean()


def test_bands_by_the_shares_of_all_pairs():
    mined = mine(QUERIES, CORPUS, None, 2, ignore=([2], [2]))
    free = np.ones(SCORES.shape, bool)
    free[2, 2] = False
    chosen = ns.detectors.choose_thresholds(SCORES[free])
    assert (mined.judge.low, mined.judge.high) == (chosen.low, chosen.high)
    assert f"{chosen.high:.4g}" in mined.rule


def test_scores_that_tell_nothing_apart_suspect_nobody():
    mined = mine(np.ones((3, 2)), np.ones((4, 2)), [0, 1, 2], 2, keep_own_text=True)
    assert "suspicious" not in mined.dropped


def test_a_calibrated_judge_is_yet_to_fit_and_left_alone_if_it_is_fitted():
    loose = Calibrated(0.2)
    mined = mine(QUERIES, CORPUS, WORLD.known, 2, judge=loose)
    assert loose.n == 0
    assert mined.judge.alpha == 0.2
    assert mined.judge.high > mine(QUERIES, CORPUS, WORLD.known, 2, judge="calibrated").judge.high
    fitted = Calibrated(0.05).fit(np.linspace(0.2, 0.9, 40))
    assert mine(QUERIES, CORPUS, WORLD.known, 2, judge=fitted).judge is fitted


# ---- how deep, how many ---------------------------------------------------------------------------------


def test_auto_k_is_what_lies_between_floor_and_ceiling():
    scores = SCORES
    bands = Bands(0.35, 0.5)
    mined = mine(QUERIES, CORPUS, WORLD.known, "auto", judge=bands, max_k=7)
    free = ~WORLD.known.contains(np.arange(120), np.tile(np.arange(300), (120, 1)))
    between = ((scores >= np.float32(0.35)) & (scores < np.float32(0.5)) & free).sum(axis=1)
    assert mined.counts.tolist() == np.minimum(between, 7).tolist()
    assert not mined.short
    assert mined.ids.shape == (120, mined.counts.max())
    assert mined.mask.sum(axis=1).tolist() == mined.counts.tolist()
    stated = mine(QUERIES, CORPUS, WORLD.known, "auto", judge=MaxScore(0.45), min_score=0.35, max_k=100)
    between = ((scores >= np.float32(0.35)) & (scores <= np.float32(0.45)) & free).sum(axis=1)
    assert stated.counts.tolist() == between.tolist()
    by_shares = mine(QUERIES, CORPUS, WORLD.known, "auto", judge=MaxScore(0.9), max_k=300, depth=300)
    low = np.sort(scores[free])[-round(0.051 * scores.size) :].min()
    assert by_shares.counts.tolist() == ((scores >= low) & (scores <= 0.9) & free).sum(axis=1).tolist()
    none = mine(QUERIES, CORPUS, WORLD.known, "auto", judge=MaxScore(0.2), min_score=0.3)
    assert none.ids.shape == (120, 0)
    assert none.notes == ("k is 0 for 120 anchors.",)


# ---- duplicates, sources, windows, rescoring -----------------------------------------------------------------


def test_the_vector_of_a_positive_is_a_duplicate():
    corpus = np.concatenate([CORPUS, CORPUS[:50]])
    anchors = np.arange(50)
    judged = mine(QUERIES, corpus, (anchors, anchors), 5, judge=MaxScore(1.1))
    assert judged.dropped["duplicate"][:50].sum() >= 1
    assert not (judged.ids[:50] == anchors[:, None] + 300).any()
    pure = mine(QUERIES, corpus, (anchors, anchors), 350, judge=None)
    assert (pure.ids[:50] == anchors[:, None] + 300).any(axis=1).all()
    copies = mine(corpus[:300], corpus[:300], None, 3, same_ids=True, judge=MaxScore(1.1))
    assert "duplicate" not in copies.dropped
    doubled = np.concatenate([CORPUS[:20], CORPUS[:20]])
    asked = {"same_ids": True, "judge": MaxScore(1.1)}
    found = mine(doubled, doubled, None, 3, keep_own_text=True, **asked)
    assert found.dropped["duplicate"].tolist() == [1] * 40
    assert mine(doubled, doubled, None, 3, **asked).dropped["own text"].tolist() == [1] * 40


def test_twins_by_texts():
    texts = [f"text {i // 2}" for i in range(300)]
    words = [f"question {i}" for i in range(119)] + ["Text 7!"]
    known = (np.arange(120), np.arange(120))
    for duplicates in (
        texts,
        (texts, words),
        Duplicates(item_texts=texts, positives=ns.Positives.from_pairs(*known, 120, 300)),
    ):
        mined = mine(QUERIES, CORPUS, known, 298, judge=MaxScore(1.1), duplicates=duplicates, depth=300)
        assert not (mined.ids == (np.arange(120) ^ 1)[:, None]).any()
        assert mined.dropped["duplicate"][0] == 1
        assert ((mined.ids[119] == 14) | (mined.ids[119] == 15)).any() == (not isinstance(duplicates, tuple))


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


def test_a_rescored_job_is_judged_by_the_new_scores():
    truth = WORLD.scores(np.arange(120), np.tile(np.arange(300), (120, 1)))
    asked = []

    def model(anchors, ids):
        asked.append(len(ids))
        return truth[anchors, ids] * 10

    mined = mine(QUERIES, CORPUS, WORLD.known, 4, rescore=model, depth=20, rescore_batch=500)
    assert isinstance(mined.judge, ShareOfPositive)
    own = mined.positive_scores
    assert (np.where(mined.mask, mined.scores, -np.inf) <= (own - 0.05 * np.abs(own))[:, None]).all()
    assert asked == [500] * 5 + [20]  # 120 positives, 120 x 20 candidates
    assert mined.known_scores is None
    bounded = mine(QUERIES, CORPUS, WORLD.known, 4, judge=None, rescore=model, depth=20, rescore_budget=480)
    assert bounded.dropped["not rescored"].tolist() == [17] * 120
    random = mine(QUERIES, CORPUS, WORLD.known, 8, judge=MaxScore(2.0), rescore=model, depth=4, on_short="random")
    marks = np.array([*random.kept_names, ""])[random.kept_by]
    chosen = marks == "random"
    assert chosen.any()
    rows = np.nonzero(chosen)[0]
    assert (random.scores[chosen] == np.float32(truth[rows, random.ids[chosen]] * 10)).all()


def test_random_ones_are_judged_too():
    line = float(np.quantile(SCORES, 0.5))
    mined = mine(QUERIES, CORPUS, WORLD.known, 10, judge=MaxScore(line), depth=10, on_short="random")
    assert (mined.scores[mined.mask] <= line).all()
    assert 0 < mined.missing.sum() < 1200
    assert mined.short == np.count_nonzero(mined.missing)
    assert "negatives are random." in mined.notes[0]
    assert mine(QUERIES, CORPUS, WORLD.known, 10, judge=None, depth=3, on_short="random").mask.all()


# ---- what comes of it -----------------------------------------------------------------------------------


def test_auto_k_is_counted_anew():
    mined = mine(QUERIES, CORPUS, WORLD.known, "auto", judge=MaxScore(0.4), min_score=0.3, depth=150)
    again = mined.rethreshold(judge=MaxScore(0.5))
    assert same(again, mine(QUERIES, CORPUS, WORLD.known, "auto", judge=MaxScore(0.5), min_score=0.3, depth=150))
    assert (again.counts >= mined.counts).all()
    assert (again.counts > mined.counts).any()


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


def test_everything_is_explained():
    mined = mine(QUERIES, CORPUS, WORLD.known, 3, depth=150, judge="calibrated")
    for row in (0, 50):
        said = mined.explain(row)
        assert [fate.id for fate in said.negatives] == mined.ids[row].tolist()
        assert [fate.rank for fate in said.negatives] == mined.rank[row].tolist()
        assert {fate.by for fate in said.negatives} == {"top"}
        assert sorted(fate.id for fate in (*said.negatives, *said.candidates)) == sorted(
            mined.candidates.ids[row].tolist()
        )
        assert said.positive_score == mined.positive_scores[row]
        assert said.threshold == mined.judge.high
        counted = {}
        for fate in said.candidates:
            assert not fate.kept
            assert (fate.by == "suspicious") == (fate.score >= said.threshold)
            counted[fate.by] = counted.get(fate.by, 0) + 1
        inside = {reason: count for reason, count in said.dropped.items() if reason != "positive"}
        assert counted == inside
        scores = [fate.score for fate in said.candidates]
        assert scores == sorted(scores, reverse=True)


def test_an_explanation_in_words():
    corpus = np.array([[1, 0], [0.9, 0.1], [0.8, 0.3], [0, 1], [0.5, 0.5]], np.float32)
    mined = mine(corpus[:1], corpus, [0], 2, judge=MaxScore(0.97), ignore=([0], [3]))
    assert str(mined.explain(0)) == (
        "anchor 0: 2 of 2 negatives, positive 1.0000, threshold 0.9700\n"
        "Suspected by MaxScore(high=0.97).\n"
        "        id   rank     score suspicion  source     outcome\n"
        "         2      2    0.9363      0.48  search     kept: top\n"
        "         4      3    0.7071      0.40  search     kept: top\n"
        "         1      1    0.9939      0.51  search     dropped: suspicious\n"
        "left out: positive 1, ignored 1, suspicious 1"
    )
    assert str(mined) == (
        "2 of 2 negatives for 1 anchors, k = 2\n"
        "Suspected by MaxScore(high=0.97).\n"
        "positive                            1\n"
        "ignored                             1\n"
        "suspicious                          1"
    )
    long = mine(QUERIES[:1], CORPUS, None, 1, judge=None)
    assert str(long.explain(0)).endswith("left out: not selected 2")


def test_mined_is_frozen():
    mined = mine(QUERIES[:2], CORPUS, None, 2, judge=None)
    with pytest.raises(AttributeError):
        mined.ids = None
