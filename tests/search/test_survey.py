"""The check of all vectors before a search."""

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
