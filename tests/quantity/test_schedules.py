"""Schedules: the adaptive one and the linear one."""

import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_model import plain_schedule

from naysay.quantity import Linear, adaptive

# ---- adaptive -------------------------------------------------------------------------------------------------------


@given(st.floats(1, 1000), st.integers(1, 500), st.floats(0, 1), st.integers(0, 600))
def test_it_is_two_straight_lines(peak, steps, turning, step):
    k = adaptive(peak, steps, turning)(step)
    assert type(k) is float
    assert k == pytest.approx(plain_schedule(step, peak, steps, turning), rel=1e-12)
    assert 1 <= k <= peak * (1 + 1e-15)


def test_the_corners():
    k_at = adaptive(peak=12, steps=20_000)
    assert [k_at(step) for step in (0, 1000, 2000, 19_999, 20_000, 10**9)] == [1, 6.5, 12, 1, 1, 1]


@pytest.mark.parametrize(
    ("steps", "turning", "ks"),
    [
        (5, 0, [9, 7, 5, 3, 1]),
        (5, 0.0, [9, 7, 5, 3, 1]),
        (5, 1, [1, 3, 5, 7, 9]),
        (5, 0.4, [1, 5, 9, 5, 1]),
        (5, 0.9, [1, 3, 5, 7, 9]),
        (2, 0.1, [1, 1]),  # the turn lies between the two steps
        (2, 0, [9, 1]),
        (1, 0.1, [9]),
        (1, 1, [9]),
    ],
)
def test_short_runs_and_turnings_at_the_ends(steps, turning, ks):
    k_at = adaptive(9, steps, turning)
    assert [k_at(step) for step in range(steps)] == pytest.approx(ks)
    assert k_at(steps) == 1


def test_arrays_of_steps():
    k_at = adaptive(12.5, 100)
    steps = np.arange(120)
    found = k_at(steps)
    assert found.dtype == np.float64
    assert found.tolist() == [k_at(step) for step in range(120)]
    assert k_at(torch.tensor([0, 5])).tolist() == k_at([0, 5]).tolist()
    assert k_at(steps.reshape(4, 30)).shape == (4, 30)


def test_it_prints_compares_and_pickles():
    k_at = adaptive(np.int64(12), np.int32(100), np.float32(0.25))
    assert repr(k_at) == "adaptive(peak=12.0, steps=100, turning=0.25)"
    again = pickle.loads(pickle.dumps(k_at))
    assert again == k_at
    assert hash(again) == hash(k_at)
    assert again(7) == k_at(7)
    assert k_at != adaptive(13, 100, 0.25)
    with pytest.raises(FrozenInstanceError):
        k_at.peak = 3


# ---- Linear ---------------------------------------------------------------------------------------------------------

ENDS = st.floats(-1e6, 1e6)
WHOLE = st.integers(-1000, 1000)


def test_linear_golden():
    assert [Linear(1, 5, steps=8)(step) for step in range(10)] == [1, 2, 2, 3, 3, 4, 4, 5, 5, 5]  # halves go up
    assert [Linear(5, 1, steps=4)(step) for step in range(6)] == [5, 4, 3, 2, 1, 1]
    assert [Linear(-4, -1, steps=2)(step) for step in range(3)] == [-4, -2, -1]  # also below 0
    assert [Linear(1.0, 2, steps=2)(step) for step in range(3)] == [1.0, 1.5, 2.0]
    assert Linear(0.1, 0.7, steps=3)(3) == 0.7  # exactly


@given(ENDS, ENDS, st.integers(1, 50), st.integers(0, 100))
def test_a_straight_line_between_its_ends(start, stop, steps, step):
    line = Linear(start, stop, steps=steps)
    assert isinstance(line(step), float)
    assert line(0) == start
    assert line(steps) == line(steps + step) == stop
    low, high = sorted((start, stop))
    slack = 1e-9 * max(abs(low), abs(high))
    assert low - slack <= line(step) <= high + slack
    if step <= steps:
        assert math.isclose(line(step), start + (stop - start) * step / steps, rel_tol=1e-9, abs_tol=1e-9 + slack)


@given(WHOLE, WHOLE, st.integers(1, 50), st.integers(0, 60))
def test_whole_ends_give_the_nearest_whole_number(start, stop, steps, step):
    for ends in ((start, stop), (np.int64(start), np.int32(stop))):
        value = Linear(*ends, steps=steps)(step)
        assert type(value) is int
        assert abs(value - Linear(float(start), float(stop), steps=steps)(step)) <= 0.5 + 1e-9
        assert Linear(*ends, steps=steps)(steps) == stop


def test_equal_schedules_are_equal_and_frozen():
    assert Linear(1, 2, steps=3) == Linear(1, 2, steps=3) != Linear(1, 2, steps=4)
    with pytest.raises(AttributeError):
        Linear(1, 2, steps=3).start = 5
