"""A curve in characters: every mark stands where its place is."""

import numpy as np
import pytest

from naysay.plots import BLOCK, PLAIN, terminal_curve
from naysay.quantity import estimate

SCORES = [0.52, 0.61, 0.66, 0.7, 0.72]
FOUND = estimate(0.75, SCORES)


def draw(found, width, height=12, marks=BLOCK):
    return terminal_curve(found.curve, found.k, found.flat, width, height, marks=marks)


@pytest.mark.parametrize("width", [20, 30, 60, 80, 200])
@pytest.mark.parametrize("k_max", [1, 2, 9, 1000, 12_345])
@pytest.mark.parametrize("marks", [BLOCK, PLAIN])
def test_the_plot_fits_and_marks_the_best(width, k_max, marks):
    found = estimate(0.75, SCORES, k_max=k_max)
    lines = draw(found, width, marks=marks)
    assert len(lines) == 15
    assert max(map(len, lines)) <= max(width, 30)
    columns = len(lines[12]) - 7
    place = round((columns - 1) * np.log(found.k) / np.log(k_max)) if k_max > 1 else 0
    assert lines[14].index(marks.best) == 7 + place
    ends = [round((columns - 1) * np.log(k) / np.log(k_max)) if k_max > 1 else 0 for k in found.flat]
    marked = [column - 7 for column, mark in enumerate(lines[14]) if mark in (marks.best, marks.flat)]
    assert marked == list(range(ends[0], ends[1] + 1))
    assert lines[0].startswith(f"{found.curve.max():.3f}")
    assert lines[11].startswith(f"{found.curve.min():.3f}")
    assert all(line == line.rstrip() for line in lines)


def test_stars_are_where_the_curve_is():
    """Column by column: the star is at the height of v, to half a row, with no gap to the column before and no more."""
    found = estimate(0.75, SCORES, k_max=100)
    lines = draw(found, 87, marks=PLAIN)
    area = [line[7:].ljust(80) for line in lines[:12]]
    top, bottom = found.curve.max(), found.curve.min()
    before = None
    for column in range(80):
        k = 100 ** (column / 79)
        low = int(k)
        v = found.curve[low - 1] + (k - low) * (found.curve[min(low, 99)] - found.curve[low - 1])
        row = round((top - v) / (top - bottom) * 11)
        step = 0 if before is None else row - before
        expected = range(row - step + 1, row + 1) if step > 0 else range(row, row - step) if step < 0 else [row]
        assert [place for place in range(12) if area[place][column] == "*"] == list(expected)
        before = row


def test_braille_has_the_dots_of_stars_at_twice_and_four_times_the_size():
    dots = draw(FOUND, 80, height=6)
    stars = draw(FOUND, 7 + 2 * 73, height=24, marks=PLAIN)
    for row in range(24):
        line = stars[row][7:].ljust(146)
        for column in range(146):
            code = ord(dots[row // 4][7:].ljust(73)[column // 2])
            bit = [[0, 3], [1, 4], [2, 5], [6, 7]][row % 4][column % 2]
            assert (code != 32 and bool((code - 0x2800) >> bit & 1)) == (line[column] == "*")


def test_names_of_ticks():
    assert draw(FOUND, 80)[13].split() == ["1", "10", "100", "1000"]
    assert draw(estimate(0.75, SCORES, k_max=1100), 80)[13].split() == ["1", "10", "100", "1100"]
    assert draw(estimate(0.75, SCORES, k_max=7), 80)[13].split() == ["1", "7"]
