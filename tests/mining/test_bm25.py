"""BM25 against its formula in plain loops, and against the scores of bm25s itself."""

import math
import re
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.errors import MissingExtraError
from naysay.positives import Positives

bm25s = pytest.importorskip("bm25s")

from naysay.mining.bm25 import bm25  # noqa: E402

WORDS = ["cat", "dog", "fish", "bird", "Cat", "a", "\u05db\u05dc\u05d1", "\u00e9x"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=8)


def split(text):
    return re.findall(r"\b\w\w+\b", text.lower())


def by_formula(query, corpus, k1, b):
    """{document: score} of the documents that share a word, by Lucene's form of BM25."""
    documents = [Counter(split(text)) for text in corpus]
    mean = sum(sum(each.values()) for each in documents) / len(documents)
    scores = {}
    for word in split(query):
        having = sum(word in each for each in documents)
        weight = math.log(1 + (len(corpus) - having + 0.5) / (having + 0.5))
        for place, each in enumerate(documents):
            if word in each:
                length = sum(each.values()) / mean
                scores[place] = scores.get(place, 0) + weight * each[word] / (each[word] + k1 * (1 - b + b * length))
    return scores


@given(TEXTS, TEXTS, st.sampled_from([(1.5, 0.75), (0.9, 0.0), (2.0, 1.0)]), st.integers(1, 9))
def test_the_formula(queries, corpus, parameters, depth):
    k1, b = parameters
    found = bm25(queries, corpus, depth, k1=k1, b=b)
    assert found.ids.shape == (len(queries), depth)
    for row, query in enumerate(queries):
        want = by_formula(query, corpus, k1, b)
        count = min(depth, len(want))
        ids, scores = found.ids[row], found.scores[row]
        assert (ids[count:] == -1).all()
        assert np.isneginf(scores[count:]).all()
        assert len({*ids[:count].tolist()} & {*want}) == count
        assert np.allclose(scores[:count], [want[item] for item in ids[:count].tolist()], rtol=1e-5)
        assert np.allclose(scores[:count], sorted(want.values(), reverse=True)[:count], rtol=1e-5)
        order = [(-score, item) for score, item in zip(scores[:count].tolist(), ids[:count].tolist(), strict=True)]
        assert order == sorted(order)


def world(n_queries=40, n_documents=300):
    """Short texts of few words, so that many scores are equal."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(40)])
    weights = 1 / np.arange(1, 41)
    texts = [" ".join(rng.choice(words, 4, p=weights / weights.sum())) for _ in range(n_queries + n_documents)]
    return texts[:n_queries], texts[n_queries:]


def test_scores_are_those_of_the_library_and_ties_go_to_the_lower_id():
    queries, corpus = world()
    index = bm25s.BM25()
    index.index([split(text) for text in corpus], show_progress=False)
    found = bm25(queries, corpus, 25)
    ties = 0
    for row, query in enumerate(queries):
        every = index.get_scores(split(query))
        order = np.lexsort((np.arange(len(corpus)), -every))[:25]
        order = order[every[order] > 0]
        assert found.ids[row, : len(order)].tolist() == order.tolist()
        assert found.scores[row, : len(order)].tolist() == every[order].tolist()
        ties += int((np.diff(every[order]) == 0).sum())
    assert ties > 200


@given(TEXTS, TEXTS, st.integers(0, 2**32 - 1))
def test_what_is_excluded_never_comes_back(queries, corpus, seed):
    rng = np.random.default_rng(seed)
    known = rng.random((len(queries), len(corpus))) < 0.4
    exclude = Positives.from_pairs(*np.nonzero(known), len(queries), len(corpus))
    everything = bm25(queries, corpus, len(corpus))
    left = bm25(queries, corpus, len(corpus), exclude=exclude)
    for row in range(len(queries)):
        want = [item for item in everything.ids[row].tolist() if item >= 0 and not known[row, item]]
        assert [item for item in left.ids[row].tolist() if item >= 0] == want


def test_a_shorter_list_of_what_is_known_leaves_out_nothing_else():
    exclude = Positives.from_pairs([0], [0])
    found = bm25(["cat", "cat"], ["cat", "cat dog"], 2, exclude=exclude)
    assert found.ids.tolist() == [[1, -1], [0, 1]]


def test_words_of_ones_own():
    def letters(texts):
        return [list(text) for text in texts]

    assert bm25(["\u732b"], ["\u72ac", "\u9ed2\u3044\u732b"], 2).ids.tolist() == [[-1, -1]]
    assert bm25(["\u732b"], ["\u72ac", "\u9ed2\u3044\u732b"], 2, words=letters).ids.tolist() == [[1, -1]]


def test_nothing_to_find():
    assert bm25([], ["cat"], 2).ids.shape == (0, 2)
    assert bm25(["cat"], [], 2).ids.tolist() == [[-1, -1]]
    assert bm25(["cat", ""], ["", "! ?"], 1).ids.tolist() == [[-1], [-1]]
    assert bm25(["", "cat"], ["", "cat"], 1).ids.tolist() == [[-1], [1]]


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(
        MissingExtraError, match=r"bm25: bm25s is not installed. Run in a clone of naysay: pip install '\.\[text\]'"
    ):
        bm25(["cat"], ["cat"], 1)
