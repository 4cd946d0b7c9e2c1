"""An anchor is not its own negative: by its row, by its id, by a copy of its text or of its vector."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naysay as ns
from naysay.errors import NaysayError
from naysay.mining import _known, mine
from naysay.mining._known import equal_pairs, equal_vectors, read_own, text_keys
from naysay.search.vectors import as_vectors

RNG = np.random.default_rng(0)
CORPUS = RNG.normal(size=(40, 6)).astype(np.float32)
ROWS = np.array([7, 3, -1, 39, 12])
QUERIES = np.where(ROWS[:, None] >= 0, CORPUS[ROWS] + np.float32(0.01), RNG.normal(size=(5, 6)).astype(np.float32))
NAMES = [f"d{row}" for row in range(40)]
OWN_NAMES = [f"d{row}" if row >= 0 else "elsewhere" for row in ROWS]


@pytest.mark.parametrize("judge", [None, "auto", "share:0.95"])
@pytest.mark.parametrize(
    "same", [ROWS, ROWS.tolist(), (OWN_NAMES, NAMES), (np.array(OWN_NAMES), np.array(NAMES))], ids=range(4)
)
def test_queries_that_are_some_of_the_corpus(same, judge):
    plain = mine(QUERIES, CORPUS, None, 3, judge=None)
    assert (plain.ids[:, 0] == ROWS)[ROWS >= 0].all()  # each is nearest to itself
    found = mine(QUERIES, CORPUS, None, 3, same_ids=same, judge=judge)
    assert not ((found.ids == ROWS[:, None]) & (ROWS >= 0)[:, None]).any()
    assert found.dropped["anchor"].tolist() == (ROWS >= 0).astype(int).tolist()
    if judge is None:
        assert found.ids[2].tolist() == plain.ids[2].tolist()
        assert (found.rank[ROWS >= 0, 0] == 2).all()


def test_the_same_by_other_sources():
    lists = np.tile(np.arange(40), (5, 1))
    found = mine(QUERIES, CORPUS, (np.array([0]), np.array([7])), 3, same_ids=ROWS, judge=None, sources={"all": lists})
    assert not ((found.ids == ROWS[:, None]) & (ROWS >= 0)[:, None]).any()
    assert found.dropped["anchor"].tolist() == [0, 2, 0, 2, 2]  # of each source
    assert found.dropped["positive"].tolist() == [2, 0, 0, 0, 0]


def test_texts_of_queries_that_are_in_the_corpus():
    texts = [f"text {row}" for row in range(39)] + ["text 7"]
    found = mine(QUERIES, CORPUS, None, 39, same_ids=ROWS, judge="max_score:1.1", duplicates=texts)
    assert found.dropped["duplicate"].tolist() == [1, 0, 0, 1, 0]  # 39 is a copy of 7


@pytest.mark.parametrize(
    ("same", "message"),
    [
        ([1, 2], r"`same_ids` must be True, \(5,\) the corpus row of each query, .* got shape \(2,\)"),
        (np.array([1, 2, 3, 4, 40]), r"`same_ids` must be between -1 and 39 \(40 corpus rows\), got 40 at row 4"),
        ((OWN_NAMES[:3], NAMES), r"`same_ids` must be 5 query ids, got 3"),
        ((OWN_NAMES, NAMES[:3]), r"`same_ids` must be 40 corpus ids, got 3"),
        ((OWN_NAMES, ["d1"] * 40), r"`same_ids` must be distinct, got 'd1' at rows 0 and 1"),
        ((OWN_NAMES, [None] * 40), r"`same_ids` must be ids that are strings or whole numbers, got None at row 0 \(40"),
        (True, r"unless queries are the 40 corpus rows, got 5 queries\. Pass the corpus row of each query"),
    ],
    ids=range(7),
)
def test_what_same_ids_cannot_be(same, message):
    with pytest.raises(NaysayError, match=message):
        mine(QUERIES, CORPUS, None, 3, same_ids=same)


def test_none_is_the_same():
    assert read_own(False, 3, 4) is None
    assert read_own(None, 3, 4) is None
    assert read_own(True, 2, 2).pairs()[1].tolist() == [0, 1]


@pytest.mark.parametrize("judge", [None, "auto"])
def test_a_copy_of_the_query_is_left_out(judge):
    queries = np.concatenate([CORPUS[ROWS[:2]], RNG.normal(size=(1, 6)).astype(np.float32)])
    corpus = np.concatenate([CORPUS, CORPUS[[7]]])
    labelled = (np.array([1, 2]), np.array([3, 5]))  # row 3 is a copy of query 1, and its positive
    found = mine(queries, corpus, labelled, 4, judge=judge)
    assert not np.isin(found.ids[0], [7, 40]).any()
    assert found.dropped["anchor"].tolist() == [2, 0, 0]
    assert found.dropped["positive"][1] == 1
    note = "1 anchors have their own vector in the corpus under another id. These documents are left out (keep_own"
    assert found.notes[0].startswith(note)
    kept = mine(queries, corpus, labelled, 4, judge=None, keep_own_text=True)
    assert kept.ids[0, :2].tolist() == [7, 40]
    assert not kept.notes


@settings(max_examples=50)
@given(st.lists(st.integers(0, 6), max_size=12), st.lists(st.integers(0, 6), max_size=30), st.integers(1, 7))
def test_equal_keys_as_in_loops(anchors, items, size):
    keys = np.array(anchors, np.uint64)
    blocks = [np.array(items[start : start + size], np.uint64) for start in range(0, len(items), size)]
    found = sorted(zip(*(part.tolist() for part in equal_pairs(keys, blocks)), strict=True))
    assert found == [(a, i) for a, key in enumerate(anchors) for i, other in enumerate(items) if key == other != 0]


def test_the_first_copies_of_one_text(monkeypatch):
    monkeypatch.setattr(_known, "_COPIES", 3)
    blocks = [np.array([5, 5], np.uint64), np.array([9, 5, 5, 9], np.uint64)]
    found = sorted(zip(*(part.tolist() for part in equal_pairs(np.array([5, 9, 5], np.uint64), blocks)), strict=True))
    assert found == [(0, 0), (0, 1), (0, 3), (1, 2), (1, 5), (2, 0), (2, 1), (2, 3)]


@settings(max_examples=50)
@given(st.integers(0, 1000), st.sampled_from([np.float16, np.float32, np.float64]), st.sampled_from([1, 2]))
def test_equal_vectors_as_in_loops(seed, kind, width):
    rng = np.random.default_rng(seed)
    queries = rng.choice([-1.0, -0.0, 0.0, 1.0], (6, width)).astype(kind)
    corpus = rng.choice([-1.0, -0.0, 0.0, 1.0], (9, width)).astype(np.float32)
    found = equal_vectors(as_vectors("queries", queries), as_vectors("corpus", corpus))
    expected = [(a, i) for a in range(6) for i in range(9) if (queries[a] == corpus[i]).all()]
    assert sorted(zip(*(part.tolist() for part in found), strict=True)) == expected


def test_keys_of_texts():
    keys = text_keys(["a  b\n", " a b", "A b", "", " \t", "a b\ud800"])
    assert keys[0] == keys[1]
    assert len({*keys[[0, 2, 5]].tolist()}) == 3
    assert (keys[3:5] == 0).all()


def test_the_stage_takes_rows():
    found = ns.mining.Candidates.of(ns.search.Found(np.array([[1, 2], [0, -1]]), np.ones((2, 2), np.float32)))
    left = ns.mining.exclude(found, same_ids=np.array([2, -1]))
    assert left.ids[left.kept].tolist() == [1, 0]
    with pytest.raises(
        NaysayError, match=r"`same_ids` must be True or False, or \(2,\) the item of each row, got shape"
    ):
        ns.mining.exclude(found, same_ids=np.array([2]))
