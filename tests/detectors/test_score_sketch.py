"""The sketch: counts within the bound that it states, for any stream."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from naysay.detectors._scores import rounded
from naysay.detectors.score_sketch import SIZE, ScoreSketch
from naysay.errors import NaysayError


def floats(width):
    return st.floats(width=width, allow_nan=False, allow_infinity=False)


def at_least(scores, value):
    return sum(1 for score in scores if score >= value)


def sketched(scores, size, block=7):
    sketch = ScoreSketch(size=size)
    for start in range(0, len(scores), block):
        sketch.update(scores[start : start + block])
    return sketch


def check_bound(sketch, scores, places):
    """Every count is within the stated distance, on the stated side."""
    for place, found in zip(places, sketch.at_least(places).tolist(), strict=True):
        truth = at_least(scores, place)
        assert -sketch.under <= found - truth <= sketch.over
        assert abs(found - truth) <= sketch.rank_error * len(scores) + 1e-9


# ---- scores ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_any_floats_are_sorted_and_minus_zero_counts_as_zero(dtype):
    tiny, largest = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    numbers = np.array([largest, 1.5, 0, -0.0, tiny, -tiny, -1, -largest], dtype)
    sketch = sketched(numbers, 100)
    assert str(sketch.kept()[0].tolist()) == str(sorted({*(numbers + dtype(0)).tolist()}))
    assert sketch.at_least([0.0, -0.0]).tolist() == [5, 5]
    assert str(sketched(np.array([-0.0, -0.0], dtype), 4).largest) == "0.0"


def test_thresholds_beyond_the_largest_float16_are_infinite_without_a_warning():
    assert rounded([1e9, 0.1], np.dtype(np.float16)).tolist() == [np.inf, float(np.float16(0.1))]


# ---- counts ---------------------------------------------------------------------------------------------------------


@given(
    arrays(np.float32, st.integers(1, 120), elements=st.floats(-2, 2, width=32) | st.sampled_from([0.0, 0.5, 1.0])),
    st.integers(1, 5),
    st.integers(1, 40),
)
def test_counts_are_within_the_bound_whatever_the_scores(scores, size, block):
    sketch = sketched(scores, size, block)
    assert sketch.n == len(scores)
    assert (sketch.smallest, sketch.largest) == (min(scores), max(scores))
    check_bound(sketch, scores.tolist(), [*np.unique(scores).tolist(), -3.0, 3.0])
    assert sketch.at_least([-3.0, 3.0]).tolist() == [len(scores), 0]  # no weight is lost


ADVERSARIES = {
    "sorted": lambda rng, n: np.sort(rng.standard_normal(n)),
    "reversed": lambda rng, n: np.sort(rng.standard_normal(n))[::-1],
    "constant": lambda rng, n: np.full(n, 0.3),
    "ties": lambda rng, n: 1.0 / rng.zipf(1.3, n),
    "denormals": lambda rng, n: rng.integers(-500, 500, n) * float(np.finfo(np.float32).smallest_subnormal),
    "in and out": lambda rng, n: np.stack([np.arange(n // 2), -np.arange(n // 2)], axis=1).ravel(),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_adversarial_streams_stay_within_the_bound(name):
    scores = ADVERSARIES[name](np.random.default_rng(0), 1 << 15).astype(np.float32)
    sketch = sketched(scores, 64, 1000)
    places = np.unique(scores)[:: max(1, len(np.unique(scores)) // 500)]
    error = np.abs(sketch.at_least(places) - (scores >= places[:, None]).sum(axis=1))
    assert error.max() <= sketch.rank_error * len(scores)
    assert 0 < sketch.rank_error <= (math.log2(len(scores) / 64) + 2) / (4 * 64)
    if name == "constant":
        assert error.max() == 0


@pytest.mark.parametrize("size", [4, 64])
def test_the_stated_growth_of_the_bound_holds_and_keeps_the_promise_up_to_1e11(size):
    sketch, block = ScoreSketch(size=size), np.arange(size, dtype=np.float32)
    for level in range(12):
        while sketch.n < size << level:
            sketch.add(block)
        assert sketch.rank_error <= (level + 2) / (4 * size)
    assert (math.log2(1e11 / SIZE) + 2) / (4 * SIZE) < 1e-5


def test_below_two_buffers_everything_is_exact():
    scores = np.random.default_rng(0).standard_normal(127)
    sketch = sketched(scores, 64)
    assert (sketch.over, sketch.under, sketch.rank_error) == (0, 0, 0.0)
    assert sketch.at_least(scores).tolist() == [at_least(scores, value) for value in scores]
    sketch.update([0.0])
    assert sketch.over == 1


def test_values_are_compared_in_the_precision_of_the_scores():
    sketch = ScoreSketch()
    sketch.update(np.array([0.121, 0.335], np.float32))  # the first is below 0.121 as a float64
    assert sketch.at_least([0.121, 0.335]).tolist() == [2, 1]


def test_memory_is_a_buffer_for_each_doubling():
    sketch = sketched(np.zeros(1 << 13, np.float32), 16, 64)
    assert len(sketch._levels) == 1 + 9
    assert all(level is None or len(level) == 16 for level in sketch._levels)


# ---- merging --------------------------------------------------------------------------------------------------------


@given(
    arrays(np.float64, st.integers(1, 90), elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]) | floats(32)),
    st.lists(st.integers(0, 90), max_size=5),
    st.integers(1, 4),
)
def test_a_merged_sketch_holds_its_bound_for_any_split(scores, ends, size):
    merged = ScoreSketch(size=size)
    for part in np.split(scores, sorted(min(end, len(scores)) for end in ends)):
        other = sketched(part, size)
        before = (other.n, other.over, other.under)
        merged.merge(other)
        assert (other.n, other.over, other.under) == before
    assert merged.n == len(scores)
    assert (merged.smallest, merged.largest) == (min(scores), max(scores))
    check_bound(merged, scores.tolist(), np.unique(scores).tolist())
    assert merged.rank_error <= (math.log2(max(len(scores) / size, 1)) + 2) / (2 * size)


def test_a_merged_sketch_is_the_sketch_of_both_where_nothing_was_halved():
    one, other = np.random.default_rng(0).standard_normal((2, 50))
    both, merged = sketched(np.concatenate([one, other]), 64), sketched(one, 64)
    merged.merge(sketched(other, 64))
    for part, expected in zip(merged.kept(), both.kept(), strict=True):
        assert part.tolist() == expected.tolist()
    assert merged.rank_error == both.rank_error == 0


def test_merging_nothing_changes_nothing():
    sketch, empty = sketched(np.array([1.0, 2.0]), 4), ScoreSketch(size=4)
    sketch.merge(ScoreSketch(size=4))
    empty.merge(sketch)
    assert empty.at_least([1.5]).tolist() == sketch.at_least([1.5]).tolist() == [1]
    assert ScoreSketch().rank_error == 0.0


# ---- refusals -------------------------------------------------------------------------------------------------------


def refusal(call, *arguments, **options):
    with pytest.raises(NaysayError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_errors():
    sketch = sketched(np.array([1.0, 2.0]), 4)
    assert refusal(ScoreSketch, size=0) == "ScoreSketch: `size` must be at least 1, got 0."
    assert refusal(ScoreSketch().at_least, [1]) == (
        "ScoreSketch.at_least: `scores` must be at least one, got none. Call update first."
    )
    assert refusal(sketch.merge, sketch) == "ScoreSketch.merge: `other` must be another ScoreSketch, got itself."
    assert refusal(sketch.merge, 3) == "ScoreSketch.merge: `other` must be another ScoreSketch, got a int."
    assert refusal(sketch.merge, ScoreSketch(size=8)) == "ScoreSketch.merge: `other` must be of size 4, got size 8."
    narrow = sketched(np.array([1.0], np.float32), 4)
    sentence = "`scores` must be of dtype float64, like those before, got float32. Convert to one dtype."
    assert refusal(sketch.merge, narrow) == f"ScoreSketch.merge: {sentence}"
    assert refusal(sketch.update, np.ones(2, np.float32)) == f"ScoreSketch.update: {sentence}"


def test_a_rejected_array_leaves_the_sketch_as_it_was():
    sketch = sketched(np.array([1.0, 2.0]), 4)
    scores = np.ones(1 << 19)  # more than a block
    scores[-1] = np.nan
    assert "`scores` must be finite, got nan at row 524287" in refusal(sketch.update, scores)
    assert (sketch.n, sketch.largest) == (2, 2.0)
    assert "like those before" in refusal(sketch.update, [np.ones(2, np.float32)])
    assert sketch.n == 2
