"""What mine refuses, before it searches."""

import numpy as np
import pytest

from naysay.detectors import Calibrated, Margin, MaxScore, RankWindow
from naysay.errors import NaysayError
from naysay.mining.mine import mine

CORPUS = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
QUERIES = CORPUS[:4] + 1
ONE = [0, 1, 2, 3]


def refused(*, queries=QUERIES, corpus=CORPUS, positives=ONE, k=2, judge=None, **given):
    return lambda: mine(queries, corpus, positives, k, judge=judge, **given)


def fast(anchors, ids):
    return ids * 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (refused(queries=QUERIES[:, :2]), r"^mine: `queries` must be of width 3, like `corpus`, got 2\.$"),
        (
            refused(queries=QUERIES[0]),
            r"^mine: `queries` must be of shape \(n, d\), a vector per row, got shape \(3,\)",
        ),
        (refused(corpus=CORPUS[:0], positives=None), r"^mine: `corpus` must be of at least one vector, got none\.$"),
        (refused(corpus="nowhere.npy"), r"^mine: `corpus` must be an existing file, got 'nowhere\.npy'"),
        (refused(corpus=CORPUS * np.nan), r"`corpus` must be finite, got nan at row 0 \(8 such rows\)"),
        (refused(queries=QUERIES * 0), r"`queries` must be .*at row 0 \(4 such rows\)"),
        (refused(metric="cosin"), r"^mine: `metric` must be one of 'dot', 'cosine', 'l2', got 'cosin'\. Did you mean"),
        (
            refused(positives=[0, 1, 2, 8]),
            r"^mine: `positives` must be between -1 and 7 \(8 corpus rows\), got 8 at row 3",
        ),
        (
            refused(ignore=[0, 1]),
            r"^mine: `ignore` must be a Positives, two arrays \(anchors, items\), or \(4,\) the one",
        ),
        (
            refused(same_ids=True),
            r"^mine: `same_ids` must be left out unless queries are the 8 corpus rows, got 4 queries\.",
        ),
        (refused(k=-1), r"^mine: `k` must be at least 0, got -1\.$"),
        (
            refused(k=1.5),
            r"^mine: `k` must be a whole number, or one .* 4 anchors, or 'auto', got 1\.5\.$",
        ),
        (
            refused(k="aut"),
            r"^mine: `k` must be a whole number, or one .* 4 anchors, or 'auto', got 'aut'\.$",
        ),
        (refused(k="8"), r"^mine: `k` must be a whole number, or one .* 4 anchors, or 'auto', got '8'\.$"),
        (refused(k=[[1], [1, 2]]), r"^mine: `k` must be rows of one length, got rows of different lengths\.$"),
        (
            refused(k="auto"),
            r"^mine: `k` must be a number without a judge, got 'auto'\. Only a judge sets the highest",
        ),
        (refused(k=[1, 2]), r"^mine: `k` must be one number, or one for each of the 4 anchors, got 2 numbers\.$"),
        (refused(k=[1, -2, 1, 1]), r"^mine: `k` must be at least 0, got -2 at row 1 \(1 such row\)\.$"),
        (refused(max_k=0), r"^mine: `max_k` must be at least 1, got 0\.$"),
        (refused(judge="non"), r"^mine: `judge` must be one of 'auto', 'none', .*, got 'non'\. Did you mean 'none'\?$"),
        (refused(judge="margin"), r"^mine: `judge` must be margin and a number, such as margin:0\.05, got 'margin'\.$"),
        (
            refused(judge=RankWindow(10)),
            r"that does not rank the candidates that are left, got RankWindow\. .* rank_range=\(11, None\)\.$",
        ),
        (
            refused(judge=3),
            r"^mine: `judge` must be a detector with a method suspicion\(query, negatives\), got int\.$",
        ),
        (
            refused(judge=Calibrated(0.1)),
            r"^mine: `judge` must be fitted, or 9 anchors must have a positive, got 4 that ha",
        ),
        (
            refused(judge=Calibrated(0.1, standardise=True)),
            r"^mine: `judge` must be fitted, where it is standardised, got none\. Call fit",
        ),
        (
            refused(judge=Calibrated(0.3), corpus=np.ones((8, 3), np.float32), queries=np.ones((4, 3), np.float32)),
            r"^mine: `judge` must be another, where all positives score the same, got 4 equal scores\.$",
        ),
        (
            refused(judge="auto", rescore=fast),
            r"`judge` must be a detector where fewer than 19 anchors have .* 'auto' with 4",
        ),
        (
            refused(duplicates=["a"] * 8),
            r"^mine: `duplicates` must be left out without a judge, got list\. judge=Duplicates\(\.\.\.\) drops",
        ),
        (
            refused(judge=MaxScore(1), duplicates="abcdefgh"),
            r"`duplicates` must be a detector, the texts of the corpus, or \(corpus t",
        ),
        (refused(judge=MaxScore(1), duplicates=["a"] * 7), r"^mine: `duplicates` must be 8 corpus texts, got 7\.$"),
        (
            refused(judge=MaxScore(1), duplicates=(["a"] * 8, ["b"])),
            r"^mine: `duplicates` must be 4 query texts, got 1\.$",
        ),
        (refused(depth=0), r"^mine: `depth` must be at least 1, got 0\.$"),
        (refused(depth=3, rank_range=(5, None)), r"^mine: `depth` must be at least 5, got 3\.$"),
        (refused(rank_range=(0, 5)), r"^mine: `rank_range` must be at least 1, got 0\.$"),
        (refused(rank_range=(5, 4)), r"^mine: `rank_range` must be at least 5, got 4\.$"),
        (refused(rank_range=5), r"^mine: `rank_range` must be \(first, last\), last may be None, got 5\.$"),
        (refused(min_score="low"), r"^mine: `min_score` must be a number, got 'low'\.$"),
        (refused(rescore=3), r"^mine: `rescore` must be a function score_pairs\(anchors, ids\), got int\.$"),
        (refused(rescore_budget=9), r"^mine: `rescore_budget` must be left out without `rescore`, got 9\.$"),
        (
            refused(rescore=fast, rescore_budget=3),
            r"`rescore_budget` must be at least 4, one positive of each anchor, got 3",
        ),
        (refused(rescore_batch=0), r"^mine: `rescore_batch` must be at least 1, got 0\.$"),
        (refused(select="best"), r"^mine: `select` must be one of 'top', .*, got 'best'\.$"),
        (refused(select="softmax"), r"^mine: `temperature` must be given for 'softmax', got None\.$"),
        (refused(select="softmax", temperature=-1), r"^mine: `temperature` must be a finite number above 0, got -1\.$"),
        (refused(temperature=1), r"^mine: `temperature` must be left out for 'top', got 1\. It is for 'softmax'\.$"),
        (
            refused(select="groups", groups=[1, 2]),
            r"^mine: `groups` must be \(8,\), the group of each corpus row, got \(2,\)",
        ),
        (refused(quotas={"words": 2}), r"^mine: `quotas` must be one of 'search', got 'words'\.$"),
        (refused(quotas={"search": 3}), r"^mine: `quotas` must be 2 in all, like `k`, got 3\.$"),
        (
            refused(k="auto", judge=MaxScore(1), quotas={"search": 3}),
            r"^mine: `quotas` must be left out where `k` is auto, got",
        ),
        (refused(sources=[[1]]), r"^mine: `sources` must be a dictionary \{name: ids\}, got \[\[1\]\]\.$"),
        (
            refused(sources={"random": [[1]]}),
            r"^mine: `sources` must be named other than 'search' and 'random', got 'ra",
        ),
        (refused(sources={"words": [[1]]}), r"^mine: `sources` must be of 4 rows, like queries, got 1 of 'words'\.$"),
        (
            refused(sources={"words": [[9]] * 4}),
            r"^mine: `sources` must be between -1 and 7 \(8 corpus rows\), got 9 at row 0, slot 0",
        ),
        (refused(sources={"words": [[0.5]] * 4}), r"^mine: `sources` must be whole numbers, got dtype float64"),
        (
            refused(on_short="fill"),
            r"^mine: `on_short` must be one of 'pad', 'drop', 'relax', 'random', 'raise', got 'fill",
        ),
        (
            refused(k=8, on_short="raise"),
            r"^backfill: anchor 0 has 7 of 8 negatives \(4 such anchors\)",
        ),
        (refused(seed=-1), r"^mine: `seed` must be at least 0, got -1"),
        (refused(engine="gpu"), r"`engine` must be one of .* got 'gpu'"),
    ],
)
def test_errors(call, message):
    with pytest.raises(NaysayError, match=message):
        call()


MINED = mine(QUERIES, CORPUS, ONE, 2, judge=None)
JUDGED = mine(QUERIES, CORPUS, ONE, 2, judge=MaxScore(0.5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MINED.explain(4), r"^Mined\.explain: `anchor` must be below 4, the number of queries, got 4\.$"),
        (lambda: MINED.explain(-1), r"^Mined\.explain: `anchor` must be at least 0, got -1\.$"),
        (
            lambda: MINED.rethreshold(),
            r"^Mined\.rethreshold: `threshold` must be given, or alpha, or judge, or false_share: one of",
        ),
        (lambda: MINED.rethreshold(0.5, alpha=0.1), r"or false_share: one of them, got threshold and alpha\.$"),
        (
            lambda: MINED.rethreshold(0.5),
            r"^Mined\.rethreshold: `threshold` must be left out where nothing was judged, got 0\.5\.",
        ),
        (
            lambda: JUDGED.rethreshold(1.5),
            r"^Mined\.rethreshold: `threshold` must be a number at least 0 and at most 1, got 1\.5\.$",
        ),
        (
            lambda: JUDGED.rethreshold(alpha=0.1),
            r"`alpha` must be left out unless the judge is Calibrated, got 0\.1\. Pass thr",
        ),
        (
            lambda: JUDGED.rethreshold(judge="auto"),
            r"^Mined\.rethreshold: `judge` must be one that is not fitted to the data, such as .*, got 'auto'",
        ),
    ],
)
def test_errors_of_what_was_mined(call, message):
    with pytest.raises(NaysayError, match=message):
        call()


def test_nothing_is_searched_before_a_error(monkeypatch):
    def searched(*parts, **given):
        raise AssertionError

    monkeypatch.setattr("naysay.mining._search.SearchOptions", searched)
    for given in (
        {"on_short": "fill"},
        {"select": "softmax"},
        {"seed": "a"},
        {"sources": 3},
        {"depth": 0},
        {"judge": Margin(0.1, [0.5, np.nan, 0.5, 0.5])},
    ):
        with pytest.raises(NaysayError):
            mine(QUERIES, CORPUS, ONE, 2, **given)
