"""Vectors so small that all products are 0 in float32 raise an error, wherever they are searched."""

import numpy as np
import pytest

import naysay as ns

ROWS = np.random.default_rng(0).standard_normal((40, 8))
KNOWN = ns.Positives.from_pairs(np.arange(40), np.arange(40), 40, 40)
SEARCHES = {
    "search": lambda queries, items, metric: ns.search.search(queries, items, 3, metric=metric).ids,
    "mine": lambda queries, items, metric: ns.mine(queries, items, KNOWN, k=3, judge=None, metric=metric).ids,
    "Nearest": lambda queries, items, metric: np.sort(
        ns.pools.Nearest(items, 3, KNOWN, queries=queries, metric=metric)
        .draw(ns.Query(np.arange(40)), 3, rng=ns.rng_for(0))
        .ids
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("left", "right"), [(1e-25, 1e-25), (1e-38, 1.0), (1.0, 1e-38)])
def test_products_that_float32_rounds_to_0_are_an_error(name, kind, left, right):
    with pytest.raises(ns.NaysayError) as error:
        SEARCHES[name]((left * ROWS).astype(kind), (right * ROWS).astype(kind), "dot")
    assert error.value.parameter == "queries"


@pytest.mark.parametrize("name", SEARCHES)
def test_small_vectors_are_searched_where_their_scores_are_not_too_small(name):
    plain = SEARCHES[name](ROWS, ROWS, "dot")
    assert np.array_equal(SEARCHES[name](1e-13 * ROWS, 1e-13 * ROWS, "dot"), plain)
    cosine = SEARCHES[name](ROWS, ROWS, "cosine")
    assert np.array_equal(SEARCHES[name](1e-25 * ROWS, 1e-25 * ROWS, "cosine"), cosine)


def test_vectors_of_zeros_have_scores_of_0():
    assert (ns.search.search(0 * ROWS, ROWS, 3, metric="dot").scores == 0).all()
