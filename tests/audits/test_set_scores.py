"""Vectors of a training set: matched to its rows by name, and checked."""

import numpy as np
import pytest

import naysay as ns
from naysay.audits._training_set import checked_vectors, in_order, rows_of
from naysay.search import open_vectors

VECTORS = np.arange(8.0).reshape(4, 2) + 1


def test_vectors_come_in_the_order_of_the_set():
    vectors = open_vectors(VECTORS)
    rows = rows_of("corpus", 2, ["c", "a"], ["a", "b", "c", "d"], vectors)
    assert rows.tolist() == [2, 0]
    ordered = in_order(vectors, rows)
    assert ordered.n == 4
    assert ordered.rows(0, 9).tolist() == VECTORS[[2, 0, 1, 3]].tolist()
    assert ordered.take(np.array([0, 3])).tolist() == VECTORS[[2, 3]].tolist()
    assert in_order(vectors, np.arange(4)) is vectors
    assert rows_of("corpus", 2, None, None, vectors).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("size", "names", "given", "message"),
    [
        (5, None, None, "`corpus_vectors` must be of at least 5 rows, like the set, got 4."),
        (3, ["a", "b", "c"], None, "`corpus_vectors` must be of 3 rows, like the set, got 4. Pass `corpus_ids`"),
        (2, None, ["a"], "`corpus_ids` must be left out where the set has row numbers, got 1 names."),
        (2, ["a", "b"], "ab", "`corpus_ids` must be an existing file, got 'ab'."),
        (2, ["a", "b"], b"ab", "`corpus_ids` must be a list of names, or a file of them, got b'ab'."),
        (2, ["a", "b"], ["a"], "`corpus_ids` must be 4 names, one for each row of `corpus_vectors`, got 1."),
        (
            2,
            ["a", "x"],
            ["a", "b", "c", "d"],
            "`corpus_ids` must be names of all rows of the set, got none for 'x' (1 ",
        ),
    ],
)
def test_names_that_do_not_fit(size, names, given, message):
    with pytest.raises(ns.NaysayError) as caught:
        rows_of("corpus", size, names, given, open_vectors(VECTORS))
    assert str(caught.value).startswith(f"{message}")


def test_vectors_without_a_score():
    bad = VECTORS.copy()
    bad[2] = 0
    with pytest.raises(ns.NaysayError, match="`query_vectors` must be without zero vectors, which have no cosine"):
        checked_vectors("query_vectors", bad, "cosine")
    assert checked_vectors("query_vectors", bad, "dot").n == 4
