"""Loops over rows by difficulty, against plain sorts and sums, and scores against the fixed kernel."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay.kernels import dots
from naysay.kernels import percentiles as kernels

# Few different values, so that scores are often equal; neighbours in either number type, and the ends of float32.
NEXT = [
    float(np.nextafter(kind(value), kind(9 * value))) for kind in (np.float32, np.float64) for value in (-1.5, 0.25)
]
VALUES = [-3e38, -1.5, -1e-30, 0.0, 1e-40, 0.25, 2.0, 3e38, *NEXT]


@st.composite
def tables(draw, dtype):
    """(scores, kept or None)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 300)))
    scores = np.where(
        rng.random(shape) < draw(st.sampled_from([0, 0.5, 1])), rng.choice(VALUES, shape), rng.standard_normal(shape)
    )
    return scores.astype(dtype), rng.random(shape) < 0.7 if draw(st.booleans()) else None


def order_of(scores, kept=None):
    bits = scores.view(np.uint32 if scores.dtype == np.float32 else np.uint64)
    order, counts = np.full(scores.shape, 99, np.int32), np.full(len(scores), -1)
    kernels.hardest_first(0, len(scores), bits, np.empty((0, 0), bool) if kept is None else kept, order, counts)
    return order, counts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_highest_first_and_the_earlier_slot_among_equals(dtype, data):
    scores, kept = data.draw(tables(dtype))
    order, counts = order_of(scores, kept)
    for row, line in enumerate(scores.tolist()):
        slots = [slot for slot in range(len(line)) if kept is None or kept[row, slot]]
        slots.sort(key=lambda slot: (-line[slot], slot))
        assert counts[row] == len(slots)
        assert order[row].tolist() == slots + [-1] * (len(line) - len(slots))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.sampled_from([1, 255, 256, 257, 600]), st.integers(1, 9), st.booleans(), st.data())
def test_scores_are_the_bytes_of_the_fixed_kernel(rows, many, width, cosine, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    anchors, negatives = rng.standard_normal((rows, width)), rng.standard_normal((many, width))
    ours, theirs = (np.linalg.norm(part, axis=1) for part in (anchors, negatives))
    wanted, found = np.empty((rows, many), np.float32), np.full((rows, many), 7, np.float32)
    dots.all_scores(0, rows, dots.COSINE if cosine else dots.DOT, anchors, ours, negatives, theirs, wanted)
    half = rows // 2
    columns = np.ascontiguousarray(negatives.T)
    for start, stop in ((0, half), (half, rows)):
        kernels.pair_scores(start, stop, cosine, anchors, ours, columns, theirs, found)
    assert found.tobytes() == wanted.tobytes()


def test_only_its_own_rows_are_written():
    scores = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32)
    order, counts = np.full((5, 40), 99, np.int32), np.full(5, -1)
    kernels.hardest_first(1, 3, scores.view(np.uint32), np.empty((0, 0), bool), order, counts)
    assert counts.tolist() == [-1, 40, 40, -1, -1]
    assert (order[[0, 3, 4]] == 99).all()
    out = np.full((5, 300), 7, np.float32)
    kernels.pair_scores(1, 3, False, np.ones((5, 2)), np.ones(5), np.ones((2, 300)), np.ones(300), out)
    assert (out[[0, 3, 4]] == 7).all()
    assert (out[1:3] == 2).all()


@settings(max_examples=30, deadline=None)
@given(tables(np.float64), st.integers(1, 12))
def test_sums_over_intervals(table, parts):
    scores, kept = table
    order, counts = order_of(scores, kept)
    values = np.arange(scores.size, dtype=float).reshape(scores.shape)
    ends = np.arange(parts + 1) / parts
    begins, stops = np.array([*range(parts), 0, 0]), np.array([*range(1, parts + 1), parts, 0])
    out = np.empty((len(scores), parts + 2))
    kernels.interval_sums(0, len(scores), order, counts, values, ends, begins, stops, out)
    for row in range(len(scores)):
        size = counts[row]
        sums = []
        for part in range(parts):
            first, last = (math.floor((1 - end) * size + 1e-9) for end in (ends[part + 1], ends[part]))
            sums.append(sum(values[row, slot] for slot in order[row, first:last]))
        assert out[row].tolist() == [*sums, sum(sums), 0]
        assert sum(sums) == sum(values[row, slot] for slot in order[row, :size])  # none twice, none left out


def test_rows_are_added_in_order():
    """Sums that overflow exactness: any other order gives another number."""
    part = np.array([[1e16], [1.0], [-1e16], [1.0]])
    sums = np.zeros((1, 6))
    kernels.add_moments(part, np.ones((4, 1)), sums)
    assert sums[0].tolist() == [4, 4, 1, 4, 1, float(np.cumsum(part[:, 0] ** 2)[-1])]
    totals = np.zeros((2, 1, 1))
    kernels.add_rows(np.array([1, 1, 1, 1]), part[:, None], totals)
    assert totals.tolist() == [[[0.0]], [[1.0]]]
