"""What the functions of mining refuse: one row a call, and the parameter that the error names."""

import numpy as np
import pytest

import naysay as ns
from naysay import mining
from naysay.detectors import Calibrated, Margin, MaxScore, RankWindow
from naysay.errors import NaysayError
from naysay.mining import mine
from naysay.search import Found

CORPUS = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
QUERIES = CORPUS[:4] + 1
ONE = [0, 1, 2, 3]
KNOWN = ns.Positives.from_pairs([0, 1], [1, 2], 2, 9)
LISTS = Found(np.array([[4, 7]]), np.array([[0.9, 0.8]], np.float32))


def fast(anchors, ids):
    return ids * 1.0


def mined(queries=QUERIES, corpus=CORPUS, positives=ONE, k=2, judge=None, **options):
    return mine(queries, corpus, positives, k, judge=judge, **options)


MINED = mined()
JUDGED = mined(judge=MaxScore(0.5))

# (what is called, its keywords, the parameter that the error names)
INVALID = [
    (mined, {"corpus": CORPUS[:0], "positives": None}, "corpus"),
    (mined, {"corpus": "nowhere.npy"}, "corpus"),
    (mined, {"corpus": CORPUS * np.nan}, "corpus"),
    (mined, {"positives": [0, 1, 2, 8]}, "positives"),
    (mined, {"positives": ([0, 1], [1])}, "positives"),
    (mined, {"positives": ns.Positives.from_pairs([9], [0])}, "positives"),
    (mined, {"ignore": [0, 1]}, "ignore"),
    (mined, {"same_ids": True}, "same_ids"),
    (mined, {"same_ids": [0, 1]}, "same_ids"),
    (mined, {"same_ids": (["a"], ["b"])}, "same_ids"),
    (mined, {"same_ids": ([1.5] * 4, ["b"] * 8)}, "same_ids"),
    (mined, {"k": 1.5}, "k"),
    (mined, {"k": "aut"}, "k"),
    (mined, {"k": [[1], [1, 2]]}, "k"),
    (mined, {"k": "auto"}, "k"),
    (mined, {"k": [1, 2]}, "k"),
    (mined, {"k": [1, -2, 1, 1]}, "k"),
    (mined, {"max_k": 0}, "max_k"),
    (mined, {"judge": "margin"}, "judge"),
    (mined, {"judge": "bands:0.7,0.3"}, "judge"),
    (mined, {"judge": "share:much"}, "judge"),
    (mined, {"judge": RankWindow(10)}, "judge"),
    (mined, {"judge": {"one": Calibrated(0.5), "other": MaxScore(0.5)}}, "judge"),
    (mined, {"judge": 3}, "judge"),
    (mined, {"judge": Calibrated(0.1)}, "judge"),
    (mined, {"judge": Calibrated(0.1, standardise=True)}, "judge"),
    (mined, {"judge": Calibrated(0.3), "corpus": np.ones((8, 3)), "queries": np.ones((4, 3))}, "judge"),
    (mined, {"judge": "auto", "rescore": fast, "positives": None}, "judge"),
    (mined, {"labelled_share": 1.5}, "labelled_share"),
    (mined, {"reviewed": ([0], [1], [True])}, "reviewed"),
    (mined, {"judge": "auto", "reviewed": [1]}, "reviewed"),
    (mined, {"judge": "auto", "reviewed": ([0], [1], [2])}, "reviewed"),
    (mined, {"judge": "auto", "reviewed": ([0, 0], [1, 1], [0, 1])}, "reviewed"),
    (mined, {"judge": "auto", "reviewed": ([0], [99], [1])}, "reviewed"),
    (mined, {"keep_own_text": 1}, "keep_own_text"),
    (mined, {"duplicates": ["a"] * 8}, "duplicates"),
    (mined, {"judge": MaxScore(1), "duplicates": "abcdefgh"}, "duplicates"),
    (mined, {"judge": MaxScore(1), "duplicates": ["a"] * 7}, "duplicates"),
    (mined, {"judge": MaxScore(1), "duplicates": (["a"] * 8, ["b"])}, "duplicates"),
    (mined, {"depth": 3, "rank_range": (5, None)}, "depth"),
    (mined, {"rank_range": (0, 5)}, "rank_range"),
    (mined, {"rank_range": 5}, "rank_range"),
    (mined, {"rank_range": (9, None)}, "rank_range"),
    (mined, {"min_score": "low"}, "min_score"),
    (mined, {"min_score": 1.5}, "min_score"),
    (mined, {"rescore": 3}, "rescore"),
    (mined, {"rescore_budget": 9}, "rescore_budget"),
    (mined, {"rescore": fast, "rescore_budget": 3}, "rescore_budget"),
    (mined, {"rescore_batch": 0}, "rescore_batch"),
    (mined, {"select": "softmax"}, "temperature"),
    (mined, {"select": "softmax", "temperature": -1}, "temperature"),
    (mined, {"temperature": 1}, "temperature"),
    (mined, {"mmr_lambda": 1}, "mmr_lambda"),
    (mined, {"quotas": {"words": 2}}, "quotas"),
    (mined, {"quotas": {"search": 3}}, "quotas"),
    (mined, {"k": "auto", "judge": MaxScore(1), "quotas": {"search": 3}}, "quotas"),
    (mined, {"max_per_item": 0}, "max_per_item"),
    (mined, {"max_per_item": 2, "select": "random"}, "max_per_item"),
    (mined, {"max_per_item": 2, "quotas": {"search": 2}}, "max_per_item"),
    (mined, {"max_per_item": 2, "on_short": "random"}, "max_per_item"),
    (mined, {"sources": [[1]]}, "sources"),
    (mined, {"sources": {"random": [[1]]}}, "sources"),
    (mined, {"sources": {"words": [[1]]}}, "sources"),
    (mined, {"sources": {"words": [[9]] * 4}}, "sources"),
    (mined, {"sources": {"words": [[0.5]] * 4}}, "sources"),
    (mined, {"min_recall": 90}, "min_recall"),
    (mined, {"engine": "gpu"}, "engine"),
    (MINED.explain, {"anchor": 4}, "anchor"),
    (MINED.explain, {"anchor": -1}, "anchor"),
    (MINED.pairs_to_review, {"count": 3}, "count"),
    (MINED.rethreshold, {}, "threshold"),
    (MINED.rethreshold, {"threshold": 0.5}, "threshold"),
    (JUDGED.rethreshold, {"threshold": 0.5, "alpha": 0.1}, "threshold"),
    (JUDGED.rethreshold, {"threshold": 1.5}, "threshold"),
    (JUDGED.rethreshold, {"alpha": 0.1}, "alpha"),
    (JUDGED.rethreshold, {"false_share": 0.1}, "false_share"),
    (JUDGED.rethreshold, {"judge": "auto"}, "judge"),
    (JUDGED.rethreshold, {"judge": 7}, "judge"),
    (MINED.report, {"path": "page.txt"}, "path"),
    (MINED.report, {"path": "page.html", "title": 3}, "title"),
    (MINED.report, {"path": "page.html", "numbers": [1]}, "numbers"),
    (MINED.report, {"path": "page.html", "query_texts": 3}, "query_texts"),
    (MINED.report, {"path": "page.html", "corpus_texts": ["a"]}, "corpus_texts"),
    (mined, {"rescore": lambda anchors, ids: ids[:1]}, "rescore"),
    (mined, {"rescore": lambda anchors, ids: ids * np.nan}, "rescore"),
    (mined, {"judge": {}}, "judge"),
    (mined, {"judge": {"a": 3}}, "judge"),
    (mined, {"judge": MaxScore(1), "duplicates": 3}, "duplicates"),
    (mined, {"quotas": {"serch": 2}}, "quotas"),
    (mined, {"quotas": {"search": 2.0}}, "quotas"),
    (mined, {"select": "groups", "groups": [0, 1]}, "groups"),
    (mined, {"select": "groups", "groups": ["a"] * 8}, "groups"),
    (mined, {"select": "mmr", "mmr_lambda": 2}, "mmr_lambda"),
    (mining.rrf, {"sources": {}, "depth": 2}, "sources"),
    (mining.rrf, {"sources": {"a": 3}, "depth": 2}, "sources"),
    (mining.rrf, {"sources": {"a": LISTS, "b": Found.empty(2, 1)}, "depth": 2}, "sources"),
    (mining.rrf, {"sources": {"a": LISTS}, "depth": 0}, "depth"),
    (mining.rrf, {"sources": {"a": LISTS}, "depth": 2, "constant": -1}, "constant"),
    (mining.bm25, {"query_texts": ["a"], "corpus_texts": ["b"], "depth": 0}, "depth"),
    (mining.bm25, {"query_texts": ["a"], "corpus_texts": [3], "depth": 1}, "corpus_texts"),
    (mining.bm25, {"query_texts": ["a"], "corpus_texts": ["b"], "depth": 1, "b": 2}, "b"),
    (mining.bm25, {"query_texts": ["a"], "corpus_texts": ["b"], "depth": 1, "words": 3}, "words"),
    (mining.bm25, {"query_texts": ["a"], "corpus_texts": ["b"], "depth": 1, "exclude": KNOWN}, "exclude"),
    (mining.disagreement, {"vectors": np.eye(3), "k": 1, "alpha": 1.0}, "alpha"),
    (mining.disagreement, {"vectors": np.zeros(3), "k": 1}, "vectors"),
]


@pytest.mark.parametrize(
    ("call", "options", "parameter"), INVALID, ids=[f"{row[2]}-{place}" for place, row in enumerate(INVALID)]
)
def test_an_invalid_call_names_its_parameter(call, options, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NaysayError) as raised:
        call(**options)
    assert raised.value.parameter == parameter
    assert not list(tmp_path.iterdir())


def test_nothing_is_searched_before_an_error(monkeypatch):
    def searched(*parts, **given):
        raise AssertionError

    monkeypatch.setattr("naysay.search.exact.Exact.search", searched)
    missing_score = Margin(0.1, [0.5, np.nan, 0.5, 0.5])
    for options in ({"on_short": "fill"}, {"seed": "a"}, {"sources": 3}, {"depth": 0}, {"judge": missing_score}):
        with pytest.raises(NaysayError):
            mined(**options)


def test_a_short_row_can_be_an_error():
    with pytest.raises(NaysayError, match=r"anchor 0 has 7 of 8 negatives \(4 such anchors\)"):
        mined(k=8, on_short="raise")
