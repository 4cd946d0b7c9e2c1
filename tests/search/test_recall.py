"""Found and Recall: shapes and types, recall against sets in loops, tuning to a target."""

import math

import numpy as np
import pytest
from index_world import CORPUS, QUERIES, clustered, even
from plain_search import plain_search

import naysay as ns
from naysay.errors import NaysayError
from naysay.search import _index_rules as rules
from naysay.search.exact import Found
from naysay.search.index import Index
from naysay.search.recall import Recall, check_recall, recall_of


def test_the_same_setting_finds_all_on_one_corpus_and_a_part_on_another():
    near = Index.build(clustered(4000, 12)).measure(clustered(300, 13), 20)
    far = Index.build(even(4000, 12)).measure(even(300, 13), 20)
    assert near.setting == far.setting == "nprobe 8"
    assert near.value > 0.95
    assert far.value < 0.7
    assert near.low > far.high


def test_measured_recall_is_that_of_sets_in_loops(built):
    recall = built["ivf"].measure(QUERIES, 15, sample=10, seed=5)
    rows = sorted(ns.rng_for(5).choice(40, 10, replace=False).tolist())
    right = plain_search(QUERIES[rows], CORPUS, 15)
    found = built["ivf"].search(QUERIES[rows], 15)
    shares = [len(set(a) & set(b)) / 15 for a, b in zip(right.ids.tolist(), found.ids.tolist(), strict=True)]
    assert recall.value == pytest.approx(sum(shares) / 10, abs=1e-12)
    assert (recall.n, recall.depth, recall.note) == (10, 15, "")
    assert 0 <= recall.low <= recall.value <= recall.high <= 1
    assert built["ivf"].measure(QUERIES, 15, sample=10, seed=5) == recall
    assert built["ivf"].measure(QUERIES, 15, sample=1000).n == 40


def test_of_equal_scores_one_is_as_good_as_another():
    exact = Found(np.array([[1, 2]]), np.array([[0.9, 0.5]], np.float32))
    assert recall_of(Found(np.array([[1, 7]]), np.array([[0.9, 0.5]], np.float32)), exact, "").value == 1
    assert recall_of(Found(np.array([[1, 7]]), np.array([[0.9, 0.4]], np.float32)), exact, "").value == 0.5
    assert recall_of(Found(np.array([[1, -1]]), np.array([[0.9, -np.inf]], np.float32)), exact, "").value == 0.5


def test_a_row_that_cannot_be_full_is_measured_by_what_there_is():
    exact = Found(np.array([[1, -1], [3, 4]]), np.array([[0.9, -np.inf], [0.8, 0.7]], np.float32))
    found = Found(np.array([[1, -1], [3, -1]]), np.array([[0.9, -np.inf], [0.8, -np.inf]], np.float32))
    assert recall_of(found, exact, "").value == 0.75


def test_the_interval_is_that_of_clopper_and_pearson():
    """With all found the lower end is 0.025^(1/n); of 485 in 500 the tails of the binomial are 2.5 % each."""
    ones = Found(np.zeros((500, 1), np.int64), np.ones((500, 1), np.float32))
    recall = recall_of(ones, ones, "")
    assert (recall.value, recall.high) == (1, 1)
    assert recall.low == pytest.approx(0.025 ** (1 / 500), abs=1e-12)
    missing = ones.ids.copy()
    missing[:15] = -1
    recall = recall_of(Found(missing, ones.scores), ones, "")
    tail = sum(math.comb(500, i) * recall.low**i * (1 - recall.low) ** (500 - i) for i in range(485, 501))
    assert tail == pytest.approx(0.025, abs=1e-9)
    assert (round(recall.low, 4), round(recall.high, 4)) == (0.9510, 0.9831)


def test_tune_climbs_no_higher_than_it_must(monkeypatch):
    monkeypatch.setattr(rules, "_SHARE", 8)
    index = Index.build(even(4000, 14), seed=1)
    queries = even(200, 15)
    values = []
    for effort in rules.efforts("ivf", 4000):
        index.effort = effort
        values.append(index.measure(queries, 10, sample=100).value)
    assert values == sorted(values)
    wanted = values[1]
    recall = index.tune(queries, 10, min_recall=wanted, sample=100)
    assert (index.effort, recall.value, recall.note, recall.setting) == (16, wanted, "", "nprobe 16")
    short = index.tune(queries, 10, min_recall=1.0, sample=100)
    assert index.effort == rules.efforts("ivf", 4000)[-1] == 31
    assert short.value == values[-1] < 1
    assert str(short).endswith(
        "queries) with nprobe 31. Less than 1, and more effort would cost as much as an exact search"
    )


def test_a_graph_is_tuned_too(monkeypatch):
    monkeypatch.setattr(rules, "_ROWS_PER_STEP", 10)
    index = Index.build(even(4000, 16), kind="hnsw")
    first = index.measure(even(100, 17), 10)
    assert (first.setting, first.value < 1) == ("efSearch 32", True)
    recall = index.tune(even(100, 17), 10, min_recall=(first.value + 1) / 2)
    assert first.value < recall.value
    assert recall.setting == f"efSearch {index.effort}"
    assert index.effort in rules.efforts("hnsw", 4000)[1:]


def test_a_recall_below_the_least_raises():
    low = Recall(0.22, 0.1843, 0.259, 500, 100, "nprobe 8")
    check_recall(low, 0.22)
    message = (
        r"^check_recall: `min_recall` must be at most 0\.220, what the index reaches \(recall@100 0\.220 "
        r"\(95 % CI 0\.184 to 0\.259, 500 queries\) with nprobe 8\), got 0\.9\. "
        r"Search exactly, or let Index\.tune raise the setting\.$"
    )
    with pytest.raises(NaysayError, match=message):
        check_recall(low, 0.9)
    with pytest.raises(
        NaysayError, match=r"check_recall: `min_recall` must be a number at least 0 and at most 1, got 95"
    ):
        check_recall(low, 95)


def test_found_raises_arrays_that_do_not_fit():
    ids, scores = np.zeros((2, 3), np.int64), np.zeros((2, 3), np.float32)
    assert len(Found(ids, scores)) == 2
    with pytest.raises(NaysayError, match=r"Found: `ids` must be \(n, m\) int64, got \(2, 3\) int32"):
        Found(ids.astype(np.int32), scores)
    with pytest.raises(NaysayError, match=r"Found: `scores` must be \(n, m\) float32, got list"):
        Found(ids, scores.tolist())
    with pytest.raises(NaysayError, match=r"`scores` must be of shape \(2, 3\), like ids, got shape \(2, 2\)"):
        Found(ids, scores[:, :2])
