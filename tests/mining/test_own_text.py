"""An anchor is not its own negative: by its row, by its id, by a copy of its text or of its vector."""

import numpy as np
import pytest

from naysay.mining import mine

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
        assert (found.rank[:, 0] == 1).all()  # known pairs have no rank


def test_the_same_by_other_sources():
    lists = np.tile(np.arange(40), (5, 1))
    found = mine(QUERIES, CORPUS, (np.array([0]), np.array([7])), 3, same_ids=ROWS, judge=None, sources={"all": lists})
    assert not ((found.ids == ROWS[:, None]) & (ROWS >= 0)[:, None]).any()
    assert found.dropped["anchor"].tolist() == [0, 1, 0, 1, 1]
    assert found.dropped["positive"].tolist() == [1, 0, 0, 0, 0]


def test_texts_of_queries_that_are_in_the_corpus():
    texts = [f"text {row}" for row in range(39)] + ["text 7"]
    found = mine(QUERIES, CORPUS, None, 39, same_ids=ROWS, judge="max_score:1.1", duplicates=texts)
    assert found.dropped["duplicate"].tolist() == [1, 0, 0, 1, 0]  # 39 is a copy of 7


@pytest.mark.parametrize("judge", [None, "auto"])
def test_a_copy_of_the_query_is_left_out(judge):
    queries = np.concatenate([CORPUS[ROWS[:2]], RNG.normal(size=(1, 6)).astype(np.float32)])
    corpus = np.concatenate([CORPUS, CORPUS[[7]]])
    labelled = (np.array([1, 2]), np.array([3, 5]))  # row 3 is a copy of query 1, and its positive
    found = mine(queries, corpus, labelled, 4, judge=judge)
    assert not np.isin(found.ids[0], [7, 40]).any()
    assert found.dropped["own text"].tolist() == [2, 0, 0]
    assert found.dropped["positive"][1] == 1
    note = "1 anchors have their own vector in the corpus under another id. These documents are left out (keep_own"
    assert found.notes[0].startswith(note)
    kept = mine(queries, corpus, labelled, 4, judge=None, keep_own_text=True)
    assert kept.ids[0, :2].tolist() == [7, 40]
    assert not kept.notes
