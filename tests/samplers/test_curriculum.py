"""Curricula: numbers that move with the step."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naysay.errors import NaysayError
from naysay.quantity import Linear
from naysay.quantity.schedules import at_step

ENDS = st.floats(-1e6, 1e6)
WHOLE = st.integers(-1000, 1000)


def test_a_number_stays_and_a_function_is_asked():
    assert at_step(7, 3) == 7
    assert at_step(None, 3) is None
    assert at_step(lambda step: 10 * step, 3) == 30
    assert at_step(Linear(0.0, 1.0, steps=4), 3) == 0.75


def test_golden():
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


def test_numpy_numbers_are_numbers():
    assert Linear(np.float32(1.0), np.int64(3), steps=np.int64(2))(1) == 2.0


def test_equal_lines_are_equal_and_frozen():
    assert Linear(1, 2, steps=3) == Linear(1, 2, steps=3) != Linear(1, 2, steps=4)
    with pytest.raises(AttributeError):
        Linear(1, 2, steps=3).start = 5


@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf])
@pytest.mark.parametrize("name", ["start", "stop"])
def test_ends_that_are_no_number_are_refused(name, value):
    ends = {"start": 0.0, "stop": 1.0} | {name: value}
    with pytest.raises(NaysayError, match=rf"^Linear: `{name}` must be a finite number, got {value!r}\.$"):
        Linear(**ends, steps=1)


def test_steps_are_a_whole_number_above_0():
    with pytest.raises(NaysayError, match=r"^Linear: `steps` must be at least 1, got 0\.$"):
        Linear(0, 1, steps=0)
    with pytest.raises(NaysayError, match=r"^Linear: `steps` must be a whole number, got 1\.5\.$"):
        Linear(0, 1, steps=1.5)
