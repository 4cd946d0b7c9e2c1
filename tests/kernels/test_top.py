"""The highest of a row by a list kept in order, against a plain sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from naysay.kernels.top import highest, lower_limit

# Few different values, so that scores are often equal; -inf marks an empty slot.
LINES = hnp.arrays(np.float32, st.integers(1, 70), elements=st.sampled_from([-np.inf, -1.5, 0, 2, 3, np.inf]))


def plain(line, width):
    return sorted(range(len(line)), key=lambda slot: (-line[slot], slot))[:width]


@given(LINES, st.data())
def test_highest_first_and_the_earlier_slot_among_equals(line, data):
    width = data.draw(st.integers(1, len(line)))
    order = np.full((2, width), -1)
    highest(0, 2, np.stack([line, line[::-1]]), order)
    assert order.tolist() == [plain(line.tolist(), width), plain(line[::-1].tolist(), width)]


@given(LINES, st.data())
def test_enough_scores_reach_the_lower_limit(line, data):
    groups = data.draw(st.integers(1, len(line)))
    width = data.draw(st.integers(1, groups))
    limit = lower_limit(line, np.empty(groups, np.float32), width)
    assert (line >= limit).sum() >= width
    assert limit in line or limit == -np.inf


def test_few_other_scores_reach_the_lower_limit():
    lines = np.random.default_rng(0).standard_normal((1000, 64)).astype(np.float32)
    reached = [(line >= lower_limit(line, np.empty(16, np.float32), 8)).sum() for line in lines]
    assert min(reached) >= 8
    assert np.mean(reached) < 12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_its_own_rows_are_written(dtype):
    scores = np.random.default_rng(0).standard_normal((5, 40)).astype(dtype)
    order = np.full((5, 7), -1)
    highest(1, 3, scores, order)
    assert (order[[0, 3, 4]] == -1).all()
    assert order[1:3].tolist() == [plain(line.tolist(), 7) for line in scores[1:3]]
