"""Defects of other miners, each as a test that ours does not have it."""

import numpy as np
import pytest

import naysay as ns
from naysay.detectors import Duplicates, Margin, MaxScore, ShareOfPositive
from naysay.mining.mine import mine


def on_a_circle(*degrees):
    """Unit vectors at these angles: the smaller the angle between two, the higher their cosine."""
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


RNG = np.random.default_rng(0)
QUERIES, CORPUS = RNG.standard_normal((40, 8)).astype(np.float32), RNG.standard_normal((90, 8)).astype(np.float32)
OWN = np.arange(40)


# ---- sentence-transformers ------------------------------------------------------------------------------


def test_the_anchor_is_not_its_own_negative():
    """ST 1: of the pairs (A, B), (C, A), (D, E) it mines the triplet (A, B, A)."""
    a, b, c, d, e = range(5)
    sentences = on_a_circle(0, 10, 40, 90, 100)
    known = ns.Positives.from_pairs([a, c, d], [b, a, e], 5, 5)
    for judge in (None, "auto", MaxScore(1.1)):
        mined = mine(sentences, sentences, known, 3, same_ids=True, judge=judge)
        assert not (mined.ids == np.arange(5)[:, None]).any()
        assert mined.dropped["anchor"].tolist() == [1] * 5
    mined = mine(sentences, sentences, known, 3, judge=None)  # without saying so
    assert not (mined.ids == np.arange(5)[:, None]).any()
    assert mined.notes[0].startswith("5 anchors have their own vector in the corpus under another id.")
    assert mine(sentences, sentences, known, 3, judge=None, keep_own_text=True).ids[a, 0] == a


def test_two_random_runs_are_the_same():
    """ST 2: no seed. Nor is the global generator touched."""
    runs = [mine(QUERIES, CORPUS, OWN, 3, judge=None, select="random", seed=7).ids for _ in range(2)]
    assert (runs[0] == runs[1]).all()
    assert (mine(QUERIES, CORPUS, OWN, 3, judge=None, select="random", seed=8).ids != runs[0]).any()


def test_what_is_gone_is_not_counted_again():
    """ST 3: a lowest score that nothing is below was reported to skip 71 % of the candidates."""
    lowest = mine(QUERIES, CORPUS, OWN, 3, judge=None).positive_scores
    mined = mine(QUERIES, CORPUS, OWN, 3, judge=Margin(0.05, lowest), min_score=-1.0, depth=50)
    assert "too easy" not in mined.dropped
    both = mine(QUERIES, CORPUS, OWN, 3, judge=Margin(0.05, lowest), min_score=0.3, depth=50)
    inside = sum(counts for reason, counts in both.dropped.items() if reason != "positive")
    assert (inside + both.mask.sum(axis=1) == 50).all()


def test_a_dot_product_is_not_a_cosine():
    """ST 4: models trained by dot product are mined by cosine, their norms thrown away."""
    corpus = np.array([[1, 0], [10, 5], [0.5, 0]], np.float32)
    queries = np.array([[1, 0]], np.float32)
    for metric, ids in (("dot", [1, 0, 2]), ("cosine", [0, 2, 1]), ("l2", [0, 2, 1])):
        assert mine(queries, corpus, None, 3, judge=None, metric=metric, keep_own_text=True).ids.tolist() == [ids]


def test_ranks_are_skipped_before_the_margin_not_after():
    """ST 6: range_min=2 with a margin skips two safe negatives on top of what the margin drops."""
    queries, corpus = on_a_circle(0), on_a_circle(20, 1, 2, 30, 40, 50, 60)
    margin = Margin(0.0, [float(np.float32(np.cos(np.deg2rad(20))))])
    mined = mine(queries, corpus, [0], 3, judge=margin, rank_range=(3, None))
    assert mined.ids.tolist() == [[3, 4, 5]]  # at 30, 40 and 50 degrees; 1 and 2 are ranks 1 and 2
    assert mined.rank.tolist() == [[3, 4, 5]]  # the positive has no rank
    assert mined.dropped["too near"].tolist() == [2]
    assert "suspicious" not in mined.dropped
    alone = mine(queries, corpus, [0], 3, judge=margin)
    assert alone.ids.tolist() == mined.ids.tolist()


def test_the_positive_in_other_letters_is_a_duplicate():
    """ST 7: "Paris." for "paris" is returned as the hardest negative."""
    texts = ["Paris.", "paris", "Rome", "Oslo"]
    queries, corpus = on_a_circle(0), on_a_circle(5, 4, 30, 60)
    assert mine(queries, corpus, [0], 2, judge=None).ids.tolist() == [[1, 2]]
    mined = mine(queries, corpus, [0], 2, judge=MaxScore(1.1), duplicates=texts)
    assert mined.ids.tolist() == [[2, 3]]
    assert mined.dropped["duplicate"].tolist() == [1]
    known = ns.Positives.from_pairs([0], [0], 1, 4)
    by_hand = mine(queries, corpus, [0], 2, judge=Duplicates(item_texts=texts, positives=known))
    assert by_hand.ids.tolist() == [[2, 3]]


def test_a_cross_encoder_is_asked_in_batches_and_never_about_padding():
    """ST 8: called once for each query, also with -1, which is the last document; ignored without a margin."""
    calls = []

    def model(anchors, ids):
        calls.append(len(ids))
        assert (ids >= 0).all()
        return -ids.astype(float)

    known = ns.Positives.from_pairs(np.repeat(np.arange(3), 88), np.tile(np.arange(88), 3), 3, 90)
    mined = mine(QUERIES[:3], CORPUS, known, 2, judge=None, rescore=model, rescore_batch=64)
    assert calls == [9]  # a positive and the two that are left, of three anchors, in one call
    assert mined.ids.tolist() == [[88, 89]] * 3  # and acted on


def test_one_query_with_many_positives_does_not_widen_the_others():
    """ST 9: k grows by the most positives that any query has, for all queries."""
    known = ns.Positives.from_pairs([*[0] * 80, *range(1, 40)], [*range(80), *range(1, 40)], 40, 90)
    mined = mine(QUERIES, CORPUS, known, 3, judge=None, depth=5)
    assert mined.candidates.ids.shape == (40, 5)
    assert mined.mask.all()


def test_random_is_not_the_only_way_but_the_top():
    """ST 10: uniform only."""
    taken = {
        how: mine(QUERIES, CORPUS, OWN, 4, judge=None, select=how, **given).scores.mean()
        for how, given in {"random": {}, "softmax": {"temperature": 0.05}, "top": {}}.items()
    }
    assert taken["random"] < taken["softmax"] < taken["top"]


# ---- others ---------------------------------------------------------------------------------------------


def test_a_short_row_is_not_silently_random():
    """FlagEmbedding fills up with random documents; small corpora raise a ValueError."""
    mined = mine(QUERIES, CORPUS[:6], np.arange(40) % 6, 9, judge=None)
    assert (mined.mask.sum(axis=1) == 5).all()
    assert (mined.missing == 4).all()
    assert mined.short == len(mined.ids)
    assert mined.notes == ("40 anchors are short, by 160 negatives.",)
    assert set(mined.kept_by[mined.mask].tolist()) == {0}
    asked = mine(QUERIES, CORPUS, OWN, 9, judge=None, depth=4, on_short="random")
    assert (np.array(asked.kept_names)[asked.kept_by][:, 4:] == "random").all()
    assert asked.notes == ("200 negatives are random.",)


def test_the_order_is_that_of_scores_and_ids():
    """FlagEmbedding: the corpus is a set of strings, whose order is another in each process."""
    corpus = np.repeat(on_a_circle(0, 30), 3, axis=0)
    mined = mine(on_a_circle(0), corpus, None, 6, judge=None, keep_own_text=True)
    assert mined.ids.tolist() == [[0, 1, 2, 3, 4, 5]]


def test_what_was_filtered_is_not_handed_out():
    """NeMo Automodel: wanted 4, and gave out the filtered ones with a score of -inf."""
    queries, corpus = on_a_circle(0), on_a_circle(10, 1, 2, 3, 85)
    mined = mine(queries, corpus, [0], 4, judge=ShareOfPositive([float(np.cos(np.deg2rad(10)))]))
    assert mined.ids.tolist() == [[4, -1, -1, -1]]
    assert mined.scores[0, 1:].tolist() == [-np.inf] * 3
    assert mined.dropped["suspicious"].tolist() == [3]
    relaxed = mine(queries, corpus, [0], 4, judge=ShareOfPositive([0.98]), on_short="relax")
    assert np.array(relaxed.kept_names)[relaxed.kept_by].tolist() == [["top", "relaxed", "relaxed", "relaxed"]]


def test_a_positive_that_scores_below_zero():
    """NeMo Automodel: 95 % of a negative score lies above it."""
    queries, corpus = on_a_circle(0), on_a_circle(110, 100, 109.9, 150, 170)
    own = mine(queries, corpus, [0], 2, judge=None).positive_scores
    mined = mine(queries, corpus, [0], 2, judge=ShareOfPositive(own))
    assert mined.ids.tolist() == [[3, 4]]


def test_it_filters_before_it_cuts():
    """teraflop keeps the top 10, filters, and drops the row unless 4 are left."""
    angles = [20, *np.linspace(1, 19, 30), *range(40, 60)]
    queries, corpus = on_a_circle(0), on_a_circle(*angles)
    own = mine(queries, corpus, [0], 4, judge=None).positive_scores
    mined = mine(queries, corpus, [0], 4, judge=ShareOfPositive(own))
    assert mined.ids.tolist() == [[31, 32, 33, 34]]
    assert mined.dropped["suspicious"].tolist() == [30]


@pytest.mark.parametrize("first", [1, 11])
def test_the_window_is_applied(first):
    """RAGatouille: min_rank=10 is documented and never applied."""
    mined = mine(QUERIES, CORPUS, None, 5, judge=None, rank_range=(first, None))
    assert (mined.rank == np.arange(first, first + 5)).all()
    nearest = mine(QUERIES, CORPUS, None, 20, judge=None)
    assert (mined.ids == nearest.ids[:, first - 1 : first + 4]).all()


def test_no_negative_comes_twice():
    """Tevatron draws with repeats where there are too few."""
    for on_short in ("pad", "relax", "random"):
        mined = mine(QUERIES, CORPUS[:12], np.arange(40) % 12, 20, judge=MaxScore(0.2), on_short=on_short)
        for row in mined.ids:
            assert len(set(row[row >= 0].tolist())) == (row >= 0).sum()
