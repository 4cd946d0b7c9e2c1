"""The bounds hold against exact arithmetic, also where rounding is worst, and are not idle."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay.kernels.dots import COSINE, DOT, L2
from naysay.search import _products as engines

FAST = ("int8", "float32")


def engine_of(name, width, device=None):
    return engines.choose(name, 1, width, lambda: np.empty((0, width), np.float32), device)


def rounded(engine, rows):
    found = engines.Rounded.empty(engine, *rows.shape)
    engines.round_rows(0, len(rows), rows, found)
    return found


def limits(name, metric, queries, corpus, device=None):
    """upper and lower, as the loop computes them, and what turns scores to their units."""
    engine = engine_of(name, queries.shape[1], device)
    one, two = rounded(engine, queries), rounded(engine, corpus)
    norms = [np.sqrt((rows.astype(np.float64) ** 2).sum(1)) for rows in (queries, corpus)]
    units = engines.Units(metric, norms[1].max() or 1.0, max(norms[0].max(), norms[1].max()) or 1.0)
    a, b, c, slack = (term[:, None] for term in engines.query_terms(units, one))
    scale, size, lost, offset = engines.corpus_terms(engine, units, two)
    multiply = engines.product(engine.name, len(queries), len(corpus), device)
    products = multiply(engines.moved(one.codes, device), engines.moved(two.codes, device)).astype(np.float32)
    upper = products * (a * scale) + (b * size + c * lost) + offset + slack
    lower = upper - np.float32(2) * ((b * size + c * lost) + slack) + np.float32(2.0**-17) * offset
    assert upper.dtype == lower.dtype == np.float32
    return upper, lower, units, norms[0][:, None]


def exact(metric, query, row):
    """A score by exact arithmetic, rounded at the end: no sum of ours can be more than an ulp of float64s away."""
    pairs = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(query, row, strict=True)]
    if metric == L2:
        return -(float(sum((a - b) ** 2 for a, b in pairs)) ** 0.5)
    dot = float(sum(a * b for a, b in pairs))
    if metric == DOT:
        return dot
    return dot / float(sum(a * a for a, _ in pairs)) ** 0.5 / float(sum(b * b for _, b in pairs)) ** 0.5


def check(name, metric, queries, corpus, device=None):
    """Every score is between its bounds; returns the largest share of a bound that was used up."""
    upper, lower, units, norms = limits(name, metric, queries, corpus, device)
    scores = np.array([[exact(metric, query, row) for row in corpus] for query in queries]).astype(np.float32)
    found = units.of_scores(scores, norms)
    assert (lower <= found).all()
    assert (found <= upper).all()
    middle, half = (upper.astype(float) + lower) / 2, (upper.astype(float) - lower) / 2
    return float((np.abs(found - middle) / half).max())


@pytest.mark.parametrize("metric", [DOT, COSINE, L2])
@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("width", [1, 2, 65])
def test_scores_are_between_their_bounds(name, metric, width):
    rng = np.random.default_rng(width)
    queries = rng.normal(size=(3, width)) * 10.0 ** rng.integers(-3, 4, (3, 1))
    corpus = rng.normal(size=(4, width)) * 10.0 ** rng.integers(-3, 4, (4, 1))
    for dtype in (np.float16, np.float32, np.float64):
        given = [rows.astype(dtype).astype(np.float64) for rows in (queries, corpus)]
        check(name, metric, *given)
        check(name, metric, *given, device="cpu")


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_whatever_the_numbers(data):
    width = data.draw(st.integers(1, 6))
    number = st.floats(-(2.0**50), 2.0**50, width=32).filter(lambda x: x == 0 or abs(x) > 1e-18)
    vector = st.lists(number, min_size=width, max_size=width).filter(any)
    queries = np.array(data.draw(st.lists(vector, min_size=1, max_size=2)), np.float32)
    corpus = np.array(data.draw(st.lists(vector, min_size=1, max_size=3)), np.float32)
    for name in FAST:
        for metric in (DOT, COSINE, L2):
            check(name, metric, queries, corpus)


def worst(name, width):
    """Vectors that lie as far from the grid as they can, all to one side, with errors that add up."""
    if name == "int8":  # the largest is 127 steps, all others half a step off
        row = np.full(width, 50.4999)
        row[0] = 127.0
        return row
    # A norm of exactly 1 keeps the grid where we want it: the last coordinates make it so.
    value = 2.0**-4 * (1 + 0.999 * 2.0**-24)
    row = np.full(width, value)
    row[-1] = np.sqrt(1 - value**2 * (width - 1))
    return row


@pytest.mark.parametrize("name", FAST)
def test_the_worst_rounding_uses_most_of_the_bound(name):
    """A bound twice too small would fail here: aligned errors use up much of it, so it is not idle."""
    row = worst(name, 128)
    used = check(name, DOT, row[None], np.stack([row, -row]))
    assert used > {"int8": 0.6, "float32": 0.0005}[name]


@pytest.mark.parametrize("name", FAST)
def test_sums_that_cancel(name):
    """Large terms of both signs: a product in float32 loses what float64 keeps."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 100)) * 1e6
    queries = np.concatenate([half, half], axis=1)
    corpus = np.concatenate([half, -half + rng.normal(size=half.shape) * 1e-3], axis=1)
    for metric in (DOT, COSINE, L2):
        check(name, metric, queries, corpus)
