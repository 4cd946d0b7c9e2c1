"""The check of all vectors before a search."""

import threading

import numpy as np
from index_world import same
from search_world import world

from naysay.kernels.dots import COSINE
from naysay.search import open_vectors
from naysay.search._survey import survey, survey_both
from naysay.search.exact import SearchOptions, search


def test_norms_are_kept_for_vectors_in_memory_only(tmp_path):
    rows = np.array([[3.0, 4.0], [0.0, 2.0]])
    np.save(tmp_path / "rows.npy", rows)
    found = survey("corpus", open_vectors(rows), COSINE, 2)
    assert found.largest == 5
    assert found.norms is not None
    assert found.norms.tolist() == [5, 2]
    assert survey("corpus", open_vectors(tmp_path / "rows.npy"), COSINE, 1).norms is None


def test_a_search_takes_an_earlier_survey_of_more_queries():
    queries, corpus = world(5, 9, 80, 6)
    surveys = survey_both(open_vectors(queries), open_vectors(corpus), COSINE, 1)
    same(SearchOptions(surveys=surveys).run(queries[2:5], corpus, 4)[0], search(queries[2:5], corpus, 4))


def test_a_small_search_starts_no_thread(monkeypatch):
    """`Nearest` searches at every draw: threads would take longer than the search."""
    queries, corpus = world(6, 20, 500, 8)
    right = search(queries, corpus, 4, engine="float64", threads=2)

    def start(thread):
        raise AssertionError(thread.name)

    monkeypatch.setattr(threading.Thread, "start", start)
    same(search(queries, corpus, 4, threads=2), right)
